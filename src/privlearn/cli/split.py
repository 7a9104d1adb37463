"""`privlearn split`: split a table into two parts that are charged separately."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import NUMBER, Force, Neighbouring, SchemaFile, TableFile, check_writable
from privlearn.errors import InvalidParameter

PartFile = Annotated[Path, typer.Option(help="The file to write: .csv or .parquet.")]


def split(
    table: TableFile,
    schema: SchemaFile,
    out_train: PartFile,
    out_test: PartFile,
    test: Annotated[float, typer.Option(**NUMBER, help="Share of the test part.")] = 0.2,
    by: Annotated[
        str | None,
        typer.Option(
            help="position, or person (by the identifier).", show_default="what the neighbours allow"
        ),
    ] = None,
    neighbours: Neighbouring = "replace_one",
    seed: Annotated[
        str | None, typer.Option(help="Public; the same seed gives the same parts.", show_default="a new one")
    ] = None,
    force: Force = False,
) -> None:
    """Split a table once into a training and a test part.

    Each person is in one part, independent of their record. So releases about the two
    parts together cost the larger of the two prices, not the sum: train with
    `--part train` and evaluate with `--part test`. A public file next to each part
    states which part of which split it is.

    \b
    Example:
      privlearn split census.csv --schema census.schema.yaml --test 0.2 \\
        --out-train train.csv --out-test test.csv
    """
    from privlearn.data.parts import split as split_rows
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import is_compressed, is_parquet
    from privlearn.data.sources.program_files import is_program_file
    from privlearn.data.sources.raw_cells import open_cells, write_rows

    parts = {"train": out_train, "test": out_test}
    if out_train == out_test:
        raise InvalidParameter("--out-train and --out-test are the same file. Give two names.")
    for path in parts.values():
        if not is_parquet(path) and (is_program_file(path) or is_compressed(path)):
            raise InvalidParameter(f"{path} has another format. Parts are written as .csv or .parquet.")
        check_writable(path, force)
        check_writable(Path(f"{path}.split.json"), force)
    description = Schema.load(schema)
    cells = open_cells(table, description.file)
    result = split_rows(cells, description, test=test, by=by, seed=seed, neighbours=neighbours)
    for name, path in parts.items():
        write_rows(getattr(result, name), path, description.file)
        result.split.part(name).save(path)
    counts = result.split.counts
    sizes = "" if counts is None else f": {_format_counts(counts, description.count_noun)}"
    is_secret = seed is None and result.split.by == "position"
    drawn = "drawn in secret" if is_secret else f"seed {result.split.seed}"
    typer.echo(f"Split by {result.split.by}, {drawn}, for {neighbours} neighbours{sizes}.")
    typer.echo(f"Wrote {out_train} and {out_test}, each with a description of its part (.split.json).")
    if is_secret:
        typer.echo("Keep both files: only a split with --seed can be repeated.")
    typer.echo(f"Next: privlearn train {out_train} --schema {schema} --part train --ledger PATH ...")


def _format_counts(counts: Mapping[str, int], count_noun: str) -> str:
    return " and ".join(f"{count} {count_noun} to {name}" for name, count in counts.items())
