"""Workbooks and the files of SPSS and Stata are tables, too."""

from __future__ import annotations

import datetime
import sys
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from privlearn.data import Schema, check_table, read_table, write_table
from privlearn.data.schema import schema_template
from privlearn.data.sources import open_cells, write_rows
from privlearn.data.sources.program_files import _as_dates
from privlearn.errors import DataError, InvalidParameter

Refused = Callable[..., AbstractContextManager[None]]
ROWS: list[list[Any]] = [["height", "town"], [1.5, "Köln"], [-9, "Bonn"], [2, None]]
READ = [(1.5, "Köln"), (None, "Bonn"), (2.0, None)]
OFFICE = "http://schemas.openxmlformats.org"


def _schema(**file: Any) -> Schema:
    columns = {
        "height": {"type": "number", "lower": 0, "upper": 3, "missing": "zero"},
        "town": {"type": "category", "values": ["Köln", "Bonn"], "missing": "zero"},
    }
    return Schema.from_dict({"name": "t", "columns": columns, "file": {"missing": [-9], **file}})


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def _workbook(path: Path, rows: list[list[Any]]) -> Path:
    """Write the smallest workbook with two sheets, the first of them empty."""
    main, relations = f"{OFFICE}/spreadsheetml/2006/main", f"{OFFICE}/officeDocument/2006/relationships"
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    sheets = {1: "", 2: lines}
    named = {1: "Notes", 2: "People"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="r" '
            f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in named.items())
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>{listed}</sheets></workbook>',
        )
        related = "".join(
            f'<Relationship Id="r{i}" Type="{relations}/worksheet" Target="worksheets/sheet{i}.xml"/>'
            for i in sheets
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{related}</Relationships>',
        )
        for i, content in sheets.items():
            archive.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{content}</sheetData></worksheet>',
            )
    return path


def _cells(path: Path, schema: Schema) -> list[tuple[Any, ...]]:
    return list(zip(*read_table(path, schema).to_pydict().values(), strict=True))


def test_a_sheet_of_a_workbook(tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("python_calamine")
    path = _workbook(tmp_path / "t.xlsx", ROWS)
    assert _cells(path, _schema(sheet="People")) == READ
    with refused("is empty"):
        read_table(path, _schema())
    with refused("no sheet 'Persons'"):
        read_table(path, _schema(sheet="Persons"))


def test_a_sheet_without_names(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = _workbook(tmp_path / "t.xlsx", ROWS[1:])
    assert _cells(path, _schema(sheet="People", names=["height", "town"])) == READ


def test_a_template_of_another_sheet(tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("python_calamine")
    path = _workbook(tmp_path / "t.xlsx", ROWS)
    template = yaml.safe_load(schema_template(path, sheet="People"))
    assert list(template["columns"]) == ["height", "town"]
    assert template["file"]["sheet"] == "People"
    with refused("no sheet 'Persons'"):
        schema_template(path, sheet="Persons")
    assert "# sheets: Notes, People; --sheet NAME reads another" in schema_template(path, sheet="People")
    others = Schema.from_dict(
        {
            "name": "t",
            "columns": {"age": {"type": "number", "lower": 0, "upper": 9}},
            "file": {"sheet": "People"},
        }
    )
    with refused("from sheet 'People'. Name another in the schema: file: {sheet: NAME}"):
        read_table(path, others)


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_files_of_statistics_programs(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / f"t.{ending}"
    columns = zip(*ROWS[1:], strict=True)
    frame = pandas.DataFrame(dict(zip(ROWS[0], columns, strict=True)))
    getattr(pyreadstat, f"write_{ending}")(frame, str(path))
    assert _cells(path, _schema()) == READ
    assert list(yaml.safe_load(schema_template(path))["columns"]) == ["height", "town"]


DAYS = [datetime.date(2022, 9, 1), None, datetime.date(2021, 1, 31)]
TIMES = [datetime.datetime(2022, 9, 1, 13, 30), datetime.date(2021, 1, 31), None]


def test_days_and_times_of_such_files() -> None:
    assert pa.types.is_date32(_as_dates(DAYS).type)
    assert _as_dates(DAYS).to_pylist() == DAYS
    assert pa.types.is_timestamp(_as_dates(TIMES).type)
    assert _as_dates([*DAYS, "unknown"]) == [*DAYS, "unknown"]


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Write a file of Stata with a column of days."""
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "t.dta"
    columns = {"visit": [day or datetime.date(2020, 2, 29) for day in DAYS], "y": [0.0, 1.0, 0.0]}
    pyreadstat.write_dta(pandas.DataFrame(columns), str(path))
    return path


def test_days_are_checked_copied_and_recognised(visits: Path) -> None:
    column = {"type": "date", "lower": "2020-01-01", "upper": "2023-01-01"}
    schema = Schema.from_dict({"name": "t", "columns": {"visit": column}})
    assert check_table(visits, schema).problems == 0
    write_rows(open_cells(visits), visits.with_suffix(".csv"))
    assert "2022-09-01" in visits.with_suffix(".csv").read_text()
    assert yaml.safe_load(schema_template(visits))["columns"]["visit"]["type"] == "date"


def test_numbers_and_text_in_one_column_are_checked_and_copied(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    path = _workbook(tmp_path / "t.xlsx", [["height", "town"], [2, "Bonn"], ["k.A.", "Bonn"], [1.5, "Bonn"]])
    schema = _schema(sheet="People")
    assert check_table(path, schema).problems == 1
    for copy in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        write_rows(open_cells(path, schema.file), copy)
        assert read_table(copy).column("height").to_pylist() == ["2", "k.A.", "1.5"]


def test_what_is_no_such_file(tmp_path: Path, refused: Refused) -> None:
    pytest.importorskip("python_calamine")
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with refused("cannot be read as a workbook"):
        read_table(tmp_path / "t.xlsx", _schema())


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    (tmp_path / "t.sav").write_bytes(b"x")
    with pytest.raises(InvalidParameter, match=r"pip install 'privlearn\[files\]'"):
        read_table(tmp_path / "t.sav", _schema())


def test_nothing_is_written_as_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"written as \.csv or \.parquet"):
        write_table(pa.table({}), tmp_path / "t.xlsx")
