"""`privlearn estimate` and `privlearn plan estimate`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from click.testing import Result
from typer.testing import CliRunner

from privlearn import Guarantee, Ledger, Schema, verify
from privlearn.cli import app
from privlearn.errors import InvalidParameter
from privlearn.statistics.regression import estimate as measure
from privlearn.statistics.regression import forecast_widths, parse_formula

FORMULA = "ill ~ age + sex"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    age, sex = generator.normal(50, 15, 4000), generator.choice(["f", "m"], 4000)
    ill = generator.random(4000) < 1 / (1 + np.exp(-(age - 55) / 20 - (sex == "m")))
    table = pa.table({"age": age, "sex": sex, "ill": np.where(ill, "yes", "no")})
    pyarrow.csv.write_csv(table, tmp_path / "clinic.csv")
    Schema.from_dict(
        {
            "name": "clinic",
            "columns": {
                "age": {"type": "number", "lower": 0, "upper": 120, "unit": "years"},
                "sex": {"type": "category", "values": ["f", "m"]},
            },
            "target": {"name": "ill", "classes": ["no", "yes"]},
        }
    ).save(tmp_path / "clinic.yaml")
    return tmp_path


def run(clinic: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        app, [*arguments, "--schema", str(clinic / "clinic.yaml"), "--formula", FORMULA]
    )
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("suffix", [".html", ".tex", ".csv"])
def test_a_table_in_the_shell(clinic: Path, suffix: str) -> None:
    out, page = clinic / "ill.estimates", clinic / f"ill{suffix}"
    numbers = ("--epsilon", "1", "--delta", "1e-6", "--out", str(out), "--page", str(page))
    output = run(clinic, "estimate", str(clinic / "clinic.csv"), *numbers)
    assert "odds ratio" in output
    assert "age = years" in output
    assert verify(out).is_private
    assert "sex[m]" in page.read_text()
    shown = CliRunner().invoke(app, ["inspect", str(out)])
    assert "logistic regression of ill" in shown.output
    again = clinic / f"again{suffix}"
    assert CliRunner().invoke(app, ["inspect", str(out), "--out", str(again)]).exit_code == 0
    assert again.read_text() == page.read_text()
    CliRunner().invoke(app, ["inspect", str(out), "--out", str(again), "--force", "--level", "0.9"])
    assert again.read_text() != page.read_text()


def test_a_report_for_those_who_decide(clinic: Path) -> None:
    out, board, ledger = clinic / "ill.estimates", clinic / "board.html", str(clinic / "budgets.db")
    Ledger.create(ledger, "clinic", Guarantee(2.0, 1e-5))
    numbers = ("--epsilon", "1", "--delta", "1e-6", "--out", str(out))
    run(clinic, "estimate", str(clinic / "clinic.csv"), *numbers, "--ledger", ledger)

    def report(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["report", str(out), *arguments])

    written = report("--format", "html", "--out", str(board))
    assert written.exit_code == 0, written.output
    page = board.read_text()
    expected = ("odds ratio", "Reference: sex = f", "complete records of 4,000", "<svg", "privlearn verify")
    assert [text for text in expected if text not in page] == []
    assert "(epsilon = 1, delta = 1e-06)-differential privacy" in page
    budget = ("--ledger", ledger, "--publish-budget")
    assert "of it spent when this was written" in report(*budget).output
    sections = json.loads(report("--format", "json").output)["sections"]
    assert "logistic regression of ill" in sections[1]["verbatim"]
    assert "figure" not in sections[1]
    assert "estimates have one report" in str(report("--as", "model-card").exception)


def test_widths_are_forecast_in_the_shell(clinic: Path) -> None:
    numbers = ("--rows", "4000", "--epsilon", "1", "--delta", "1e-6", "--width", "0.1")
    output = run(clinic, "plan", "estimate", *numbers)
    assert "times as wide as without privacy" in output
    assert "records at epsilon = 1" in output
    assert "odds ratio times or divided by" in output
    widths = forecast_widths(
        "ill ~ age*sex + I(age^2)", Schema.load(clinic / "clinic.yaml"), 4000, epsilon=1.0, delta=1e-6
    )
    halves = widths.half_widths
    assert list(halves) == ["age", "sex[m]", "age:sex[m]", "age^2"]
    assert halves["sex[m]"] == pytest.approx(2.0 * halves["age"])  # two groups of half of the records
    assert halves["age:sex[m]"] == pytest.approx(halves["sex[m]"])
    assert halves["age^2"] == pytest.approx(halves["age"] / 3.0**0.5)
    assert "from its centre" in str(widths)


def test_a_rare_outcome_is_forecast_to_drown(clinic: Path) -> None:
    numbers = ("--rows", "4000", "--epsilon", "1", "--delta", "1e-6")
    typical = run(clinic, "plan", "estimate", *numbers)
    assert "Assumed: yes in 20 % of the records" in typical
    assert typical == run(clinic, "plan", "estimate", *numbers, "--rate", "0.2")
    rare = run(clinic, "plan", "estimate", *numbers, "--rate", "0.01")
    assert "yes in 1 %" in rare
    assert "Noise would hide the coefficients" in rare
    needed = re.search(r"or about ([\d,]+) records", rare)
    assert needed is not None
    enough = ("--rows", needed[1].replace(",", ""), *numbers[2:], "--rate", "0.01")
    assert "Expected 95 % intervals" in run(clinic, "plan", "estimate", *enough)


@pytest.mark.parametrize("width", ["0.3", "0.33", "0.37"])
def test_an_epsilon_that_is_told_suffices(clinic: Path, width: str) -> None:
    rows, delta = ("--rows", "4000"), ("--delta", "1e-6")
    rare = run(clinic, "plan", "estimate", *rows, "--epsilon", "1", *delta, "--rate", "0.033")
    larger = re.search(r"or epsilon ([\d.]+)\.$", rare, re.MULTILINE)
    assert larger is not None, rare
    enough = run(clinic, "plan", "estimate", *rows, "--epsilon", larger[1], *delta, "--rate", "0.033")
    assert "Expected 95 % intervals" in enough
    told = run(clinic, "plan", "estimate", *rows, "--epsilon", "2", *delta, "--width", width)
    epsilon = float(re.search(r"or epsilon = ([\d.]+) with", told)[1])  # type: ignore[index]
    forecast = forecast_widths(
        FORMULA, Schema.load(clinic / "clinic.yaml"), 4000, epsilon=epsilon, delta=1e-6
    )
    assert forecast.half_width <= float(width)


def test_the_rate_of_the_schema_is_used(clinic: Path) -> None:
    """The forecast assumes it, and an estimate that it drowns is refused before anything is charged."""
    described = Schema.load(clinic / "clinic.yaml").to_dict()
    described["target"] = described["target"] | {"rate": 0.01}
    numbers: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    stated = forecast_widths("ill ~ age + sex", described, 4000, **numbers)
    assert str(stated) == str(
        forecast_widths("ill ~ age + sex", Schema.load(clinic / "clinic.yaml"), 4000, rate=0.01, **numbers)
    )
    rows = {"age": [50.0] * 4000, "sex": ["m"] * 4000, "ill": ["no"] * 4000}
    with pytest.raises(InvalidParameter, match="noise would hide them"):
        measure(rows, described, "ill ~ age + sex", **numbers)


def test_the_rate_must_fit_the_outcome(clinic: Path) -> None:
    schema = Schema.load(clinic / "clinic.yaml")
    with pytest.raises(InvalidParameter, match=r"0\.06"):
        forecast_widths(FORMULA, schema, 4000, epsilon=1.0, delta=1e-6, rate=6.0)
    with pytest.raises(InvalidParameter, match="two classes"):
        forecast_widths("age ~ sex", schema, 4000, epsilon=1.0, delta=1e-6, rate=0.1)


def test_a_function_of_the_outcome_is_explained() -> None:
    with pytest.raises(InvalidParameter, match=r"the outcome .* must be one column"):
        parse_formula("log(cost) ~ age")
    with pytest.raises(InvalidParameter, match="without '~'"):
        parse_formula("cost age")
