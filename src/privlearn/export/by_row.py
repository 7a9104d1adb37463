"""Prediction row by row with the exported Python program, for installations without scipy and pyarrow."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privlearn.data.schema.schema import Schema
from privlearn.errors import DataError, InvalidParameter, MissingPart
from privlearn.export import standalone
from privlearn.export.fold import file_form, scorecard
from privlearn.release.artifact import Release

_ENDINGS = (".csv", ".data", ".tsv", ".txt")


class RowPredictor:
    """A linear model for raw cells, one row at a time; agrees with `Release.model` to about 1e-12.

    Parameters
    ----------
    release : Release
        A linear model.
    format_schema : Schema, optional
        Its `file` describes the format of files of rows; by default that of the training.

    Raises
    ------
    MissingPart
        If the model has a kernel, which needs the full installation.
    """

    def __init__(self, release: Release, format_schema: Schema | None = None) -> None:
        try:
            card = scorecard(release)
        except InvalidParameter:
            raise MissingPart(
                "this installation predicts only with linear models of columns. Run `pip install privlearn` for the "
                "others."
            ) from None
        self._model = json.loads(card.model_dump_json())
        if format_schema is not None:
            self._model["file"] = file_form(format_schema).model_dump()

    def predict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the prediction for cells by column; for classes also scores and, if available, probabilities."""
        try:
            return standalone.predict(dict(row), self._model)
        except ValueError as error:
            raise DataError(f"{error}") from None

    def predict_file(self, path: str | Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each row of a CSV file with its prediction."""
        if Path(path).suffix.lower() not in _ENDINGS:
            raise MissingPart(
                f"{path}: this installation reads only CSV files. Run `pip install privlearn` for other formats."
            )
        try:
            for line, row in standalone.read_rows(str(path), self._model):
                yield row, self._predict_line(line, row)
        except (UnicodeError, csv.Error):
            raise DataError(
                f"{path} is not a CSV file in the format of the schema's `file`. Correct the file or the schema."
            ) from None
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None

    def _predict_line(self, line: int, row: dict[str, Any]) -> dict[str, Any]:
        try:
            return standalone.predict(row, self._model)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
