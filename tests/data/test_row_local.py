"""A row is read by itself: whatever one row becomes, all others stay bit for bit, or the table is refused.

One row of a table is exchanged for every odd cell below, in every kind of table and every kind of column. What is
compared is what the mechanisms get: encoded rows, labels, targets, counts of values, and who shares a person.
"""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import example, given
from hypothesis import settings as search
from hypothesis import strategies as st
from scipy import sparse

from privlearn.data import ArrayEncoder, Resolution, Schema, SchemaEncoder, as_table, read_table
from privlearn.data.encoding import owners
from privlearn.data.encoding.column_cells import distinct, numbers
from privlearn.data.sources import parse_csv
from privlearn.errors import DataError
from privlearn.features import as_points
from tests.support.rows import dense, filled

A_DAY = datetime.datetime(2001, 2, 3, 4, 5, 6)

ODD: list[Any] = [
    *(None, math.nan, pd.NA, pd.NaT, np.float32(math.nan), Decimal("NaN"), Decimal("sNaN")),
    *(0, 1, 2, -1, 0.0, -0.0, 0.5, 1.5, 1e308, 5e-324, math.inf, -math.inf),
    *(
        2**53 - 1,
        2**53,
        2**53 + 1,
        2**53 + 2,
        -(2**53) - 1,
        2**63 - 1,
        2**63,
        -(2**63) - 1,
        2**64,
        10**40,
        10**400,
    ),
    *(float(2**53), float(2**53 + 2), 1e40),
    *(True, False, np.bool_(True), np.int8(1), np.int32(2), np.uint64(2**64 - 1), np.int64(2**53 + 1)),
    *(np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble("0.1")),
    *(
        Decimal(1),
        Decimal("0.1"),
        Decimal("0.1000000000000000000000000001"),
        Decimal("1e-30"),
        Decimal("1e400"),
    ),
    *(
        "a",
        "b",
        "",
        " ",
        "1",
        "1.0",
        "007",
        "true",
        "True",
        "abc",
        "NA",
        "nan",
        "2001-02-03",
        "ä",
        "\ud800",
        "x\ny",
    ),
    *(np.str_("a"), b"a", b"\xff"),
    *(A_DAY, A_DAY.date(), A_DAY.time(), datetime.timedelta(1), pd.Timestamp(A_DAY)),
    *(np.datetime64("2001-02-03", unit) for unit in ("D", "s", "ms", "us", "ns")),
    *([1], [], (1,), {"a": 1}, {1}, 1j, Fraction(1, 3), object(), np.array([1.0])),
]


def _objects(cells: list[Any]) -> Any:
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _frame(cells: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(cells)})


def _arrow(cells: list[Any], missing: bool = True) -> pa.Array:
    if any(isinstance(cell, np.datetime64) for cell in cells):
        raise ValueError("pyarrow 26 ends the process for a list of these and of numpy's floats")
    return pa.array(cells, from_pandas=missing)


def _polars(cells: list[Any]) -> pl.DataFrame:
    if any(isinstance(cell, Decimal) and cell.is_nan() for cell in cells):
        raise ValueError("polars 2 panics")
    if isinstance(cells[0], np.floating) and len({*map(type, cells)}) > 1:
        raise ValueError("polars casts all cells to the first one's type before anybody else sees them")
    return pl.DataFrame({"x": cells})


CONTAINERS: dict[str, Callable[[list[Any]], Any]] = {
    "dict of lists": lambda cells: {"x": cells},
    "dict of tuples": lambda cells: {"x": tuple(cells)},
    "dict of arrays": lambda cells: {"x": np.array(cells)},
    "dict of object arrays": lambda cells: {"x": _objects(cells)},
    "numpy array": lambda cells: np.array([[cell] for cell in cells]),
    "numpy objects": lambda cells: _objects(cells).reshape(-1, 1),
    "pandas": _frame,
    "pandas, objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "pandas, nullable": lambda cells: _frame(cells).convert_dtypes(),
    "pandas, nullable floats": lambda cells: _frame(cells).astype("Float64"),
    "pandas, arrow": lambda cells: _frame(cells).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, categories": lambda cells: _frame(cells).astype("category"),
    "pandas, categories of objects": lambda cells: pd.DataFrame(
        {"x": pd.Series(cells, dtype=object).astype("category")}
    ),
    "polars": _polars,
    "polars, categories": lambda cells: _polars(cells).cast({pl.String: pl.Categorical}),
    "pyarrow": lambda cells: pa.table({"x": _arrow(cells)}),
    "pyarrow, NaN kept": lambda cells: pa.table({"x": _arrow(cells, missing=False)}),
    "pyarrow, dictionary": lambda cells: pa.table({"x": _arrow(cells).dictionary_encode()}),
    "pyarrow, pieces": lambda cells: pa.table(
        {"x": pa.chunked_array([_arrow(cells)[:2], _arrow(cells)[2:]])}
    ),
}

BIG = [2**53 + 1, 2**53 + 2, 2**53 + 3, 7, 2**53 + 2]
INTEGERS, FLOATS, WORDS, TRUTHS = (
    [1, 2, 3, 2, 0],
    [0.1, 2.5, 1e300, 0.3, -4.0],
    ["a", "b", "a", "c", "d e"],
    [True, False, True, False, True],
)
GAPS = [1, None, 3, None, 2]
DECIMALS = [Decimal("0.1"), Decimal("0.7"), Decimal("123456.789"), Decimal("0.3"), Decimal(2)]
SINGLE = [np.float32(cell) for cell in (0.1, 2.5, 1e30, 0.3, -4.0)]
SPELLED = ["1", "007", "1", "x", "7"]
DAYS = [
    A_DAY.date(),
    datetime.date(1999, 12, 31),
    datetime.date(2020, 2, 29),
    A_DAY.date(),
    datetime.date(1969, 1, 1),
]
TIMES = [datetime.datetime(*day.timetuple()[:3], hour) for hour, day in enumerate(DAYS)]
SPELLED_DAYS = [day.isoformat() for day in DAYS]


def _schema(**column: Any) -> Schema:
    return Schema.from_dict({"name": "t", "columns": {"x": column}})


FINE = Resolution(bins=32, bin_share=0.2, grid=8, pair_share=0.2)


def _encoded(resolution: Resolution | None = None, **column: Any) -> Callable[[Any], list[bytes]]:
    encoder = SchemaEncoder(_schema(missing="zero", **column), resolution=resolution)

    def rows(table: Any) -> list[bytes]:
        features = encoder.encode(table)
        return [row.tobytes() for row in (features.toarray() if sparse.issparse(features) else features)]

    return rows


def _labels(*classes: Any) -> Callable[[Any], list[bytes]]:
    content = {
        "name": "t",
        "columns": {"z": {"type": "text"}},
        "target": {"name": "x", "classes": classes, "unknown": "zero"},
    }
    encoder = SchemaEncoder(Schema.from_dict(content))
    return lambda table: [
        label.tobytes() for label in encoder.encode_labels(as_table(table, ["x"]).column(0))
    ]


def _raw(table: Any) -> list[bytes]:
    """Numbers as bounds are bought from and targets made of."""
    return [number.tobytes() for number in numbers(as_table(table, ["x"]).column(0), "x")]


def _shared(table: Any) -> np.ndarray[Any, Any]:
    """Return the two rows that belong to one person."""
    person = owners(as_table(table, ["x"]).column(0), "x")
    return np.equal.outer(person, person)


def _counts(kind: type) -> Callable[[Any], Counter[Any]]:
    def read(table: Any) -> Counter[Any]:
        values, places = distinct(as_table(table, ["x"]).column(0), kind, "x")
        return Counter((type(values[place]), values[place]) for place in places if place >= 0)

    return read


SPLINE = _encoded(type="number", lower=-3, upper=2.0**54)
LINEAR = _encoded(type="number", lower=-3, upper=3, encoding="linear")
LOG = _encoded(type="number", lower=-3, upper=1e6, scale="log")
WHOLE = _encoded(type="category", values=[0, 1, 2, 7, 2**53 - 1], unknown="zero")
TEXT = _encoded(type="category", values=["a", "b", "007", "1"], unknown="other")
TRUTH = _encoded(type="category", values=[True, False])
NOTE = _encoded(type="text", features=8)
FINE_SPLINE = _encoded(FINE, type="number", lower=-3, upper=2.0**54)
FINE_TEXT = _encoded(FINE, type="category", values=["a", "b", "007", "1"], unknown="other")
FINE_NOTE = _encoded(FINE, type="text", features=8)
HOURS = _encoded(FINE, type="number", period=24)
ORDER = _encoded(FINE, type="ordinal", values=[0, 1, 2, 7], unknown="zero")
WORD_ORDER = _encoded(type="ordinal", values=["a", "b", "007", "1"], unknown="zero")
DATES = _encoded(type="date", lower="1980-01-01", upper="2010-01-01")
FINE_DATES = _encoded(FINE, type="date", lower="1980-01-01", upper="2010-01-01")
READERS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "spline of integers": (SPLINE, INTEGERS),
    "spline of large integers": (SPLINE, BIG),
    "linear floats": (LINEAR, FLOATS),
    "linear single floats": (LINEAR, SINGLE),
    "linear decimals": (LINEAR, DECIMALS),
    "linear truth values": (LINEAR, TRUTHS),
    "logarithm of gaps": (LOG, GAPS),
    "whole categories": (WHOLE, INTEGERS),
    "whole categories with gaps": (WHOLE, GAPS),
    "large whole categories": (WHOLE, BIG),
    "text categories": (TEXT, WORDS),
    "digits as text": (TEXT, SPELLED),
    "true or false": (TRUTH, TRUTHS),
    "text": (NOTE, WORDS),
    "fine spline of integers": (FINE_SPLINE, INTEGERS),
    "fine text categories": (FINE_TEXT, WORDS),
    "fine text": (FINE_NOTE, WORDS),
    "hours": (HOURS, FLOATS),
    "ordered integers": (ORDER, INTEGERS),
    "ordered words": (WORD_ORDER, WORDS),
    "dates": (DATES, DAYS),
    "fine dates": (FINE_DATES, DAYS),
    "times as dates": (DATES, TIMES),
    "spelled dates": (DATES, SPELLED_DAYS),
    "whole labels": (_labels(0, 1, 2, 3), INTEGERS),
    "text labels": (_labels("a", "b"), WORDS),
    "true labels": (_labels(True, False), TRUTHS),
    "raw integers": (_raw, BIG),
    "raw decimals": (_raw, DECIMALS),
    "raw floats": (_raw, FLOATS),
    "whole persons": (_shared, BIG),
    "text persons": (_shared, SPELLED),
    "float persons": (_shared, [1.0, 2.0, 1.0, 3.0, 2.0]),
}
COUNTED: dict[str, list[Any]] = {
    "integers": INTEGERS,
    "large": BIG,
    "gaps": GAPS,
    "words": WORDS,
    "digits": SPELLED,
    "truths": TRUTHS,
    "floats": FLOATS,
}


def _changed(cells: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the cells with one of them replaced, first the first, then one in the middle."""
    for turn, odd in enumerate(ODD):
        place = (0, 2)[turn % 2]
        yield place, [*cells[:place], odd, *cells[place + 1 :]]


def _read(read: Callable[[Any], Any], container: Callable[[list[Any]], Any], cells: list[Any]) -> Any:
    """Return the rows of a table; ``None`` if it is refused, or if no such table can exist."""
    try:
        table = container(cells)
    except Exception:
        return None
    try:
        return read(table)
    except DataError:
        return None


def _others(read: Any, place: int) -> Any:
    """Return the cells of all rows but one."""
    if isinstance(read, np.ndarray):
        return np.delete(np.delete(read, place, axis=0), place, axis=1).tolist()
    return [*read[:place], *read[place + 1 :]]


def _changes(read: Callable[[Any], Any], container: Callable[[list[Any]], Any], cells: list[Any]) -> int:
    """Return the number of changes of one row that were accepted, after checking that the others stay the same."""
    before, accepted = _read(read, container, cells), 0
    for place, changed in _changed(cells):
        after = _read(read, container, changed)
        if before is not None and after is not None:
            assert _others(after, place) == _others(before, place), repr(changed[place])
            accepted += 1
    return accepted


def test_there_are_enough_changes() -> None:
    assert len(CONTAINERS) * (len(READERS) + len(COUNTED)) * len(ODD) > 30_000


@pytest.mark.filterwarnings("ignore")  # of the libraries that make the tables
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_the_other_rows_stay(container: Callable[[list[Any]], Any]) -> None:
    accepted = sum(_changes(read, container, cells) for read, cells in READERS.values())
    assert accepted > 400  # most have more than 800; together they are about 14,000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_a_row_alone_is_the_row_of_a_table(name: str) -> None:
    """Lists of one cell have a way of their own (`plain_cells`); tuples go through Arrow, as tables do."""
    read, cells = READERS[name]
    alone, in_table = (
        [_read(read, CONTAINERS[container], [cell]) for cell in [*cells, *ODD]]
        for container in ("dict of lists", "dict of tuples")
    )
    assert list(map(repr, alone)) == list(map(repr, in_table))
    assert any(row is not None for row in alone)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_one_row_moves_one_count_down_and_one_up(container: Callable[[list[Any]], Any]) -> None:
    for cells, kind in product(COUNTED.values(), (str, int)):
        before = _read(_counts(kind), container, cells)
        for _, changed in _changed(cells):
            after = _read(_counts(kind), container, changed)
            if before is not None and after is not None:
                assert (after - before).total() <= 1, repr(changed)
                assert (before - after).total() <= 1, repr(changed)


@pytest.mark.parametrize("name", [name for name, (read, _) in READERS.items() if read is not _shared])
def test_a_table_is_accepted_if_each_of_its_rows_is(name: str) -> None:
    """What may be refused is a row, not rows together: the tables that fit a schema are all tables of fitting rows."""
    read, cells = READERS[name]
    alone = {id(cell): _read(read, CONTAINERS["dict of lists"], [cell]) for cell in [*ODD, *cells]}
    for _, changed in _changed(cells):
        together = _read(read, CONTAINERS["dict of lists"], changed)
        rows = [alone[id(cell)] for cell in changed]
        if any(row is None for row in rows):
            assert together is None
        else:
            assert together == [row[0] for row in rows]


def test_the_rows_of_a_csv_file_are_read_by_themselves() -> None:
    columns: dict[str, dict[str, Any]] = {
        "number": {"type": "number", "lower": -3, "upper": 3},
        "whole": {"type": "category", "values": [0, 1, 2], "unknown": "zero"},
        "text": {"type": "category", "values": ["a", "1"], "unknown": "zero"},
        "truth": {"type": "category", "values": [True, False]},
        "note": {"type": "text", "features": 8},
    }
    cells: dict[str, list[Any]] = {
        "number": INTEGERS,
        "whole": INTEGERS,
        "text": SPELLED,
        "truth": TRUTHS,
        "note": WORDS,
    }
    for name, settings in columns.items():
        schema = _schema(missing="zero", **settings)

        def written(changed: list[Any]) -> pa.Table:
            text = io.StringIO(newline="")
            csv.writer(text).writerows([["x", "z"], *([cell, "."] for cell in changed)])
            return parse_csv(text.getvalue().encode(), schema)  # noqa: B023 - used before the next turn

        assert _changes(_encoded(**settings), written, cells[name]) > 10


def test_the_rows_of_a_parquet_file_are_read_by_themselves(tmp_path: Path) -> None:
    def written(cells: list[Any]) -> pa.Table:
        parquet.write_table(pa.table({"x": _arrow(cells)}), tmp_path / "t.parquet")
        return read_table(tmp_path / "t.parquet")

    for name in (
        "spline of large integers",
        "linear decimals",
        "whole categories",
        "text categories",
        "whole persons",
    ):
        assert _changes(*_swapped(READERS[name], written)) > 3


def _swapped(reader: tuple[Any, list[Any]], container: Any) -> tuple[Any, Any, list[Any]]:
    read, cells = reader
    return read, container, cells


BESIDE_TEXT = {
    "hour": {"type": "number", "period": 24, "missing": "zero"},
    "age": {"type": "number", "lower": 0, "upper": 100, "missing": "zero"},
    "note": {"type": "text", "features": 64, "missing": "zero"},
    "reply": {"type": "text", "features": 32, "missing": "zero"},
}
HOUR = st.one_of(st.none(), st.sampled_from([0.0, 22.4, 22.6, 23.9, 24.0]), st.floats(0, 24))
NOTES = st.one_of(st.none(), st.lists(st.sampled_from(WORDS)).map(" ".join))
ROW = st.tuples(HOUR, st.one_of(st.none(), st.floats(0, 100)), NOTES, NOTES)


@search(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=2, max_size=6), ROW, st.sampled_from([Resolution(), FINE]), st.booleans())
@example([(3.0, 41.7, "one two", None), (7.3, 41.7, "three", "six")], (23.9, 0.0, "", ""), FINE, True)
def test_columns_beside_text_are_joined_row_by_row(
    rows: list[Any], other: Any, resolution: Resolution, fit_intercept: bool
) -> None:
    """Stored entries are compared, in the order in which they will be summed."""
    schema = Schema.from_dict({"name": "t", "columns": BESIDE_TEXT})
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept, resolution=resolution)

    def encoded(table: list[Any]) -> list[tuple[list[int], bytes]]:
        found: Any = encoder.encode(
            {name: list(column) for name, column in zip(BESIDE_TEXT, zip(*table, strict=True), strict=True)}
        )
        assert found.has_canonical_format
        parts = [slice(*ends) for ends in pairwise(found.indptr)]
        return [(found.indices[part].tolist(), found.data[part].tobytes()) for part in parts]

    assert encoded([other, *rows[1:]])[1:] == encoded(rows)[1:]
    assert encoded(rows[:1]) == encoded(rows)[:1]


MATRICES: dict[str, Callable[[list[list[Any]]], Any]] = {
    "lists": list,
    "array": np.array,
    "objects": lambda rows: np.array(rows, dtype=object),
    "frame": pd.DataFrame,
    "frame, nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_the_rows_of_an_array_are_clipped_by_themselves(make: Callable[[Any], Any]) -> None:
    def clipped(rows: Any) -> list[bytes]:
        return [row.tobytes() for row in dense(ArrayEncoder(2.0, 2).encode(rows))]

    def matrix(cells: list[Any]) -> Any:
        return make([[cell, 1.25] for cell in cells])

    for cells in (INTEGERS, FLOATS, SINGLE, BIG, TRUTHS):
        assert _changes(clipped, matrix, cells) > 20


@pytest.mark.parametrize("read", [as_points, ArrayEncoder(1.0, 40).encode])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.coo_array])
def test_entries_of_one_cell_are_summed_row_by_row(
    read: Callable[[Any], Any], make: Callable[..., Any]
) -> None:
    """scipy sorts them, in an order of its own, if another row is out of order."""
    draw = np.random.default_rng(0)
    cells, values = np.repeat(np.arange(40), 9), draw.normal(size=360) * 10.0 ** draw.integers(-8, 8, 360)
    starts = [0, 360, 363] if make is sparse.csr_array else None
    first = []
    for other in ([1, 2, 3], [3, 1, 2]):
        columns, entries = np.append(cells, other), np.append(values, np.ones(3))
        places = (columns, starts) if starts else ((np.repeat([0, 1], [360, 3]), columns),)
        first.append(filled(read(make((entries, *places), shape=(2, 40))))[0].tobytes())
    assert first[0] == first[1]
