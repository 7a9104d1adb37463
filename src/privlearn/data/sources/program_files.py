"""Tables in the files of other programs: workbooks (Excel, LibreOffice), SPSS, Stata and SAS; read whole."""

from __future__ import annotations

import datetime
import math
from importlib import import_module
from pathlib import Path
from typing import Any

from privlearn.data.schema.file_format import PLAIN, FileFormat
from privlearn.data.sources.addresses import StoredPath, TablePath
from privlearn.data.sources.table import as_table, safely
from privlearn.errors import DataError, InvalidParameter
from privlearn.heavy import pa

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
ENDINGS = (*WORKBOOKS, *_READERS)


def is_program_file(path: TablePath) -> bool:
    """Whether a file's name says that it is one of these."""
    return path.suffix.lower() in ENDINGS


def read_program_file(path: TablePath, form: FileFormat = PLAIN) -> pa.Table:
    """All columns of a file, codes for gaps left out; categories stay the codes that the file keeps.

    Parameters
    ----------
    path : path
        Of a workbook the sheet that the format names is read, or else the first; its first row has the columns' names,
        unless the format has them.
    """
    if isinstance(path, StoredPath):
        raise DataError(
            f"{path}: such a file is read from a disk: copy it there, or save it as .csv or .parquet"
        )
    names, columns = _workbook(path, form) if path.suffix.lower() in WORKBOOKS else _statistics(path)
    as_table(pa.table([[]] * len(names), names=names), names)  # refuses repeated names
    cells = zip(names, columns, strict=True)
    return as_table({name: _dated(_without_gaps(column, form.codes_of(name))) for name, column in cells})


def _workbook(path: Path, form: FileFormat) -> tuple[list[str], list[list[Any]]]:
    calamine = _library("python_calamine", path)
    sheets = safely(lambda: calamine.load_workbook(str(path)), f"{path} is not a workbook that can be read")
    if form.sheet is not None and form.sheet not in sheets.sheet_names:
        raise DataError(
            f"{path} has no sheet {form.sheet!r}: name one of {', '.join(map(repr, sheets.sheet_names))}"
        )
    name = sheets.sheet_names[0] if form.sheet is None else form.sheet
    rows = safely(
        lambda: sheets.get_sheet_by_name(name).to_python(), f"{path}: sheet {name!r} cannot be read"
    )
    names = list(form.names) if form.names else [str(cell) for cell in (rows.pop(0) if rows else [])]
    if not names:
        raise DataError(f"{path}: sheet {name!r} is empty: its first row must name the columns")
    if any(len(row) != len(names) for row in rows):
        raise DataError(f"{path}: the schema's file has {len(names)} names, and the sheet other columns")
    return names, [[row[place] for row in rows] for place in range(len(names))]


def _statistics(path: Path) -> tuple[list[str], list[Any]]:
    reader = getattr(_library("pyreadstat", path), _READERS[path.suffix.lower()])
    found, about = safely(lambda: reader(str(path), output_format="dict"), f"{path} cannot be read")
    return list(about.column_names), [list(found[name]) for name in about.column_names]


def _library(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(
            f"{path}: files that end in {path.suffix} need an extra: pip install 'privlearn[files]'"
        ) from None


def _dated(cells: list[Any]) -> Any:
    """Cells that are days, or days and times, as Arrow keeps these; such files have no time zones."""
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


def _without_gaps(cells: list[Any], codes: tuple[str, ...]) -> list[Any]:
    return [None if _is_gap(cell, codes) else cell for cell in cells]


def _is_gap(cell: Any, codes: tuple[str, ...]) -> bool:
    """Whether a cell is empty, not a number, or one of the codes."""
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return True
    if isinstance(cell, datetime.date) or not codes:
        return False
    return spelled(cell) in codes


def spelled(cell: Any) -> str:
    """A cell as text; a workbook keeps 5 as 5.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
