"""Check a sheet of a workbook before its cells are read: its extent, and its unreadable cells.

The reader of workbooks turns errors, formulas that were never computed and the hidden part of merged cells into gaps,
and allocates memory for every cell up to the last one. This module streams the sheet's XML first.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import iterparse

from privlearn.data.schema.cell_grammar import BLANKS
from privlearn.errors import DataError

MAX_CELLS = 20_000_000
MAX_MERGED = 1_000_000  # with errors and formulas without a value
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass
class SheetExtent:
    """The extent of a sheet, counted from 1, and its unreadable cells.

    Attributes
    ----------
    last_row, last_column : int
        Position of the last cell with content, blanks included.
    last_value : int
        The last row with a cell that is not blank.
    unreadable : set of (int, int)
        Rows and columns of errors, of formulas without a stored value and of merged cells but the first.
    """

    last_row: int = 0
    last_column: int = 0
    last_value: int = 0
    unreadable: set[tuple[int, int]] = field(default_factory=set)


def check_sheet(path: Path, sheet: str) -> SheetExtent:
    """Return the extent of a sheet; refuse one that is too large, or that ends with rows of blanks."""
    with zipfile.ZipFile(path) as archive:
        blank = _blank_texts(archive)
        with archive.open(_member(archive, sheet)) as content:
            extent = _extent(content, blank)
    if extent.last_row * extent.last_column > MAX_CELLS:
        raise DataError(
            f"{path}: sheet {sheet!r} reaches to row {extent.last_row} and column {extent.last_column}, which is "
            "too large. Delete stray cells far from the table, or save it as .csv or .parquet."
        )
    if extent.last_row > extent.last_value:
        raise DataError(
            f"{path}: sheet {sheet!r} ends with rows of blanks or empty text, which may be records. Delete those rows."
        )
    return extent


def _elements(content: IO[bytes], *names: str) -> Iterator[tuple[str, Any]]:
    """Yield elements of these names as they end, and forget them."""
    for _, element in iterparse(content):
        name = element.tag.rpartition("}")[2]
        if name in names:
            yield name, element
            if name in ("row", "si", "mergeCell"):
                element.clear()


def _member(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of the member that holds a sheet."""
    with archive.open("xl/_rels/workbook.xml.rels") as content:
        targets = {item.get("Id"): str(item.get("Target")) for _, item in _elements(content, "Relationship")}
    with archive.open("xl/workbook.xml") as content:
        for _, found in _elements(content, "sheet"):
            if found.get("name") == sheet:
                key = next(value for name, value in found.attrib.items() if name.endswith("}id"))
                target = targets[key]
                return target[1:] if target.startswith("/") else f"xl/{target}"
    raise KeyError(sheet)


def _blank_texts(archive: zipfile.ZipFile) -> set[int]:
    """Return the numbers of shared texts that are empty or blank."""
    if "xl/sharedStrings.xml" not in archive.namelist():
        return set()
    with archive.open("xl/sharedStrings.xml") as content:
        texts = enumerate("".join(found.itertext()) for _, found in _elements(content, "si"))
        return {number for number, text in texts if not text.strip(BLANKS)}


def _extent(content: IO[bytes], blank: set[int]) -> SheetExtent:
    extent, row = SheetExtent(), 0
    merged: list[str] = []
    for name, element in _elements(content, "row", "mergeCell"):
        if name == "mergeCell":
            merged.append(str(element.get("ref")))
            continue
        row = int(element.get("r", row + 1))
        column = 0
        for cell in element:
            position = _REFERENCE.fullmatch(cell.get("r", ""))
            column = _number(position[1]) if position else column + 1
            _add_cell(extent, cell, row, column, blank)
    for reference in merged:
        extent.unreadable |= _hidden_by(reference, extent)
    return extent


def _add_cell(extent: SheetExtent, cell: Any, row: int, column: int, blank: set[int]) -> None:
    parts = {part.tag.rpartition("}")[2]: part for part in cell}
    if not parts:
        return  # formatted, without content
    extent.last_row, extent.last_column = max(extent.last_row, row), max(extent.last_column, column)
    text = "".join(cell.itertext()).strip(BLANKS)
    is_blank = int(text) in blank if cell.get("t") == "s" and text else not text
    if "f" in parts or not is_blank:
        extent.last_value = max(extent.last_value, row)
    value = parts.get("v")
    if cell.get("t") == "e" or ("f" in parts and (value is None or not value.text)):
        extent.unreadable.add((row, column))


def _hidden_by(reference: str, extent: SheetExtent) -> set[tuple[int, int]]:
    """Return all cells of a merged range but its first, up to the last cell of the sheet."""
    ends = [_REFERENCE.fullmatch(part) for part in reference.split(":")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return set()
    (left, top), (right, bottom) = ((_number(end[1]), int(end[2])) for end in ends if end is not None)
    right, bottom = min(right, extent.last_column), min(bottom, extent.last_row)
    if len(extent.unreadable) + max(right - left + 1, 0) * max(bottom - top + 1, 0) > MAX_MERGED:
        raise DataError("a workbook merges too many cells. Split them.")
    cells = {(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)}
    return cells - {(top, left)}


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
