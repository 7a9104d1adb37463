"""Tests of association from released counts: uniform p-values under the null, coverage, power, and what is counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privlearn import Description, Guarantee, InvalidParameter, Schema, describe, verify
from privlearn.randomness import SeededRandomness
from privlearn.statistics.description import (
    CountNoise,
    description_layout,
    difference_test,
    hypotheses,
    independence_test,
    measure,
    read_cells,
    write_page,
)

COLUMNS: dict[str, Any] = {
    "smoker": {"type": "category", "values": ["no", "yes"]},
    "ward": {"type": "category", "values": ["a", "b", "c"]},
    "age": {"type": "number", "lower": 0, "upper": 100},
}
TARGET = {"name": "ill", "classes": ["no", "yes"]}
SCHEMA = Schema.from_dict(
    {"name": "clinic", "columns": COLUMNS, "target": TARGET, "one_row_per_person": True}
)
CROSSES = [("smoker", "ill"), ("ward", "ill"), ("smoker", "age"), ("ward", "smoker")]


def clinic(size: int, seed: int, *, effect: float = 0.0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    smoker = generator.random(size) < 0.3
    age = np.clip(50.0 + 15.0 * generator.standard_normal(size) + 20.0 * effect * smoker, 0.0, 100.0)
    return {
        "smoker": np.where(smoker, "yes", "no"),
        "ward": generator.choice(["a", "b", "c"], size),
        "age": age,
        "ill": np.where(generator.random(size) < 0.3 + effect * smoker, "yes", "no"),
    }


def exact_crosses(rows: dict[str, Any], schema: Schema) -> list[Any]:
    layout = description_layout(schema, Guarantee(math.inf), 10, correlations=False, crosses=CROSSES)
    cells, weights, _ = read_cells(rows, schema)
    return list(measure(layout, schema, cells, weights, SeededRandomness(0)).tables)[-len(CROSSES) :]


def test_a_record_is_in_one_cell_of_a_cross_table() -> None:
    rows = clinic(50, 1)
    rows["ill"] = [None, "other", *rows["ill"][2:]]
    for table, (one, other) in zip(exact_crosses(rows, SCHEMA), CROSSES, strict=True):
        assert table.sum() == (48 if "ill" in (one, other) else 50)
    for index in range(5):
        fewer = {name: list(column[:index]) + list(column[index + 1 :]) for name, column in rows.items()}
        pairs = zip(exact_crosses(rows, SCHEMA), exact_crosses(fewer, SCHEMA), strict=True)
        assert max(float(np.abs(before - after).sum()) for before, after in pairs) <= 1.0


def test_a_person_with_several_rows_weighs_one() -> None:
    schema = Schema.from_dict({"name": "clinic", "columns": COLUMNS, "target": TARGET, "person": "who"})
    rows = clinic(20, 2) | {"who": [0] * 15 + [1] * 5}
    for table in exact_crosses(rows, schema):
        assert table.sum() == pytest.approx(2.0, abs=1e-4)
        assert table.sum() <= 2.0


@pytest.mark.parametrize("distribution", ["gaussian", "laplace"])
def test_p_values_are_uniform_without_association(distribution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypotheses, "REPLICATES", 500)
    monkeypatch.setattr(hypotheses, "_DRAWS", 4000)
    generator = np.random.default_rng(77)
    noise = CountNoise(distribution, 12.0)
    shares = np.outer([0.3, 0.7], [0.5, 0.2, 0.3])
    independence, difference, covered = [], [], []
    for _ in range(150):
        counts = generator.multinomial(1500, shares.ravel()).reshape(shares.shape)
        noisy = counts + noise.draw(generator, counts.shape)
        independence.append(independence_test(("a", "b"), noisy, noise).p_value)
        found = difference_test(("a", "b"), noisy, np.arange(3.0), noise, "difference")
        difference.append(found.p_value)
        covered.append(found.estimate.lower <= 0.0 <= found.estimate.upper)
    for p_values in (independence, difference):
        assert stats.kstest(p_values, "uniform").pvalue > 0.0001
    assert np.mean(covered) > 0.89


def test_noise_that_is_halved_or_doubled_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise dominates here: with half or twice its deviation, p-values are far from uniform."""
    monkeypatch.setattr(hypotheses, "REPLICATES", 500)
    generator = np.random.default_rng(8)
    true = CountNoise("gaussian", 60.0)
    for factor, is_uniform in ((0.5, False), (1.0, True), (2.0, False)):
        stated = CountNoise("gaussian", 60.0 * factor)
        p_values = []
        for _ in range(150):
            counts = generator.multinomial(4000, [0.25] * 4).reshape(2, 2) + true.draw(generator, (2, 2))
            p_values.append(independence_test(("a", "b"), counts, stated).p_value)
        assert bool(stats.kstest(p_values, "uniform").pvalue > 0.0001) is is_uniform


def test_without_noise_they_are_the_textbook_tests() -> None:
    rows = clinic(3000, 3, effect=0.05)
    found = describe(rows, SCHEMA, epsilon=math.inf, crosses=CROSSES)
    table = found.tables[-len(CROSSES)]
    by_name = {(test.method, test.columns): test for test in found.tests}
    chi = by_name["chi-square test", ("smoker", "ill")]
    assert chi.p_value == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, abs=0.02)
    difference = by_name["difference of two groups", ("ill", "smoker")]
    shares = table[:, 1] / table.sum(axis=1)
    assert difference.estimate.value == pytest.approx(shares[1] - shares[0])
    assert ("correlation", ("smoker", "ill")) not in by_name  # the cross table is more accurate
    without = describe(rows, SCHEMA, epsilon=math.inf).tests
    correlation = next(test for test in without if test.columns == ("smoker", "ill"))
    plain = stats.pearsonr(rows["smoker"] == "yes", rows["ill"] == "yes")
    assert correlation.estimate.value == pytest.approx(plain.statistic, abs=1e-6)
    assert correlation.p_value == pytest.approx(plain.pvalue, rel=0.1)
    ages = by_name["difference of two groups", ("age", "smoker")]
    smoker = rows["smoker"] == "yes"
    assert ages.estimate.value == pytest.approx(
        rows["age"][smoker].mean() - rows["age"][~smoker].mean(), abs=0.5
    )


def test_an_association_is_found_and_its_interval_covers() -> None:
    covered, small = [], []
    for seed in range(20):
        found = describe(
            clinic(4000, seed, effect=0.2),
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            correlations=False,
            crosses=[("smoker", "ill")],
            random_state=seed,
        )
        chi, difference = found.tests
        small.append(chi.p_value < 0.01)
        covered.append(difference.estimate.lower <= 0.2 <= difference.estimate.upper)
    assert np.mean(small) > 0.9
    assert np.mean(covered) > 0.8


def test_what_is_shown_and_verified(tmp_path: Any) -> None:
    found = describe(
        clinic(4000, 1, effect=0.2), SCHEMA, epsilon=1.0, delta=1e-6, crosses=CROSSES, random_state=1
    )
    path = tmp_path / "a.description"
    found.save(path)
    assert not verify(path).certificate.is_private  # seeded
    again = Description.load(path)
    assert [str(test) for test in again.tests] == [str(test) for test in found.tests]
    assert "share of yes, smoker = yes minus no" in str(found)
    page = write_page(found)
    assert "Tests of association" in page
    assert "<h3>smoker by ill</h3>" in page


def test_cross_tables_are_shown_with_their_labels() -> None:
    rows = clinic(4000, 1, effect=0.2)
    found = describe(rows, SCHEMA, epsilon=1.0, delta=1e-6, crosses=CROSSES, random_state=1)
    table = found.crosses["ward", "smoker"]
    assert (table.row_labels, table.column_labels) == (["a", "b", "c"], ["no", "yes"])
    exact = int(np.sum((rows["ward"] == "b") & (rows["smoker"] == "yes")))
    assert table.counts[1][1].lower < exact < table.counts[1][1].upper
    assert found.crosses["smoker", "age"].column_labels[0].startswith("0 to ")
    value = table.counts[1][1].value
    share = 100.0 * value / sum(count.value for count in table.counts[1])
    line = str(table).splitlines()[2]
    assert line.startswith("  b: no ")
    assert line.endswith(f"{share:.1f} %")
    assert f"yes {value:,.0f} (" in line
    assert line in str(found)


def test_what_is_not_offered_is_refused() -> None:
    rows = clinic(50, 1) | {"city": ["1"] * 50}
    cities = {"type": "category", "values": list(map(str, range(300)))}
    wide = Schema.from_dict({"name": "x", "columns": {**COLUMNS, "city": cities}, "target": TARGET})
    for schema, crosses in (
        (SCHEMA, [("smoker", "smoker")]),
        (SCHEMA, [("smoker", "nothing")]),
        (SCHEMA, [("smoker", "ill"), ("ill", "smoker")]),
        (wide, [("city", "ill")]),
    ):
        with pytest.raises(InvalidParameter):
            describe(rows, schema, epsilon=1.0, crosses=crosses)


def test_persons_whose_rows_cannot_be_joined_get_no_p_values() -> None:
    schema = Schema.from_dict({"name": "clinic", "columns": COLUMNS, "target": TARGET, "rows_per_person": 3})
    found = describe(clinic(3000, 1), schema, epsilon=1.0, crosses=CROSSES, random_state=1)
    assert found.tests == []
