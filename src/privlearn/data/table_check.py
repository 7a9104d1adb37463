"""PRIVATE: report all cells of a table that do not fit its schema, for the table's holder.

Messages quote no cell. `Finding.values` has the most frequent cells that do not fit, for callers that show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privlearn.data.encoding.column_cells import owners
from privlearn.data.encoding.readers import positions
from privlearn.data.schema.cell_grammar import BLANKS, DAY_FORMS, CellRules, UnreadableCell, parse_day
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, OrdinalColumn
from privlearn.data.schema.file_format import FileFormat
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import SPELLINGS_OF_A_CLASS, Target, Weight
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.detection import describe_look, misread_encoding
from privlearn.data.sources.directories import list_files
from privlearn.data.sources.files import is_parquet
from privlearn.data.sources.program_files import is_program_file
from privlearn.data.sources.raw_cells import open_cells, text_of
from privlearn.data.sources.read_columns import read_column
from privlearn.data.sources.row_source import concatenate_tables
from privlearn.data.sources.schema_columns import (
    MAX_NAMES,
    columns_to_read,
    described_column,
    possible_person_columns,
    rules_of,
    schema_columns,
)
from privlearn.data.sources.table import encode_dictionary
from privlearn.errors import ON_DROPPING, DataError, did_you_mean

_DECIMAL_COMMA = r"^[-+]?[0-9]+,[0-9]+$"
_CODE_FOR_GAPS = "; if a number such as -9 stands for a gap, write file: {missing: [-9]}"
_ADVICE = (
    ": correct them; if a word stands for a gap, write file: {missing: [WORD]}; how to write other dates and numbers "
    "is in docs/how-to/schema.md"
)
_TRUTHS = {"yes", "no", "on", "off"}
_QUOTE = (
    ': unquoted, YAML reads yes, no, on and off as true and false; quote them in the schema: ["no", "yes"]'
)
_MAX_EXAMPLES = 10
_GAP_TEXTS = "unknown missing n.a. N.A. k.A. unbekannt n.b. n.d. N.D. inconnu desconocido"
_CODES = ("?", ".", "-", "*", "-9", "-99", "999", *_GAP_TEXTS.split(), "k. A.", "keine Angabe")


@dataclass(frozen=True)
class Finding:
    """An observation about a table; it stops training if `stops`, and is for information otherwise."""

    column: str | None
    what: str
    stops: bool
    values: tuple[str, ...] = field(default=(), repr=False)
    """PRIVATE: of cells that do not fit, the most frequent distinct ones."""


@dataclass(frozen=True)
class TableCheck:
    """PRIVATE: exact counts of a table's cells, without noise; it must stay with the holder."""

    rows: int
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        return sum(finding.stops for finding in self.findings)


def check_table(path: str | TablePath, schema: Schema) -> TableCheck:
    """PRIVATE: count, column by column, the cells that do not fit the schema.

    Parameters
    ----------
    path : path or address
        A file, a directory or a pattern, as in `privlearn.data.open_records`.
    schema : Schema
    """
    _, files = list_files(table_path(path))
    blocks = _read(path, files, schema)
    table = concatenate_tables(text_of(block, schema.file.decimal) for block in blocks)
    findings = [
        *_check_encoding(files, schema.file),
        *_check_names(table.column_names, schema),
        *_check_scales(schema),
    ]
    for name in schema_columns(schema):
        if name in table.column_names:
            column: Any = described_column(schema, name)
            rules = rules_of(schema, name)
            cells = _Cells(
                _values([block.column(name) for block in blocks], rules), table.column(name), rules
            )
            for what, stops in cells.findings(column):
                findings.append(Finding(name, what, stops, cells.examples))
                cells.examples = ()
    return TableCheck(table.num_rows, (*findings, *_check_rows(table, schema)))


def _read(path: str | TablePath, files: list[TablePath], schema: Schema) -> list[pa.Table]:
    """Return the cells in blocks; the error about a single file includes the format that its first lines suggest."""
    try:
        blocks = list(open_cells(path, schema.file).blocks())
        columns_to_read(blocks[0].column_names, schema, str(path))
    except DataError as error:
        hint = describe_look(files[0], schema.file) if len(files) == 1 and _is_text_file(files[0]) else ""
        raise DataError(f"{error}{hint}") from None
    return blocks


def _values(columns: list[Any], rules: CellRules) -> Any:
    """Return a column as training reads it, or the error message; None for a column without a type."""
    if rules.kind == "any":
        return None
    try:
        read = [read_column(column, rules, "the column") for column in columns]
    except DataError as error:
        return str(error).removeprefix("the column ")
    return pa.chunked_array([chunk for column in read for chunk in column.chunks], read[0].type)


def _check_encoding(files: list[TablePath], form: FileFormat) -> Iterator[Finding]:
    for file in files:
        encoding = misread_encoding(file, form) if _is_text_file(file) else None
        if encoding:
            which = "the file" if len(files) == 1 else str(file)
            yield Finding(
                None,
                f"{which} seems to be in {encoding}, and the schema states {form.encoding}: write "
                f"file: {{encoding: {encoding}}}",
                False,
            )


def _is_text_file(file: TablePath) -> bool:
    return not is_parquet(file) and not is_program_file(file)


def _check_names(names: list[str], schema: Schema) -> Iterator[Finding]:
    for name in schema_columns(schema):
        if name not in names:
            ranged = (
                f". Write several columns as a range, such as {name[:-1]}{{1..6}}"
                if name.endswith("*")
                else ""
            )
            yield Finding(name, f"is not in the table{ranged or did_you_mean(name, names)}", True)
    for name in schema.file.missing_in:
        if name not in names:
            what = f"has codes for gaps under missing_in, and is not in the table{did_you_mean(name, names)}"
            yield Finding(name, what, False)
    others = [name for name in names if name not in schema_columns(schema)]
    identifiers = possible_person_columns(schema, names)
    if identifiers:
        yield Finding(
            None,
            f"columns are named like identifiers ({', '.join(identifiers)}), and the schema does not say what a person "
            f"is: write person: {identifiers[0]}, for example, or one_row_per_person: true",
            True,
        )
    if others:
        named = f"{', '.join(others[:MAX_NAMES])}{', ...' * (len(others) > MAX_NAMES)}"
        are = "column is" if len(others) == 1 else "columns are"
        yield Finding(None, f"{len(others)} {are} not in the schema, and not read: {named}", False)


def _check_scales(schema: Schema) -> Iterator[Finding]:
    far = [
        name
        for name, column in schema.columns.items()
        if isinstance(column, NumberColumn)
        and column.scale == "log"
        and column.upper > 0
        and positions(column, np.zeros(1))[0] > 0.5
    ]
    if far:
        named = f"{', '.join(far[:MAX_NAMES])}{', ...' * (len(far) > MAX_NAMES)}"
        what = (
            "scale: log is finest next to lower, and hardly distinguishes amounts near 0: write lower: 0 (amounts "
            f"below count as 0), or omit the scale: {named}"
        )
        yield Finding(None, what, False)


def _check_rows(table: pa.Table, schema: Schema) -> Iterator[Finding]:
    repeated = table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows
    if repeated:
        yield Finding(None, f"{repeated} rows repeat an earlier one in every column", False)
    if schema.person is not None and schema.person in table.column_names:
        identified = table.column(schema.person).drop_null()
        spellings, counts = pc.count_distinct(identified).as_py(), _rows_of_persons(identified, schema.person)
        others = f"; {spellings - len(counts)} spellings of the same identifiers" * (spellings > len(counts))
        most = int(counts.max(initial=0))
        yield Finding(schema.person, f"{len(counts)} persons, with at most {most} rows each{others}", False)


def _rows_of_persons(column: Any, name: str) -> Any:
    """Return the number of rows of each person, as training tells persons apart; none if it cannot."""
    try:
        return np.bincount(owners(column, f"column {name!r}"))
    except DataError:  # the column's own findings explain it
        return np.zeros(0, np.int64)


def _is_gap(cell: str, rules: CellRules) -> bool:
    try:
        return rules.read(cell) is None
    except UnreadableCell:
        return False


def _value(cell: str, rules: CellRules) -> Any:
    """Return the value of a cell, None if it is unreadable."""
    try:
        return rules.read(cell)
    except UnreadableCell:
        return None


def _form_of_dates(unknown: Any) -> str:
    """Return advice if the texts are dates in a form that a schema can state."""
    for form in DAY_FORMS:
        if all(
            cell is not None and parse_day(cell, form) is not None for cell in unknown.unique().to_pylist()
        ):
            return f": write file: {{dates: {form}}}, if that is their form"
    return ""


def _most_frequent(cells: Any) -> tuple[str, ...]:
    return tuple(cell for cell, _ in Counter(cells.to_pylist()).most_common(_MAX_EXAMPLES))


def _gaps(text: Any, rules: CellRules) -> Any:
    """Return which texts are gaps."""
    gaps = [cell for cell in text.unique().to_pylist() if cell is None or _is_gap(cell, rules)]
    return pc.is_in(text, pa.array(gaps, text.type))


def _distinct(column: Any) -> tuple[list[Any], Any]:
    """Return the distinct cells, and each cell's index among them."""
    if not len(column):  # pyarrow cannot combine zero chunks of dates
        return [], np.zeros(0, np.int64)
    encoded = encode_dictionary(column)
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()


class _Cells:
    """PRIVATE: a column as training reads it, and as text, to explain errors.

    Parameters
    ----------
    values : ChunkedArray, str or None
        The cells that training reads, its error message, or None for a column without a type.
    text : ChunkedArray
        The cells, gaps included.
    rules : CellRules
    """

    examples: tuple[str, ...] = ()
    """The most frequent distinct cells of the last finding, if it is about cells that do not fit."""

    def __init__(self, values: Any, text: Any, rules: CellRules) -> None:
        self._problem = values if isinstance(values, str) else None
        is_read = isinstance(values, pa.ChunkedArray)
        self._missing = values.is_null() if is_read else _gaps(text, rules)
        text = text.filter(pc.invert(self._missing))
        self._text = pc.utf8_trim(text, characters=BLANKS) if rules.strips else text
        self._rules = rules
        self._values, self._indices = _distinct(values.drop_null()) if is_read else self._parse_text()

    def findings(self, column: AnyColumn | Target | None) -> Iterator[tuple[str, bool]]:
        """Yield messages, and whether they stop training; a column that identifies persons may have no gap."""
        stops = False
        for what, stop in self._findings(column):
            stops = stops or stop
            yield what, stop
        if self._problem is not None and not stops:
            yield self._problem, True

    def _findings(self, column: AnyColumn | Target | None) -> Iterator[tuple[str, bool]]:
        missing = pc.sum(self._missing).as_py() or 0
        accepts = getattr(column, "missing", "refuse") != "refuse"
        if missing:
            other = f"drop those rows ({ON_DROPPING})" if isinstance(column, Target) else "set missing: zero"
            instead = "" if accepts else f": fill them in, or {other}"
            yield f"{missing} missing cells{instead}", not accepts
        if isinstance(column, NumberColumn) or (isinstance(column, Target) and column.bounds):
            yield from self._check_numbers(column)
        elif isinstance(column, Weight):
            yield from self._check_weights(column)
        elif isinstance(column, DateColumn):
            yield from self._check_kind("dates such as 2020-01-31")
        elif isinstance(column, CategoryColumn | OrdinalColumn | Target):
            yield from self._check_list(column)

    def _numbers(self) -> Any:
        """Return the cells that are numbers, NaN for others."""
        distinct = np.array([np.nan if value is None else value for value in self._values], dtype=np.float64)
        return distinct[self._indices] if len(self._indices) else np.empty(0)

    def _check_weights(self, weight: Weight) -> Iterator[tuple[str, bool]]:
        yield from self._check_kind("numbers")
        numbers = self._numbers()
        numbers = numbers[~np.isnan(numbers)]
        if np.any(numbers < 0):
            yield f"{int(np.sum(numbers < 0))} weights below 0: they count as 0{_CODE_FOR_GAPS}", False
        if weight.upper is None:
            yield "weights are divided by each person's sum: every person counts 1", False
            return
        if np.any(numbers > weight.upper):
            yield (
                f"{int(np.sum(numbers > weight.upper))} weights above upper: they count as {weight.upper:g}",
                False,
            )
        if len(numbers):
            mean = float(np.mean(np.clip(numbers, 0.0, weight.upper)))
            yield (
                f"the weights' mean is {mean:.3g}; the schema states about {weight.mean:g}",
                False,
            )

    def _check_numbers(self, column: Any) -> Iterator[tuple[str, bool]]:
        yield from self._check_kind("numbers")
        numbers = self._numbers()
        for side, beyond in (("below", numbers < column.lower), ("above", numbers > column.upper)):
            if beyond.any():
                yield f"{int(beyond.sum())} cells {side} the bounds: they are clamped{_CODE_FOR_GAPS}", False

    def _check_list(self, column: Any) -> Iterator[tuple[str, bool]]:
        yield from self._check_kind("true or false" if self._rules.kind == "truth" else "whole numbers")
        values = column.labels if isinstance(column, Target) else column.values
        unknown = self._cells([value is not None and value not in values for value in self._values])
        if len(unknown):
            self.examples = _most_frequent(unknown)
            yield (
                f"{len(unknown)} cells are not listed{self._explain_unknown(unknown, values, column)}",
                column.unknown == "refuse",
            )

    def _cells(self, selected: list[bool]) -> Any:
        """Return the texts of the cells whose distinct value is selected."""
        mask = np.array(selected, dtype=bool)[self._indices] if len(self._indices) else np.zeros(0, bool)
        return self._text.filter(pa.array(mask))

    def _explain_unknown(self, unknown: Any, values: Any, column: Any) -> str:
        """Return advice for cells that are not in the list: blanks, capitals, codes for gaps, or the schema's rule."""
        if column.unknown != "refuse":
            return f": unknown: {column.unknown} applies to them"
        if self._among(pc.utf8_trim(unknown, characters=BLANKS), values).any():
            return ": without the blanks around them some are; write file: {trim: true}"
        codes = self._codes(unknown)
        if codes:
            return codes
        lowered = {str(value).casefold() for value in values}
        if isinstance(values[0], str) and any(
            cell.strip(BLANKS).casefold() in lowered for cell in unknown.unique().to_pylist()
        ):
            instead = (
                SPELLINGS_OF_A_CLASS
                if isinstance(column, Target)
                else "correct the table, or list each spelling"
            )
            return f": some differ only in capital letters or blanks; {instead}"
        if isinstance(column, Target):
            return f": {SPELLINGS_OF_A_CLASS}; list them, or set unknown: zero"
        return ": list them, or set unknown: zero or other"

    def _among(self, text: Any, values: Any) -> Any:
        listed = [cell for cell in text.unique().to_pylist() if _value(cell, self._rules) in values]
        matches = pc.is_in(text, pa.array(listed, text.type))
        return (
            np.asarray(matches.to_numpy(zero_copy_only=False), dtype=bool) if len(text) else np.zeros(0, bool)
        )

    def _parse_text(self) -> tuple[list[Any], Any]:
        """Return the values of the distinct texts, None for unreadable ones, and each cell's index among them."""
        texts, indices = _distinct(self._text)
        return [_value(cell, self._rules) for cell in texts], indices

    def _check_kind(self, what: str) -> Iterator[tuple[str, bool]]:
        unknown = self._cells([value is None for value in self._values])
        if not len(unknown):
            return
        commas = pc.sum(pc.match_substring_regex(unknown, _DECIMAL_COMMA)).as_py()
        hint = ': with decimal commas; write file: {decimal: ","}' if commas and what == "numbers" else ""
        if what.startswith("dates"):
            hint = _form_of_dates(unknown)
        if what == "true or false" and any(cell.lower() in _TRUTHS for cell in unknown.unique().to_pylist()):
            hint = _QUOTE
        self.examples = _most_frequent(unknown)
        yield f"{len(unknown)} cells are not {what}{hint or self._codes(unknown) or _ADVICE}", True

    def _codes(self, unknown: Any) -> str:
        """Return advice if cells are common codes for gaps; the codes quoted come from a public list."""
        counts = Counter(unknown.filter(pc.is_in(unknown, pa.array(_CODES))).to_pylist())
        if not counts:
            return ""
        named = ", ".join(f'"{code}"' for code in _CODES if code in counts)
        return f": {sum(counts.values())} seem to be codes for gaps; write file: {{missing: [{named}]}}"
