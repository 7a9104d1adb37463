"""`privlearn audit`: its three forms, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli_support import Census, Run

FACTORY = """
import numpy as np

class Sums:
    def __init__(self, seed, scale):
        self.rng, self.scale = np.random.default_rng(seed), scale
    def fit(self, X, y):
        self.coef_ = np.array([[X.sum()]]) + self.rng.laplace(scale=self.scale, size=(1, 1))
        return self

def sound(seed): return Sums(seed, 4.0)
def broken(seed): return Sums(seed, 0.5)
def raising(seed): raise RuntimeError("no such thing")
number = 3
"""


@pytest.fixture
def factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "audited_models.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_mechanism(run: Run) -> None:
    told = run("audit", "tddl", "--runs", 64)
    assert told.code == 0
    assert told.stdout.startswith("audit of mechanism tddl: passed")
    assert "ok   exact curve: 2 passed" in told.stdout
    assert "moved" in run("audit", "tddl", "--runs", 64, "--all").stdout


def test_a_release(train: Run, census: Census, run: Run) -> None:
    assert train("--epsilon", 1).code == 0
    told = run("audit", census / "income.privlearn", "--json")
    assert told.code == 0
    report = json.loads(told.stdout)
    assert report["passed"] is True
    assert {"check", "status", "what", "why", "numbers"} == set(report["findings"][0])
    (census / "income.privlearn").write_bytes(b"no release")
    assert run("audit", census / "income.privlearn").code == 1


def test_an_estimator(factories: Path, run: Run) -> None:
    options = ("--epsilon", 1, "--norm-bound", 2, "--runs", 400)
    told = run("audit", "--estimator", "audited_models:sound", *options)
    assert told.code == 0, told.told
    told = run("audit", "--estimator", "audited_models:broken", *options)
    assert told.code == 1
    assert "FAIL empirical epsilon" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((), "give one target"),
        (("objective", "--estimator", "a:b"), "give one target"),
        (("no-such-thing",), "neither a file nor one of"),
        (("--estimator", "no_such_module:make"), "MODULE:FACTORY"),
        (("--estimator", "audited_models"), "MODULE:FACTORY"),
        (("--estimator", "audited_models:number"), "Give a function of a seed"),
        (("--estimator", "audited_models:raising"), "RuntimeError: no such thing"),
        (("objective", "--neighbours", "both"), "neighbours must be one of"),
    ],
    ids=[
        "nothing",
        "two things",
        "unknown",
        "no module",
        "no name",
        "not a function",
        "raises",
        "neighbours",
    ],
)
def test_what_was_typed_wrongly(arguments: tuple[str, ...], hint: str, factories: Path, run: Run) -> None:
    told = run("audit", *arguments)
    assert told.code == 2
    assert hint in told.stderr
