"""Splitting a table: under each relation exactly one part changes, or the split is refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from privlearn import DataError, InvalidParameter, Schema, SchemaError, split
from privlearn.data.parts import Part, Split

AGE = {"age": {"type": "number", "lower": 0, "upper": 1000}}
ROWS = Schema.from_dict({"name": "clinic", "columns": AGE})
PERSONS = Schema.from_dict({"name": "clinic", "columns": AGE, "person": "who"})


def ages(part: pa.Table) -> list[Any]:
    return part.column("age").to_pylist()


def test_each_record_is_in_one_part_and_the_same_seed_gives_the_same_parts() -> None:
    table = {"age": list(range(50)), "note": ["kept"] * 50}
    first = split(table, ROWS, test=0.3, seed="autumn")
    assert sorted(ages(first.train) + ages(first.test)) == list(range(50))
    assert ages(first.train) == sorted(ages(first.train))
    assert first.train.column_names == ["age", "note"]
    assert first.split.counts == {"train": 35, "test": 15}
    again = split(table, ROWS, test=0.3, seed="autumn")
    assert again.test.equals(first.test)
    assert again.split.digest == first.split.digest
    other = split(table, ROWS, test=0.3, seed="winter")
    assert not other.test.equals(first.test)
    assert other.split.digest != first.split.digest
    assert split(table, ROWS).split.seed != split(table, ROWS).split.seed


def test_by_position_the_note_does_not_tell_who_is_where() -> None:
    """The order of a table may depend on what it says, so that the draw is secret, and made anew each time."""
    table = {"age": list(range(40))}
    made = split(table, ROWS, test=0.5)
    again = split(table, ROWS, test=0.5, seed=made.split.seed)
    assert made.test.column("age").to_pylist() != again.test.column("age").to_pylist()


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
        assert after.split.digest == before.split.digest


def test_a_replaced_person_stays_in_their_part_with_all_rows() -> None:
    who, old = ["a", "b", "a", "c", "d", "b"], [1, 2, 3, 4, 5, 6]
    before = split({"who": who, "age": old}, PERSONS, test=0.5, seed="x")
    for person in "abcd":
        there = {"who": ["new" if name == person else name for name in who], "age": old}
        after = split(there, PERSONS, test=0.5, seed="x")
        assert ages(after.train) == ages(before.train)
        assert ages(after.test) == ages(before.test)
    assert not set(before.train.column("who").to_pylist()) & set(before.test.column("who").to_pylist())


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
            rows = getattr(before, name).to_pylist()
            assert getattr(after, name).to_pylist() == [row for row in rows if row["who"] != person]
    assert (before.split.counts is None) == (relation == "add_remove")


def test_an_identifier_has_one_part_however_it_is_spelled() -> None:
    settings: dict[str, Any] = {"test": 0.5, "seed": "x", "neighbours": "add_remove"}
    for text, number in itertools.product((["7", "007"], ["7.0"]), ([7],)):
        one = split({"who": text, "age": [1] * len(text)}, PERSONS, **settings)
        other = split({"who": number, "age": [1]}, PERSONS, **settings)
        assert (one.test.num_rows > 0) == (other.test.num_rows > 0)
        assert min(one.train.num_rows, one.test.num_rows) == 0


def test_the_share_of_people_is_about_what_was_asked_for() -> None:
    plan = split({"who": ["a"], "age": [1]}, PERSONS, test=0.2, seed="x", neighbours="add_remove").split
    tested = sum(plan.is_tested(str(number)) for number in range(5000))
    assert 880 < tested < 1120  # four deviations
    assert plan.counts is None


@pytest.mark.parametrize(
    ("settings", "schema", "words"),
    [
        ({"neighbours": "add_remove", "by": "position"}, PERSONS, "moves all later places"),
        ({"neighbours": "add_remove"}, ROWS, "needs the schema's `person`"),
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
    with pytest.raises(SchemaError, match="fall into both parts"):
        split({"age": [1, 2]}, several)
    with pytest.raises(SchemaError, match="identifiers"):
        split({"age": [1, 2], "patient_id": [1, 1]}, ROWS)


def test_each_part_needs_a_record_where_their_number_is_public() -> None:
    with pytest.raises(DataError, match="each part needs at least one"):
        split({"age": [1, 2]}, ROWS, test=0.1)


def test_the_note_beside_a_part_tells_it_from_the_other(tmp_path: Path) -> None:
    made = split({"age": list(range(20))}, ROWS, seed="x").split
    made.part("train").save(tmp_path / "train.csv")
    assert Part.of_table(tmp_path / "train.csv", "train") == made.part("train")
    with pytest.raises(InvalidParameter, match="is the part 'train', not 'test'"):
        Part.of_table(tmp_path / "train.csv", "test")
    with pytest.raises(InvalidParameter, match="no part of a split"):
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
    with pytest.raises(InvalidParameter, match="a part is"):
        made.part("validation")


def test_another_idea_of_a_person_does_not_fit() -> None:
    part = split({"age": list(range(20))}, ROWS, seed="x").split.part("train")
    part.check(ROWS)
    with pytest.raises(SchemaError, match="another idea of a person"):
        part.check(PERSONS)


def test_a_description_reads_itself() -> None:
    made = split({"age": list(range(20))}, ROWS, seed="x").split
    assert Split.from_dict(json.loads(json.dumps(made.to_dict()))).digest == made.digest
