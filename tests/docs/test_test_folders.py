"""Tests stand where the code stands that they test: every folder of tests is a folder of the source."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "privlearn"

OTHERWISE = {
    "browser": "the whole service, as people at a browser see it",
    "docs": "the documentation, and this check",
    "experiments": "small versions of the benchmarks",
    "extension": "what others register, across everything that reads the lists",
    "privacy": "theorems and attacks, across all mechanisms",
    "support": "what tests share",
    "tools": "the programs in tools/",
}
"""Folders of tests without a folder of the source, and what they are for."""


def _folders() -> set[Path]:
    """Folders with tests in them, as paths below tests/."""
    return {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")} - {Path()}


def test_every_folder_of_tests_is_one_of_the_source() -> None:
    lost = [folder.as_posix() for folder in _folders() if folder.parts[0] not in OTHERWISE]
    assert [name for name in sorted(lost) if not (SOURCE / name).is_dir()] == []


def test_every_exception_is_one() -> None:
    assert [name for name in OTHERWISE if not (TESTS / name).is_dir() or (SOURCE / name).is_dir()] == []


def test_a_file_beside_the_folders_is_about_a_module_beside_them() -> None:
    modules = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert [name for name in sorted(modules) if not (SOURCE / f"{name}.py").is_file()] == []
