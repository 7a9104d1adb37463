"""Rows for warm starts: nearly the products of the vectors, which alone decide what is certified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn.data import Resolution, SchemaEncoder
from privlearn.data.encoding import CentredEncoder, PackedCells, RoughRows, RoughTables, rough_tables
from privlearn.data.sources import CachedRows, EncodedRows
from privlearn.solvers import Logistic, Problem, minimise, minimise_multinomial
from privlearn.solvers.problem import column_squares, row_squares
from tests.data.test_lookup_rows import encoder, table

COUNT = 900


def rows_of(encoder: SchemaEncoder, gaps: float = 0.1) -> EncodedRows:
    cells = PackedCells()
    cells.add(encoder.cells(table(COUNT, gaps=gaps)))
    rough = RoughTables(encoder.layout, row_bytes=64)
    return EncodedRows(cells, encoder.expand, encoder.dimension, False, rough=rough)


def lifted(encoder: SchemaEncoder, radius: float) -> EncodedRows:
    width = encoder.dimension - encoder.fit_intercept
    rows = rows_of(encoder)
    return rows.centre(CentredEncoder(encoder, rows.in_memory()[:, :width].mean(axis=0), radius))


def centred(fit_intercept: bool = True) -> SchemaEncoder:
    return encoder(Resolution(), fit_intercept)


ROWS = {
    "plain": lambda fit_intercept: rows_of(centred(fit_intercept)),
    "without gaps": lambda fit_intercept: rows_of(centred(fit_intercept), gaps=0.0),
    "only gaps": lambda fit_intercept: rows_of(centred(fit_intercept), gaps=1.0),
    "lifted": lambda fit_intercept: lifted(centred(fit_intercept), 0.3),
    "lifted, all within the radius": lambda fit_intercept: lifted(centred(fit_intercept), 2.0),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_products_are_those_of_the_vectors(kind: str, fit_intercept: bool, columns: tuple[int, ...]) -> None:
    rows = ROWS[kind](fit_intercept)
    vectors, rough, random = rows.in_memory(), rows.roughly(), np.random.default_rng(1)
    assert rough is not None
    (block,) = rough.map_blocks(lambda _, block: block, rough.tables)
    assert block.shape == vectors.shape
    coefficients = random.normal(size=(rows.shape[1], *columns))
    np.testing.assert_allclose(block @ coefficients, vectors @ coefficients, atol=1e-12)
    weights = random.random((COUNT, *columns))
    np.testing.assert_allclose(block.T @ weights, vectors.T @ weights, atol=1e-10)
    squares = column_squares(vectors, weights)
    np.testing.assert_allclose(column_squares(block, weights), squares, atol=1e-10)
    np.testing.assert_allclose(row_squares(block), row_squares(vectors), atol=1e-12)


def test_only_centred_layouts_with_repeated_cells_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many, different = (PackedCells() for _ in range(3))
    repeated = {"income": np.full(5000, 100.0), "since": np.full(5000, np.datetime64("2010-01-01"))}
    rows = table(5000)
    for name, values in repeated.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    few.add(centred().cells(rows.slice(0, 20)))
    many.add(centred().cells(rows))
    different.add(centred().cells(table(5000)))
    assert rough_tables(centred().layout, many) is None  # as few features as fit into a matrix
    monkeypatch.setattr("privlearn.data.encoding.rough_rows.MIN_FEATURES", 10)
    assert rough_tables(centred().layout, many) is not None
    assert rough_tables(centred().layout, few) is None
    assert rough_tables(centred().layout, different) is None
    assert rough_tables(encoder().layout, many) is None


def test_few_rows_are_stored_and_many_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(centred())
    assert isinstance(rows.roughly(), CachedRows)
    monkeypatch.setattr("privlearn.data.sources.row_source.MAX_CACHED", 1000)
    assert type(rows.roughly()) is EncodedRows


def solve(rows: Any, classes: int) -> Any:
    labels = np.random.default_rng(2).integers(0, classes, COUNT)
    if classes > 2:
        return minimise_multinomial(rows, labels, classes, regularization=1e-2, total=COUNT, tolerance=1e-9)
    return minimise(Problem(rows, 2.0 * labels - 1.0, Logistic(), 1e-2, COUNT), tolerance=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("error", [0.0, 0.1])
def test_the_vectors_certify_whatever_the_warm_start(
    classes: int, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With products that are wrong by a tenth the minimiser is the same, at the cost of more passes."""
    rows = lifted(centred(), 0.5)
    passes: list[int] = []
    expand = rows._encode

    def count(cells: Any) -> Any:
        passes.append(len(cells["age"]))
        return expand(cells)

    monkeypatch.setattr(rows, "_encode", count)
    product = RoughRows.__matmul__
    monkeypatch.setattr(RoughRows, "__matmul__", lambda self, vector: (1.0 + error) * product(self, vector))
    found = solve(rows, classes)
    wanted = solve(rows.in_memory(), classes)
    assert found.gradient_norm <= 1e-9
    assert np.linalg.norm(found.coefficients - wanted.coefficients) <= found.distance + wanted.distance
    assert (len(passes) <= 3) == (error == 0.0)
