"""Docstrings name parameters, files and pages that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.doc_pages import ROOT

PACKAGE = ROOT / "src" / "privlearn"
SECTION = re.compile(r"\nParameters\n-+\n(.*?)(?=\n\n?[A-Z]\w+\n-{3,}|\Z)", re.DOTALL)


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def documented_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path, text in sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and SECTION.search(ast.get_docstring(node) or ""):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", node


def documented_parameters(docstring: str) -> Iterator[str]:
    match = SECTION.search(docstring)
    for line in match[1].splitlines() if match else ():
        if line and not line.startswith(" "):
            yield from (name.strip().lstrip("*") for name in line.partition(":")[0].split(","))


def test_documented_parameters_are_those_of_the_function() -> None:
    wrong = []
    for place, node in documented_functions():
        arguments = node.args
        names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        names |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each}
        documented = set(documented_parameters(ast.get_docstring(node) or ""))
        wrong += [f"{place}: {name}" for name in documented - names if not arguments.kwarg]
    assert wrong == []


def test_files_and_pages_in_docstrings_exist() -> None:
    files = {path.as_posix() for path in sources()}
    missing = []
    for path, text in sources().items():
        here = path.relative_to(PACKAGE)
        missing += [
            f"{here}: {page}" for page in re.findall(r"docs/[\w/.-]+\.md", text) if not (ROOT / page).exists()
        ]
        named = re.findall(r"`([\w/]+\.py)`", text)
        missing += [
            f"{here}: {name}" for name in named if not any(file.endswith(f"/{name}") for file in files)
        ]
    assert missing == []
