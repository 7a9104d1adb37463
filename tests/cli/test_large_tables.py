"""Commands on tables that are kept on disk while they are learnt from, and commands that are stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Ledger, Release
from privlearn.data import simulated_census, write_table
from privlearn.data.encoding import packed_cells
from tests.support.cli_support import Census, Run

PROMISE = ("--epsilon", 1, "--delta", "1e-6", "--seed", 1)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory that receives all cells."""
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 0)
    monkeypatch.setattr("privlearn.estimators.reading.IN_MEMORY", 0)
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_a_cache_changes_nothing_and_leaves_nothing(census: Census, train: Run, cache: Path) -> None:
    seen: list[tuple[str, int]] = []
    write = packed_cells.PackedCells._write

    def watched(cells: Any, block: Any) -> Any:
        found = write(cells, block)
        where = os.readlink(f"/proc/self/fd/{cells._file.fileno()}")
        seen.append((where, os.fstat(cells._file.fileno()).st_mode & 0o077))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_cells.PackedCells, "_write", watched)
        assert train(*PROMISE, "--cache", cache).code == 0
    where, open_to_others = seen[0]
    assert where.startswith(str(cache))
    assert where.endswith("(deleted)")
    assert not open_to_others
    assert list(cache.iterdir()) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_cells, "MEMORY_LIMIT", 1 << 27)
        assert train(*PROMISE, out="other.privlearn").code == 0
    one, other = (Release.load(census / name).model for name in ("income.privlearn", "other.privlearn"))
    np.testing.assert_array_equal(one.coefficients, other.coefficients)


def test_a_cache_that_is_no_folder_is_refused(budgeted: Census, train: Run) -> None:
    told = train(*PROMISE, "--ledger", budgeted.ledger, "--cache", budgeted.table)
    assert told.code == 2
    assert "is not a directory" in told.stderr
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()


def test_sigterm_says_what_was_charged_and_leaves_nothing_behind(
    budgeted: Census, train: Run, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminated(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("privlearn.mechanisms.release.objective.ObjectivePerturbation.run", terminated)
    before = sorted(budgeted.table.parent.iterdir())
    told = train("--epsilon", 1, "--delta", "1e-6", "--ledger", budgeted.ledger, "--cache", cache)
    assert told.code == 128 + signal.SIGTERM
    assert "stopped: its cost stays reserved: (epsilon = 1, delta = 1e-06)" in told.stderr
    (entry,) = Ledger.open(budgeted.ledger, "census").statement().entries
    assert entry.state == "reserved"
    assert sorted(budgeted.table.parent.iterdir()) == before
    assert list(cache.iterdir()) == []


def test_sigterm_before_the_charge_spends_nothing(
    budgeted: Census, train: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminated(*_: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(packed_cells.PackedCells, "add", terminated)
    told = train("--epsilon", 1, "--delta", "1e-6", "--ledger", budgeted.ledger)
    assert told.code == 128 + signal.SIGTERM
    assert "stopped: nothing was charged" in told.stderr
    assert Ledger.open(budgeted.ledger, "census").statement().entries == ()


def test_predictions_that_are_stopped_leave_no_file(
    census: Census, train: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(*PROMISE).code == 0
    folder = census / "new"
    folder.mkdir()
    for part in range(2):
        write_table(simulated_census(30 + 5 * part, seed=part), folder / f"{part}.parquet")
    out = census / "out"
    out.mkdir()
    whole = run("predict", census / "income.privlearn", folder, "--out", out / "all.csv")
    lines = (out / "all.csv").read_text().splitlines()
    assert f"{len(lines) - 1} predictions." in whole.told
    assert whole.code == 0
    (out / "all.csv").unlink()
    monkeypatch.setattr(
        "privlearn.release.model.LinearModel.predict", lambda *_: signal.raise_signal(signal.SIGTERM)
    )
    stopped = run("predict", census / "income.privlearn", folder, "--out", out / "all.csv")
    assert stopped.code == 128 + signal.SIGTERM
    assert list(out.iterdir()) == []
