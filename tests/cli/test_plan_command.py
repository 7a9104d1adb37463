"""`privlearn plan` reads no data, tells a verdict and draws."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from privlearn.data import Schema
from tests.support.cli_support import Census, Run

GAUSSIAN = ("--delta", "1e-6")


@pytest.fixture
def schema_only(census: Census) -> Census:
    """Return a directory that contains only the schema."""
    census.table.unlink()
    census.new_rows.unlink()
    return census


def test_a_schema_is_enough(run: Run, schema_only: Census) -> None:
    told = run("plan", "--schema", schema_only.schema, "--rows", 30_000, "--epsilon", 1, *GAUSSIAN)
    assert told.code == 0, told.stderr
    assert "CLEAR" in told.stdout
    assert "82 features" in told.stdout  # fine bins come with more records
    assert "Smallest that is clear" in told.stdout


def test_persons_are_called_persons(run: Run, schema_only: Census) -> None:
    schema_only.schema.write_text(schema_only.schema.read_text().replace("person: null", "person: who"))
    told = run("plan", "--schema", schema_only.schema, "--rows", 30_000, "--epsilon", 1, *GAUSSIAN)
    assert "with 30,000 persons" in told.stdout
    assert "records" not in told.stdout


def test_a_cap_of_rows_is_printed(run: Run, schema_only: Census) -> None:
    text = schema_only.schema.read_text()
    schema_only.schema.write_text(text.replace("rows_per_person: 1", "rows_per_person: 3"))
    told = run("plan", "--schema", schema_only.schema, "--rows", 30_000, "--epsilon", 1, *GAUSSIAN)
    assert "at most 3 records of a person" in told.stdout


def test_a_drowned_signal_is_advice_not_an_error(run: Run) -> None:
    told = run("plan", "--columns", 20, "--rows", 100, "--epsilon", 0.1, *GAUSSIAN)
    assert told.code == 0
    assert "DROWNED" in told.stdout
    assert "21 features" in told.stdout


@pytest.mark.parametrize(
    "model", [("svm",), ("svm", "--kernel", "rbf"), ("regression",), ("logistic", "--loss", "multinomial")]
)
def test_every_model(run: Run, model: tuple[str, ...]) -> None:
    told = run("plan", "--columns", 5, "--rows", 5000, "--epsilon", 1, *GAUSSIAN, "--model", *model)
    assert told.code == 0, told.stderr
    assert "gain lost" in told.stdout
    assert ("expected R2" if "regression" in model else "expected AUC") in told.stdout
    assert ("share of a class" in told.stdout) == ("logistic" in model)


def test_a_rate_is_taken_into_account(run: Run) -> None:
    usual = ("plan", "--columns", 5, "--rows", 5000, "--epsilon", 1, *GAUSSIAN)
    rare, even = (json.loads(run(*usual, "--rate", rate, "--json").stdout) for rate in (0.02, 0.5))
    assert rare["lost"] > 2.0 * even["lost"]
    assert re.search(r"share of a class +0.02  stated", run(*usual, "--rate", 0.02).stdout)


def test_numbers_for_programs(run: Run) -> None:
    usual = ("plan", "--columns", 5, "--rows", 5000, "--epsilon", 1, *GAUSSIAN, "--json")
    told, several = json.loads(run(*usual).stdout), json.loads(run(*usual, "--model", "svm").stdout)
    assert told["rows"] == 5000
    assert told["verdict"] in ("clear", "noisy")
    assert several["margin"] != told["margin"]


def test_the_figure_is_a_drawing_with_readable_text(run: Run, schema_only: Census) -> None:
    out = schema_only / "plan.svg"
    usual = (
        "plan",
        "--schema",
        schema_only.schema,
        "--rows",
        2000,
        "--epsilon",
        0.5,
        *GAUSSIAN,
        "--out",
        out,
    )
    told = run(*usual)
    assert told.code == 0, told.stderr
    text = " ".join(ElementTree.parse(out).getroot().itertext())
    assert "epsilon, with 2,000 records" in text
    assert "records, at epsilon 0.5" in text
    assert "typical margin" in text
    drawn = out.read_bytes()
    assert run(*usual).code == 2  # it exists
    assert run(*usual, "--force").code == 0
    assert out.read_bytes() == drawn


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("--rows", 0, "--columns", 5, "--epsilon", 1, *GAUSSIAN), "rows must be a whole number"),
        (("--rows", 10, "--columns", 0, "--epsilon", 1, *GAUSSIAN), "columns must be a whole number"),
        (("--rows", 10, "--columns", 5, "--epsilon", -1, *GAUSSIAN), "epsilon must be a number above 0"),
        (("--rows", 10, "--columns", 5, "--epsilon", "inf"), "finite epsilon"),
        (("--rows", 10, "--columns", 5, "--epsilon", 1, "--delta", 2), "delta must be"),
        (
            ("--rows", 10, "--epsilon", 1, *GAUSSIAN),
            "either --schema FILE, --columns NUMBER or --features MAP",
        ),
        (("--rows", 10, "--columns", 5, "--epsilon", 1, *GAUSSIAN, "--model", "forest"), "the model must be"),
        (("--rows", 10, "--columns", 5, "--epsilon", 1, *GAUSSIAN, "--out", "plan.doc"), "--out must end in"),
        (("--columns", 5, "--epsilon", 1), "--rows"),
        (("--rows", 10, "--columns", 5, "--epsilon", 1), "Add --delta 1e-6"),
        (("clinic.csv", "--rows", 10), "plan reads no table, so omit 'clinic.csv'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "typed",
)
def test_wrong_usage_says_what_to_type(run: Run, typed: tuple[object, ...], told: str) -> None:
    refused = run("plan", *typed)
    assert refused.code == 2
    assert told in refused.stderr


def test_a_schema_and_columns_contradict_each_other(run: Run, schema_only: Census) -> None:
    refused = run(
        "plan", "--schema", schema_only.schema, "--columns", 5, "--rows", 10, "--epsilon", 1, *GAUSSIAN
    )
    assert refused.code == 2
    assert "in one way" in refused.stderr


def test_a_schema_without_a_target_or_with_another_kind(run: Run, tmp_path: Path) -> None:
    columns = {"age": {"type": "number", "lower": 0, "upper": 100}}
    Schema.from_dict({"name": "a", "columns": columns}).save(tmp_path / "none.yaml")
    price = {"name": "price", "lower": 0, "upper": 9}
    Schema.from_dict({"name": "a", "columns": columns, "target": price}).save(tmp_path / "number.yaml")
    usual = ("--rows", 100, "--epsilon", 1, *GAUSSIAN)
    assert "no target" in run("plan", "--schema", tmp_path / "none.yaml", *usual).stderr
    number = tmp_path / "number.yaml"
    assert "is a number" in run("plan", "--schema", number, *usual, "--model", "logistic").stderr
    told = run("plan", "--schema", number, *usual, "--model", "regression")
    assert (told.code, told.stdout) == (0, run("plan", "--schema", number, *usual).stdout)


@pytest.fixture
def parties(schema_only: Census) -> Path:
    path = schema_only / "plan.toml"
    path.write_text(
        f'schema = "{schema_only.schema}"\nepsilon = 1.0\ndelta = 1e-5\n'
        "[parties]\neast = 1000\nnorth = 5000\nwest = 14000\n"
    )
    return path


def test_is_it_worth_it_for_each_party(run: Run, parties: Path) -> None:
    told = run("plan", "--parties", parties)
    assert told.code == 0, told.stderr
    assert "west: alone is as good or better." in told.stdout
    record = json.loads(run("plan", "--parties", parties, "--json").stdout)
    assert [party["party"] for party in record["parties"]] == ["east", "north", "west"]


def test_the_parties_plan_stands_alone(run: Run, parties: Path) -> None:
    assert run("plan", "--parties", parties, "--rows", 5).code == 2
    assert run("plan").code == 2


def test_a_plan_is_checked_offline(run: Run, parties: Path) -> None:
    told = run("plan", "check", parties)
    assert told.code == 0, told.stderr
    assert "fingerprint " in told.stdout
    assert "epsilon = 1" in told.stdout
