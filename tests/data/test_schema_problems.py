"""What is wrong with a schema is said in plain words: where, what was found, what to type."""

from __future__ import annotations

import re

import pytest

from privlearn.data import Schema
from privlearn.data.schema import parse_yaml
from privlearn.errors import SchemaError

PROBLEMS = {
    "{type: nmber, lower: 0, upper: 1}": "type: must be number, .*, not 'nmber'. Did you mean 'number'?",
    "{lower: 0, upper: 1}": "columns.a: needs a type: number, category",
    "{type: number, lower: '0,5', upper: 1}": "columns.a: lower: must be a number: write 0.5, with a point",
    "{type: number, lower: x, upper: 1}": "must be a number, not 'x'",
    "{type: number, lower: 0, uper: 1}": "uper: unknown setting.* Did you mean 'upper'?",
    "{type: number, lower: 0, upper: 1, missing: zer}": "must be refuse, zero or indicator, not 'zer'. Did you",
    "{type: number, lower: 0, upper: 1, knots: 1}": "knots: must be at least 2 or auto",
    "{type: number, lower: 0, upper: 1, bins: many}": "bins: must be a whole number or auto or none$",
    "{type: category, values: [1.5, a]}": "values.0: must be true or false or a whole number or text",
    "{type: category, values: a}": r"values: must be a list, e.g. \[a, b\], not 'a'",
    "5": "columns.a: must be settings with names",
}


@pytest.mark.parametrize(("column", "message"), PROBLEMS.items(), ids=PROBLEMS)
def test_plain_words(column: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.from_dict(parse_yaml(f"name: t\ncolumns:\n  a: {column}\n"))
    assert "Input should" not in str(caught.value)
    assert "valid" not in str(caught.value)


@pytest.mark.parametrize("name", ["CRP [mg/l]", "float", "str"])
def test_a_column_keeps_its_name(name: str) -> None:
    column = {"type": "number", "lower": "0,3", "upper": 9}
    with pytest.raises(
        SchemaError, match=rf"^columns\.{re.escape(name)}: lower: must be a number: write 0\.3"
    ):
        Schema.from_dict({"name": "t", "columns": {name: column}})


TARGETS = {
    "{name: y, classes: ['no', 'yes'], weights: {yes: 3}}": 'True is not one of the classes, no, yes: quote "yes"',
    "{name: y, classes: ['no', 'yes'], weights: {'yes': 0}}": "weights: yes: must be a number above 0",
    "{name: y, classes: ['no', 'yes'], merge: {'yes': ['no']}}": "merge: must all be different",
    "{name: y, classes: ['no', 'yes'], merge: [a]}": "merge: must be a mapping of classes",
    "{name: y, lower: 0, upper: 1, weights: {a: 2}}": "weights: remove it. It is for classes",
}


@pytest.mark.parametrize(("target", "message"), TARGETS.items(), ids=TARGETS)
def test_targets(target: str, message: str) -> None:
    column = "{type: number, lower: 0, upper: 1}"
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(parse_yaml(f"name: t\ncolumns:\n  a: {column}\ntarget: {target}\n"))
