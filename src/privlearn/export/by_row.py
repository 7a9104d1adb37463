"""Prediction row by row, by the export to Python, for a privlearn that has neither scipy nor pyarrow."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privlearn.data.schema.schema import Schema
from privlearn.errors import DataError, InvalidParameter, MissingPart
from privlearn.export import standalone
from privlearn.export.fold import scorecard
from privlearn.export.reading import file_form
from privlearn.release.artifact import Release

_ENDINGS = (".csv", ".data", ".tsv", ".txt")


class RowPredictor:
    """A linear model for raw cells, one row at a time; agrees with `Release.model` to about 1e-12.

    Parameters
    ----------
    release : Release
        Of a linear model without text columns.
    written : Schema, optional
        Whose `file` says how files of rows are written; by default as the training's.

    Raises
    ------
    MissingPart
        If the model has a kernel or text columns: those need what `pip install privlearn` brings.
    """

    def __init__(self, release: Release, written: Schema | None = None) -> None:
        try:
            card = scorecard(release)
        except InvalidParameter:
            raise MissingPart(
                "only linear models without text columns predict here: `pip install privlearn` brings what kernels "
                "and texts need"
            ) from None
        self._model = json.loads(card.model_dump_json())
        if written is not None:
            self._model["file"] = file_form(written).model_dump()

    def predict(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The prediction for cells by column; of classes also their scores and, if there are any, probabilities."""
        try:
            return standalone.predict(dict(row), self._model)
        except ValueError as error:
            raise DataError(f"{error}") from None

    def predict_file(self, path: str | Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each row of a CSV file, and what is predicted for it."""
        if Path(path).suffix.lower() not in _ENDINGS:
            raise MissingPart(
                f"{path}: only CSV files are read here; `pip install privlearn` brings what reads others"
            )
        try:
            for line, row in standalone.read_rows(str(path), self._model):
                yield row, self._predicted(line, row)
        except (UnicodeError, csv.Error):
            raise DataError(f"{path} is not a CSV file as the schema's `file` describes it") from None
        except ValueError as error:
            raise DataError(f"{path}: {error}") from None

    def _predicted(self, line: int, row: dict[str, Any]) -> dict[str, Any]:
        try:
            return standalone.predict(row, self._model)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
