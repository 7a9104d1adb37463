"""The reference is complete: every public name, every command, every option."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest
import typer.main

import privlearn
from privlearn.cli import app
from tests.support.doc_pages import ROOT

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@pytest.fixture(scope="module")
def command_help() -> ModuleType:
    pytest.importorskip("sphinx", reason="the documentation's tools are not installed: `make docs` does that")
    path = ROOT / "docs" / "_extensions" / "command_help.py"
    specification = importlib.util.spec_from_file_location("command_help", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", privlearn.__all__)
def test_public_names_are_documented(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^\.\. auto\w+:: privlearn\.{name}$", page, re.MULTILINE)


def test_public_names_can_be_imported() -> None:
    for name in privlearn.__all__:
        assert getattr(privlearn, name) is not None


def test_every_command_is_found(command_help: ModuleType) -> None:
    words = {
        "schema",
        "check",
        "log",
        "plan",
        "discover",
        "describe",
        "estimate",
        "split",
        "train",
        "predict",
        "export",
        "report",
        "evaluate",
        "threshold",
        "curvature",
        "verify",
        "inspect",
        "refine",
        "regress",
        "explain",
        "audit",
        "budget",
        "ask",
        "restored",
        "upgrade",
        "identity",
        "coordinate",
        "party",
        "simulate",
        "compare",
        "bounds",
        "reproduce",
        "serve",
        "keys",
        "demo",
    }
    found = command_help.commands()
    assert {command[0] for command in found if command} == words
    assert {("budget", "create"), ("budget", "show")} <= set(found)


def test_the_help_shown_lists_every_option(command_help: ModuleType) -> None:
    """Against the parameters in the source, not against another rendering of the same help."""
    source = (ROOT / "src" / "privlearn" / "cli" / "train" / "train.py").read_text(encoding="utf-8")
    signature = source[source.index("def train(") : source.index(") -> None:")]
    parameters = set(re.findall(r"^    (\w+): ", signature, re.MULTILINE)) - {"table", "arrays", "charging"}
    folder = ROOT / "src" / "privlearn" / "cli"
    shared = "".join((folder / name).read_text(encoding="utf-8") for name in ("arrays.py", "charging.py"))
    parameters |= set(
        re.findall(r"^    (\w+): (?:Annotated|ChargedDataset|Force|Neighbouring)", shared, re.MULTILINE)
    )
    shown = set(OPTION.findall(command_help.help_text(("train",))))
    assert {f"--{name.replace('_', '-')}" for name in parameters} <= shown


def _options(command: Any) -> set[str]:
    """Return the options of a command and of those below it, without a process for each one's help."""
    mine = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return mine.union(*map(_options, getattr(command, "commands", {}).values()))


def test_pages_name_only_options_that_exist() -> None:
    known = _options(typer.main.get_command(app)) | {"--help"}
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "how-to").glob("*.md")]:
        text = page.read_text(encoding="utf-8").splitlines()
        lines = [line for line in text if re.search(r"(?<![/-])privlearn ", line)]
        unknown = {option for line in lines for option in OPTION.findall(line)} - known
        assert not unknown, f"{page.name} names {unknown}"
