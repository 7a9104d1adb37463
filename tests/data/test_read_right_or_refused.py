"""Files that were read wrongly in silence, or ended the process: each is read right or refused."""

from __future__ import annotations

import datetime
import gzip
import re
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from privlearn.data import ArrayEncoder, Schema, SchemaEncoder, check_table, read_table
from privlearn.data.encoding.arrays import bounded_array, schema_of_bounds
from privlearn.data.schema import FileFormat, parse_json, parse_yaml, read_document, write_document
from privlearn.data.sources import check_sheet, csv_lines, open_cells, parse_csv, write_rows
from privlearn.errors import DataError, SchemaError
from privlearn.features import as_points
from tests.data.test_conformance import write_workbook
from tests.support.rows import dense

Refused = Callable[..., AbstractContextManager[None]]
NUMBER = {"type": "number", "lower": 0, "upper": 100, "missing": "zero", "encoding": "linear"}
CATEGORY = {"type": "category", "values": ["x", "y"], "missing": "zero", "unknown": "other"}
DATE = {"type": "date", "lower": "2000-01-01", "upper": "2029-12-31", "missing": "zero", "encoding": "linear"}


def _schema(file: dict[str, Any] | None = None, **columns: Any) -> Schema:
    return Schema.from_dict({"name": "t", "columns": columns or {"a": NUMBER}, "file": file or {}})


def _csv(path: Path, text: str) -> Path:
    path = path / "t.csv"
    path.write_bytes(text.encode())
    return path


STRAY = {
    "open quote in the last column": 'a,b\n1,x\n2,"bad\n3,y\n',
    "open quote in the last line": 'a,b\n1,x\n2,"bad',
    "two quotes that swallow the records between": 'b,a\nx,1\n"bad,2\ny,3\nworse",4\n',
    "text after a closing quote": 'a,b\n1,"x"y\n2,y\n',
    "a line break in a cell": 'a,b\n1,"x\ny"\n',
    "a carriage return in a record": "a,b\n1,x\r2,y\n3,y\n",
    "two kinds of line ends": "a,b\r1,x\r2,y\n",
}


@pytest.mark.parametrize("text", STRAY.values(), ids=STRAY)
def test_a_stray_quote_or_line_end_refuses_the_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"quotes do not match|line ends"):
        read_table(_csv(tmp_path, text), _schema())


@pytest.mark.parametrize("size", [16, 1 << 23])
def test_quotes_that_match_are_read(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "PIECE", size)
    text = 'a,b\n1,"x"\n2,"q""q"\n3,in"ch\n4,"a,b"\r\n"5",""\n6,y'
    schema = _schema(a=NUMBER, b={**CATEGORY, "values": ["x", 'q"q', 'in"ch', "a,b"]})
    found = read_table(_csv(tmp_path, text), schema).to_pydict()
    assert found == {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "b": ["x", 'q"q', 'in"ch', "a,b", None, "y"]}


@pytest.mark.parametrize("text", ['a,b\n1,"x\n2,y\n', 'a,b\n1,"x\ny"z\n2,y\n', 'a,b\n1,in"ch\n2,y\n'])
def test_with_line_breaks_quotes_must_match_too(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="quotes do not match"):
        read_table(_csv(tmp_path, text), _schema({"line_breaks": True}))


def test_a_cell_with_line_breaks_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "PIECE", 16)
    schema = _schema({"line_breaks": True}, a=NUMBER, b={**CATEGORY, "values": ["x\ny\nz", "w"]})
    found = read_table(_csv(tmp_path, "a,b\n" + '1,"x\ny\nz"\n2,w\n' * 5), schema).to_pydict()
    assert found == {"a": [1.0, 2.0] * 5, "b": ["x\ny\nz", "w"] * 5}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [3, 1 << 23])
def test_every_kind_of_line_end(end: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_lines, "PIECE", size)
    monkeypatch.setattr("privlearn.data.sources.csv_files._FIRST_READ", size)
    monkeypatch.setattr(csv_lines, "_LONG", "{} {}")
    text = end.join(["a,b", "1,x", "2,y", ""])
    assert read_table(_csv(tmp_path, text), _schema())["a"].to_pylist() == [1.0, 2.0]


@pytest.mark.parametrize("more", [{}, {"trim": True}, {"missing_in": {"a": [-9]}}])
def test_a_point_is_no_decimal_comma(more: dict[str, Any], tmp_path: Path) -> None:
    schema = _schema({"delimiter": ";", "decimal": ",", **more})
    assert read_table(_csv(tmp_path, "a;b\n4,5;x\n"), schema)["a"].to_pylist() == [4.5]
    with pytest.raises(DataError, match="not numbers"):
        read_table(_csv(tmp_path, "a;b\n4.500;x\n"), schema)


def test_a_code_for_a_gap_is_one_in_dates_everywhere() -> None:
    schema = _schema({"missing": ["9999-12-31"]}, d=DATE)
    days = [datetime.date(2020, 1, 31), datetime.date(9999, 12, 31)]
    gap = SchemaEncoder(schema).encode({"d": [days[0], None]})
    for cells in (days, pa.array(days), [str(day) for day in days], pa.array(days).cast(pa.timestamp("s"))):
        np.testing.assert_array_equal(SchemaEncoder(schema).encode({"d": cells}), gap)


def test_directories_state_what_their_writer_meant(tmp_path: Path) -> None:
    wards = ["east wing", "a/b", "50%", "é", None, "x=y"]
    table = pa.table({"a": [float(number) for number in range(6)], "ward": wards})
    parquet.write_to_dataset(table, tmp_path / "d", partition_cols=["ward"])
    listed = {**CATEGORY, "values": [ward for ward in wards if ward]}
    found = read_table(tmp_path / "d", _schema(a=NUMBER, ward=listed)).to_pydict()
    assert {wards[int(a)]: ward for a, ward in zip(found["a"], found["ward"], strict=True)} == {
        w: w for w in wards
    }


def test_a_column_in_the_file_and_in_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d" / "a=7").mkdir(parents=True)
    parquet.write_table(pa.table({"a": [1.0]}), tmp_path / "d" / "a=7" / "p.parquet")
    with pytest.raises(DataError, match="Rename one"):
        read_table(tmp_path / "d", _schema())


def test_masked_cells_are_gaps() -> None:
    masked = np.ma.array([[5.0], [80.0]], mask=[[False], [True]])
    expected = SchemaEncoder(_schema()).encode({"a": [5.0, None]})
    np.testing.assert_array_equal(SchemaEncoder(_schema()).encode(masked), expected)
    np.testing.assert_array_equal(SchemaEncoder(_schema()).encode({"a": masked[:, 0]}), expected)


MATRICES: list[Callable[[Any], Any]] = [
    ArrayEncoder(2.0, 1).encode,
    as_points,
    lambda X: bounded_array(X, schema_of_bounds([(0, 1)])),
]


@pytest.mark.parametrize("read", MATRICES)
def test_arrays_without_a_schema_have_no_masked_cells(read: Callable[[Any], Any]) -> None:
    with pytest.raises(DataError, match="masked"):
        read(np.ma.array([[0.5], [0.5]], mask=[[False], [True]]))


@pytest.mark.parametrize("value", ["010", "0100", "12:30", "1_000", "-07"])
def test_yaml_numbers_with_two_meanings_need_quotes(value: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="quotes"):
        parse_yaml(f"values: [{value}]")
    write_document(tmp_path / "s.yaml", {"values": [value]})
    assert read_document(tmp_path / "s.yaml") == {"values": [value]}


def test_a_set_has_no_order() -> None:
    with pytest.raises(ValueError, match="!!set"):
        parse_yaml("values: !!set {low, mid, high}")


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, "{a: " * 3000 + "1" + "}" * 3000])
def test_deep_documents_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_yaml(text)
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * 100_000 + "]" * 100_000)


def test_a_page_of_a_parquet_file_is_held_to_its_checksum(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": np.arange(1000.0)})
    parquet.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[3000] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        read_table(path, _schema())


@pytest.mark.parametrize("cells", ["555", b"555", {"5", "6"}, {"5": 1}])
def test_a_column_is_a_list_of_cells(cells: Any) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        SchemaEncoder(_schema()).encode({"a": cells})


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(DataError, match="zone"):
        SchemaEncoder(_schema(d=DATE)).encode({"d": pa.array([0], pa.timestamp("us", "Mars/Phobos"))})


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(SchemaError, match="surrogates"):
        _schema(a={**CATEGORY, "values": ["\ud800", "b"]})


def test_an_endless_first_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a" * (3 << 20), 1))
    with pytest.raises(DataError, match="line of more than"):
        read_table(path, _schema())


def test_a_listed_value_is_no_gap_and_a_code_is_no_listed_value() -> None:
    schema = _schema(c={**CATEGORY, "values": ["NA", "x"]})
    one, other = (dense(SchemaEncoder(schema).encode({"c": [cell]})) for cell in ("NA", None))
    assert not np.array_equal(one, other)
    with pytest.raises(SchemaError, match="code for a gap"):
        _schema({"missing": ["x"]}, c=CATEGORY)
    with pytest.raises(SchemaError, match="code for a gap"):
        _schema({"missing": ["7.0"]}, c={**CATEGORY, "values": [7, 8]})
    with pytest.raises(SchemaError, match="empty text"):
        _schema(c={**CATEGORY, "values": ["", "x"]})


def _sheet(path: Path, *cells: str, after: str = "") -> Path:
    """Write a workbook with columns a and b, and these cells as XML below them."""
    write_workbook(path, [["a", "b"]])
    rows = "".join(f"<row>{cell}</row>" for cell in cells)
    _edit_sheet(path, lambda sheet: sheet.replace("</sheetData>", f"{rows}</sheetData>{after}"))
    return path


def _edit_sheet(path: Path, edit: Callable[[str], str]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/s.xml"] = edit(members["xl/worksheets/s.xml"].decode()).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "cell", ['<c t="e"><v>#N/A</v></c>', '<c t="e"><v>#DIV/0!</v></c>', "<c><f>1+1</f></c>"]
)
def test_a_workbook_s_cells_without_a_value_refuse_their_column(cell: str, tmp_path: Path) -> None:
    path = _sheet(tmp_path / "t.xlsx", f"{cell}<c><v>1</v></c>", "<c><v>2</v></c><c><v>3</v></c>")
    with pytest.raises(DataError, match="cannot be read: errors"):
        read_table(path, _schema())
    assert read_table(path, _schema(b=NUMBER))["b"].to_pylist() == [1.0, 3.0]


def test_merged_cells_refuse_their_column(tmp_path: Path) -> None:
    rows = ['<c r="A2"><v>1</v></c>', '<c r="B3"><v>2</v></c>']
    merged = '<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'
    path = _sheet(tmp_path / "t.xlsx", *rows, after=merged)
    with pytest.raises(DataError, match="merged"):
        read_table(path, _schema())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('<c t="inlineStr"><is><t></t></is></c>', "rows of blanks"),
        ('<c r="C900" t="inlineStr"><is><t xml:space="preserve"> </t></is></c>', "rows of blanks"),
        ('<c r="XFD1048576"><v>1</v></c>', "too large"),
    ],
)
def test_stray_cells_of_a_workbook_are_refused(row: str, message: str, tmp_path: Path) -> None:
    last = '<row r="1048576">' if "XFD" in row else "<row>"
    path = _sheet(tmp_path / "t.xlsx", "<c><v>1</v></c>", f"</row>{last}{row}")
    with pytest.raises(DataError, match=message):
        read_table(path, _schema())


@pytest.mark.parametrize("size", range(1, 30))
def test_a_piece_ends_after_a_record_and_not_inside_a_cell(size: int) -> None:
    content = b'a,b\n1,"x\ny"\n2,"u\n\nv"\n'
    form = FileFormat(line_breaks=True)
    pieces = list(csv_lines.record_pieces(content, "t", form, size=size))
    assert b"".join(pieces) == content
    assert all(piece.count(b'"') % 2 == 0 and piece.endswith(b"\n") for piece in pieces)


@pytest.mark.parametrize("cell", ['<c t="e"><v>#DIV/0!</v></c>', "<c><f>1+1</f></c>"])
def test_without_a_row_of_names_the_first_row_is_read_like_others(cell: str, tmp_path: Path) -> None:
    path = _sheet(tmp_path / "t.xlsx", f"{cell}<c><v>1</v></c>", "<c><v>2</v></c><c><v>3</v></c>")
    _edit_sheet(path, lambda sheet: re.sub("<row.*?</row>", "", sheet, count=1))
    with pytest.raises(DataError, match="cannot be read: errors"):
        read_table(path, _schema({"names": ["a", "b"]}))


def test_cells_under_an_empty_name_are_refused(tmp_path: Path) -> None:
    note = '<c r="C9" t="inlineStr"><is><t>source: registry</t></is></c>'
    path = _sheet(tmp_path / "t.xlsx", "<c><v>1</v></c><c><v>2</v></c>", f'</row><row r="9">{note}')
    with pytest.raises(DataError, match="whose first row is empty"):
        read_table(path, _schema())


def test_a_number_names_a_column_of_a_workbook_as_it_looks(tmp_path: Path) -> None:
    path = _sheet(tmp_path / "t.xlsx", "<c><v>2020</v></c>", "<c><v>1</v></c>")
    _edit_sheet(path, lambda sheet: re.sub("<row.*?</row>", "", sheet, count=1))
    assert read_table(path, _schema(**{"2020": NUMBER}))["2020"].to_pylist() == [1.0]


def test_a_huge_merged_range_costs_no_memory(tmp_path: Path) -> None:
    merged = '<mergeCells><mergeCell ref="A3:XFD502"/></mergeCells>'
    path = _sheet(tmp_path / "t.xlsx", "<c><v>1</v></c><c><v>2</v></c>", "<c><v>3</v></c>", after=merged)
    assert len(check_sheet(path, "S").unreadable) == 1  # B3, the only hidden cell up to the last one
    assert read_table(path, _schema())["a"].to_pylist() == [1.0, 3.0]
    with pytest.raises(DataError, match="merged"):
        read_table(path, _schema(b=NUMBER))


def _transport(path: Path, version: int) -> bytes:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [float(i % 90) for i in range(300)], "w": ["x", "yyy", "x"] * 100})
    pyreadstat.write_xport(frame, str(path), file_format_version=version)
    return path.read_bytes()


@pytest.mark.parametrize("version", [5, 8])
@pytest.mark.parametrize("cut", [1, 40, 80, 800])
def test_a_cut_transport_file_is_refused(version: int, cut: int, tmp_path: Path) -> None:
    path = tmp_path / "t.xpt"
    content = _transport(path, version)
    assert read_table(path, _schema()).num_rows == 300
    path.write_bytes(content[:-cut])
    with pytest.raises(DataError, match=r"cut off or damaged|cannot be read"):
        read_table(path, _schema())


def _not_utf8() -> Any:
    buffers = [None, pa.py_buffer(np.array([0, 1, 3], np.int32).tobytes()), pa.py_buffer(b"x\xff\xfe")]
    return pa.Array.from_buffers(pa.string(), 2, buffers)


@pytest.mark.parametrize("convert", [lambda column: column, lambda column: column.dictionary_encode()])
@pytest.mark.parametrize("role", ["category", "person", "unused"])
def test_text_that_is_not_utf8_is_refused(convert: Callable[[Any], Any], role: str, tmp_path: Path) -> None:
    columns = {"c": CATEGORY} if role == "category" else {"n": NUMBER}
    more = {"person": "c"} if role == "person" else {"one_row_per_person": True}
    schema = Schema.from_dict({"name": "t", "columns": columns, **more})
    table = pa.table({"n": [1.0, 2.0], "c": convert(_not_utf8())})
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    copy = open_cells(path)
    uses: list[Callable[[], Any]] = [
        lambda: check_table(path, schema),
        lambda: write_rows(copy, tmp_path / "copy.csv"),
    ]
    if role != "unused":
        uses += [lambda: read_table(path, schema), lambda: SchemaEncoder(schema).encode(table)]
    if role == "person":
        uses[-1] = lambda: SchemaEncoder(schema).person_weights(table)
    for use in uses:
        with pytest.raises(DataError, match="column 'c' holds text that is not UTF-8"):
            use()


@pytest.mark.parametrize("text", ['a, "c"\n1,x\n', 'a,c\n1, "x"\n', 'a,c\n1,\u00a0\t"x"\n'])
def test_with_trim_a_blank_before_a_quote_is_refused(text: str, tmp_path: Path) -> None:
    schema = _schema({"trim": True}, a=NUMBER, c=CATEGORY)
    with pytest.raises(DataError, match="no blank may precede the first quote"):
        read_table(_csv(tmp_path, text), schema)
    quoted = _csv(tmp_path, 'a,"c"\n1," x "\n2,"x, ""y"""\n')
    assert read_table(quoted, schema)["c"].to_pylist() == ["x", 'x, "y"']


def test_one_byte_that_is_not_utf8_refuses_the_file_in_every_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,unused\n1,x\n2,\xff\n")
    uses: list[Callable[[], Any]] = [
        lambda: read_table(path, _schema()),
        lambda: check_table(path, _schema()),
        lambda: write_rows(open_cells(path), tmp_path / "copy.csv"),
    ]
    for use in uses:
        with pytest.raises(DataError, match="holds text that is not in UTF-8"):
            use()


def test_a_byte_order_mark_inside_a_file_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _csv(tmp_path, "c,a\n" + "\ufeffx,1\n" * 20)
    for size in (8, 1 << 20):
        monkeypatch.setattr(csv_lines, "PIECE", size)
        assert (
            read_table(path, _schema(c={**CATEGORY, "values": ["x", "\ufeffx"]}))["c"].to_pylist()
            == ["\ufeffx"] * 20
        )


def test_the_end_of_a_compressed_file_s_name_may_have_capitals(tmp_path: Path) -> None:
    path = tmp_path / "T.CSV.GZ"
    path.write_bytes(gzip.compress(b"a\n1\n2\n"))
    assert read_table(path, _schema())["a"].to_pylist() == [1.0, 2.0]


def test_a_text_that_a_server_receives_has_the_codes_of_the_schema() -> None:
    schema = _schema({"missing": ["?"], "trim": True, "delimiter": ";"}, a=NUMBER, c=CATEGORY)
    assert parse_csv(b"a, c\n?, x\n 1,x \n", schema).to_pydict() == {"a": [None, 1.0], "c": ["x", "x"]}
