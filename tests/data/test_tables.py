"""Every kind of table gives the same rows; what is no table is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import narwhals.stable.v2 as narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from privlearn.data import Schema, SchemaEncoder, as_table
from privlearn.errors import DataError
from tests.support.rows import dense, filled

CONTAINERS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "dict of lists": dict,
    "dict of arrays": lambda columns: {name: np.array(cells) for name, cells in columns.items()},
    "pandas": pd.DataFrame,
    "pandas, arrow types": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, nullable types": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, objects": lambda columns: pd.DataFrame(columns).astype(object),
    "pandas, categoricals": lambda columns: pd.DataFrame(columns).astype("category"),
    "pandas, shuffled index": lambda columns: pd.DataFrame(columns, index=[3, 3, 0, 1]),
    "polars": pl.DataFrame,
    "duckdb": lambda columns: duckdb.from_arrow(pa.table(columns)),
    "narwhals of pandas objects": lambda columns: narwhals.from_native(pd.DataFrame(columns).astype(object)),
    "narwhals of polars": lambda columns: narwhals.from_native(pl.DataFrame(columns)),
    "narwhals of a database": lambda columns: narwhals.from_native(duckdb.from_arrow(pa.table(columns))),
    "polars, categoricals": lambda columns: pl.DataFrame(columns).cast({pl.String: pl.Categorical}),
    "pyarrow table": pa.table,
    "pyarrow batch": lambda columns: pa.record_batch(pa.table(columns).to_batches()[0]),
    "pyarrow, chunked": lambda columns: pa.concat_tables(
        [pa.table(columns).slice(0, 1), pa.table(columns).slice(1)]
    ),
    "pyarrow, dictionaries": lambda columns: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in columns.items()}
    ),
    "more columns, other order": lambda columns: pa.table(
        {**dict(reversed(columns.items())), "nested": [[1], [2], [3], [4]]}
    ),
    "numpy objects": lambda columns: np.array(list(columns.values()), dtype=object).T,
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_rows(
    container: Callable[[Any], Any], schema: Schema, columns: dict[str, list[Any]]
) -> None:
    encoder = SchemaEncoder(schema)
    expected = encoder.encode(pa.table(columns))
    assert expected.shape == (4, encoder.dimension)
    assert_array_equal(encoder.encode(container(columns)), expected)


NUMBER_TYPES = [
    *(
        getattr(pa, name)()
        for name in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    ),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.decimal256(40, 2),
]
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]


@pytest.mark.parametrize("kind", NUMBER_TYPES, ids=str)
def test_every_type_of_number_is_one(kind: Any) -> None:
    encoder = SchemaEncoder(_one_column(type="number", lower=0, upper=100))
    expected = encoder.encode({"x": [3.0, 50.0, 100.0]})
    whole = np.array([3, 50, 100])
    cells = (
        list(map(Decimal, whole.tolist()))
        if pa.types.is_decimal(kind)
        else whole.astype(kind.to_pandas_dtype())
    )
    assert_array_equal(encoder.encode({"x": pa.array(cells, type=kind)}), expected)


@pytest.mark.parametrize("kind", [kind for kind in NUMBER_TYPES if not pa.types.is_decimal(kind)], ids=str)
def test_integer_categories_match_numbers_of_every_type(kind: Any) -> None:
    encoder = SchemaEncoder(_one_column(type="category", values=[7, -3, 9], unknown="zero"))
    encoded = encoder.encode({"x": pa.array(np.array([9, 7, 8], dtype=kind.to_pandas_dtype()), type=kind)})
    expected = dense(encoder.encode({"x": [9, 7, 8]}))
    assert_array_equal(encoded, expected)
    assert_array_equal(expected[2, :3], 0.0)
    assert_array_equal(np.argmax(expected[:2, :3], axis=1), [2, 0])


def test_a_large_unsigned_number_is_not_a_negative_category() -> None:
    encoder = SchemaEncoder(_one_column(type="category", values=[-1, 1], unknown="zero"))
    encoded = encoder.encode({"x": pa.array([2**64 - 1, 1], type=pa.uint64())})
    assert_array_equal(encoded[0, :2], 0.0)


def test_a_fraction_is_not_a_whole_category() -> None:
    encoder = SchemaEncoder(_one_column(type="category", values=[1, 2], unknown="zero"))
    assert_array_equal(encoder.encode({"x": [1.5]})[0, :2], 0.0)


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_every_type_of_text_is_one(kind: Any) -> None:
    encoder = SchemaEncoder(_one_column(type="category", values=["a", "b"]))
    cells = pa.array(["b", "a"]).cast(kind)
    assert_array_equal(encoder.encode({"x": cells}), encoder.encode({"x": ["b", "a"]}))
    reader = SchemaEncoder(_one_column(type="text", features=8))
    words = pa.array(["two words", "one"]).cast(kind)
    assert_array_equal(
        filled(reader.encode({"x": words})), filled(reader.encode({"x": ["two words", "one"]}))
    )


def test_only_wanted_columns_are_kept_in_order() -> None:
    table = as_table({"a": [1], "b": [2], "c": [3]}, ["c", "a"])
    assert table.column_names == ["c", "a"]


def test_names_that_are_not_text_are_taken_as_text() -> None:
    assert as_table(pd.DataFrame({0: [1], 1: [2]}), ["1"]).column_names == ["1"]


NO_TABLES = {
    "sparse matrix": (sparse.eye_array(2), "not a table"),
    "list": ([[1, 2]], "not a table"),
    "text": ("a.csv", "not a table"),
    "none": (None, "not a table"),
    "lazy": (pl.LazyFrame({"a": [1]}), "not computed yet"),
    "lazy, of narwhals": (narwhals.from_native(pl.LazyFrame({"a": [1]})), "not computed yet"),
    "one-dimensional": (np.arange(2.0), "2-D"),
    "too few columns": (np.ones((3, 1)), "has 2 columns"),
    "too many columns": (np.ones((3, 3)), "has 2 columns"),
    "ragged": ({"a": [1, 2], "b": [1]}, "length"),
    "missing column": ({"a": [1, 2]}, "column 'b' is missing"),
}


@pytest.mark.parametrize(("data", "message"), NO_TABLES.values(), ids=NO_TABLES)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_table(data, ["a", "b"])


def test_a_query_that_fails_quotes_no_cell() -> None:
    failing: Any = duckdb.sql("select error('cell 12345') as a")
    query = narwhals.from_native(failing)
    with pytest.raises(DataError, match="cannot be fetched") as failed:
        as_table(query)
    assert failed.value.__context__ is None
    assert "12345" not in str(failed.value)


def test_a_stream_that_fails_quotes_no_cell() -> None:
    class Busy:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise RuntimeError("unfinished result: cell 12345")

    with pytest.raises(DataError, match="Finish other queries of its connection") as failed:
        as_table(Busy())
    assert failed.value.__context__ is None
    assert "12345" not in str(failed.value)


def test_cells_of_several_types_are_read_one_by_one() -> None:
    frame = narwhals.from_native(pd.DataFrame({"a": [1, "x"]}))
    assert as_table(frame).equals(as_table({"a": [1, "x"]}))


def test_an_array_needs_names() -> None:
    with pytest.raises(DataError, match="no column names"):
        as_table(np.ones((2, 2)))


def _one_column(**settings: Any) -> Schema:
    return Schema.from_dict({"name": "t", "columns": {"x": settings}})
