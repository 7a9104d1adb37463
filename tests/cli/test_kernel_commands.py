"""Kernels from the shell: without public points, with them, and refusals that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Guarantee, InteractivePredictor, KernelLearner, PrivateSVC
from tests.support.cli_support import Census, Run


@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "rbf"),
        ("--kernel", "polynomial", "--degree", 2, "--public-points"),
        ("--kernel", "rbf", "--mechanism", "tddl", "--public-points"),
        ("--kernel", "polynomial", "--public-points", "schema"),
    ],
)
def test_a_kernel_is_trained_verified_and_predicts(
    options: tuple[Any, ...], census: Census, train: Run, run: Run
) -> None:
    points = (census.new_rows,) if options[-1] == "--public-points" else ()
    told = train("--model", "svm", "--epsilon", 5, "--delta", "1e-6", *options, *points)
    assert told.code == 0
    assert run("verify", census / "income.privlearn").code == 0
    assert options[1] in run("inspect", census / "income.privlearn", "--json").stdout
    predicted = run("predict", census / "income.privlearn", census.new_rows)
    assert predicted.code == 0
    assert predicted.stdout.count("\n") == 51


@pytest.mark.parametrize("options", [("--model", "svm", "--probability"), ("--kernel", "rbf")])
def test_probabilities_of_a_margin_and_of_a_kernel(
    options: tuple[Any, ...], census: Census, train: Run, run: Run
) -> None:
    assert train("--epsilon", 2, "--delta", "1e-6", *options).code == 0
    assert run("verify", census / "income.privlearn").code == 0
    predicted = run("predict", census / "income.privlearn", census.new_rows, "--probabilities")
    assert predicted.code == 0
    assert predicted.stdout.startswith('"prediction","probability_')


@pytest.mark.parametrize("option", ["--epsilon", "--delta"])
def test_numbers_that_only_python_reads_are_refused(option: str, train: Run) -> None:
    """1_0 would be ten."""
    told = train("--epsilon", 1, option, "1_0")
    assert told.code == 2
    assert "is not a valid number" in told.stderr


@pytest.mark.parametrize(
    ("option", "typed", "meant"),
    [
        ("--kernel", "rfb", "rbf"),
        ("--model", "logsitic", "logistic"),
        ("--loss", "multinomail", "multinomial"),
        ("--mechanism", "objectiv", "objective"),
        ("--neighbours", "replaceone", "replace_one"),
    ],
)
def test_a_word_that_looks_like_a_known_one_is_suggested(
    option: str, typed: str, meant: str, train: Run
) -> None:
    told = train("--epsilon", 1, option, typed)
    assert told.code == 2
    assert f"Did you mean '{meant}'?" in " ".join(told.stderr.split())


def test_a_decimal_comma_is_explained_where_a_word_may_stand(train: Run) -> None:
    told = train("--epsilon", 1, "--kernel", "rbf", "--gamma", "0,5")
    assert told.code == 2
    assert "Write it like 0.5" in told.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--probability",), "the model svm"),
        (("--model", "svm", "--kernel", "polynomial"), "public_points"),
        (("--model", "svm", "--kernel", "magic"), "kernel must be one of"),
    ],
)
def test_refusals_cost_nothing(
    options: tuple[Any, ...], says: str, budgeted: Census, train: Run, run: Run
) -> None:
    told = train("--epsilon", 1, "--delta", "1e-6", "--ledger", budgeted.ledger, *options)
    assert told.code == 2
    assert says in told.stderr
    assert "entries" not in run("budget", "show", "census", "--ledger", budgeted.ledger).stdout


def _saved(folder: Path, **settings: Any) -> Path:
    """Save a release of a kernel that does not read tables."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc"), 4)) for _ in range(60)]
    labels = ["a" in word for word in words]
    model = PrivateSVC(epsilon=1.0, delta=1e-6, classes=[False, True], random_state=1, **settings)
    rows = words if callable(settings["kernel"]) else _shared_letters(words, words[:10])
    model.fit(rows, labels).release_.save(folder / "words.privlearn")
    return folder / "words.privlearn"


def _shared_letters(texts: Sequence[str], others: Sequence[str]) -> Any:
    return np.array([[len(set(a) & set(b)) for b in others] for a in texts], dtype=float)


def test_inspect_says_what_a_kernel_of_ones_own_reads(tmp_path: Path, run: Run) -> None:
    path = _saved(tmp_path, kernel=_shared_letters, kernel_bound=4.0, public_points=["abca", "bbcc", "aaaa"])
    told = run("inspect", path)
    assert told.code == 0
    assert "Objects that the kernel '_shared_letters' reads" in told.stdout
    assert "classes False, True" in told.stdout
    assert "Plain arrays" not in told.stdout


def test_inspect_says_that_a_kernel_was_precomputed(tmp_path: Path, run: Run) -> None:
    words = ["".join(np.random.default_rng(0).choice(list("abc"), 4)) for _ in range(10)]
    path = _saved(
        tmp_path, kernel="precomputed", kernel_bound=4.0, public_points=_shared_letters(words, words)
    )
    assert "Rows of 10 precomputed kernel values" in run("inspect", path).stdout


def test_inspect_counts_the_columns_of_plain_arrays(tmp_path: Path, run: Run) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    model = PrivateSVC(
        epsilon=1.0, kernel="rbf", public_points=X[:7], delta=1e-6, norm_bound=1.5, classes=[0, 1]
    )
    model.fit(X, (X[:, 0] > 0).astype(int)).release_.save(tmp_path / "a.privlearn")
    shown = run("inspect", tmp_path / "a.privlearn").stdout
    assert "Plain arrays: 2 columns" in shown
    assert "encoding: landmarks       kernel rbf, gamma 13\n" in shown
    assert "solver                    gradient norm at most 1e-08, certified\n" in shown


def test_the_certificate_of_a_session_is_verified_and_shown(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(50, 2))
    learner = KernelLearner(regularization=0.1, norm_bound=1.5, classes=[0, 1]).fit(X, rng.integers(0, 2, 50))
    promise = Guarantee(1.0, 1e-6)
    session = InteractivePredictor(learner, promise, state=tmp_path / "state.db")
    path = tmp_path / "session.json"
    session.certificate.save(path)
    told = run("verify", path)
    assert told.code == 0
    assert f"recomputed  {promise}" in told.stdout
    assert "consistent and private" in told.stdout
    assert "function_release" in run("inspect", path).stdout
    assert '"format": "privlearn session 1"' in run("inspect", path, "--json").stdout
    scale = str(session.certificate.to_dict()["constants"]["noise_scale"])
    assert scale in path.read_text()
    path.write_text(path.read_text().replace(scale, str(float(scale) / 2)))
    told = run("verify", path)
    assert told.code == 1
    assert "less than the claim" in told.stderr
