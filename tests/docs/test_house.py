"""The table of docs/explanation/house.md is what `make house` measures."""

from __future__ import annotations

import ast
from fnmatch import fnmatch

from tools.house import BEGIN, END, PACKAGE, PAGE, REASONS, measure


def test_imports_have_no_cycle_and_the_page_shows_what_is_measured() -> None:
    measured = measure(PACKAGE)
    assert measured["modules in import cycles, late imports counted"] == "0"
    page = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    shown = dict(line.strip("| ").split(" | ") for line in page.splitlines()[2:])
    assert shown == measured, "run make house, which writes the table"


def test_every_folder_says_what_it_is_for() -> None:
    for source in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        assert 3 <= len(text.splitlines()) <= 10, source


def test_reasons_are_about_files_that_exist() -> None:
    names = [source.relative_to(PACKAGE).as_posix() for source in PACKAGE.rglob("*.py")]
    assert [pattern for pattern in REASONS if not any(fnmatch(name, pattern) for name in names)] == []
