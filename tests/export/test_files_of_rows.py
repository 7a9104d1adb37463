"""The Python file's command reads files as `predict` does."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Release, Schema
from privlearn.data import SchemaEncoder
from privlearn.data.sources import open_rows
from privlearn.errors import DataError
from privlearn.export import export_release
from privlearn.release import LinearModel
from tests.support.export_cases import exported_releases, with_model

COLUMNS = {
    "age": {"type": "number", "lower": -10, "upper": 120, "missing": "zero"},
    "rooms": {"type": "category", "values": [1, 2, 3], "missing": "zero"},
    "town": {"type": "category", "values": ["Köln", "Bonn", "Ulm"], "missing": "zero"},
}
CODES = {"missing": ["?", -9], "missing_in": {"town": [-1], "ill": ["x"]}}
FORMS: list[tuple[dict[str, Any], str]] = [
    ({}, "age,rooms,town\n-9,1,Köln\nNA,2,Bonn\n5,,Ulm\n"),
    (CODES, "id,age,rooms,town\n1,-9,1,Köln\n2,-1,-9,-1\n\n3,NA,2,?\n4,5,1.0,Ulm\n"),
    (
        CODES | {"delimiter": ";", "decimal": ",", "encoding": "latin-1"},
        "age;town;rooms\n3,5;Köln;2,0\n-9;-1;1\n",
    ),
    ({"encoding": "utf-16"}, "age,rooms,town\n3,1,Köln\n"),
    (CODES | {"trim": True}, " age, rooms ,town\n -9 , 1 , Köln \n4, -9,-1 \n"),
    (CODES | {"names": ["town", "age", "rooms"], "delimiter": "tab"}, "Köln\t-9\t1\n-1\t7\t?\n"),
]

QUOTES = "a cell that begins with a quote must end with one, and a quote inside it is written twice"


def _release(file: dict[str, Any]) -> Release:
    schema = Schema.from_dict(
        {"name": "t", "columns": COLUMNS, "file": file, "target": {"name": "ill", "classes": ["no", "yes"]}}
    )
    encoder = SchemaEncoder(schema)
    weights = np.linspace(-1.0, 1.5, encoder.dimension)[np.newaxis]
    return with_model(
        exported_releases()["two"], LinearModel(encoder, weights, np.array(["no", "yes"]), "logistic")
    )


def _run(release: Release, folder: Path, *arguments: object) -> Any:
    (folder / "model.py").write_bytes(export_release(release, "python"))
    return subprocess.run(
        [sys.executable, folder / "model.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("file", "text"), FORMS)
def test_a_file_is_read_as_predict_reads_it(file: dict[str, Any], text: str, tmp_path: Path) -> None:
    release, rows = _release(file), tmp_path / "rows.csv"
    rows.write_text(text, encoding=file.get("encoding", "utf-8"))
    told = _run(release, tmp_path, rows)
    assert told.returncode == 0, told.stderr
    found = [float(line.split(",")[2]) for line in told.stdout.splitlines()[1:]]
    encoder: Any = release.model.encoder
    (block,) = open_rows(rows, encoder.schema.model_copy(update={"target": None})).blocks()
    model: Any = release.model
    np.testing.assert_allclose(found, model.predict_proba(block)[:, 1], atol=1e-12)
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(rows.read_bytes()))
    assert _run(release, tmp_path, packed).stdout == told.stdout


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("age,rooms,town\n" + "5,1,Ulm\n" * 20_000)  # more than a pipe holds
    (tmp_path / "model.py").write_bytes(export_release(_release({}), "python"))
    with subprocess.Popen(
        [sys.executable, tmp_path / "model.py", rows], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("age,town\n3,Ulm\n", "the model reads column 'rooms', which the file must have once"),
        ("", "the model reads column 'age', which the file must have once"),
        ("age,rooms,town\n3,1,Ulm\n3,1\n", "line 3: it needs as many cells as there are names"),
        ("age,rooms,town\nsecret,1,Ulm\n", "line 2: column 'age' holds a cell that is not a number"),
        ("age,rooms,town\n3,1,Ulm\r4,1,Ulm\n", "line 2: the file has several kinds of line ends"),
        ('age,rooms,town\n3,1,"Ulm\n4,1,Ulm\n', f"line 2: {QUOTES}"),
        ('age,rooms,town\n3,1,"Ulm"x\n', f"line 2: {QUOTES}"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_bytes(text.encode())
    told = _run(_release({}), tmp_path, rows)
    assert told.returncode == 1
    assert told.stderr == f"{rows}: {problem}\n"


def test_the_usage_is_printed_when_asked_for(tmp_path: Path) -> None:
    told = _run(_release({}), tmp_path, "-h")
    assert told.returncode == 0
    assert "python THIS_FILE new_rows.csv" in told.stdout
    assert "python THIS_FILE new_rows.csv" in _run(_release({}), tmp_path).stderr


def test_a_packed_file_that_is_cut_off_is_refused_in_one_line(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv.gz"
    rows.write_bytes(gzip.compress(b"age,rooms,town\n" + b"3,1,Ulm\n" * 100)[:-12])
    told = _run(_release({}), tmp_path, rows)
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ({"trim": True}, b'age,rooms, "town"\n3,1,Ulm\n', f"line 1: {QUOTES}"),
        ({"trim": True}, b'age,rooms,town\n3,1, "Ulm"\n', f"line 2: {QUOTES}"),
        ({}, b"age,rooms,town,unused\n3,1,Ulm,\xff\n", "the file holds text that is not in utf-8"),
    ],
)
def test_what_predict_refuses_is_refused(
    file: dict[str, Any], text: bytes, problem: str, tmp_path: Path
) -> None:
    release, rows = _release(file), tmp_path / "rows.csv"
    rows.write_bytes(text)
    encoder: Any = release.model.encoder
    with pytest.raises(DataError):
        list(open_rows(rows, encoder.schema.model_copy(update={"target": None})).blocks())
    assert _run(release, tmp_path, rows).stderr == f"{rows}: {problem}\n"


def test_the_python_file_can_be_loaded_without_being_registered(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(export_release(_release({}), "python"))
    spec = importlib.util.spec_from_file_location("not_registered", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.predict({"age": "3", "rooms": "1", "town": "Ulm"})["prediction"] in ("no", "yes")
