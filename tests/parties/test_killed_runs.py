"""Real processes killed at random moments: a small version of benchmarks/killed_runs.py."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")

from tests.support.killed_runs import killed_run


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_killed_run_ends_in_a_release_or_in_words(tmp_path: Path, seed: int) -> None:
    ending = killed_run(tmp_path, seed)
    assert ending.release or "error" in ending.words
