"""A privlearn without what trains verifies every release, predicts with linear ones, and says what the rest needs."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.csv as arrow_csv
import pytest

from privlearn import Release, verify
from privlearn.data.schema import GAPS
from privlearn.errors import DataError, MissingPart
from privlearn.export import RowPredictor
from privlearn.imports import HEAVY
from privlearn.release import RegressionModel
from tests.support.doc_pages import ROOT
from tests.support.export_cases import dirty_table, exported_releases
from tests.support.release_files import NAMES, SESSIONS, directory, release_file, session_certificate

LEFT_OUT = ",".join([*sorted(HEAVY), "pandas", "polars"])
ROWS = 200


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process that cannot import anything heavy."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.blocked", LEFT_OUT, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


_VERIFY = """
import json, sys
from tests.support.blocked import block
block(sys.argv[1].split(","))
from privlearn import verify
proven = {path: verify(path) for path in sys.argv[2:]}
print(json.dumps({path: [one.recomputed.to_dict(), one.signer, str(one)] for path, one in proven.items()}))
"""


def test_every_release_is_recomputed_and_every_signature_checked() -> None:
    paths = [*map(release_file, NAMES), *map(session_certificate, SESSIONS)]
    done = subprocess.run(
        [sys.executable, "-c", _VERIFY, LEFT_OUT, *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    for path in paths:
        here = verify(path)
        assert found[str(path)] == [here.recomputed.to_dict(), here.signer, str(here)]


def test_a_changed_release_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(release_file("signed").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.privlearn").write_bytes(damaged)
    assert command("verify", tmp_path / "damaged.privlearn").returncode == 1


@pytest.mark.parametrize("case", ["two", "several", "number"])
def test_predictions_are_those_of_the_whole(case: str, tmp_path: Path) -> None:
    release = exported_releases()[case]
    release.save(tmp_path / "model.privlearn")
    table = dirty_table(ROWS)
    table.to_csv(tmp_path / "new.csv", index=False)
    asked = ["predict", tmp_path / "model.privlearn", tmp_path / "new.csv"]
    done = command(*asked, *([] if case == "number" else ["--probabilities"]))
    assert done.returncode == 0, done.stderr
    names, *found = csv.reader(done.stdout.splitlines())
    expected = release.model.predict(table)
    if isinstance(release.model, RegressionModel):
        assert np.allclose([float(row[0]) for row in found], expected, rtol=0, atol=1e-9 * np.ptp(expected))
        return
    assert names[1:] == [f"probability_{label}" for label in release.model.classes]
    assert [row[0] for row in found] == [str(label) for label in expected]
    chances = np.array([row[1:] for row in found], dtype=np.float64)
    assert np.max(np.abs(chances - release.model.predict_proba(table))) < 1e-9


def test_kept_columns_and_refusals() -> None:
    predicted = ("predict", release_file("logistic"), directory() / "clinic.csv", "--keep")
    assert command(*predicted, "sex").stdout.startswith('"sex","prediction"\n"female",')
    assert "no column 'name'" in command(*predicted, "name").stderr


@pytest.mark.parametrize(
    "line",
    [
        "demo --out nowhere",
        "predict fourier.privlearn clinic.csv",
        "predict logistic.privlearn clinic.parquet",
        "budget --ledger nowhere",
        "train clinic.csv --schema clinic.schema.yaml --epsilon 1 --out nowhere",
    ],
)
def test_the_rest_says_what_to_install(line: str, tmp_path: Path) -> None:
    release_file("fourier"), release_file("logistic")
    files = {"nowhere": tmp_path}
    done = command(*(files.get(word, directory() / word if "." in word else word) for word in line.split()))
    assert done.returncode == 1
    assert "pip install privlearn`" in " ".join(done.stderr.split())


def test_a_row_that_the_model_does_not_accept() -> None:
    predictor = RowPredictor(Release.load(release_file("logistic")))
    with pytest.raises(DataError, match="not a number"):
        predictor.predict({"age": "old", "dose": 1, "sex": "male"})
    with pytest.raises(MissingPart, match="only CSV files"):
        next(predictor.predict_file("rows.parquet"))


def test_spellings_of_missing_cells_are_arrows() -> None:
    assert list(GAPS) == arrow_csv.ConvertOptions().null_values


def test_what_is_heavy_is_what_only_training_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    imported_as = {"scikit_learn": "sklearn", "python_flint": "flint"}
    wanted = {
        one.split(">")[0].lower().replace("-", "_") for one in project["optional-dependencies"]["train"]
    }
    assert {imported_as.get(name, name) for name in wanted} == HEAVY
