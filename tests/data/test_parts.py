"""Splitting a table: under each relation exactly one part changes, or the split is refused."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from privlearn import (
    DataError,
    Guarantee,
    InvalidParameter,
    KernelLearner,
    Ledger,
    LedgerError,
    PrivateGridSearch,
    PrivateLogisticRegression,
    Schema,
    SchemaError,
    curvature,
    split,
)
from privlearn.data import Part, PartRows, Split

AGE = {"age": {"type": "number", "lower": 0, "upper": 1000}}
ROWS = Schema.from_dict({"name": "clinic", "columns": AGE})
PERSONS = Schema.from_dict({"name": "clinic", "columns": AGE, "person": "who"})
ILL = Schema.from_dict(
    {
        "name": "clinic",
        "one_row_per_person": True,
        "columns": AGE,
        "target": {"name": "ill", "classes": ["n", "y"]},
    }
)


def ages(part: PartRows) -> list[Any]:
    return part["age"].to_pylist()


def test_each_record_is_in_one_part_and_the_same_seed_gives_the_same_parts() -> None:
    table = {"age": list(range(50)), "note": ["kept"] * 50}
    first = split(table, ROWS, test=0.3, seed="autumn")
    assert sorted(ages(first.train) + ages(first.test)) == list(range(50))
    assert ages(first.train) == sorted(ages(first.train))
    assert first.train.table().column_names == ["age", "note"]
    assert first.split.counts == {"train": 35, "test": 15}
    again = split(table, ROWS, test=0.3, seed="autumn")
    assert again.test.table().equals(first.test.table())
    assert again.split.digest != first.split.digest  # its rows might have been in another order
    other = split(table, ROWS, test=0.3, seed="winter")
    assert not other.test.table().equals(first.test.table())
    assert other.split.digest != first.split.digest
    assert split(table, ROWS).split.seed != split(table, ROWS).split.seed


def test_by_position_the_note_does_not_tell_who_is_where() -> None:
    """The order of a table may depend on what it says, so that the draw is secret, and made anew each time."""
    table = {"age": list(range(40))}
    made = split(table, ROWS, test=0.5)
    again = split(table, ROWS, test=0.5, seed=made.split.seed)
    assert ages(made.test) != ages(again.test)


def test_a_part_returns_the_kind_of_data_frame_that_was_split() -> None:
    cells = {"age": list(range(20)), "note": ["x"] * 20}
    for library in (pandas.DataFrame, polars.DataFrame, pa.table):
        given = library(cells)
        parts = split(given, ROWS, test=0.25, seed="x")
        for part in (parts.train, parts.test):
            frame = part.frame()
            assert type(frame) is type(given)
            assert (
                pa.table({"age": frame["age"], "note": frame["note"]}).to_pydict() == part.table().to_pydict()
            )
            assert type(part["age"]) is type(given["age"])


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_a_replaced_record_stays_in_its_part_whatever_it_says(seed: str) -> None:
    """Over every place of a small table: one part has one other record, the other part is the same to the last row."""
    table = list(range(10))
    before = split({"age": table}, ROWS, test=0.4, seed=seed)
    for place in range(10):
        after = split({"age": [*table[:place], 999, *table[place + 1 :]]}, ROWS, test=0.4, seed=seed)
        changed = [
            sum(old != new for old, new in zip(ages(one), ages(other), strict=True))
            for one, other in ((before.train, after.train), (before.test, after.test))
        ]
        assert sorted(changed) == [0, 1]
        assert replace(after.split, draw="") == replace(before.split, draw="")


def test_a_replaced_person_stays_in_their_part_with_all_rows() -> None:
    who, old = ["a", "b", "a", "c", "d", "b"], [1, 2, 3, 4, 5, 6]
    before = split({"who": who, "age": old}, PERSONS, test=0.5, seed="x")
    for person in "abcd":
        there = {"who": ["new" if name == person else name for name in who], "age": old}
        after = split(there, PERSONS, test=0.5, seed="x")
        assert ages(after.train) == ages(before.train)
        assert ages(after.test) == ages(before.test)
    assert not set(before.train["who"].to_pylist()) & set(before.test["who"].to_pylist())


@pytest.mark.parametrize("relation", ["add_remove", "zero_out"])
@pytest.mark.parametrize("seed", ["a", "b"])
def test_by_identifier_a_person_less_changes_one_part_and_moves_nobody(relation: str, seed: str) -> None:
    who = [7, 8, 9, 8, 10, 11, 7]
    settings: dict[str, Any] = {"test": 0.5, "seed": seed, "neighbours": relation, "by": "person"}
    before = split({"who": who, "age": list(range(7))}, PERSONS, **settings)
    for person in set(who):
        kept = [place for place, name in enumerate(who) if name != person]
        after = split({"who": [who[place] for place in kept], "age": kept}, PERSONS, **settings)
        for name in ("train", "test"):
            rows = getattr(before, name).table().to_pylist()
            assert getattr(after, name).table().to_pylist() == [row for row in rows if row["who"] != person]
    assert (before.split.counts is None) == (relation == "add_remove")


def test_an_identifier_has_one_part_however_it_is_spelled() -> None:
    settings: dict[str, Any] = {"test": 0.5, "seed": "x", "neighbours": "add_remove"}
    for text, number in itertools.product((["7", "007"], ["7.0"]), ([7],)):
        one = split({"who": text, "age": [1] * len(text)}, PERSONS, **settings)
        other = split({"who": number, "age": [1]}, PERSONS, **settings)
        assert (len(one.test) > 0) == (len(other.test) > 0)
        assert min(len(one.train), len(one.test)) == 0


def test_the_share_of_people_is_about_what_was_asked_for() -> None:
    plan = split({"who": ["a"], "age": [1]}, PERSONS, test=0.2, seed="x", neighbours="add_remove").split
    tested = sum(plan.is_in_test(str(number)) for number in range(5000))
    assert 845 < tested < 1155  # five and a half standard deviations
    assert plan.counts is None


@pytest.mark.parametrize(
    ("settings", "schema", "words"),
    [
        ({"neighbours": "add_remove", "by": "position"}, PERSONS, "moves all later positions"),
        ({"neighbours": "add_remove"}, ROWS, "needs a column that identifies persons"),
        ({"neighbours": "replace_one", "by": "person"}, PERSONS, "another identifier"),
        ({"by": "content"}, ROWS, "by must be one of"),
        ({"test": 1.0}, ROWS, "between 0 and 1"),
        ({"test": True}, ROWS, "between 0 and 1"),
        ({"seed": "x" * 65}, ROWS, "64 printable"),
        ({"neighbours": "nobody"}, ROWS, "neighbours must be one of"),
    ],
)
def test_what_is_not_proven_is_refused(settings: dict[str, Any], schema: Schema, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        split({"who": ["a", "b"], "age": [1, 2]} if schema.person else {"age": [1, 2]}, schema, **settings)


def test_rows_of_one_person_that_nobody_can_find_are_refused() -> None:
    several = Schema.from_dict({"name": "clinic", "columns": AGE, "rows_per_person": 2})
    with pytest.raises(SchemaError, match="be in both parts"):
        split({"age": [1, 2]}, several)
    with pytest.raises(SchemaError, match="identifiers"):
        split({"age": [1, 2], "patient_id": [1, 1]}, ROWS)


def test_each_part_needs_a_record_where_their_number_is_public() -> None:
    with pytest.raises(DataError, match="Each part needs at least one"):
        split({"age": [1, 2]}, ROWS, test=0.1)


def test_the_note_beside_a_part_tells_it_from_the_other(tmp_path: Path) -> None:
    made = split({"age": list(range(20))}, ROWS, seed="x").split
    made.part("train").save(tmp_path / "train.csv")
    assert Part.of_table(tmp_path / "train.csv", "train") == made.part("train")
    with pytest.raises(InvalidParameter, match="is the part 'train', not 'test'"):
        Part.of_table(tmp_path / "train.csv", "test")
    with pytest.raises(InvalidParameter, match="not a part of a split"):
        Part.of_table(tmp_path / "other.csv", "test")
    note = tmp_path / "train.csv.split.json"
    for content in (
        "[]",
        "{}",
        "no JSON",
        json.dumps({"part": "train"}),
        json.dumps({"part": "train", "format": 1}),
    ):
        note.write_text(content)
        with pytest.raises(InvalidParameter, match=r"split"):
            Part.of_table(tmp_path / "train.csv", "train")
    with pytest.raises(InvalidParameter, match="a part must be"):
        made.part("validation")


def test_another_idea_of_a_person_does_not_fit() -> None:
    part = split({"age": list(range(20))}, ROWS, seed="x").split.part("train")
    part.check(ROWS)
    with pytest.raises(SchemaError, match="a different `person`"):
        part.check(PERSONS)


def test_a_description_reads_itself() -> None:
    made = split({"age": list(range(20))}, ROWS, seed="x").split
    assert Split.from_dict(json.loads(json.dumps(made.to_dict()))).digest == made.digest


def test_rows_in_another_order_are_another_split(tmp_path: Path) -> None:
    """One seed, two orders: somebody is in the train part of one and in the test part of the other."""
    table: dict[str, list[Any]] = {"age": list(range(400)), "ill": ["n", "y"] * 200}
    first = split(table, ILL, test=0.5, seed="x")
    second = split({name: cells[::-1] for name, cells in table.items()}, ILL, test=0.5, seed="x")
    assert set(first.train["age"].to_pylist()) & set(second.test["age"].to_pylist())
    ledger = Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(1.0, 1e-5))
    model = PrivateLogisticRegression(schema=ILL, epsilon=1.0, delta=1e-6, ledger=ledger)
    model.fit(first.train)
    with pytest.raises(LedgerError):
        model.fit(second.test)


def test_labels_next_to_a_part_are_refused(tmp_path: Path) -> None:
    """They could be those of the other part's people, who would not be charged."""
    parts = split({"age": list(range(100)), "ill": ["n", "y"] * 50}, ILL, test=0.5)
    labels = np.array(parts.train["ill"].to_pylist())
    model = PrivateLogisticRegression(schema=ILL, epsilon=1.0, delta=1e-6)
    search = PrivateGridSearch(model, {"regularization": [0.1, 0.2]}, epsilon=1.0, delta=1e-6)
    released = model.fit(parts.train).release_
    readers: list[Callable[[], Any]] = [
        lambda: model.fit(parts.test, labels),
        lambda: search.fit(parts.test, labels),
        lambda: KernelLearner(schema=ILL).read(parts.test, labels),
        lambda: curvature(released, parts.test, labels, epsilon=1.0, delta=1e-6),
    ]
    for read in readers:
        with pytest.raises(InvalidParameter, match="y cannot be passed with a part"):
            read()


def test_a_part_is_not_public() -> None:
    parts = split({"age": list(range(100)), "ill": ["n", "y"] * 50}, ILL, test=0.5)
    kernel = PrivateLogisticRegression(
        schema=ILL, kernel="rbf", gamma=1.0, epsilon=1.0, delta=1e-6, public_points=parts.test
    )
    linear = PrivateLogisticRegression(schema=ILL)
    search = PrivateGridSearch(
        linear, {"regularization": [0.1, 0.2]}, epsilon=1.0, delta=1e-6, public_validation=parts.test
    )
    for estimator in (kernel, search):
        with pytest.raises(InvalidParameter, match="must be public, and a part of a private table is not"):
            estimator.fit(parts.train)
    with pytest.raises(InvalidParameter, match="must be public"):
        KernelLearner(schema=ILL, regularization=0.1, public_points=parts.test).read(parts.train)
