"""Read tables in files of other programs: workbooks, SPSS, Stata and SAS; each file is read whole."""

from __future__ import annotations

import datetime
import math
from importlib import import_module
from pathlib import Path
from typing import Any

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.table import as_table, refuse_repeated_names, safely
from privlearn.data.sources.workbook_check import check_sheet
from privlearn.errors import DataError, InvalidParameter
from privlearn.imports import pa

WORKBOOKS = (".xlsx", ".xlsm")
_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
ENDINGS = (*WORKBOOKS, *_READERS)


def is_program_file(path: TablePath) -> bool:
    """Return whether a file's name has the ending of such a program."""
    return path.suffix.lower() in ENDINGS


def read_program_file(path: TablePath, form: FileFormat = PLAIN) -> pa.Table:
    """Return all columns of a file; categories are the codes that the file stores.

    Parameters
    ----------
    path : path
        The file. In a workbook, the sheet that the format names is read, or else the first visible one; its first row
        names the columns, unless the format states their names.
    """
    if isinstance(path, StoredPath):
        raise DataError(f"{path}: such files must be on a disk. Copy it there, or save it as .csv.")
    names, columns = _workbook(path, form) if path.suffix.lower() in WORKBOOKS else _statistics(path)
    refuse_repeated_names(names, names)
    cells = zip(names, columns, strict=True)
    return as_table({name: _as_dates([_none_if_empty(cell) for cell in column]) for name, column in cells})


def _workbook(path: Path, form: FileFormat) -> tuple[list[str], list[list[Any]]]:
    calamine = _library("python_calamine", path)
    sheets = safely(
        lambda: calamine.load_workbook(str(path)), f"{path} cannot be read as a workbook. Save it again."
    )
    if form.sheet is not None and form.sheet not in sheets.sheet_names:
        raise DataError(
            f"{path} has no sheet {form.sheet!r}, only {', '.join(map(repr, sheets.sheet_names))}"
        )
    name = _first_visible(sheets, calamine, path) if form.sheet is None else form.sheet
    rows = _rows(sheets, path, name, skip_empty_area=not form.names)
    names = list(form.names) if form.names else [cell_text(cell) for cell in (rows.pop(0) if rows else [])]
    if not names:
        raise DataError(f"{path}: sheet {name!r} is empty. Its first row must name the columns.")
    if any(len(row) > len(names) for row in rows):
        raise DataError(
            f"{path}: the schema's file states {len(names)} names, and the sheet has more columns. State all names."
        )
    columns = [[row[index] if index < len(row) else None for row in rows] for index in range(len(names))]
    return _named_columns(names, columns, f"{path}: sheet {name!r}")


def _named_columns(
    names: list[str], columns: list[list[Any]], label: str
) -> tuple[list[str], list[list[Any]]]:
    """Return the columns that have a name; refuse cells in others, since a note next to a table would add records."""
    pairs = list(zip(names, columns, strict=True))
    if any(_none_if_empty(cell) is not None for name, column in pairs if not name.strip() for cell in column):
        raise DataError(
            f"{label} has cells in a column whose first row is empty. Delete notes next to the table, or name it."
        )
    named = [pair for pair in pairs if pair[0].strip()]
    return [name for name, _ in named], [column for _, column in named]


def visible_sheets(path: TablePath) -> list[str]:
    """Return the names of a workbook's visible sheets; none for other files."""
    if isinstance(path, StoredPath) or path.suffix.lower() not in WORKBOOKS:
        return []
    calamine = _library("python_calamine", path)
    sheets = safely(
        lambda: calamine.load_workbook(str(path)), f"{path} cannot be read as a workbook. Save it again."
    )
    return _visible(sheets, calamine)


def _visible(sheets: Any, calamine: Any) -> list[str]:
    visible = calamine.SheetVisibleEnum.Visible
    return [str(sheet.name) for sheet in sheets.sheets_metadata if sheet.visible == visible]


def _first_visible(sheets: Any, calamine: Any, path: Path) -> str:
    names = _visible(sheets, calamine)
    if not names:
        raise DataError(f"{path} has no visible sheet. Name one in the schema, file: {{sheet: ...}}")
    return names[0]


def _rows(sheets: Any, path: Path, name: str, *, skip_empty_area: bool) -> list[list[Any]]:
    """Return the cells of a sheet; an object that no column accepts stands for each unreadable cell."""
    problem = f"{path}: sheet {name!r} cannot be read. Save the workbook again."
    try:
        extent = check_sheet(path, name)
    except DataError:
        raise
    except Exception:
        extent = None  # its message may quote a cell
    if extent is None:
        raise DataError(problem)
    sheet = safely(lambda: sheets.get_sheet_by_name(name), problem)
    rows: list[list[Any]] = safely(lambda: sheet.to_python(skip_empty_area=skip_empty_area), problem)
    top, left = (sheet.start or (0, 0)) if skip_empty_area else (0, 0)
    first = 1 if skip_empty_area else 0  # a row of names precedes the records
    for row, column in extent.unreadable:
        if first <= row - 1 - top < len(rows) and 0 <= column - 1 - left < len(rows[row - 1 - top]):
            rows[row - 1 - top][column - 1 - left] = _UNREADABLE
    return rows


_UNREADABLE = object()


def _statistics(path: Path) -> tuple[list[str], list[Any]]:
    reader = getattr(_library("pyreadstat", path), _READERS[path.suffix.lower()])
    problem = f"{path} cannot be read. Write the file again."
    columns, metadata = safely(lambda: reader(str(path), output_format="dict"), problem)
    if path.suffix.lower() == ".xpt":
        check_transport_file(path, metadata.number_rows, sum(metadata.variable_storage_width.values()))
    return list(metadata.column_names), [list(columns[name]) for name in metadata.column_names]


def value_labels(path: Path) -> dict[str, dict[Any, str]]:
    """Return the labels of each column's codes in a file of SPSS or Stata; no row is read."""
    reader = getattr(_library("pyreadstat", path), _READERS[path.suffix.lower()])
    _, metadata = safely(
        lambda: reader(str(path), metadataonly=True), f"{path} cannot be read. Write the file again."
    )
    return dict(metadata.variable_value_labels)


def _library(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(
            f"{path}: files that end in {path.suffix} need an extra. Run pip install 'privlearn[files]'"
        ) from None


def _as_dates(cells: list[Any]) -> Any:
    """Return dates, or dates and times, as Arrow arrays, other cells unchanged; such files have no time zones."""
    kinds = {*map(type, cells)} - {type(None)}
    if kinds == {datetime.date}:
        return pa.array(cells, pa.date32())
    if kinds and kinds <= {datetime.date, datetime.datetime}:
        midnight = datetime.time()
        times = (
            datetime.datetime.combine(cell, midnight) if type(cell) is datetime.date else cell
            for cell in cells
        )
        return pa.array(times, pa.timestamp("us"))
    return cells


def _none_if_empty(cell: Any) -> Any:
    return None if cell == "" or (isinstance(cell, float) and math.isnan(cell)) else cell


def cell_text(cell: Any) -> str:
    """Return a cell as text; workbooks store 5 as 5.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


_CARD = 80  # bytes; a transport file consists of cards, and blanks fill the last one
_OBSERVATIONS = b"HEADER RECORD*******OBS"
_STATED_ROWS = slice(48, 63)  # of the card above the records, from version 8 on
_CUT_OFF = (
    "{} is cut off or damaged, has several tables, or ends with blank records. Write the file again with "
    "one table, or save it as .csv or .parquet"
)


def check_transport_file(path: Path, rows: int, width: int) -> None:
    """Refuse a SAS transport file (.xpt) that is cut off: its reader stops silently at the last whole record.

    A complete file ends with the last of ``rows`` records of ``width`` bytes, and fewer than 80 blanks.

    A file of version 5 does not state its number of records. A cut between two cards that is also the end of a record
    cannot be recognised, nor can records of blanks that would fit into the filling.
    """
    content = path.read_bytes()
    start = content.find(_OBSERVATIONS)
    card = content[start : start + _CARD]
    filling = content[start + _CARD + rows * width :]
    stated = card[_STATED_ROWS].strip() if card.startswith(_OBSERVATIONS + b"V8") else b""
    if (
        start < 0
        or len(content) % _CARD
        or len(content) < start + _CARD + rows * width
        or len(filling) >= _CARD
        or filling.strip(b" ")
        or (stated and stated != str(rows).encode())
    ):
        raise DataError(_CUT_OFF.format(path))
