"""Numbers of many rows: the same from a file as from memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.data import spill_to
from privlearn.data.sources import passes


def filled(numbers: np.ndarray[Any, Any]) -> Any:
    room = passes.row_numbers(len(numbers))
    for start in (60, 0, 30, 90):
        room[slice(start, start + 30)] = numbers[start : start + 30]
    return room


def test_from_a_file_as_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).normal(size=110)
    in_memory = filled(numbers)
    monkeypatch.setattr(passes, "MEMORY_LIMIT", 100)
    with spill_to(tmp_path):
        in_file = filled(numbers)
    assert isinstance(in_file, passes.NumbersInFile)
    assert list(tmp_path.iterdir()) == []  # it has no name
    for rows in (slice(0, 110), slice(20, 50), slice(100, 110), slice(None, None, 8)):
        np.testing.assert_array_equal(in_file[rows], in_memory[rows])


def test_memory_where_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(passes, "MEMORY_LIMIT", 100)
    monkeypatch.setattr("os.posix_fallocate", full)
    assert isinstance(filled(np.zeros(110)), np.ndarray)
