"""Images from the shell: arrays of an .npz file are trained on, forecast, verified and predicted; refusals are safe."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from privlearn import PrivateLogisticRegression, Release, plan
from privlearn.features import ScatteringFeatures
from tests.support.cli_support import Result, Run

SHAPE = ("--features", "scattering", "--image-shape", "8x8")
IMAGES = (*SHAPE, "--value-range", "0,16")
BUDGET = ("--epsilon", 3, "--delta", "1e-5", "--neighbours", "zero_out")
COUNT = 300


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    data = load_digits()
    np.savez(tmp_path / "digits.npz", X=data.images[:COUNT], y=data.target[:COUNT])
    np.savez(tmp_path / "new.npz", X=data.images[COUNT : COUNT + 50])
    return tmp_path / "digits.npz"


def _train(run: Run, file: Path, *options: object) -> Result:
    return run("train", file, *BUDGET, "--out", file.with_suffix(".privlearn"), *options)


def test_images_are_charged_trained_verified_and_predicted(digits: Path, run: Run) -> None:
    ledger = digits.parent / "budgets.db"
    budget = ("--ledger", ledger, "--epsilon", 4, "--delta", "1e-4", "--neighbours", "zero_out")
    assert run("budget", "create", "digits", *budget).code == 0
    told = _train(run, digits, *IMAGES, "--classes", "0..9", "--ledger", ledger)
    assert told.code == 0, told.stderr
    assert "spent epsilon 3.0" in told.stdout
    assert "Forecast of `privlearn plan`" in told.stderr
    model = digits.with_suffix(".privlearn")
    assert run("verify", model).code == 0
    out = digits.parent / "predicted.csv"
    assert run("predict", model, digits.parent / "new.npz", "--probabilities", "--out", out).code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    release = Release.load(model)
    X = load_digits().images[COUNT : COUNT + 50]
    assert [int(row["prediction"]) for row in rows] == release.predict(X).tolist()
    assert release.certificate.encoding["feature_map"]["value_bounds"] == [0, 16]
    again = _train(run, digits, *IMAGES, "--classes", "0..9", "--ledger", ledger, "--force")
    assert again.code == 1
    assert "too small for this request" in again.stderr


def test_without_privacy_the_command_is_the_estimator(digits: Path, run: Run) -> None:
    model = digits.with_suffix(".privlearn")
    options = ("--epsilon", "inf", "--delta", "1e-5", "--out", model, *IMAGES, "--classes", "0..9")
    assert run("train", digits, *options).code == 0
    arrays = np.load(digits)
    own = PrivateLogisticRegression(
        epsilon=np.inf,
        delta=1e-5,
        features=ScatteringFeatures((8, 8), value_bounds=(0, 16)),
        classes=list(range(10)),
    )
    own.fit(arrays["X"], arrays["y"])
    assert Release.load(model).model.coefficients == pytest.approx(own.coefficients_, abs=1e-6)


def test_numbers_and_texts_too(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "signals.npz", X=rng.normal(size=(60, 64)), y=rng.uniform(0, 9, 60))
    signal = ("--features", "scattering", "--image-shape", 64, "--value-range", "-3,3")
    assert _train(run, tmp_path / "signals.npz", *signal, "--target-range", "0,9").code == 0
    np.savez(tmp_path / "texts.npz", X=["good film", "bad film"] * 30, y=["yes", "no"] * 30)
    told = _train(run, tmp_path / "texts.npz", "--features", "text", "--classes", "no,yes", "--model", "svm")
    assert told.code == 0, told.stderr
    predicted = run("predict", tmp_path / "texts.privlearn", tmp_path / "texts.npz")
    assert {*predicted.stdout.split()} <= {'"prediction"', '"yes"', '"no"'}


SECRET = 123456.789


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (np.full((4, 9, 8), SECRET), np.zeros(4), IMAGES, "has shape (4, 9, 8)"),
        (np.full((4, 8, 8), SECRET), np.zeros(4), SHAPE, "Add the public bounds of its numbers"),
        (np.where(np.eye(8) > 0, np.nan, [[[SECRET]]] * 4), np.zeros(4), IMAGES, "NaN or infinite"),
        (np.array([{SECRET: 1}] * 4), np.zeros(4), IMAGES, "has Python objects"),
        (np.ones((4, 8, 8)), np.array([SECRET, None] * 2), IMAGES, "has Python objects"),
        (np.ones((4, 8, 8)), np.full(4, SECRET), IMAGES, "labels that classes does not list"),
        (np.ones((4, 8, 8)), np.zeros(5), IMAGES, "inconsistent numbers of samples"),
        (np.full((4, 8, 8), str(SECRET)), np.zeros(4), IMAGES, "needs numbers of shape"),
    ],
)
def test_wrong_arrays_are_refused_without_their_content(
    X: Any, y: Any, options: tuple[object, ...], message: str, tmp_path: Path, run: Run
) -> None:
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    told = _train(run, tmp_path / "rows.npz", *options, "--classes", "0,1")
    assert told.code == 1
    assert message in " ".join(told.stderr.split())
    assert str(SECRET) not in told.stderr
    assert not (tmp_path / "rows.privlearn").exists()


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_no_pickle_is_run(tmp_path: Path, run: Run) -> None:
    rows = tmp_path / "rows.npz"
    for write in (
        lambda: np.savez(rows, X=np.array([_Evil(tmp_path / "ran")], dtype=object), y=[0]),
        lambda: rows.write_bytes(pickle.dumps(_Evil(tmp_path / "ran"))),
    ):
        write()
        assert _train(run, rows, *IMAGES, "--classes", "0,1").code == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*IMAGES,), "Add either --classes"),
        ((*IMAGES, "--classes", "0,1", "--target-range", "0,1"), "Add either --classes"),
        ((*IMAGES, "--classes", "0..9", "--schema", "a.yaml"), "--schema is for tables"),
        ((*IMAGES, "--classes", "0..9", "--part", "train"), "--part is for tables"),
        ((*IMAGES, "--classes", "0..9", "--model", "regression"), "Add --target-range"),
        ((*IMAGES, "--target-range", "0,9", "--model", "svm"), "Add --classes"),
        (("--features", "scattering", "--classes", "0..9"), "Add --image-shape 28x28"),
        (
            ("--features", "text", "--image-shape", "8x8", "--classes", "0..9"),
            "are for --features scattering",
        ),
        (("--classes", "0..9"), "Add --features"),
        ((), "--schema is missing"),
    ],
)
def test_contradictory_options_are_refused(
    options: tuple[object, ...], message: str, digits: Path, run: Run
) -> None:
    told = _train(run, digits, *options)
    assert told.code == 2
    assert message in " ".join(told.stderr.split())


def test_predict_refuses_tables_and_columns(digits: Path, run: Run) -> None:
    assert _train(run, digits, *IMAGES, "--classes", "0..9").code == 0
    model = digits.with_suffix(".privlearn")
    assert "Omit --keep" in run("predict", model, digits, "--keep", "name").stderr
    table = digits.with_suffix(".csv")
    table.write_text("a\n1\n")
    assert ".npz" in run("predict", model, table).stderr


def test_a_forecast_needs_no_image(run: Run) -> None:
    told = run("plan", *IMAGES, "--classes", 10, "--rows", 1500, *BUDGET)
    assert told.code == 0, told.stderr
    assert "10,010 features" in told.stdout
    assert run("plan", *IMAGES, "--columns", 3, "--rows", 1500, *BUDGET).code == 2


def test_a_forecast_has_the_mechanism_of_the_fit(digits: Path) -> None:
    arrays = np.load(digits)
    model = PrivateLogisticRegression(
        epsilon=3,
        delta=1e-5,
        features=ScatteringFeatures((8, 8), value_bounds=(0, 16)),
        classes=list(range(10)),
    )
    forecast = plan(model, COUNT)
    model.fit(arrays["X"], arrays["y"])
    fitted: Any = model.certificate_.mechanism
    assert forecast.noise_scale == pytest.approx(fitted.noise_scale)
    assert forecast.regularization == pytest.approx(fitted.effective_regularization)
