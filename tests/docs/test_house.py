"""The table of docs/explanation/house.md is what `make house` measures."""

from __future__ import annotations

from tools.house import BEGIN, END, PACKAGE, PAGE, measure


def test_the_page_shows_what_is_measured() -> None:
    page = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    shown = dict(line.strip("| ").split(" | ") for line in page.splitlines()[2:])
    assert shown == measure(PACKAGE), "run make house, which writes the table"


def test_imports_have_no_cycle() -> None:
    assert measure(PACKAGE)["modules in import cycles, late imports counted"] == "0"
