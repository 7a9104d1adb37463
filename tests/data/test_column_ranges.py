"""One entry of a schema describes several columns, and a template writes runs of them as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from privlearn.data import Schema, SchemaDraft
from privlearn.data.schema import expand_ranges, schema_template
from privlearn.errors import SchemaError

NUMBER = {"type": "number", "lower": 0, "upper": 9}


def schema_of(**columns: Any) -> Schema:
    return Schema.from_dict({"name": "bills", "columns": columns, "target": {"name": "y", "classes": [0, 1]}})


def test_a_range_is_the_columns_written_out() -> None:
    compact = schema_of(age=NUMBER, **{"BILL_AMT{1..3}": NUMBER, "PAY_{08..10}_x": NUMBER})
    names = ["age", "BILL_AMT1", "BILL_AMT2", "BILL_AMT3", "PAY_08_x", "PAY_09_x", "PAY_10_x"]
    assert list(compact.columns) == names
    assert compact.digest == schema_of(**dict.fromkeys(names, NUMBER)).digest


def test_drafts_have_ranges() -> None:
    content = {"name": "t", "columns": {"x{1..2}": {"type": "number", "lower": 0, "upper": "estimate"}}}
    assert [str(bound) for bound in SchemaDraft.from_dict(content).bounds] == ["x1 upper", "x2 upper"]


@pytest.mark.parametrize("name", ["x{2..1}", "x{1..1}", "x{1..999999999}"])
def test_a_range_counts_upwards(name: str) -> None:
    with pytest.raises(SchemaError, match="counts upwards"):
        schema_of(**{name: NUMBER})


def test_a_column_is_described_once() -> None:
    with pytest.raises(SchemaError, match=r"columns\.x2: occurs twice"):
        schema_of(x2=NUMBER, **{"x{1..3}": NUMBER})


def test_other_braces_are_names() -> None:
    assert list(expand_ranges({"{a..b}": 1, "x{1}": 2, 3: 4})) == ["{a..b}", "x{1}", 3]


def test_a_template_writes_runs_as_ranges(tmp_path: Path) -> None:
    names = ["age", *(f"BILL_AMT{number}" for number in range(1, 7)), "a1", "a2", "b1"]
    (tmp_path / "t.csv").write_text(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    columns = yaml.safe_load(schema_template(tmp_path / "t.csv"))["columns"]
    assert list(columns) == ["age", "BILL_AMT{1..6}", "a1", "a2", "b1"]
    assert list(expand_ranges(columns)) == names
