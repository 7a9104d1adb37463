"""How a table lies in its file: what separates cells, how numbers and gaps are written, what the columns are called."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictStr,
    field_validator,
    model_serializer,
    model_validator,
)

from privlearn.data.schema.public import PublicModel

_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
Name = Annotated[StrictStr, Field(min_length=1)]


class FileFormat(PublicModel):
    """How the rows are written down. It says nothing of what they mean, so a schema's digest leaves it out.

    Parameters
    ----------
    delimiter : str, default=","
        What separates the cells of a line; ``tab`` may be written as a word.
    decimal : {".", ","}, default="."
        What stands between a number and its fraction.
    encoding : str, default="utf-8"
        Of the text: ``latin-1``, ``cp1252``, ``utf-16``, or another that Python knows.
    missing : tuple of str or number, default=()
        Codes for a missing cell in any column, beside the empty cell, ``NA`` and its like;
        of tables in memory, too.
    missing_in : dict of str to tuple, default={}
        Codes of single columns: ``{age: [-9]}``.
    names : tuple of str, default=()
        The columns' names, of a file that has no line of names.
    trim : bool, default=False
        Whether blanks around cells are left out.
    sheet : str, optional
        Of a workbook; the first one by default.

    Examples
    --------
    >>> FileFormat(delimiter="tab", missing=["?", -9])
    FileFormat(delimiter='\\t', missing=('?', '-9'))
    """

    delimiter: StrictStr = ","
    decimal: Literal[".", ","] = "."
    encoding: StrictStr = "utf-8"
    missing: tuple[StrictStr, ...] = ()
    missing_in: dict[Name, tuple[StrictStr, ...]] = Field(default={})
    names: tuple[Name, ...] = ()
    trim: StrictBool = False
    sheet: Name | None = None

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, delimiter: str) -> str:
        delimiter = _WORDS.get(delimiter, delimiter)
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
                f"{encoding!r} is not known: write utf-8, latin-1, cp1252 or utf-16, for example"
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
    def _are_distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is listed twice: every column needs a name of its own")
        return names

    @model_validator(mode="after")
    def _commas_have_one_meaning(self) -> FileFormat:
        if self.decimal == self.delimiter:
            raise ValueError(
                'a comma cannot separate cells and decimals both: state the delimiter, e.g. delimiter: ";"'
            )
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_not_said(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        content: dict[str, Any] = serialize(self)
        plain = type(self).model_fields
        return {name: value for name, value in content.items() if getattr(self, name) != plain[name].default}

    def codes_of(self, name: str) -> tuple[str, ...]:
        """All codes for a missing cell of a column."""
        return (*self.missing, *self.missing_in.get(name, ()))

    def __repr_args__(self) -> Any:
        return [(name, getattr(self, name)) for name in self.model_dump()]


def _as_text(codes: Any) -> Any:
    """Codes are compared with what the file has, so -9 is text too; one of them need not be in a list."""
    if isinstance(codes, str | int | float) and not isinstance(codes, bool):
        codes = [codes]
    if not isinstance(codes, list | tuple):
        return codes
    if any(isinstance(code, bool) for code in codes):
        raise ValueError('quote codes that YAML reads as true or false, e.g. "no"')
    return [str(code) if isinstance(code, int | float) else code for code in codes]


PLAIN = FileFormat()
"""Commas between cells, points in numbers, UTF-8, a line of names first."""
