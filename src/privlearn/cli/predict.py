"""`privlearn predict`: classes, or numbers, for new rows."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import Force, ModelFile, TableFile, check_writable
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
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option(help="Write to this .csv file instead of the terminal.", show_default=False)
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for each class.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Copy this column of the table beside the predictions, such as an identifier; may be repeated.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="A schema whose `file:` says how this table is written.", show_default="as the training's"
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
    from privlearn.heavy import is_whole
    from privlearn.release.artifact import Release
    from privlearn.release.files import write_atomically
    from privlearn.release.model import RegressionModel

    if out is not None:
        check_writable(out, force)
    release = Release.load(model)
    if probabilities and isinstance(release.model, RegressionModel):
        raise InvalidParameter("a regression predicts numbers: leave out --probabilities")
    done = Passes(None)  # of its own: a model's passes over a block count as well
    with LateProgress(f"reading {table}") as progress, watch_passes(progress.tell("predicting")):
        described = features_only(release.model, schema)
        if is_whole():
            rows = rows_to_predict(table, described, keep or [])
            pieces = _in_blocks(release.model, rows, probabilities, keep or [], done)
        else:
            pieces = _row_by_row(release, described, table, probabilities, keep or [], done)
        if out is None:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
        else:
            write_atomically(out, pieces)
    if out is not None:
        typer.echo(f"Wrote {out}: {done.rows} predictions.")


def features_only(model: Model, written: Path | None = None) -> Schema:
    """The schema without its target: whatever the table says there is not read."""
    from privlearn.data.schema.schema import Schema
    from privlearn.release.encoders import base_of

    schema = getattr(base_of(model.encoder), "schema", None)
    if schema is None:
        raise InvalidParameter(
            "this model was trained on plain arrays, so its columns have no names: "
            "predict in Python, with Release.load(path).model.predict(X)"
        )
    features: Schema = schema.model_copy(update={"target": None, "person": None})
    return features if written is None else features.model_copy(update={"file": Schema.load(written).file})


def rows_to_predict(table: str, schema: Schema, keep: Sequence[str] = ()) -> RowSource[Any]:
    """What the model reads and the columns to copy; other columns are nobody's business, those of persons too."""
    from privlearn.data.sources.files import check_columns, open_rows

    check_columns(table, schema, schema.columns, "which the model reads: add it to the table")
    check_columns(
        table, schema, keep, "which --keep asks for: leave it out, or repeat --keep for each column"
    )
    return open_rows(table, _with_kept(schema, keep))


def _with_kept(schema: Schema, keep: Sequence[str]) -> Schema:
    """The same with the columns to copy, as text."""
    from privlearn.data.schema.columns import TextColumn

    kept = {name: TextColumn(missing="zero") for name in keep if name not in schema.columns}
    return schema.model_copy(update={"columns": {**schema.columns, **kept}})


def _in_blocks(
    model: Any, rows: RowSource[Any], probabilities: bool, keep: Sequence[str], done: Passes
) -> Iterator[bytes]:
    """CSV text, block by block: the encoded rows need far more memory than the table."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    from privlearn.data.sources.row_source import read_each

    header = True

    def written(block: Any) -> bytes:
        nonlocal header
        columns = {name: block.column(name) for name in keep} | {"prediction": model.predict(block)}
        if probabilities:
            chances = model.predict_proba(block).T
            columns |= {
                f"probability_{label}": chance for label, chance in zip(model.classes, chances, strict=True)
            }
        text = io.BytesIO()
        arrow_csv.write_csv(pa.table(columns), text, arrow_csv.WriteOptions(include_header=header))
        header = False
        done.advance(block.num_rows)
        return text.getvalue()

    return read_each(rows, written)


def _row_by_row(
    release: Release,
    schema: Schema,
    table: str,
    probabilities: bool,
    keep: Sequence[str],
    done: Passes,
) -> Iterator[bytes]:
    """The same without pyarrow and scipy: slower, and for linear models only."""
    from privlearn.export.by_row import RowPredictor

    for number, (row, found) in enumerate(RowPredictor(release, schema).predict_file(table)):
        missing = next((name for name in keep if name not in row), None)
        if missing is not None:
            raise DataError(f"{table} has no column {missing!r}, which --keep asks for: leave it out")
        if probabilities and "probabilities" not in found:
            raise InvalidParameter("this model has no probabilities: leave out --probabilities")
        cells = {name: row[name] for name in keep} | {"prediction": found["prediction"]}
        if probabilities:
            cells |= {f"probability_{label}": chance for label, chance in found["probabilities"].items()}
        text = io.StringIO()
        lines = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")  # as Arrow writes them
        lines.writerows([cells.values()] if number else [cells.keys(), cells.values()])
        done.advance(1)
        yield text.getvalue().encode()
