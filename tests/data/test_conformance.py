"""One table in every container: the same encoded rows, or a refusal everywhere; an odd cell changes its own row only.

`CONTAINERS` is the list of containers; a test of exports imports `tables`, `reference` and `outcome` and adds its own.
"""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privlearn.data import Schema, SchemaEncoder, read_table
from privlearn.data.schema import CellRules, UnreadableCell
from privlearn.data.sources import read_column, rules_of
from privlearn.errors import DataError
from tests.support.rows import dense

COLUMNS: dict[str, dict[str, Any]] = {
    "number": {"type": "number", "lower": -3, "upper": 100, "encoding": "linear"},
    "whole": {"type": "category", "values": [0, 1, 7], "unknown": "other"},
    "truth": {"type": "category", "values": [True, False]},
    "day": {"type": "date", "lower": "2000-01-01", "upper": "2029-12-31", "encoding": "linear"},
    "ward": {"type": "category", "values": ["a", "NA", "007", "é"], "unknown": "other"},
    "note": {"type": "category", "values": ["x", "y"], "unknown": "other"},
}
FILES: list[dict[str, Any]] = [
    {},
    {"missing": ["?", -9, "9999-12-31"]},
    {"trim": True, "missing_in": {"number": ["k.A."], "day": ["1900-01-01"]}},
    {"delimiter": ";", "decimal": ",", "missing": ["99.9"]},
    {"delimiter": ";", "decimal": ",", "trim": True, "missing_in": {"number": [-9]}},
]


def schema_of(form: dict[str, Any]) -> Schema:
    """Return the schema of the tables, for files of this format."""
    columns = {name: {**column, "missing": "zero"} for name, column in COLUMNS.items()}
    return Schema.from_dict({"name": "t", "columns": columns, "file": form})


USUAL = {
    "number": ["5", "-0.5", "1e1"],
    "whole": ["0", "1", "7"],
    "truth": ["true", "false", "1"],
    "day": ["2020-01-31", "2001-02-03"],
    "ward": ["a", "NA", "007", "é"],
    "note": ["x", "y"],
}
ODD = (
    *(
        "",
        " ",
        "NA",
        "na",
        "null",
        "N/A",
        "#N/A",
        "nan",
        "NAN",
        "-nan",
        "nan(x)",
        "inf",
        "-Infinity",
        "1e400",
    ),
    *(
        "+5",
        "-09",
        "-9",
        "-9.0",
        "-9,0",
        " 5",
        "5\t",
        "\u00a05",
        "5_0",
        "\u0665",
        "½",
        "0x10",
        "5.",
        ".5",
        "1e",
        "4.500",
    ),
    *(
        "4,5",
        "1,000.5",
        "99.9",
        "99,9",
        "007",
        "7.0",
        "true",
        "TRUE",
        "tRue",
        "1.0",
        "2",
        "yes",
        "k.A.",
        "?",
        "x ",
        " x",
    ),
    *(
        "20100505",
        "2010-W18-3",
        "2010-05-05T10:00",
        "2010-05-05 23:59:59+02:00",
        "2010-02-30",
        "2010-05-05Tx",
    ),
    *(
        "9999-12-31",
        "1900-01-01",
        "0000-01-01",
        "10000-01-01",
        " 2010-05-05",
        "é",
        "e\u0301",
        'q"',
        "a,b",
        "a;b",
        "-",
    ),
)
CELL = {name: st.sampled_from(cells) for name, cells in USUAL.items()}
ANY = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(codec="cp1252", exclude_characters="\r\n\x1c\x1d\x1e\x85"), max_size=4),
)

Rows = list[dict[str, str]]


@st.composite
def tables(draw: Any) -> tuple[Rows, tuple[int, str, str], dict[str, Any]]:
    """Draw usual rows, an odd cell with its row and column, and a file format."""
    rows = draw(st.lists(st.fixed_dictionaries(CELL), min_size=2, max_size=5))
    place = draw(st.integers(0, len(rows) - 1))
    return rows, (place, draw(st.sampled_from(list(COLUMNS))), draw(ANY)), draw(st.sampled_from(FILES))


def outcome(read: Callable[[], Any], schema: Schema) -> list[bytes] | None:
    """Return the encoded rows, None for a refusal; any other error is a failure."""
    try:
        found = dense(SchemaEncoder(schema).encode(read()))
    except DataError:
        return None
    return [row.tobytes() for row in found]


def reference(rows: Rows, schema: Schema) -> list[bytes] | None:
    """Return the rows as the grammar reads their texts, one cell at a time."""
    try:
        cells = {name: [_typed(row[name], rules_of(schema, name)) for row in rows] for name in COLUMNS}
    except UnreadableCell:
        return None
    plain = schema.model_copy(update={"file": type(schema.file)()})
    return outcome(lambda: {name: pa.array(column) for name, column in cells.items()}, plain)


def _typed(text: str, rules: CellRules) -> Any:
    value = rules.read(text)
    if rules.kind == "date" and value is not None:
        return datetime.date(1970, 1, 1) + datetime.timedelta(float(value))
    return value


def _csv(
    rows: Rows, schema: Schema, encoding: str = "utf-8", end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL
) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=schema.file.delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([list(COLUMNS), *map(_values, rows)])
    return text.getvalue().encode(encoding)


def _values(row: dict[str, str]) -> list[str]:
    return [row[name] for name in COLUMNS]


def _file(name: str, write: Callable[[Path], None], schema: Schema) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return read_table(path, schema)


def _text_file(
    name: str = "t.csv", pack: Callable[[bytes], bytes] = bytes, **how: Any
) -> Callable[[Rows, Schema], Any]:
    def read(rows: Rows, schema: Schema) -> Any:
        encoding = how.get("encoding", "utf-8")
        if encoding != "utf-8":
            schema = schema.model_copy(update={"file": schema.file.model_copy(update={"encoding": encoding})})
        return _file(name, lambda path: _write(path, pack(_csv(rows, schema, **how))), schema)

    return read


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _columns(rows: Rows) -> dict[str, list[str]]:
    return {name: [row[name] for row in rows] for name in COLUMNS}


def _parquet(rows: Rows, schema: Schema) -> Any:
    return _file("t.parquet", lambda path: parquet.write_table(pa.table(_columns(rows)), path), schema)


def _statistics(name: str, write: Callable[[Any, str], None]) -> Callable[[Rows, Schema], Any]:
    return lambda rows, schema: _file(
        name, lambda path: write(pd.DataFrame(_columns(rows)), str(path)), schema
    )


OFFICE = "http://schemas.openxmlformats.org"


def _xlsx(rows: Rows, schema: Schema) -> Any:
    return _file("t.xlsx", lambda path: write_workbook(path, [list(COLUMNS), *map(_values, rows)]), schema)


def write_workbook(path: Path, rows: list[list[str]]) -> None:
    """Write a workbook with one sheet of texts."""
    main, relations = f"{OFFICE}/spreadsheetml/2006/main", f"{OFFICE}/officeDocument/2006/relationships"
    package = f"{OFFICE}/package/2006/relationships"
    cell = '<c t="inlineStr"><is><t xml:space="preserve">{}</t></is></c>'
    lines = "".join("<row>" + "".join(cell.format(escape(text)) for text in row) + "</row>" for row in rows)
    relation = '<Relationships xmlns="{}"><Relationship Id="r" Type="{}/{}" Target="{}"/></Relationships>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "_rels/.rels", relation.format(package, relations, "officeDocument", "xl/workbook.xml")
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets><sheet name="S" sheetId="1" r:id="r"/></sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", relation.format(package, relations, "worksheet", "worksheets/s.xml")
        )
        archive.writestr(
            "xl/worksheets/s.xml", f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'
        )


CONTAINERS: dict[str, Callable[[Rows, Schema], Any]] = {
    "csv": _text_file(),
    "csv, CRLF": _text_file(end="\r\n"),
    "csv, CR": _text_file(end="\r"),
    "csv, all quoted": _text_file(quoting=csv.QUOTE_ALL),
    "csv, BOM": _text_file(pack=lambda content: b"\xef\xbb\xbf" + content),
    "csv, cp1252": _text_file(encoding="cp1252"),
    "csv, utf-16": _text_file(encoding="utf-16"),
    "csv.gz": _text_file("t.csv.gz", gzip.compress),
    "csv.bz2": _text_file("t.csv.bz2", bz2.compress),
    "csv.zst": _text_file("t.csv.zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
    "parquet": _parquet,
    "xlsx": _xlsx,
    "sav": _statistics("t.sav", pyreadstat.write_sav),
    "dta": _statistics("t.dta", pyreadstat.write_dta),
    "pandas": lambda rows, schema: pd.DataFrame(rows),
    "pandas, objects": lambda rows, schema: pd.DataFrame(rows, dtype=object),
    "pandas, categories": lambda rows, schema: pd.DataFrame(rows).astype("category"),
    "polars": lambda rows, schema: pl.DataFrame(rows),
    "polars, categories": lambda rows, schema: pl.DataFrame(rows).cast(pl.Categorical),
    "pyarrow": lambda rows, schema: pa.Table.from_pylist(rows),
    "pyarrow, dictionary": lambda rows, schema: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in _columns(rows).items()}
    ),
    "dict": lambda rows, schema: _columns(rows),
    "numpy": lambda rows, schema: np.array([*map(_values, rows)], dtype=object),
}


def _ends_with_gaps(rows: Rows) -> bool:
    return not any(cell.strip(" \t\u00a0") for cell in rows[-1].values())


def _cannot_hold(container: str, rows: Rows) -> bool:
    """Return whether the container cannot store these cells.

    SPSS pads text with blanks, its writer ends a text at NUL, and XML has no control characters.
    """
    cells = [cell for row in rows for cell in row.values()]
    if container == "sav":
        return any(cell != cell.rstrip(" ") or "\0" in cell for cell in cells)
    if container == "xlsx":
        return any(ord(sign) < 32 and sign != "\t" for cell in cells for sign in cell)
    if container in ("csv, cp1252", "dta"):
        return not all(_in(cell, "cp1252") for cell in cells) or any("\0" in cell for cell in cells)
    return any("\0" in cell for cell in cells)


def _in(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def check_containers(rows: Rows, odd: tuple[int, str, str], form: dict[str, Any]) -> None:
    """Compare every container with the grammar, and the other rows with those of the table without the odd cell."""
    schema = schema_of(form)
    place, name, cell = odd
    usual = reference(rows, schema)
    changed = [{**row, name: cell} if number == place else row for number, row in enumerate(rows)]
    expected = reference(changed, schema)
    assert usual is not None
    if expected is not None:
        assert len(expected) == len(usual)
        assert [row for k, row in enumerate(expected) if k != place] == [
            row for k, row in enumerate(usual) if k != place
        ]
    for container, read in CONTAINERS.items():
        if not _cannot_hold(container, changed):
            found = outcome(lambda read=read: read(changed, schema), schema)  # type: ignore[misc]
            assert found == expected, (container, odd, form, changed)


def _usual(form: dict[str, Any], rows: Rows) -> Rows:
    """Write numbers with the format's decimal sign."""
    sign = form.get("decimal", ".")
    return [{**row, "number": row["number"].replace(".", sign)} for row in rows]


quiet = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@settings(max_examples=100, **quiet)  # type: ignore[arg-type]
@given(tables())
def test_every_container_gives_the_same_rows(drawn: Any) -> None:
    rows, odd, form = drawn
    check_containers(_usual(form, rows), odd, form)


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("PRIVLEARN_TABLES", "5000")), **quiet)  # type: ignore[arg-type]
@given(tables())
def test_every_container_gives_the_same_rows_of_many_tables(drawn: Any) -> None:
    rows, odd, form = drawn
    check_containers(_usual(form, rows), odd, form)


@pytest.mark.parametrize("kind", ["number", "whole", "truth", "date", "text", "any"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_columns_are_read_as_the_grammar_reads_single_cells(kind: Any, decimal: str) -> None:
    rules = CellRules(
        kind, codes=("-9", "?", "9999-12-31", "99.9"), decimal=decimal, trim=decimal == ",", listed=("NA",)
    )
    for text in ODD:
        try:
            expected: Any = [rules.read(text)]
        except UnreadableCell:
            expected = None
        try:
            found = read_column(pa.array([text]), rules, "x")
            found = found.cast(pa.int32()) if kind == "date" else found
            assert found.to_pylist() == expected, repr(text)
        except DataError:
            assert expected is None, repr(text)
