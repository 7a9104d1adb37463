"""What is wrong with a table, all at once, for its holder: counts of cells that do not fit the schema. PRIVATE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    Target,
)
from privlearn.data.schema.file_format import FileFormat
from privlearn.data.schema.labels import SPELLINGS_OF_A_CLASS
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.addresses import TablePath, table_path
from privlearn.data.sources.detection import is_mistaken_for, look_of
from privlearn.data.sources.files import MOST_SHOWN, is_parquet
from privlearn.data.sources.folders import files_of
from privlearn.data.sources.identifiers import unclear_persons
from privlearn.data.sources.program_files import is_program_file
from privlearn.data.sources.raw_cells import as_text, open_cells, text_of
from privlearn.data.sources.row_source import joined
from privlearn.data.sources.wanted import known_columns, spellings_of_missing, wanted_columns
from privlearn.errors import DataError, did_you_mean

_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_DECIMAL_COMMA = r"^[-+]?[0-9]+,[0-9]+$"
_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TRUTHS = ("true", "false", "1", "0")
_CODE_FOR_GAPS = "; if a number such as -9 stands for a gap, write file: {missing: [-9]}"
_OTHERWISE = (
    ": correct them; if a word stands for a gap, write file: {missing: [WORD]}; how to write other dates and numbers "
    "is in docs/how-to/prepare-my-table.md"
)
_WORDS_FOR_GAPS = "unknown missing n.a. N.A. k.A. unbekannt n.b. n.d. N.D. inconnu desconocido"
_CODES = ("?", ".", "-", "*", "-9", "-99", "999", *_WORDS_FOR_GAPS.split(), "k. A.", "keine Angabe")


@dataclass(frozen=True)
class Finding:
    """Something about a table: a problem stops whoever learns from it, the rest is worth knowing."""

    column: str | None
    what: str
    stops: bool


@dataclass(frozen=True)
class TableCheck:
    """PRIVATE: what a table's cells are like; it counts them exactly and pays nothing, so it stays with the holder."""

    rows: int
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        return sum(finding.stops for finding in self.findings)


def check_table(path: str | TablePath, schema: Schema) -> TableCheck:
    """PRIVATE: count, column by column, what does not fit the schema; no cell is quoted.

    Parameters
    ----------
    path : path or address
        A file, a folder or a pattern, as `privlearn.data.open_records` takes it.
    schema : Schema
    """
    _, files = files_of(table_path(path))
    table = _read(path, files, schema)
    form, spellings = schema.file, [*spellings_of_missing(schema), *schema.file.missing]
    findings = [*_of_encoding(files, form), *_of_names(table.column_names, schema)]
    for name in known_columns(schema):
        if name in table.column_names:
            column: Any = (
                schema.target if schema.target and schema.target.name == name else schema.columns.get(name)
            )
            cells = _Cells(table.column(name), form, [*spellings, *form.codes_of(name)])
            findings += [Finding(name, what, stops) for what, stops in cells.findings(column)]
    return TableCheck(table.num_rows, (*findings, *_of_rows(table, schema)))


def _read(path: str | TablePath, files: list[TablePath], schema: Schema) -> pa.Table:
    """The cells; where those of a single file cannot be read, its first lines may say why."""
    try:
        blocks = open_cells(path, schema.file).blocks()
        table = joined(blocks if len(files) == 1 else map(text_of, blocks))
        wanted_columns(table.column_names, schema, str(path))
    except DataError as error:
        seen = look_of(files[0], schema.file) if len(files) == 1 and _is_text(files[0]) else ""
        raise DataError(f"{error}{seen}") from None
    return table


def _of_encoding(files: list[TablePath], form: FileFormat) -> Iterator[Finding]:
    for file in files:
        found = is_mistaken_for(file, form) if _is_text(file) else None
        if found:
            which = "the file" if len(files) == 1 else str(file)
            yield Finding(
                None,
                f"{which} is in {found}, it seems, and the schema says {form.encoding}: write "
                f"file: {{encoding: {found}}}",
                False,
            )


def _is_text(file: TablePath) -> bool:
    return not is_parquet(file) and not is_program_file(file)


def _of_names(names: list[str], schema: Schema) -> Iterator[Finding]:
    for name in known_columns(schema):
        if name not in names:
            yield Finding(name, f"is not in the table{did_you_mean(name, names)}", True)
    for name in schema.file.missing_in:
        if name not in names:
            told = f"has codes for gaps under missing_in, and is not in the table{did_you_mean(name, names)}"
            yield Finding(name, told, False)
    others = [name for name in names if name not in known_columns(schema)]
    identifiers = unclear_persons(schema, names)
    if identifiers:
        yield Finding(
            None,
            f"columns are named like identifiers ({', '.join(identifiers)}), and the schema does not say what a person "
            f"is: write person: {identifiers[0]}, for example, or one_row_per_person: true",
            True,
        )
    if others:
        named = f"{', '.join(others[:MOST_SHOWN])}{', ...' * (len(others) > MOST_SHOWN)}"
        are = (
            "column is not in the schema, and is"
            if len(others) == 1
            else "columns are not in the schema, and are"
        )
        yield Finding(None, f"{len(others)} {are} not read: {named}", False)


def _of_rows(table: pa.Table, schema: Schema) -> Iterator[Finding]:
    table = text_of(table)  # Arrow does not compare cells of several types
    repeated = table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows
    if repeated:
        yield Finding(None, f"{repeated} rows repeat an earlier one in every column", False)
    if schema.person in table.column_names:
        counts = pc.value_counts(table.column(schema.person)).field("counts").to_numpy()
        persons, most = len(counts), int(counts.max(initial=0))
        yield Finding(schema.person, f"{persons} persons, with {most} rows at most", False)


class _Cells:
    """PRIVATE: a column as text, gaps apart."""

    def __init__(self, column: Any, form: FileFormat, gaps: list[str]) -> None:
        text = as_text(column)
        text = pc.utf8_trim_whitespace(text) if form.trim else text
        self._missing = pc.or_(pc.is_in(text, pa.array(gaps, pa.string())), pc.is_null(text))
        self._text = text.filter(pc.invert(self._missing))
        self._form = form

    def findings(self, column: AnyColumn | Target | None) -> Iterator[tuple[str, bool]]:
        """What to tell, and whether it stops a training; a column that tells people apart may have no gap."""
        missing = pc.sum(self._missing).as_py() or 0
        accepts = getattr(column, "missing", "refuse") == "zero"
        if missing:
            instead = "" if accepts else ": fill them in, or set missing: zero"
            yield f"{missing} missing cells{instead}", not accepts
        if isinstance(column, NumberColumn) or (isinstance(column, Target) and column.bounds):
            yield from self._numbers(column)
        elif isinstance(column, DateColumn):
            yield from self._unlike(_DAY, "dates such as 2020-01-31")
        elif isinstance(column, CategoryColumn | OrdinalColumn | Target):
            yield from self._listed(column)

    def _numbers(self, column: Any) -> Iterator[tuple[str, bool]]:
        text = pc.utf8_trim_whitespace(self._text)
        text = pc.replace_substring(text, ",", ".") if self._form.decimal == "," else text
        yield from self._unlike(_NUMBER, "numbers", text)
        fits = pc.match_substring_regex(text, _NUMBER)
        numbers = text.filter(fits).cast(pa.float64()).to_numpy()
        for side, beyond in (("below", numbers < column.lower), ("above", numbers > column.upper)):
            if beyond.any():
                yield f"{int(beyond.sum())} cells {side} the bounds: they are clamped{_CODE_FOR_GAPS}", False

    def _listed(self, column: Any) -> Iterator[tuple[str, bool]]:
        values = column.labels if isinstance(column, Target) else column.values
        listed = self._among(self._text, values)
        unknown = int((~listed).sum())
        if not unknown:
            return
        strange = self._text.filter(pa.array(~listed))
        yield (
            f"{unknown} cells are not listed{self._why_strange(strange, values, column)}",
            column.unknown == "refuse",
        )

    def _why_strange(self, strange: Any, values: Any, column: Any) -> str:
        """How to read them: without blanks, in other letters, as a gap; or what the schema does with them."""
        if column.unknown != "refuse":
            return f": unknown: {column.unknown} takes them"
        if self._among(pc.utf8_trim_whitespace(strange), values).any():
            return ": without the blanks around them some are; write file: {trim: true}"
        codes = self._codes(strange)
        if codes:
            return codes
        lowered = {str(value).casefold() for value in values}
        if isinstance(values[0], str) and any(
            cell.casefold() in lowered for cell in strange.unique().to_pylist()
        ):
            instead = SPELLINGS_OF_A_CLASS if isinstance(column, Target) else "correct the list"
            return f": some differ in capital letters alone; {instead}"
        if isinstance(column, Target):
            return f": {SPELLINGS_OF_A_CLASS}; list them, or set unknown: zero"
        return ": list them, or set unknown: zero or other"

    def _among(self, text: Any, values: Any) -> Any:
        if isinstance(values[0], bool):
            found = pc.is_in(pc.utf8_lower(text), pa.array(_TRUTHS))
        elif isinstance(values[0], int):
            whole = pc.match_substring_regex(text, _NUMBER)
            numbers = pc.if_else(whole, text, pa.scalar(None, pa.string())).cast(pa.float64())
            found = pc.is_in(numbers, pa.array(values, pa.float64()))
        else:
            found = pc.is_in(text, pa.array(values, pa.string()))
        return (
            np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool) if len(text) else np.zeros(0, bool)
        )

    def _unlike(self, pattern: str, what: str, text: Any = None) -> Iterator[tuple[str, bool]]:
        text = self._text if text is None else text
        strange = text.filter(pc.invert(pc.match_substring_regex(text, pattern)))
        if not len(strange):
            return
        commas = pc.sum(pc.match_substring_regex(strange, _DECIMAL_COMMA)).as_py()
        hint = ': with decimal commas; write file: {decimal: ","}' if commas and what == "numbers" else ""
        yield f"{len(strange)} cells are not {what}{hint or self._codes(strange) or _OTHERWISE}", True

    def _codes(self, strange: Any) -> str:
        """Codes for gaps that people use, where they are among the cells: public words, not cells."""
        found = Counter(strange.filter(pc.is_in(strange, pa.array(_CODES))).to_pylist())
        if not found:
            return ""
        named = ", ".join(f'"{code}"' for code in _CODES if code in found)
        return f": {sum(found.values())} are codes for gaps, it seems; write file: {{missing: [{named}]}}"
