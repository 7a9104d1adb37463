"""The format of a table's file: delimiter, decimal sign, encoding, codes for gaps and names of columns."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictStr, field_validator, model_validator

from privlearn.data.schema.cell_grammar import ISO_DAYS
from privlearn.data.schema.public import CompactModel

_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
Name = Annotated[StrictStr, Field(min_length=1)]


class FileFormat(CompactModel):
    """The format of a file. Of its settings, only ``names`` is part of a schema's digest.

    Parameters
    ----------
    delimiter : str, default=","
        Separates the cells of a line; ``tab`` may be written as a word.
    decimal : {".", ","}, default="."
        Separates a number and its fraction.
    dates : {"yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy"}, default="yyyy-mm-dd"
        How dates are written, also in text in memory; dates such as 2020-01-31 are always read.
    encoding : str, default="utf-8"
        ``latin-1``, ``cp1252``, ``utf-16``, or any other of Python's encodings.
    missing : tuple of str or number, default=()
        Codes for missing cells in any column, in addition to the empty cell, ``NA`` and the like; also in tables in
        memory.
    missing_in : dict of str to tuple, default={}
        Codes in single columns: ``{age: [-9]}``.
    names : tuple of str, default=()
        The names of the columns, if the file has no line of names.
    trim : bool, default=False
        Whether blanks around cells are ignored.
    line_breaks : bool, default=False
        Whether quoted cells of a CSV file may hold line breaks. A stray quote can then join several records,
        so state it only where cells have them.
    sheet : str, optional
        The sheet of a workbook; by default the first visible one.

    Examples
    --------
    >>> FileFormat(delimiter="tab", missing=["?", -9])
    FileFormat(delimiter='\\t', missing=('?', '-9'))
    """

    delimiter: StrictStr = ","
    decimal: Literal[".", ","] = "."
    dates: Literal["yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy"] = "yyyy-mm-dd"
    encoding: StrictStr = "utf-8"
    missing: tuple[StrictStr, ...] = ()
    missing_in: dict[Name, tuple[StrictStr, ...]] = Field(default={})
    names: tuple[Name, ...] = ()
    trim: StrictBool = False
    line_breaks: StrictBool = False
    sheet: Name | None = None

    _omitted: ClassVar[tuple[str, ...]] = (
        "delimiter", "decimal", "dates", "encoding", "missing", "missing_in", "names", "trim", "line_breaks", "sheet",
    )  # fmt: skip

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str) -> str:
        delimiter = _DELIMITERS.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
            raise ValueError('must be one character that separates cells, e.g. ";" or tab')
        return delimiter

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str) -> str:
        try:
            "a".encode(encoding)
        except LookupError:
            raise ValueError(
                f"{encoding!r} is not an encoding. Write utf-8, latin-1, cp1252 or utf-16, for example"
            ) from None
        return encoding

    @field_validator("missing", mode="before")
    @classmethod
    def _are_codes(cls, codes: Any) -> Any:
        return _as_text(codes)

    @field_validator("missing_in", mode="before")
    @classmethod
    def _are_codes_of_columns(cls, codes: Any) -> Any:
        return {name: _as_text(part) for name, part in codes.items()} if isinstance(codes, dict) else codes

    @field_validator("names")
    @classmethod
    def _check_distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is listed twice. Give each column a different name")
        return names

    @model_validator(mode="after")
    def _commas_have_one_meaning(self) -> FileFormat:
        if self.decimal == self.delimiter:
            raise ValueError(
                'a comma cannot separate cells and decimals both. State the delimiter, e.g. delimiter: ";"'
            )
        return self

    def codes_of(self, name: str) -> tuple[str, ...]:
        """Return all codes for missing cells of a column."""
        return (*self.missing, *self.missing_in.get(name, ()))

    @property
    def reads_cells_plainly(self) -> bool:
        """Return whether cells in memory are read as they are: no codes for gaps, no trimming, decimal points."""
        plain = self.decimal == "." and self.dates == ISO_DAYS
        return plain and not (self.missing or self.missing_in or self.trim)

    def __repr_args__(self) -> Any:
        return [(name, getattr(self, name)) for name in self.model_dump()]


def _as_text(codes: Any) -> Any:
    """Return codes as text, since they are compared with the cells of a file; one code need not be in a list."""
    if isinstance(codes, str | int | float) and not isinstance(codes, bool):
        codes = [codes]
    if not isinstance(codes, list | tuple):
        return codes
    if any(isinstance(code, bool) for code in codes):
        raise ValueError('quote codes that YAML reads as true or false, e.g. "no"')
    return [str(code) if isinstance(code, int | float) else code for code in codes]


PLAIN = FileFormat()
"""Commas between cells, points in numbers, UTF-8, a line of names first."""
