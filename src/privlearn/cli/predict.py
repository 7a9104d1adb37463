"""`privlearn predict`: predict classes or numbers for new rows."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import Force, ModelFile, RowsFile, check_writable
from privlearn.cli.terminal import LateProgress
from privlearn.errors import DataError, InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.passes import Passes
    from privlearn.data.sources.row_source import RowSource
    from privlearn.release.artifact import Release
    from privlearn.release.model import Model


def predict(
    model: ModelFile,
    table: RowsFile,
    out: Annotated[Path | None, typer.Option(help="Write to this .csv file instead of the terminal.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Copy this column of the table, such as an identifier; may be repeated."
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="A schema whose `file:` describes the format of this table.",
            show_default="that of the training",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Predict the class (or the number) of each row of a table, as CSV. The target column is not needed.

    \b
    Example:
      privlearn predict income.privlearn new.csv --out predictions.csv
      privlearn predict income.privlearn new.csv --keep customer --probabilities
    """
    from privlearn.data.sources.passes import Passes, watch_passes
    from privlearn.imports import is_whole
    from privlearn.release.archive import write_atomically
    from privlearn.release.artifact import Release
    from privlearn.release.model import RegressionModel

    check_writable(out, force)
    release = Release.load(model)
    if probabilities and isinstance(release.model, RegressionModel):
        raise InvalidParameter("a regression predicts numbers. Omit --probabilities.")
    done = Passes(None)  # separate, because the model's own passes over a block are watched too
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.follow("predicting")):
        if is_whole():
            rows = _open(release.model, table, schema, keep or [])
            blocks = _predict_blocks(release.model, rows, probabilities, keep or [], done)
        else:
            columns = features_only(release.model, schema)
            blocks = _predict_rows(release, columns, table, probabilities, keep or [], done)
        if out is None:
            for block in blocks:
                sys.stdout.buffer.write(block)
            sys.stdout.flush()
        else:
            write_atomically(out, blocks)
    if out is not None:
        typer.echo(f"Wrote {out}: {done.rows} predictions.")


def features_only(model: Model, format_schema: Path | None = None) -> Schema:
    """Return the schema without target, person and weight, which are not read; the format may come from another."""
    from privlearn.data.schema.schema import Schema
    from privlearn.release.encoders import base_of

    schema = getattr(base_of(model.encoder), "schema", None)
    if schema is None:
        raise InvalidParameter(
            "this model was trained on plain arrays, so its columns have no names. "
            "Predict in Python: Release.load(path).model.predict(X)"
        )
    features: Schema = schema.model_copy(update={"target": None, "person": None, "weight": None})
    if format_schema is None:
        return features
    return features.model_copy(update={"file": Schema.load(format_schema).file})


def _open(model: Model, table: str, schema: Path | None, keep: Sequence[str]) -> RowSource[Any]:
    """Open the rows of a table or, for a model with a public feature map, the array X of an .npz file."""
    from privlearn.data.sources.array_files import read_arrays
    from privlearn.data.sources.row_source import ArrayRows
    from privlearn.features.map_encoder import MapEncoder
    from privlearn.release.encoders import base_of

    base = base_of(model.encoder)
    if not isinstance(base, MapEncoder):
        return rows_to_predict(table, features_only(model, schema), keep)
    if keep or schema is not None:
        raise InvalidParameter("this model reads arrays, which have no columns. Omit --keep and --schema.")
    return ArrayRows(base.features.read(read_arrays(table, ["X"])[0]))


def rows_to_predict(table: str, schema: Schema, keep: Sequence[str] = ()) -> RowSource[Any]:
    """Open the columns that the model reads and those to copy; no other column is read."""
    from privlearn.data.schema.columns import TextColumn
    from privlearn.data.sources.files import check_columns, open_rows

    check_columns(table, schema, schema.columns, "which the model reads. Add it to the table.")
    check_columns(table, schema, keep, "which --keep names. Omit it, or repeat --keep for each column.")
    copied = {name: TextColumn(missing="zero") for name in keep if name not in schema.columns}
    return open_rows(table, schema.model_copy(update={"columns": {**schema.columns, **copied}}))


def _predict_blocks(
    model: Any, rows: RowSource[Any], probabilities: bool, keep: Sequence[str], done: Passes
) -> Iterator[bytes]:
    """Yield CSV text block by block: the encoded rows need far more memory than the table."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    from privlearn.data.sources.row_source import read_each

    header = True

    def predict_block(block: Any) -> bytes:
        nonlocal header
        columns = {name: block.column(name) for name in keep} | {"prediction": model.predict(block)}
        if probabilities:
            labels = [f"probability_{label}" for label in model.classes]
            columns |= dict(zip(labels, model.predict_proba(block).T, strict=True))
        text = io.BytesIO()
        arrow_csv.write_csv(pa.table(columns), text, arrow_csv.WriteOptions(include_header=header))
        header = False
        done.advance(len(block))
        return text.getvalue()

    return read_each(rows, predict_block)


def _predict_rows(
    release: Release, schema: Schema, table: str, probabilities: bool, keep: Sequence[str], done: Passes
) -> Iterator[bytes]:
    """Yield CSV text row by row, without pyarrow and scipy: slower, and for linear models only."""
    from privlearn.export.by_row import RowPredictor

    for number, (row, result) in enumerate(RowPredictor(release, schema).predict_file(table)):
        missing = next((name for name in keep if name not in row), None)
        if missing is not None:
            raise DataError(f"{table} has no column {missing!r}, which --keep names. Omit it.")
        if probabilities and "probabilities" not in result:
            raise InvalidParameter("this model has no probabilities. Omit --probabilities.")
        cells = {name: row[name] for name in keep} | {"prediction": result["prediction"]}
        if probabilities:
            cells |= {f"probability_{label}": value for label, value in result["probabilities"].items()}
        text = io.StringIO()
        lines = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")  # as Arrow writes them
        lines.writerows([cells.values()] if number else [cells.keys(), cells.values()])
        done.advance(1)
        yield text.getvalue().encode()
