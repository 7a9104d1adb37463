"""Reading of tables under a schema: blocks become packed cells once, and vectors when their resolution is known.

A table's weights are a column of its schema; plain arrays come with ``sample_weight`` under the public cap
``max_weight`` (`weigh_rows`).

The resolution depends on the number of persons, which is known only after all blocks are read; so cells come first.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encoding.column_cells import UNKNOWN, owners
from privlearn.data.encoding.column_cells import numbers as cell_numbers
from privlearn.data.encoding.encoder import Bounds, SchemaEncoder
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.encoding.row_weights import WeightColumns, relative_weights
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.files import open_table
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import read_each
from privlearn.data.sources.table import as_array, as_source, as_table, refuse_lazy, safely
from privlearn.errors import DataError, InvalidParameter, preview
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, Targets, TrainingRows

Resolve = Callable[[Schema, int], Resolution]
"""Public: returns the resolution for a number of records or persons."""

IN_MEMORY = 1 << 27  # bytes of vectors; more are expanded from their cells in each pass


def read_table(
    schema: Schema,
    X: Any,
    y: Any,
    fit_intercept: bool,
    resolve: Resolve = lambda schema, persons: Resolution(),
) -> TrainingRows:
    """Touch the data: return the rows of a table whose target has classes; ``y=None`` takes the target column."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    target = target_of(schema)

    def encode_labels(values: Any) -> NDArray[np.integer[Any]]:
        return encoder.encode_labels(values).astype(np.min_scalar_type(-len(target.classes)))

    labels, read = read_columns(encoder, X, y, encode_labels)
    return read.rows(class_targets(target, labels), resolve)


def read_number_table(
    schema: Schema,
    X: Any,
    y: Any,
    fit_intercept: bool,
    resolve: Resolve = lambda schema, persons: Resolution(),
) -> TrainingRows:
    """Touch the data: return the rows of a table whose target is a number; ``y=None`` takes the target column."""
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept)
    targets, read = read_columns(encoder, X, y, encoder.encode_targets)
    return read.rows(NumberTargets(targets, cast(Bounds, target_of(schema).bounds)), resolve)


def class_targets(target: Target, labels: NDArray[np.integer[Any]]) -> ClassTargets:
    """Return the targets of labels as `SchemaEncoder.encode_labels` numbers them."""
    ignored = labels == UNKNOWN if target.unknown == "zero" else None
    return ClassTargets(np.maximum(labels, 0), np.array(target.classes), ignored, class_weights_of(target))


def class_weights_of(target: Target) -> Array | None:
    """Return the weights of the classes that the schema declares."""
    return None if target.class_weights is None else np.array(target.class_weights)


def target_of(schema: Schema) -> Target:
    """Return the schema's target; refuse a schema without one."""
    if schema.target is None:
        raise InvalidParameter("the schema has no target. Add `target:` with its name and classes")
    return schema.target


def target_column(schema: Schema, X: Any, y: Any) -> tuple[Target, Any]:
    """Return the schema's target, and ``y`` or else the table's column of that name."""
    target = target_of(schema)
    return target, read_block(X, [target.name], schema).column(0) if y is None else y


@dataclasses.dataclass(frozen=True, eq=False)
class ReadColumns:
    """PRIVATE: a table's cells, read once and checked; vectors follow when the resolution is known."""

    encoder: SchemaEncoder
    cells: PackedCells
    weighing: WeightColumns

    def rows(self, targets: Targets, resolve: Resolve) -> TrainingRows:
        """Return the rows, encoded at the resolution for this number of persons."""
        schema, weights = self.encoder.schema, self.weighing.result(len(self.cells))
        resolution = resolve(schema, weights.count)
        encoder = SchemaEncoder(schema, fit_intercept=self.encoder.fit_intercept, resolution=resolution)
        return TrainingRows(
            expand_cells(encoder, self.cells),
            encoder,
            targets,
            weights.count,
            weights.shares,
            schema.rows_per_person,
            persons=weights.persons,
            relative_weights=weights.relative,
            row_weight_bound=schema.row_weight_bound,
        )


def expand_cells(encoder: SchemaEncoder, cells: PackedCells) -> Any:
    """Return the features of cells: in memory if they are small, else expanded in each pass."""
    features = encoder.expand_lazily(cells)
    return features.for_many_passes() if len(features) * encoder.row_bytes <= IN_MEMORY else features


def read_bounded(schema: Schema, X: Any, fit_intercept: bool, resolve: Resolve) -> tuple[SchemaEncoder, Any]:
    """Touch the data, block by block: return the encoder and the features of an array with bounds per column."""
    encoder, cells = SchemaEncoder(schema, fit_intercept=fit_intercept), PackedCells()
    for part in as_source(X, list(schema.columns)).blocks():
        cells.add(encoder.cells(part))
    resolution = resolve(schema, len(cells))
    encoder = SchemaEncoder(schema, fit_intercept=fit_intercept, resolution=resolution)
    return encoder, expand_cells(encoder, cells)


def read_columns(
    encoder: SchemaEncoder, X: Any, y: Any, read_answers: Callable[[Any], NDArray[Any]]
) -> tuple[NDArray[Any], ReadColumns]:
    """Touch the data, once and block by block: return answers and cells; refuse cells that do not fit the schema."""
    schema = encoder.schema
    targets = [target_of(schema).name] if y is None else []
    weighing = WeightColumns(schema)
    names = [*targets, *weighing.names, *schema.columns]
    answers: list[NDArray[Any]] = []
    cells = PackedCells()

    def read(block: Any) -> None:
        table = read_block(block, names, schema)
        answers.extend(read_answers(table.column(name)) for name in targets)
        weighing.add(table)
        cells.add(encoder.cells(table))

    for _ in read_each(open_table(X, schema, names), read):
        pass
    all_answers = read_answers(y) if y is not None else np.concatenate(answers)
    if len(all_answers) != len(cells):
        raise DataError("the table has more or fewer rows than there are labels. Give one label for each row")
    return all_answers, ReadColumns(encoder, cells, weighing)


def first_rows_of_persons(schema: Schema | None, X: Any, y: Any, max_rows: int) -> tuple[Any, Any]:
    """Return table and labels with the same number of first rows of each person, at most ``max_rows`` in total.

    Which rows of a person stay depends on that person's rows and the public number of persons alone.
    """
    if schema is None or schema.person is None:
        return X, y
    answers = [schema.target.name] if y is None and schema.target is not None else []
    table = as_table(X, [*schema.columns, *WeightColumns(schema).names, *answers])
    person = owners(table.column(schema.person), f"column {schema.person!r}")
    rows_each = max(max_rows // (int(person.max()) + 1), 1)
    order = np.argsort(person, kind="stable")
    starts = np.flatnonzero(np.diff(person[order], prepend=-1))
    rank = np.empty(len(person), dtype=np.int64)
    rank[order] = np.arange(len(person)) - np.repeat(starts, np.diff(starts, append=len(person)))
    stays = rank < rows_each
    return table.filter(pa.array(stays)), None if y is None else np.asarray(y, dtype=object)[stays]


_IN_SCHEMA = (
    "the weights of a table are a column of its schema. Write weight: {column: NAME, upper: 8} there, and leave out "
    "sample_weight and max_weight"
)


def refuse_weights(sample_weight: Any, max_weight: Any) -> None:
    """Refuse weights next to a schema, which declares them itself."""
    if sample_weight is not None or max_weight is not None:
        raise InvalidParameter(_IN_SCHEMA)


def weigh_rows(rows: TrainingRows, sample_weight: Any, max_weight: Any, private: bool) -> TrainingRows:
    """Touch the data: return rows with their weights, clipped to [0, max_weight].

    ``private=False``, for epsilon = inf, lets the cap be read from the weights.
    """
    if sample_weight is None and max_weight is None:
        return rows
    if sample_weight is None:
        raise InvalidParameter(
            "max_weight is for sample_weight. Pass sample_weight to fit, or leave max_weight out"
        )
    if max_weight is None and private:
        raise InvalidParameter(
            "sample_weight needs a public cap of the weights, whose size multiplies the noise. State max_weight=..., "
            "for weights whose mean is about 1. For weights of classes take class_weight={label: weight}"
        )
    weights = _read_weights(sample_weight, len(rows.targets.answers))
    cap = float(weights.max(initial=0.0)) or 1.0 if max_weight is None else check_max_weight(max_weight)
    return dataclasses.replace(rows, relative_weights=relative_weights(weights, cap), row_weight_bound=cap)


def check_max_weight(value: Any) -> float:
    """Return the cap; refuse anything but a finite number above 0."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < math.inf:
        raise InvalidParameter(f"max_weight must be a finite number above 0, not {preview(value)}")
    return float(value)


def _read_weights(sample_weight: Any, rows: int) -> Array:
    weights = safely(
        lambda: (
            np.full(rows, float(sample_weight))
            if isinstance(sample_weight, numbers.Real)
            else cell_numbers(as_array(as_answers(sample_weight), "sample_weight"), "sample_weight")
        ),
        "sample_weight cannot be read as one number per row. Give a 1-D array of numbers",
    )
    if len(weights) != rows:
        raise DataError("sample_weight needs one number for each row of X")
    if np.isnan(weights).any():
        raise DataError(
            "sample_weight has NaN or missing cells. Fill them in, or give such rows the weight 0"
        )
    return weights


def as_answers(y: Any) -> Any:
    """Return one label or number per row, a list as objects: as an array of one type, one cell could decide for all."""
    if isinstance(y, list | tuple):
        y = safely(lambda: np.asarray(y, dtype=object), "y must be a list of one label or number per row")
    if isinstance(y, pa.Array | pa.ChunkedArray) or len(getattr(y, "shape", ())) == 1:
        return y
    from sklearn.utils import column_or_1d  # slow to import

    return column_or_1d(y, warn=True)


def is_on_cluster(X: Any) -> bool:
    """Public: return whether only the workers of a cluster read a table: `ClusterRows`, or a Dask data frame."""
    return getattr(X, "on_cluster", False) is True or type(X).__module__.startswith(
        ("dask.dataframe", "dask_expr")
    )


def check_array_shape(X: Any, *, may_be_empty: bool = False) -> int:
    """Return the number of columns of a matrix; refuse others with the messages that scikit-learn's users know."""
    refuse_lazy(X)
    matrix: Any = X if sparse.issparse(X) else np.asarray(X)
    shape = matrix.shape
    if len(shape) < 2 and matrix.dtype.kind in "OSU":
        raise DataError(
            "these are texts or other objects, not rows of numbers. Use a kernel that reads them, kernel=k with a "
            "public kernel_bound=..., and leave out norm_bound and column_bounds; or pass schema=... for a table"
        )
    if len(shape) != 2:
        raise DataError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data either using "
            "X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single sample."
        )
    if matrix.dtype.kind == "c":  # numpy would drop the imaginary part silently
        raise DataError("Complex data not supported. Give real numbers.")
    if shape[1] == 0:
        raise DataError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[0] == 0 and not may_be_empty:
        raise DataError(f"0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return int(shape[1])
