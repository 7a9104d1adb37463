"""docs/papers.md names files, commands, mechanisms and calibrations that exist, and leaves no statement out."""

from __future__ import annotations

import inspect
import re
from functools import cache

import pytest

import privlearn
from privlearn import parties as multiparty
from privlearn.cli import app
from privlearn.mechanisms import MECHANISMS
from privlearn.papers import EXPERIMENTS
from tests.support.doc_pages import ROOT

PAGE = ROOT / "docs" / "papers.md"
KINDS = {
    "Theorem": "Theorems?", "Lemma": "Lemmas?", "Corollary": "Corollar(?:y|ies)", "Proposition": "Propositions?",
    "Algorithm": "Algorithms?", "Procedure": "Procedures?", "Table": "Tables?", "Figure": "Figures?",
    "Section": "Section", "Remark": "Remarks?",
}  # fmt: skip
"""As a cell of the page writes them: "Theorems 4, 11: ..." names two."""
STATEMENTS = {
    "CMS11": {
        "Algorithm": "1 2 3 4", "Theorem": "1 2 3 4 5 6 7 8 9", "Lemma": "1 2 3 4 5 6 7", "Corollary": "1 2 3 4 5 6",
        "Table": "1 2", "Figure": "1 2 3 4 5",
    },
    "RBHT": {
        "Algorithm": "1 2 3", "Lemma": "9 16 17 18 22 25", "Theorem": "10 11 13 21 23 26", "Corollary": "12 15 19 20",
        "Proposition": "27", "Table": "1 2", "Figure": "1 2", "Remark": "1 7 14 24",
    },
    "JT13": {
        "Algorithm": "1 2 3", "Theorem": "2 3 4 5 7 8 9 10 11 12 13 14", "Corollary": "6", "Figure": "1 2",
        "Section": "5 6.1",
    },
    "RA12": {
        "Algorithm": "1 4", "Procedure": "2 3", "Proposition": "3.1 5.2", "Theorem": "4.1 4.2 5.1 5.3", "Figure": "1 2",
    },
}  # fmt: skip


@cache
def named() -> list[str]:
    return re.findall(r"`([^`]+)`", PAGE.read_text(encoding="utf-8"))


def test_files_exist() -> None:
    files = [name for name in named() if name.endswith(".py")]
    assert len(set(files)) > 25
    for name in files:
        assert (ROOT / "src" / "privlearn" / name).is_file() or (ROOT / name).is_file(), name


def test_commands_exist() -> None:
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    commands = [name.split() for name in named() if name.startswith("privlearn ")]
    for _, command, *rest in commands:
        assert command in known, command
        assert command != "reproduce" or rest[0] in EXPERIMENTS, rest
    reproduced = {rest[0] for _, command, *rest in commands if command == "reproduce"}
    assert reproduced == set(EXPERIMENTS)


def test_mechanisms_and_calibrations_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    kinds = list(MECHANISMS.values())
    for name in re.findall(r'mechanism="(\w+)"', text):
        assert any(kind.name == name for kind in kinds), name
    for name in re.findall(r'calibration="(\w+)"', text):
        assert any(name in getattr(kind, "combinations", {}) for kind in kinds), name


def test_classes_and_their_parameters_exist() -> None:
    calls = [found.groups() for name in named() if (found := re.match(r"([A-Z]\w+)\((.*)\)", name))]
    assert len(calls) >= 2
    for name, arguments in calls:
        home = privlearn if hasattr(privlearn, name) else multiparty
        parameters = inspect.signature(getattr(home, name)).parameters
        for keyword in re.findall(r"(\w+)=", arguments):
            assert keyword in parameters, f"{name}({keyword}=)"


@pytest.mark.parametrize("paper", ["CMS11", "RBHT", "JT13"])
def test_every_line_has_one_of_four_statuses(paper: str) -> None:
    section = re.search(rf"^## {paper}:.*?(?=^## )", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None
    rows = [row.split(" | ") for row in section.group().splitlines() if row.startswith("| ")]
    assert len(rows) > 15
    for row in rows[1:]:
        assert row[-1].startswith(("as printed", "corrected", "differs", "not reproduced")), row[0]


@pytest.mark.parametrize("paper", STATEMENTS)
def test_no_statement_is_left_out(paper: str) -> None:
    section = re.search(rf"^## {paper}:.*?(?=^## )", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None
    first = "\n".join(row.split("|")[1] for row in section.group().splitlines() if row.startswith("| "))
    for kind, numbers in STATEMENTS[paper].items():
        lists = re.findall(rf"{KINDS[kind]} ((?:\d[\d.]*(?:, )?)+)", first)
        assert set(numbers.split()) <= set(re.findall(r"\d+(?:\.\d+)?", " ".join(lists))), kind
