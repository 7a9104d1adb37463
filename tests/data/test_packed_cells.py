"""Packed cells: whatever is added comes back bit by bit, from memory or from a file that nobody else can open."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from privlearn.data import spill_to
from privlearn.data.encoding import PackedCells, packed_cells
from privlearn.errors import DataError

numbers = st.lists(st.floats(0, 1) | st.just(float("nan")), min_size=1, max_size=30)
places = st.lists(st.integers(-(2**40), 2**40) | st.integers(-2, 3), min_size=1, max_size=30)


def packed(*blocks: Any) -> PackedCells:
    cells = PackedCells()
    for block in blocks:
        cells.add({"column": block})
    return cells


def columns(cells: PackedCells) -> list[Any]:
    return [block["column"] for block in cells.blocks()]


@given(numbers)
def test_numbers_come_back_bit_by_bit(column: list[float]) -> None:
    (back,) = columns(packed(np.array(column)))
    assert back.tobytes() == np.array(column).tobytes()


@given(places)
def test_whole_numbers_come_back(column: list[int]) -> None:
    (back,) = columns(packed(np.array(column)))
    assert back.tolist() == column
    assert back.dtype.kind == "i"  # a place must not be taken for a position


def test_a_block_is_read_in_pieces_that_systems_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 0)
    monkeypatch.setattr(packed_cells, "MAX_READ", 100)
    monkeypatch.setattr(packed_cells, "BLOCK", 99)
    blocks = [np.random.default_rng(seed).random(99) for seed in range(3)]
    for back, block in zip(columns(packed(*blocks)), blocks, strict=True):
        assert back.tobytes() == block.tobytes()


def test_few_values_take_a_byte_per_row() -> None:
    ages = np.random.default_rng(0).integers(0, 90, 10_000) / 90
    cells = packed(ages)
    assert len(cells) == 10_000
    assert 0 < cells._bytes < 11_000


def test_small_files_are_not_as_many_blocks() -> None:
    random = np.random.default_rng(0)
    parts = [random.random(size) for size in (500, 0, 20_000, 12_267, 1, 40_000, 3)]
    cells = packed(*parts)
    assert len(cells) == 72_771
    assert [len(column) for column in columns(cells)] == [32_768, 32_768, 7_232, 3]
    np.testing.assert_array_equal(np.concatenate(columns(cells)), np.concatenate(parts))


def test_many_cells_go_to_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 1000)
    monkeypatch.setattr(packed_cells, "BLOCK", 100)
    random = np.random.default_rng(0)
    blocks: list[Any] = [random.random(100) for _ in range(5)] + [random.integers(0, 9, 100)]
    words: list[Any] = [
        sparse.random_array((100, 7), density=0.2, random_state=random, format="csr") for _ in range(6)
    ]
    with spill_to(tmp_path):
        cells = PackedCells()
    for block, found in zip(blocks, words, strict=True):
        cells.add({"column": block, "words": found})
    assert list(tmp_path.iterdir()) == []
    for _ in range(2):
        for block, column in zip(cells.blocks(), blocks, strict=True):
            np.testing.assert_array_equal(block["column"], column)
    np.testing.assert_array_equal(
        np.vstack([block["words"].toarray() for block in cells.blocks()]), sparse.vstack(words).toarray()
    )


def test_what_is_in_the_file_is_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 1000)
    tracemalloc.start()
    cells = packed(*(np.random.default_rng(place).random(10_000) for place in range(20)))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cells._bytes >= 20 * 80_000
    assert kept < 200_000


def test_some_rows_of_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 100)
    column = np.random.default_rng(0).random(60)
    chosen = np.array([59, 0, 31, 30, 30])
    (back,) = columns(packed(*column.reshape(6, 10)).take(chosen))
    np.testing.assert_array_equal(back, column[chosen])


def test_a_full_disk_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(packed_cells, "MEMORY_LIMIT", 10)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(DataError, match="No space left on device") as caught:
        len(packed(np.random.default_rng(0).random(100)))
    assert caught.value.__context__ is None
