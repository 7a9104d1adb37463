"""Files and fields in the data set's own format: semicolons, decimal commas, another encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privlearn.data import Schema
from privlearn.data.sources import upload_format
from privlearn.errors import DataError
from privlearn.server.http import CSV, read_rows
from privlearn.server.jobs import Predictions
from privlearn.server.pages import field_views, point_of
from privlearn.server.pages.sessions import _read_lines, _with_predictions

OWN = Schema.from_dict(
    {
        "name": "klinik",
        "file": {"delimiter": ";", "decimal": ",", "encoding": "cp1252", "dates": "dd.mm.yyyy"},
        "columns": {
            "größe": {"type": "number", "lower": 0, "upper": 3},
            "tag": {"type": "date", "lower": "2000-01-01", "upper": "2030-01-01"},
        },
    }
)
OWN_TEXT = "ort;größe;tag\nKöln;1,5;31.01.2020\n"
READ = ([1.5], ["2020-01-31"])


def _columns(content: bytes) -> tuple[list[Any], list[str]]:
    table = read_rows(content, CSV, OWN, 10, upload_format(content, OWN))
    return table["größe"].to_pylist(), [str(day) for day in table["tag"].to_pylist()]


def test_both_formats_are_read() -> None:
    assert _columns(OWN_TEXT.encode("cp1252")) == READ
    assert _columns("größe,tag\n1.5,2020-01-31\n".encode()) == READ
    with pytest.raises(DataError):
        _columns("größe,tag\n1.5;2020-01-31\n".encode())
    with pytest.raises(DataError):
        _columns(
            "größe;tag\n1,5;2020-01-31\n".encode()
        )  # semicolons in an encoding that is not the data set's


def test_the_answer_has_the_format_of_the_file() -> None:
    content = OWN_TEXT.encode("cp1252")
    form = upload_format(content, OWN)
    scores = np.array([0.25])
    answers = Predictions(np.array(["a"]), scores, np.array(["model"]), {"a": np.array([0.75])})
    text = _with_predictions(_read_lines(content, 1, form), answers, form).decode("utf-8-sig")
    assert text == "ort;größe;tag;prediction;probability_a\nKöln;1,5;31.01.2020;a;0,75\n"


@pytest.mark.parametrize(("text", "number"), [("1,5", 1.5), ("1.5", 1.5), ("2", 2.0)])
def test_a_field_takes_a_decimal_comma(text: str, number: float) -> None:
    fields = field_views(OWN, {"column0": text, "column1": "2020-01-31"})
    row, errors = point_of(OWN, fields)
    assert (row["größe"].to_pylist(), errors) == ([number], {})
    point = OWN.model_copy(update={"file": type(OWN.file)()})
    assert bool(point_of(point, fields)[1]) == ("," in text)
