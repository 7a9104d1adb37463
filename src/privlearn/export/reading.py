"""How files of rows are written: what the schema's `file` says, for exports that read files and for their readers."""

from __future__ import annotations

from privlearn.data.schema.schema import Schema
from privlearn.data.sources.wanted import spellings_of_missing
from privlearn.export.scorecard import FileForm


def file_form(schema: Schema | None) -> FileForm:
    """As `privlearn predict` reads a CSV file."""
    if schema is None:
        return FileForm()
    form = schema.file
    spellings = spellings_of_missing(schema.model_copy(update={"target": None}))
    return FileForm(
        delimiter=form.delimiter,
        decimal=form.decimal,
        encoding=form.encoding,
        names=form.names,
        trim=form.trim,
        missing=(*spellings, *form.missing),
        missing_in=_of_columns(schema),
    )


def codes_told(schema: Schema | None) -> str | None:
    """A sentence for whoever gives cells and no files, which are all that the codes are read in; None without codes."""
    if schema is None:
        return None
    told = [f"{', '.join(map(repr, schema.file.missing))} in every column"] if schema.file.missing else []
    told += [f"{', '.join(map(repr, codes))} in {name!r}" for name, codes in _of_columns(schema).items()]
    if not told:
        return None
    return f"Codes that count as missing: {'; '.join(told)}. Give NULL, None, NaN or nothing instead."


def _of_columns(schema: Schema) -> dict[str, tuple[str, ...]]:
    return {name: codes for name, codes in schema.file.missing_in.items() if name in schema.columns}
