"""Describing a private table: exact sensitivity of what is counted, the price, and what is told from it."""

from __future__ import annotations

import itertools
import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import (
    DataError,
    Description,
    Guarantee,
    InvalidParameter,
    Ledger,
    ReleaseError,
    Schema,
    describe,
    verify,
)
from privlearn.data import census_schema, simulated_census
from privlearn.errors import PrivlearnError
from privlearn.randomness import SeededRandomness
from privlearn.statistics import CountsLayout
from privlearn.statistics.description import description_layout, format_count, measure, read_cells, write_page
from privlearn.statistics.evaluation import Evaluation

COLUMNS = {
    "age": {"type": "number", "lower": 0, "upper": 100},
    "wealth": {"type": "number", "lower": 0, "upper": 1e6, "scale": "log"},
    "born": {"type": "date", "lower": "1950-01-01", "upper": "2000-01-01"},
    "pain": {"type": "ordinal", "values": ["none", "some", "much"]},
    "sex": {"type": "category", "values": ["female", "male"]},
    "town": {"type": "category", "values": ["a", "b", "c"]},
    "words": {"type": "text"},
}
TARGET = {"name": "ill", "classes": ["no", "yes"]}
SCHEMA = Schema.from_dict({"name": "clinic", "columns": COLUMNS, "target": TARGET})

RECORDS: list[dict[str, Any]] = [
    {"age": 0, "wealth": 0, "born": "1950-01-01", "pain": "none", "sex": "female", "town": "a", "ill": "no"},
    {
        "age": 100,
        "wealth": 1e6,
        "born": "2000-01-01",
        "pain": "much",
        "sex": "male",
        "town": "b",
        "ill": "yes",
    },
    {"age": 100, "wealth": 0, "born": "2000-01-01", "pain": "none", "sex": "male", "town": "c", "ill": "no"},
    {"age": None, "wealth": None, "born": None, "pain": None, "sex": None, "town": None, "ill": None},
    {
        "age": 9e9,
        "wealth": -5,
        "born": "1870-01-01",
        "pain": "new",
        "sex": "other",
        "town": "z",
        "ill": "perhaps",
    },
    {
        "age": 55,
        "wealth": 100,
        "born": "1975-06-01",
        "pain": "some",
        "sex": "female",
        "town": "z",
        "ill": "yes",
    },
]


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {
        name: [row.get(name) for row in rows]
        for name in ("age", "wealth", "born", "pain", "sex", "town", "ill")
    }


def exact(
    rows: list[dict[str, Any]], schema: Schema = SCHEMA, **more: list[Any]
) -> list[np.ndarray[Any, Any]]:
    """Return the counts before the noise: an infinite epsilon adds none."""
    plan = description_layout(schema, Guarantee(math.inf), 10, correlations=True)
    cells, weights, _ = read_cells(columns_of(rows) | more, schema)
    return list(measure(plan, schema, cells, weights, SeededRandomness(0)).tables)


def moves(before: list[Any], after: list[Any]) -> tuple[float, float]:
    """Return the largest move of any table, in L1 and in L2."""
    changes = [np.ravel(new - old) for old, new in zip(before, after, strict=True)]
    return max(np.abs(change).sum() for change in changes), max(
        float(np.linalg.norm(change)) for change in changes
    )


def test_no_record_moves_a_table_further_than_its_noise_is_made_for() -> None:
    """Over all pairs of corner records, every relation: 2 and sqrt(2) for a replacement, 1 and 1 for a removal."""
    rest = RECORDS[:2]
    largest = [0.0, 0.0]
    for one, other in itertools.permutations(RECORDS, 2):
        moved = moves(exact([*rest, one]), exact([*rest, other]))
        largest = [max(pair) for pair in zip(largest, moved, strict=True)]
    assert largest[0] <= 2.0 + 1e-9
    assert largest[1] <= math.sqrt(2.0) + 1e-9
    assert largest[0] == 2.0  # and some record does
    for one in RECORDS:
        moved = moves(exact(rest), exact([*rest, one]))
        assert moved[0] <= 1.0 + 1e-9
        assert moved[1] <= 1.0 + 1e-9


def test_a_person_of_many_rows_weighs_one() -> None:
    schema = Schema.from_dict({"name": "clinic", "columns": COLUMNS, "target": TARGET, "person": "who"})
    base = exact(RECORDS[:2], schema, who=["a", "b"])
    more = exact([*RECORDS[:2], *RECORDS[1:5]], schema, who=["a", "b", "c", "c", "c", "c"])
    assert moves(base, more)[0] <= 1.0


def test_the_noise_is_that_of_the_certificate() -> None:
    """Of every table, over many draws: the deviation that the privacy of `NoisyCounts` was proven for."""
    schema = Schema.from_dict({"name": "x", "columns": {"age": COLUMNS["age"], "sex": COLUMNS["sex"]}})
    rows = {"age": [1.0, 99.0], "sex": ["male", "female"]}
    settings: dict[str, Any] = {"delta": 1e-6, "accept_weak_privacy": True}
    plain = describe(rows, schema, epsilon=math.inf, **settings)
    drawn = [describe(rows, schema, epsilon=1.0, random_state=seed, **settings) for seed in range(200)]
    assert [table.shape for table in drawn[0].tables] == [table.shape for table in plain.tables]
    for place, deviation in enumerate(drawn[0].certificate.mechanism.deviations):
        noise = np.array([found.tables[place] - plain.tables[place] for found in drawn])
        assert np.std(noise) == pytest.approx(deviation, rel=5.0 / math.sqrt(2.0 * noise.size))


def test_without_noise_it_says_what_is_there() -> None:
    table = simulated_census(2000, seed=0)
    found = describe(table, census_schema(), epsilon=math.inf)
    ages = table.column("age").to_numpy()
    for at, estimate in found["age"].quantiles.items():
        assert estimate.lower <= np.quantile(ages, at, method="inverted_cdf") <= estimate.upper
        assert estimate.upper - estimate.lower <= 2 * (found["age"].edges[1] - found["age"].edges[0])
    sexes = table.column("sex").to_pylist()
    assert [round(estimate.value) for estimate in found["sex"].counts] == [
        sexes.count("female"),
        sexes.count("male"),
    ]
    assert sum(estimate.value for estimate in found["age"].counts) == 2000
    hours = np.corrcoef(
        table.column("hours").to_numpy(), np.array(table.column("income").to_pylist()) == "high"
    )
    assert found.correlations["hours", "income"].value == pytest.approx(hours[0, 1], abs=0.02)


def test_missing_and_unlisted_cells_are_counted_and_never_refused() -> None:
    found = describe(columns_of(RECORDS), SCHEMA, epsilon=math.inf)
    for column in found.columns.values():
        assert column.missing.value == pytest.approx(1 / 6)
    assert found["town"].unlisted.value == pytest.approx(2 / 6)
    assert "words" not in found.columns
    assert found["born"].shown_quantiles["95%"].startswith("19")
    assert "correlation of age and wealth" in str(found)


def test_the_correlation_matrix_is_a_valid_one() -> None:
    for seed in range(5):
        found = describe(
            simulated_census(300, seed=1), census_schema(), epsilon=0.5, delta=1e-6, random_state=seed
        )
        matrix = found.correlation
        assert np.allclose(matrix, matrix.T)
        assert np.all(np.diag(matrix) == 1.0)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-9
        assert np.abs(matrix).max() <= 1.0 + 1e-9


def test_intervals_cover_what_the_noise_does() -> None:
    table, schema = simulated_census(5000, seed=3), census_schema()
    plain = describe(table, schema, epsilon=math.inf)
    truth = {column.name: [found.value for found in column.counts] for column in plain.columns.values()}
    covered, counted = 0, 0
    for seed in range(20):
        found = describe(table, schema, epsilon=1.0, delta=1e-6, random_state=seed)
        for name, exact_counts in truth.items():
            if len(exact_counts) == len(found[name].counts):
                pairs = zip(exact_counts, found[name].counts, strict=True)
                covered += sum(estimate.lower <= value <= estimate.upper for value, estimate in pairs)
                counted += len(exact_counts)
    assert 0.93 <= covered / counted <= 0.99


def test_what_is_too_noisy_is_said_to_be_so() -> None:
    found = describe(simulated_census(200, seed=1), census_schema(), epsilon=0.1, random_state=0)
    assert "too noisy" in str(found)
    assert "too noisy" in write_page(found)


def test_it_is_one_file_that_a_stranger_verifies(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-5))
    found = describe(simulated_census(500, seed=1), census_schema(), epsilon=0.5, delta=1e-6, ledger=ledger)
    statement = ledger.statement()
    assert (statement.spent.epsilon, statement.spent.delta, len(statement.entries)) == (0.5, 1e-6, 1)
    found.save(tmp_path / "census.description")
    proven = verify(tmp_path / "census.description")
    assert proven.is_private
    assert proven.recomputed <= proven.claimed
    assert str(Description.load(tmp_path / "census.description")) == str(found)
    with pytest.raises(ReleaseError, match="does not hold an evaluation"):
        Evaluation.load(tmp_path / "census.description")


def test_all_relations_and_pure_epsilon() -> None:
    table = simulated_census(500, seed=1)
    for relation, expected in (("replace_one", None), ("zero_out", None), ("add_remove", 400)):
        settings: dict[str, Any] = {"neighbours": relation, "expected_records": expected, "random_state": 0}
        found = describe(table, census_schema(), epsilon=5.0, **settings)
        assert found.certificate.mechanism.spends() <= Guarantee(5.0, 0.0, relation)
        assert found.certificate.records == (expected or 500)
        assert 400 < found.records < 600


def test_long_labels_and_numbers_are_told_in_full() -> None:
    """On the page as text of a table, which no drawing's edge cuts; in words with room before the number."""
    label = "a label of more than twenty-four letters, of some hospital's own making"
    schema = Schema.from_dict({"name": "c", "columns": {"a": {"type": "category", "values": [label, "b"]}}})
    found = describe({"a": [label] * 1_000_000}, schema, epsilon=10.0)
    count = format_count(found["a"].counts[0])
    assert len(count) > len("1,000,000")
    assert f'<th scope="row">{escape(label)}</th>' in write_page(found)
    assert f"<td>{count}</td>" in write_page(found)
    assert f"{label} {count}" in str(found)


def test_the_page_needs_nothing_else_and_escapes_names() -> None:
    schema = Schema.from_dict(
        {"name": "<b>", "columns": {"a<i>": {"type": "category", "values": ["<u>", "y"]}}}
    )
    page = write_page(describe({"a<i>": ["<u>"] * 50}, schema, epsilon=10.0))
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<u>" not in page
    assert "http" not in page
    assert "<script" not in page
    assert "<h2>Guarantee</h2>" in page
    assert "false alarms" in page


def test_the_page_shows_the_first_values_of_many() -> None:
    towns = [f"town {place:02}" for place in range(60)]
    schema = Schema.from_dict({"name": "clinic", "columns": {"town": {"type": "category", "values": towns}}})
    page = write_page(describe({"town": towns * 20}, schema, epsilon=math.inf))
    assert "town 49" in page
    assert "town 50" not in page
    assert "Only the first 50 of 60 values of town are shown; the file has all." in page


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        ({"age": ["x"]}, {}),
        ({"other": [1]}, {}),
        ({"age": []}, {}),
        ({"age": [1.0] * 100}, {"epsilon": -1.0}),
        ({"age": [1.0] * 100}, {"epsilon": 50.0}),
        ({"age": [1.0] * 100}, {"neighbours": "add_remove"}),
        ({"age": [1.0] * 100, "patient_id": [1] * 100}, {}),
    ],
)
def test_what_is_wrong_costs_nothing(table: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    schema = Schema.from_dict({"name": "clinic", "columns": {"age": COLUMNS["age"]}})
    ledger = Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(100.0))
    with pytest.raises(PrivlearnError):
        describe(table, schema, ledger=ledger, **({"epsilon": 1.0} | settings))
    assert ledger.statement().entries == ()


def test_free_text_alone_is_nothing_to_count() -> None:
    schema = Schema.from_dict({"name": "clinic", "columns": {"words": {"type": "text"}}})
    with pytest.raises(InvalidParameter, match="only columns of free text"):
        describe({"words": ["x"]}, schema, epsilon=1.0)


def test_too_many_pairs_are_refused_before_they_are_planned() -> None:
    def schema(columns: int) -> Schema:
        number = {"type": "number", "lower": 0, "upper": 1}
        return Schema.from_dict(
            {"name": "genes", "columns": {f"gene {place}": number for place in range(columns)}}
        )

    promise = Guarantee(1.0, 1e-6)
    assert len(description_layout(schema(63), promise, 10_000, correlations=True).about["pairs"]) == 1953
    with pytest.raises(
        InvalidParameter, match=r"64 columns have 2,016 correlations.* Set correlations=False"
    ):
        description_layout(schema(64), promise, 10_000, correlations=True)
    assert not description_layout(schema(64), promise, 10_000, correlations=False).about["pairs"]


def test_the_plan_looks_at_public_numbers_only() -> None:
    plan = description_layout(SCHEMA, Guarantee(1.0, 1e-6), 10_000, correlations=True)
    assert isinstance(plan, CountsLayout)
    columns, pairs = len(plan.about["columns"]), len(plan.about["pairs"])
    assert (columns, pairs) == (7, 15)  # free text has no table; of the towns there is no order
    assert sum(plan.mechanism.shares[:columns]) == pytest.approx(0.5)
    alone = description_layout(SCHEMA, Guarantee(1.0, 1e-6), 10_000, correlations=False)
    assert len(alone.mechanism.shares) == 7
    assert alone.mechanism.deviations[0] < plan.mechanism.deviations[0]


def test_a_file_with_another_table_is_refused(tmp_path: Path) -> None:
    found = describe(
        {"age": [1.0] * 100}, Schema.from_dict({"name": "c", "columns": {"age": COLUMNS["age"]}}), epsilon=1.0
    )
    changed = Description(found.tables, dict(found.about) | {"dataset": "another"}, found.certificate)
    with pytest.raises((ReleaseError, DataError), match="other tables"):
        Description.from_bytes(changed.to_bytes())
