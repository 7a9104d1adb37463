"""Bounds and lists that several holders buy: what one person moves, the promised noise, receipts, and refusals."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from privlearn import Ledger, Schema, SchemaDraft, verify
from privlearn.arrays import Array
from privlearn.data import census_schema, simulated_census
from privlearn.data.schema import JointPrivateBounds
from privlearn.errors import DataError, SchemaError, VerificationError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed import NoisySum, NoisySums, Question
from privlearn.parties import JointDiscovery, JointTraining, simulate, train_together
from privlearn.parties.run import RunBudget, load_agreement
from privlearn.randomness import SecureRandomness
from privlearn.release import check_receipt
from privlearn.statistics.discovery import DiscoveredSchema, MarkedColumns

ALARM = 1e-6
SIZES = {"north": 500, "south": 1500, "west": 1000}
TABLES = {name: simulated_census(size, seed=size) for name, size in SIZES.items()}
OCCUPATIONS = ["office", "trade", "craft", "services", "health", "management", "farming", "astronaut"]
DRAFT: dict[str, Any] = {
    "name": "census",
    "columns": {
        "age": {"type": "number", "lower": "estimate", "upper": "estimate"},
        "hours": {"type": "number", "lower": 0, "upper": "estimate"},
        "occupation": {"type": "category", "values": "estimate"},
        "region": {"type": "category", "values": ["north", "east", "south", "west"]},
    },
    "target": {"name": "income", "classes": "estimate"},
}
CANDIDATES = {"occupation": OCCUPATIONS, "income": ["low", "high"]}


def agreement_of(**changes: Any) -> JointDiscovery:
    usual: dict[str, Any] = {"draft": DRAFT, "parties": SIZES, "candidates": CANDIDATES}
    return JointDiscovery(**usual | {"epsilon": 2.0, "delta": 1e-5} | changes)


def vector(agreement: JointDiscovery, name: str, table: Any) -> Array:
    return agreement.read_party(name, table).answer(agreement.mechanism.question(0))


def counted(agreement: JointDiscovery, table: pa.Table) -> Array:
    """Count as a party does, with cells that may be missing."""
    lenient = SchemaDraft(
        {
            **DRAFT,
            "columns": {name: {**column, "missing": "zero"} for name, column in DRAFT["columns"].items()},
            "target": {**DRAFT["target"], "unknown": "zero"},
        }
    )
    return agreement.mechanism.answer(agreement.cells.count(MarkedColumns(table, lenient)))


class Exact(NoisySums):
    """The sum of some parties' answers without noise."""

    def __init__(self, agreement: JointDiscovery, *names: str) -> None:
        self.agreement, self.names = agreement, names

    def ask(self, question: Question) -> NoisySum:
        total = np.sum([vector(self.agreement, name, TABLES[name]) for name in self.names], axis=0)
        return NoisySum(total, sum(SIZES[name] for name in self.names), len(self.names))


@pytest.fixture(scope="module")
def found() -> DiscoveredSchema:
    return simulate(agreement_of(), TABLES)


def test_what_is_bought_fits_the_pooled_table(found: DiscoveredSchema) -> None:
    pooled = pa.concat_tables(TABLES.values())
    columns: dict[str, Any] = dict(found.schema.columns)
    schema, age = found.schema, np.array(pooled["age"])
    assert 0 < np.mean(age < columns["age"].lower) + np.mean(age > columns["age"].upper) < 0.2
    assert columns["hours"].lower == 0.0
    assert set(columns["occupation"].values) >= {"office", "trade", "services"}
    assert columns["occupation"].unknown == "other"
    assert schema.target is not None
    assert schema.target.classes == ("low", "high")


def test_a_public_range_gives_equal_steps() -> None:
    agreement = agreement_of(between={"age": (0.0, 120.0)})
    age: Any = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness()).schema.columns["age"]
    assert age.upper == pytest.approx(120 / 4094 * round(age.upper * 4094 / 120))
    assert age.upper < 90


@pytest.mark.parametrize(("neighbours", "most"), [("replace_one", 2**0.5), ("zero_out", 1.0)])
def test_no_person_moves_the_sum_further_and_some_person_does(neighbours: str, most: float) -> None:
    agreement, others = agreement_of(neighbours=neighbours), TABLES["north"].to_pylist()[1:]
    here = {"age": -20, "hours": -5.0, "occupation": "office", "income": "low", "region": "north"}
    there = here | {"age": 85, "hours": 75.0, "occupation": "farming", "income": "high"}
    gone: dict[str, Any] = here | dict.fromkeys(("age", "hours", "occupation")) | {"income": "unlisted"}
    replaced = [there, here | {"age": -21}, there | {"occupation": "spy"}, gone]
    vectors = [
        counted(agreement, pa.Table.from_pylist([row, *others])) for row in (replaced if most > 1 else [gone])
    ]
    moved = [
        np.linalg.norm(vector - counted(agreement, pa.Table.from_pylist([here, *others])))
        for vector in vectors
    ]
    assert max(moved) == pytest.approx(most)
    assert max(moved) < agreement.mechanism._loss * agreement.mechanism.noise_scale < most * (1 + 1e-3)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_noise_is_what_the_file_reckons_with(found: DiscoveredSchema, factor: float) -> None:
    agreement = agreement_of()
    exact = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness())
    scales = [factor * found.about["in_sum"]["noise"] * each for each in agreement.mechanism.deviations]
    drawn = np.concatenate(
        [
            (noisy - true) / scale
            for noisy, true, scale in zip(found.tables, exact.tables, scales, strict=True)
        ]
    )
    chance = 2.0 * min(stats.chi2.cdf(drawn @ drawn, drawn.size), stats.chi2.sf(drawn @ drawn, drawn.size))
    assert (chance > ALARM) == (factor == 1.0)


def test_values_that_the_plan_does_not_name_are_not_counted() -> None:
    agreement, rows = agreement_of(), TABLES["north"].to_pylist()
    spy = pa.Table.from_pylist([row | {"occupation": "spy"} for row in rows])
    first = sum(agreement.cells.cells[:-2])
    assert not vector(agreement, "north", spy)[first : first + len(OCCUPATIONS)].any()


def test_the_receipt_is_checked_and_the_price_is_in_every_release(
    found: DiscoveredSchema, tmp_path: Path
) -> None:
    found.save(tmp_path / "bounds.privlearn")
    proven = verify(tmp_path / "bounds.privlearn")
    assert proven.is_private
    assert proven.run is not None
    assert proven.recomputed.epsilon == 2.0
    (tmp_path / "plan.json").write_text(
        json.dumps({"schema": "bounds.privlearn", "parties": SIZES, "epsilon": 4.0, "delta": 1e-5})
    )
    agreement = load_agreement(tmp_path / "plan.json")
    assert isinstance(agreement, JointTraining)
    assert agreement.table_schema == found.schema == Schema.from_dict(found.schema.to_dict())
    release = train_together(agreement, TABLES)
    release.save(tmp_path / "model.privlearn")
    assert (
        verify(tmp_path / "model.privlearn")
        .properties["with schema"]
        .startswith("(epsilon = 6, delta = 2e-05)")
    )
    (receipt,) = found.schema.private_bounds
    assert isinstance(receipt, JointPrivateBounds)
    check_receipt(receipt)
    for change in ({"epsilon": 1.9}, {"noise_scale": 0.99 * receipt.noise_scale}, {"parties_per_person": 2}):
        with pytest.raises(VerificationError):
            check_receipt(receipt.model_copy(update=change))
    with pytest.raises(SchemaError, match="must not have quantile_epsilon"):
        JointPrivateBounds(**receipt.model_dump() | {"quantile_epsilon": 1.0})


def test_a_party_that_is_missing_is_not_in_the_sum() -> None:
    agreement = agreement_of(dropouts=1, colluding=0, accept_curious_parties=True)
    told = agreement.outcome(Exact(agreement, "north", "south"), SecureRandomness())
    assert told.about["in_sum"] == {"parties": 2, "records": 2000, "noise": 1.0}


def test_a_person_whom_two_parties_know_costs_twice_the_noise() -> None:
    one, two = agreement_of(), agreement_of(parties_per_person=2)
    assert two.mechanism.noise_scale == pytest.approx(2 * one.mechanism.noise_scale, rel=1e-5)


def test_a_purchase_for_people_at_one_party_is_not_for_people_at_two(found: DiscoveredSchema) -> None:
    content: dict[str, Any] = {"parties": SIZES, "epsilon": 4.0, "delta": 1e-5, "parties_per_person": 2}
    with pytest.raises(SchemaError, match="parties_per_person: 1, no person column, but this schema has"):
        JointTraining(schema=found.schema, **content)
    two = found.schema.private_bounds[0].model_copy(update={"parties_per_person": 2})
    JointTraining(schema=found.schema.model_copy(update={"private_bounds": (two,)}), **content)


def test_a_file_that_names_other_candidates_than_its_plan_is_refused(found: DiscoveredSchema) -> None:
    others = {"occupation": [*OCCUPATIONS[:-1], "spy"], "income": ["low", "high"]}
    with pytest.raises(VerificationError, match="other candidates"):
        dataclasses.replace(found, about={**found.about, "candidates": others})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"candidates": {"income": ["low", "high"]}}, "Name the values to count"),
        ({"candidates": CANDIDATES | {"income": ["low", "low"]}}, "some values repeat"),
        ({"candidates": CANDIDATES | {"income": [0, 1]}}, "another type than in the draft"),
        ({"between": {"hours_worked": (0, 1)}}, "between.hours_worked"),
        ({"between": {"age": (120, 0)}}, "between.age"),
        ({"schema": census_schema()}, "replaces it"),
        ({"draft": census_schema().to_dict()}, "nothing is marked"),
        ({"epsilon": 0.05}, "is too little"),
        ({"delta": 0.0}, "delta > 0"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        agreement_of(**changes)


def test_a_list_alone_and_bounds_of_a_target() -> None:
    columns = {"occupation": {"type": "category", "values": "estimate"}}
    listed = agreement_of(
        draft={"name": "census", "columns": columns}, candidates={"occupation": OCCUPATIONS}
    )
    assert simulate(listed, TABLES).schema.private_bounds[0].lists == ("occupation",)
    target = {"name": "age", "lower": "estimate", "upper": "estimate"}
    whole = {"type": "category", "values": "estimate whole numbers"}
    draft = SchemaDraft({"name": "census", "columns": {"level": whole}, "target": target})
    again = SchemaDraft(draft.to_dict())
    assert (again.bounds, again.lists, again.stand_in) == (draft.bounds, draft.lists, draft.stand_in)


def test_another_number_of_records_is_refused() -> None:
    with pytest.raises(DataError, match="declares 500 records"):
        agreement_of().read_party("north", TABLES["south"])


def test_the_draft_is_part_of_what_is_signed(tmp_path: Path) -> None:
    less = {
        **DRAFT,
        "columns": DRAFT["columns"] | {"age": {"type": "number", "lower": 0, "upper": "estimate"}},
    }
    digests = {
        agreement_of().digest,
        agreement_of(between={"age": (0, 120)}).digest,
        agreement_of(draft=less).digest,
        agreement_of(candidates=CANDIDATES | {"income": ["high", "low"]}).digest,
    }
    assert len(digests) == 4
    assert agreement_of(draft=SchemaDraft(agreement_of().draft.to_dict())).digest == agreement_of().digest


def test_the_ledger_is_charged_before_the_answer_leaves(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "north.db", "census", Guarantee(3.0, 1e-4))
    budget = RunBudget(agreement_of(), "north", ledger)
    budget.reserve()
    budget.commit(0)
    spent = ledger.statement().spent
    assert (spent.epsilon, spent.delta) == (2.0, 1e-5)
