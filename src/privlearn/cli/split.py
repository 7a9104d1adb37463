"""`privlearn split`: a training and a test part whose releases cost the larger price, not the sum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import NUMBER, Force, Neighbouring, SchemaFile, TableFile, check_writable
from privlearn.errors import InvalidParameter

PartFile = Annotated[Path, typer.Option(help="The file to write: .csv or .parquet.", show_default=False)]


def split(
    table: TableFile,
    schema: SchemaFile,
    out_train: PartFile,
    out_test: PartFile,
    test: Annotated[float, typer.Option(**NUMBER, help="Share of the test part.")] = 0.2,
    by: Annotated[
        str | None,
        typer.Option(
            help="position, or person: by the identifier alone.", show_default="what the neighbours allow"
        ),
    ] = None,
    neighbours: Neighbouring = "replace_one",
    seed: Annotated[
        str | None,
        typer.Option(help="Public; the same one gives the same parts again.", show_default="a new one"),
    ] = None,
    force: Force = False,
) -> None:
    """Split a table once into a training and a test part.

    A person is in one part, whatever their record says. So what is released about
    one part and what is released about the other cost the larger price together,
    not the sum: say `--part train` and `--part test` to train and evaluate. Beside
    each part lies a file, public, that says which part of which split it is.

    \b
    Example:
      privlearn split census.csv --schema census.schema.yaml --test 0.2 \\
        --out-train train.csv --out-test test.csv
    """
    from privlearn.data.parts import split as make
    from privlearn.data.schema.schema import Schema
    from privlearn.data.sources.files import is_compressed, is_parquet
    from privlearn.data.sources.program_files import is_program_file
    from privlearn.data.sources.raw_cells import open_cells, write_rows

    parts = {"train": out_train, "test": out_test}
    if out_train == out_test:
        raise InvalidParameter("--out-train and --out-test are the same file: give two names")
    for path in parts.values():
        if not is_parquet(path) and (is_program_file(path) or is_compressed(path)):
            raise InvalidParameter(f"{path}: parts are written as .csv or .parquet")
        check_writable(path, force)
        check_writable(Path(f"{path}.split.json"), force)
    description = Schema.load(schema)
    cells = open_cells(table, description.file)
    made = make(cells, description, test=test, by=by, seed=seed, neighbours=neighbours)
    for name, path in parts.items():
        write_rows(getattr(made, name), path, description.file)
        made.split.part(name).save(path)
    shares = "" if made.split.counts is None else f": {_counted(made.split.counts, description.person)}"
    typer.echo(f"Split by {made.split.by}, seed {made.split.seed}, for {neighbours} neighbours{shares}.")
    typer.echo(f"Wrote {out_train} and {out_test}, and beside each what part it is (.split.json).")
    typer.echo(f"Next: privlearn train {out_train} --schema {schema} --part train --ledger PATH ...")


def _counted(counts: Mapping[str, int], person: str | None) -> str:
    whom = "records" if person is None else "persons"
    return " and ".join(f"{count} {whom} to {name}" for name, count in counts.items())
