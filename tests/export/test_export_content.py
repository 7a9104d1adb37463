"""What exports refuse, what they carry, and that they carry no more than the release."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.utils import murmurhash3_32

from privlearn import InvalidParameter, Release, Schema
from privlearn.data import Resolution, SchemaEncoder
from privlearn.export import TARGETS, Scorecard, export_release, scorecard, standalone
from privlearn.export.sql_expressions import identifier, literal
from privlearn.release import LinearModel
from tests.support import export_runners
from tests.support.export_cases import exported_releases, with_model
from tests.support.release_files import release_file

ROOT = Path(__file__).parents[2]
STRICT: dict[str, Any] = {
    "name": "strict",
    "columns": {
        "age": {"type": "number", "lower": 0, "upper": 120},
        "sex": {"type": "category", "values": ["female", "male"]},
    },
    "target": {"name": "ill", "classes": ["no", "yes"]},
}


def _strict(columns: dict[str, Any] | None = None) -> Release:
    """Return a release whose schema accepts no gap."""
    schema = Schema.from_dict(STRICT | ({} if columns is None else {"columns": columns}))
    encoder = SchemaEncoder(schema)
    weights = np.linspace(-1.0, 1.0, encoder.dimension)[np.newaxis]
    return with_model(
        exported_releases()["two"], LinearModel(encoder, weights, np.array(["no", "yes"]), "logistic")
    )


@pytest.mark.parametrize(
    "row", [{"age": None, "sex": "male"}, {"age": 3}, {"age": 3, "sex": "other"}, {"age": "x", "sex": "male"}]
)
def test_python_refuses_what_predict_refuses(row: dict[str, Any]) -> None:
    model = json.loads(export_release(_strict(), "json"))
    with pytest.raises(ValueError, match=r"column '(age|sex)'"):
        standalone.predict(row, model)


def test_sql_gives_null_for_what_predict_refuses() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE strict (age, sex)")
    database.executemany(
        "INSERT INTO strict VALUES (?, ?)", [(None, "male"), (3, "other"), (3, None), (3, "male")]
    )
    rows = database.execute(export_release(_strict(), "sql").decode()).fetchall()
    assert [row[2:] for row in rows[:3]] == [(None, None, None)] * 3
    assert rows[3][2] in ("no", "yes")


def test_onnx_marks_what_predict_refuses() -> None:
    running = onnxruntime.InferenceSession(export_release(_strict(), "onnx"))
    inputs = {
        "age": np.array([[np.nan], [3.0], [3.0], [3.0]]),
        "sex": np.array([["male"], ["other"], [""], ["male"]]),
    }
    refused, likely = running.run(["refused", "probabilities"], inputs)
    assert refused[:, 0].tolist() == [True, True, True, False]
    assert np.isnan(likely[:3]).all()
    assert likely[3].sum() == pytest.approx(1.0)


NOTES = (
    *(
        "sick sick child",
        "a Sick, sick; child! of 3",
        "",
        None,
        "l\u00e9g\u00e8re d'\u00e9t\u00e9",
        "x y z",
        "under_score 12 1",
    ),
    *(
        "\u4f60\u597d \u4e16\u754c",
        "\u0130STANBUL stra\u00dfe",
        "NA",
        " NA ",
        "one\ntwo\tthree " * 9,
        "ab abc abcd abcde abcdef",
    ),
)


@pytest.mark.parametrize("resolution", [None, Resolution(4, 0.2, 4, 0.2)])
def test_texts_of_the_python_file_are_those_of_predict(resolution: Resolution | None) -> None:
    texts = {"first": {"type": "text", "features": 64, "missing": "zero"}}
    last = {"last": {"type": "text", "features": 2**12, "missing": "zero"}}
    pairs = {"pairs": [["age", "sex"]] if resolution else "none"}
    schema = Schema.from_dict(STRICT | {"columns": {**texts, **STRICT["columns"], **last}} | pairs)
    encoder = SchemaEncoder(schema, resolution=resolution)
    weights = np.random.default_rng(0).normal(size=(1, encoder.dimension))
    model = LinearModel(encoder, weights, np.array(["no", "yes"]), "logistic")
    exported = export_runners.load_python(with_model(exported_releases()["two"], model))
    rows = [
        {"first": one, "age": 10.0 * index, "sex": "male", "last": NOTES[-index]}
        for index, one in enumerate(NOTES)
    ]
    table = pd.DataFrame(rows)
    found = [exported.predict(row)["scores"][0] for row in rows]
    assert np.max(np.abs(found - model.decision_function(table))) < 1e-9


def test_words_are_hashed_as_scikit_learn_hashes_them() -> None:
    words = ["".join(map(chr, range(97, 97 + length))) for length in range(1, 20)] + [
        "\u00e9t\u00e9",
        "\u4e16\u754c\u4e16",
    ]
    assert [standalone.hash_word(word.encode()) for word in words] == [murmurhash3_32(word) for word in words]


@pytest.mark.parametrize("to", TARGETS)
def test_text_and_kernels_are_refused(to: str) -> None:
    texts = _strict({"notes": {"type": "text", "features": 64}})
    if to in ("python", "json"):
        assert b'"texts"' in export_release(texts, to)
    else:
        with pytest.raises(InvalidParameter, match="column 'notes' is text"):
            export_release(texts, to)
    for name in ("fourier", "landmarks"):
        kernel = Release.load(release_file(name))
        with pytest.raises(InvalidParameter, match="only models of columns"):
            export_release(kernel, to)


@pytest.mark.parametrize("to", TARGETS)
def test_promise_and_digests_travel_along(to: str) -> None:
    release = Release.load(release_file("logistic"))
    text = export_release(release, to).decode("utf-8", "replace")
    assert release.digest in text
    assert "(epsilon = 1, delta = 1e-06)-differential privacy" in text


@pytest.mark.parametrize("to", TARGETS)
def test_a_seeded_release_is_said_to_be_not_private(to: str) -> None:
    text = export_release(exported_releases()["two"], to).decode("utf-8", "replace")
    assert "NOT PRIVATE" in text or '"private": false' in text


def test_scorecards_read_back_and_fit_the_published_schema() -> None:
    for release in exported_releases().values():
        card = scorecard(release)
        assert Scorecard.model_validate_json(export_release(release, "json")) == card
    published = json.loads((ROOT / "docs" / "reference" / "scorecard.schema.json").read_text())
    assert published == Scorecard.model_json_schema()


def test_onnx_says_where_it_comes_from() -> None:
    release = exported_releases()["number"]
    made = onnx.load_model_from_string(export_release(release, "onnx"))
    assert {entry.key: entry.value for entry in made.metadata_props}["release_sha256"] == release.digest


def test_names_are_quoted() -> None:
    assert identifier('a"; DROP TABLE b') == '"a""; DROP TABLE b"'
    assert literal("O'Brien") == "'O''Brien'"
    for quoted in (identifier, literal):
        with pytest.raises(InvalidParameter, match="zero byte"):
            quoted("a\0b")


def test_a_line_break_in_a_name_ends_no_comment() -> None:
    schema = Schema.from_dict(STRICT | {"name": "strict\nDROP TABLE people"})
    encoder = SchemaEncoder(schema)
    model = LinearModel(encoder, np.ones((1, encoder.dimension)), np.array(["no", "yes"]), "logistic")
    release = with_model(exported_releases()["two"], model)
    assert "\nDROP" not in export_release(release, "sql", table="t").decode()
    compile(export_release(release, "python"), "model.py", "exec")
