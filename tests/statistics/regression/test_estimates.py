"""Estimates: the limit without noise, coverage, files, tables for people, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import (
    Estimates,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateGLM,
    ReleaseError,
    VerificationError,
    describe,
    estimate,
    verify,
)
from privlearn.mechanisms import NoisyCounts
from privlearn.mechanisms.noise import grid_step
from privlearn.release import CountsFile, digest_of, json_bytes, verify_bytes
from privlearn.statistics.regression import (
    expected_outer,
    forecast_widths,
    forest_plot,
    shrunk_moments,
    without_repulsion,
    write_page,
)

BENCHMARK = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "inference.py"))
fit_plainly, measure, schema_of, simulate, Setting = (
    BENCHMARK[name] for name in ("fit_plainly", "measure", "schema_of", "simulate", "Setting")
)
FORMULA = "y ~ x0 + x1 + x2"


def simulated(
    family: str, size: int = 6000, *, persons: bool = False, seed: int = 0
) -> tuple[dict[str, Any], Any, Any]:
    table, variables, _ = simulate(family, size, 3, persons, np.random.default_rng(seed))
    if family in ("logistic", "ordinal"):
        table["y"] = table["y"].astype(int)
    return table, variables, schema_of(family, variables.shape[1], persons, 1.0)


def estimated(family: str, epsilon: float = 1.0, seed: int = 0, **options: Any) -> Estimates:
    table, _, schema = simulated(family)
    return estimate(
        table, schema, FORMULA, family=family, epsilon=epsilon, delta=1e-6, random_state=seed, **options
    )


@pytest.mark.parametrize("family", ["logistic", "ordinal", "linear", "poisson"])
@pytest.mark.parametrize("persons", [False, True])
def test_without_noise_it_is_close_to_the_plain_fit(family: str, persons: bool) -> None:
    table, variables, schema = simulated(family, persons=persons)
    value, error = fit_plainly(family, variables, table["y"].astype(float), table["person"])
    result = estimate(table, schema, FORMULA, family=family, epsilon=math.inf, delta=0.0)
    rows = result.coefficients()
    if family == "ordinal":  # the plain fit returns its first intercept alone
        del rows[1 : result.intercepts]
    # weights of long rows change which records count most, not what is estimated
    assert all(abs(row.estimate - plain) < 2.5 * row.error for row, plain in zip(rows, value, strict=True))
    if family != "poisson":  # there, few long rows determine the plain fit
        assert [row.error for row in rows] == pytest.approx(error, rel=0.2)
    assert [row.privacy_cost for row in rows] == pytest.approx([1.0] * 4, abs=1e-3)


@pytest.mark.parametrize("family", ["logistic", "ordinal", "linear", "poisson"])
def test_the_limit_of_private_estimates_is_that_without_privacy(family: str) -> None:
    near, plain = (
        estimated(family, epsilon, accept_weak_privacy=True).coefficients() for epsilon in (1e6, math.inf)
    )
    assert all(
        abs(one.estimate - other.estimate) < 0.05 * other.error
        for one, other in zip(near, plain, strict=True)
    )
    assert [row.error for row in near] == pytest.approx([row.error for row in plain], rel=0.02)


@pytest.mark.parametrize("family", ["logistic", "ordinal", "linear", "poisson"])
def test_intervals_cover(family: str) -> None:
    """A small version of benchmarks/inference.py: 3 x 40 intervals, which the noise widens by about a third."""
    setting = Setting(family, 6000, 3, 1.0)
    result = measure(family, 6000, 3, [setting], tables=40, seed=0)[setting].summary()
    assert stats.binomtest(round(120 * result["coverage"]), 120, 0.95).pvalue > 1e-4
    assert result["p-values uniform (KS)"] > 1e-4
    assert 1.05 < result["median width"] < 2.0


def test_bounds_ten_times_too_wide_cost_little() -> None:
    settings = [Setting("logistic", 6000, 3, 1.0, factor) for factor in (1.0, 10.0)]
    results = measure("logistic", 6000, 3, settings, tables=8, seed=0)
    widths = [results[setting].summary()["median width"] for setting in settings]
    assert widths[1] < 1.1 * widths[0]


@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one", "add_remove"])
def test_files_are_verified(tmp_path: Path, neighbours: str) -> None:
    expected = {"expected_records": 6000} if neighbours == "add_remove" else {}
    result = estimated("logistic", 4.0, neighbours=neighbours, **expected)
    result.save(tmp_path / "t.estimates")
    assert verify(tmp_path / "t.estimates").recomputed <= result.guarantee
    again = Estimates.load(tmp_path / "t.estimates")
    assert again.summary() == result.summary()
    raw = (tmp_path / "t.estimates").read_bytes()
    with pytest.raises((VerificationError, ReleaseError)):
        Estimates.from_bytes(raw.replace(b'"noise_scale": ', b'"noise_scale": 1'))


@pytest.mark.parametrize("kind", ["counts", "matrix"])
def test_a_certificate_of_other_kinds_of_sums_is_refused(kind: str) -> None:
    """Under replace-one a vector moves by 2, counts and matrices by sqrt(2): less noise would be certified."""
    result = estimated("logistic", 4.0)
    mechanism = result.certificate.mechanism
    kinds = tuple(kind if own == "vector" else own for own in mechanism.kinds)  # type: ignore[attr-defined]
    cheaper = dataclasses.replace(mechanism, kinds=kinds)  # type: ignore[call-arg]
    plain = NoisyCounts.calibrate(
        mechanism.guarantee, records=6000, rows_per_person=1, cells=mechanism.cells, weights=mechanism.shares
    )
    for forged in (cheaper, plain):
        certificate = dataclasses.replace(result.certificate, mechanism=forged)
        tables = [
            np.rint(table / grid_step(scale)) * grid_step(scale)
            for table, scale in zip(result.tables, forged.scales, strict=True)
        ]
        raw = dataclasses.replace(result, certificate=certificate, tables=tables).to_bytes()
        with pytest.raises(VerificationError, match="other kinds of sums"):
            verify_bytes(raw)


def test_a_description_is_not_a_table_of_estimates(tmp_path: Path) -> None:
    table, _, schema = simulated("logistic")
    describe(table, schema, epsilon=1.0, random_state=0).save(tmp_path / "d")
    with pytest.raises(ReleaseError, match="does not hold estimates"):
        Estimates.load(tmp_path / "d")


def test_a_file_with_another_model_is_refused(tmp_path: Path) -> None:
    result = estimated("ordinal", 4.0)
    outcome, design = result.about["outcome"], result.about["design"]
    first, *others = design["variables"]
    for change in (
        {"family": "logistic"},
        {"family": "poisson"},
        {"outcome": outcome | {"levels": outcome["levels"][::-1]}},
        {"outcome": {**outcome, "name": "other"}},
        {"design": design | {"variables": [first | {"values": first["values"][1:]}, *others]}},
        {"formula": "y ~ x0"},
    ):
        about = {**result.about, **change}
        subject = {name: about.get(name, value) for name, value in result.certificate.subject.items()}
        subject["about_sha256"] = digest_of(json_bytes(about))
        certificate = dataclasses.replace(result.certificate, subject=subject)
        CountsFile(result.tables, about, certificate).save(tmp_path / "forged", overwrite=True)
        with pytest.raises(VerificationError, match="not those of its model"):
            Estimates.load(tmp_path / "forged")


def test_one_charge(tmp_path: Path) -> None:
    table, _, schema = simulated("linear")
    ledger = Ledger.create(tmp_path / "b.db", "simulated", Guarantee(2.0, 1e-5))
    estimate(table, schema, FORMULA, epsilon=1.0, delta=1e-6, ledger=ledger)
    assert float(ledger.standing().spent.epsilon) == pytest.approx(1.0)


def test_too_many_terms_are_refused_before_anything_is_charged() -> None:
    table, variables, _ = simulate("logistic", 500, 12, False, np.random.default_rng(0))
    table["y"] = table["y"].astype(int)
    formula = "y ~ " + " + ".join(f"x{index}" for index in range(12))
    with pytest.raises(InvalidParameter, match="Use fewer terms"):
        estimate(
            table, schema_of("logistic", variables.shape[1], False, 1.0), formula, epsilon=1.0, delta=1e-6
        )


def test_an_ordinal_outcome_has_an_intercept_for_each_level_that_is_exceeded() -> None:
    schema = simulated("ordinal")[2] | {"target": {"name": "y", "classes": [0, 1, 2, 3]}}
    result = estimated("ordinal", 4.0)
    rows = result.coefficients()
    assert [row.term for row in rows] == ["y > 0", "y > 1", "y > 2", "x0", "x1[1]", "x2"]
    assert [row.estimate for row in rows[:3]] == sorted((row.estimate for row in rows[:3]), reverse=True)
    text = result.summary()
    assert "ordinal regression of y (a higher level of 0 < 1 < 2 < 3)" in text
    assert "cumulative odds ratio" in text
    assert "\ny $>$ 0 & " in result.to_latex()
    assert result.references == {"x1": "0"}
    assert forest_plot(result).count("<circle") == 3
    with pytest.raises(InvalidParameter, match="If they are in order"):
        forecast_widths(FORMULA, schema, 6000, epsilon=1.0, delta=1e-6)
    grades = {"type": "ordinal", "values": ["low", "middle", "high"]}
    listed = schema | {"target": None, "columns": schema["columns"] | {"y": grades}}
    assert (
        forecast_widths(FORMULA, listed, 6000, epsilon=1.0, delta=1e-6).request.design.names[1]
        == "y > middle"
    )
    two = schema | {"target": {"name": "y", "classes": [0, 1]}}
    with pytest.raises(InvalidParameter, match="the same model"):
        forecast_widths(FORMULA, two, 6000, epsilon=1.0, delta=1e-6, family="ordinal")
    with pytest.raises(InvalidParameter, match="does not fit"):
        forecast_widths("x0 ~ x1", schema, 6000, epsilon=1.0, delta=1e-6, family="ordinal")


def test_refusals() -> None:
    table, _, schema = simulated("linear", 100)
    with pytest.raises(InvalidParameter, match="delta > 0"):
        estimate(table, schema, FORMULA, epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidParameter, match="does not fit"):
        estimate(table, schema, FORMULA, family="logistic", epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidParameter, match="family must be"):
        estimate(table, schema, FORMULA, family="probit", epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidParameter, match="at least 0"):
        estimate(table, schema, FORMULA, family="poisson", epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidParameter, match="exposure"):
        estimate(table, schema, FORMULA, exposure="x0", epsilon=1.0, delta=1e-6)
    grouped = {name: value for name, value in schema.items() if name != "one_row_per_person"}
    with pytest.raises(InvalidParameter, match="person: COLUMN"):
        estimate(table, grouped | {"rows_per_person": 3}, FORMULA, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("outcome", ["x", "y"])
def test_bounds_narrower_than_floats_are_fine_do_not_fail(outcome: str) -> None:
    """Most cells of the histogram are empty intervals, so that its spread was 0: the failure depended on the rows."""
    lower, upper = 1e13, 1e13 + 1.0
    columns = {
        "x": {"type": "number", "lower": lower, "upper": upper},
        "y": {"type": "number", "lower": 0, "upper": 10},
    }
    table = {"x": np.full(6000, lower), "y": np.random.default_rng(0).uniform(0.0, 10.0, 6000)}
    formula = "x ~ y" if outcome == "x" else "y ~ x"
    schema = {"name": "narrow", "columns": columns}
    result = estimate(table, schema, formula, epsilon=1.0, delta=1e-6, random_state=0)
    assert all(np.isfinite(sums).all() for sums in result.tables)


@pytest.mark.parametrize("content", [0.0, 5.0])
def test_rows_that_are_all_equal_do_not_fail(content: float) -> None:
    schema = schema_of("linear", 3, False, 1.0)
    table = {name: np.full(3000, 0.0) for name in ("x0", "x1", "x2")} | {"y": np.full(3000, content)}
    result = estimate(
        table, schema, FORMULA, epsilon=1.0, delta=1e-6, random_state=0, accept_weak_privacy=True
    )
    assert len(result.coefficients()) == 4
    missing = table | {"y": np.full(3000, np.nan)}
    assert not estimate(
        missing, schema, FORMULA, epsilon=1.0, delta=1e-6, random_state=0, accept_weak_privacy=True
    )["x0"].is_estimated


def test_exposure_gives_rates() -> None:
    generator = np.random.default_rng(0)
    size = 20_000
    x, years = generator.standard_normal(size), generator.uniform(0.5, 10.0, size)
    table = {"x": x, "years": years, "visits": generator.poisson(years * np.exp(-1.0 + 0.3 * x)) * 1.0}
    columns = {
        "x": {"type": "number", "lower": -5, "upper": 5},
        "years": {"type": "number", "lower": 0.1, "upper": 20},
        "visits": {"type": "number", "lower": 0, "upper": 100},
    }
    result = PrivateGLM(
        "visits ~ x",
        {"name": "t", "columns": columns},
        epsilon=4.0,
        delta=1e-6,
        family="poisson",
        exposure="years",
        random_state=0,
    ).fit(table)
    rows = result.estimates_.coefficients()
    assert rows[0].lower < -1.0 < rows[0].upper
    assert rows[1].lower < 0.3 < rows[1].upper
    assert rows[1].error < 0.02
    assert "rate ratio" in result.to_frame()


def test_tables_for_people() -> None:
    result = estimated("logistic", 4.0)
    text = result.summary(0.9)
    assert "logistic regression of y (1 compared with 0)" in text
    assert "90% interval" in text
    assert "x1[1]" in text
    assert "Reference: x1 = 0." in text
    frame = result.to_frame()
    assert list(frame.index) == ["(intercept)", "x0", "x1[1]", "x2"]
    assert frame["odds ratio"].to_numpy() == pytest.approx(np.exp(frame["estimate"].to_numpy()))
    latex = result.to_latex()
    assert latex.startswith(r"\begin{tabular}{lrrrrr}")
    assert r"95\% interval" in latex
    page = write_page(result)
    assert "<svg" in page
    assert "Guarantee" in page
    assert forest_plot(result).count("<circle") == 3
    with pytest.raises(InvalidParameter, match="level"):
        result.coefficients(1.5)
    with pytest.raises(InvalidParameter, match="no term"):
        result["height"]


def test_widths_are_forecast() -> None:
    table, _, schema = simulated("logistic")
    model = PrivateGLM(FORMULA, schema, epsilon=1.0, delta=1e-6, neighbours="zero_out", random_state=0)
    forecast = model.plan(6000)
    measured = model.fit(table).estimates_
    assert forecast.is_readable
    assert forecast.ratio == pytest.approx(measured.privacy_cost, rel=0.25)
    assert forecast.records_for(forecast.half_width) == pytest.approx(6000, rel=0.02)
    assert forecast.epsilon_for(forecast.half_width) == pytest.approx(1.0, rel=0.02)
    assert not model.plan(100).is_readable


def test_a_model_without_estimates_says_so() -> None:
    with pytest.raises(InvalidParameter, match="Call fit"):
        PrivateGLM(FORMULA, simulated("logistic", 100)[2], epsilon=1.0, delta=1e-6).summary()


def test_numbers_show_two_digits_of_their_standard_error() -> None:
    result = estimated("logistic", 4.0)
    for row, line in zip(result.coefficients(), result.summary().splitlines()[5:], strict=False):
        shown = line.split()[1]
        assert abs(float(shown) - row.estimate) < 0.06 * row.error


def test_no_more_complete_records_are_shown_than_there_are() -> None:
    for seed in range(3):
        heading = estimated("logistic", 1.0, seed).summary().splitlines()[1]
        complete, records = (int(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", heading)[-2:])
        assert complete <= records


@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_noise_does_not_change_the_size_of_moments_on_average(noise: float) -> None:
    """Cutting eigenvalues at 0 would make them too large."""
    generator, information = np.random.default_rng(0), 100.0 * np.eye(4)

    def symmetric(deviation: float) -> Any:
        square = generator.normal(0.0, deviation, (4, 4))
        return (square + square.T) / 2.0

    traces = [
        np.trace(
            shrunk_moments(
                0.5 * information + symmetric(2.0 * noise),
                without_repulsion(information + symmetric(noise), noise),
                np.eye(4),
                2.0 * noise,
            )[0]
        )
        for _ in range(400)
    ]
    assert np.mean(traces) == pytest.approx(200.0, abs=1e-9 if noise == 0.0 else 8.0)


def test_eigenvalues_without_what_the_noise_adds() -> None:
    """Noise drives them apart: the least one is too small by more than its own noise. Most of that is taken back."""
    generator = np.random.default_rng(0)
    exact = np.diag(np.array([8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 30.0]))
    errors = []
    for _ in range(400):
        square = generator.normal(0.0, 1.0, (8, 8)) * np.sqrt(2.0)
        noisy = exact + (square + square.T) / 2.0
        mended = without_repulsion(noisy, np.sqrt(2.0))
        assert np.trace(mended) == pytest.approx(np.trace(noisy))
        vector = np.linalg.eigh(noisy)[1][:, 0]
        errors.append([vector @ (matrix - exact) @ vector for matrix in (noisy, mended)])
    before, after = np.mean(errors, axis=0)
    assert before < -2.0
    assert -1.0 < after < 0.0


def test_the_last_step_without_its_noise() -> None:
    generator = np.random.default_rng(0)
    prior, inverse = np.diag([1.0, 0.1]), np.diag([0.5, 0.1])
    inner = 4.0 * np.eye(2) + 0.5 * (np.trace(prior) * np.eye(2) + prior)
    steps = generator.multivariate_normal(np.zeros(2), prior, 4000)
    noise = generator.multivariate_normal(np.zeros(2), inverse @ inner @ inverse, 4000)
    mean = np.mean([expected_outer(step, prior, inverse, 2.0, 1.0) for step in steps + noise], axis=0)
    assert mean == pytest.approx(steps.T @ steps / 4000, abs=0.05)
    assert np.mean((steps + noise)[:, 0] ** 2) > 1.5 * mean[0, 0]
