"""Reading order = data flow = import order: no module imports from below."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from privlearn.imports import late_exports
from tests.support.doc_pages import ROOT

LAYERS = (
    "_version", "errors", "imports", "arrays", "guarantee", "randomness",
    "data", "features", "solvers", "accounting", "mechanisms", "release", "budget",
    "estimators", "explain", "sessions", "statistics", "parties", "audit", "papers",
    "export", "server", "client", "cli",
)  # fmt: skip
PACKAGE = ROOT / "src" / "privlearn"
ABOVE_ALL = {"__init__", "__main__"}
"""The front doors: they may import everything, and nobody imports them."""


def _imported_parts(source: Path) -> set[str]:
    """Return the parts of privlearn that a file imports, wherever in it the import stands."""
    parts: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.name} has a relative import: write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {f"{name}.__init__".split(".")[1] for name in names if name.split(".")[0] == "privlearn"}
    return parts


def _layer(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _module_name(package: Path) -> str:
    return ".".join(package.parent.relative_to(PACKAGE.parent).parts)


SOURCES = sorted(source for source in PACKAGE.rglob("*.py") if _layer(source) not in ABOVE_ALL)


def test_the_guided_tour_prints_this_order() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("<!-- layers")[1].split("\n\n")[1]
    first_cells = [line.split("|")[1] for line in page.splitlines()[2:]]
    assert [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)] == list(LAYERS)


def test_every_part_has_a_place() -> None:
    assert {_layer(source) for source in SOURCES} <= set(LAYERS)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(PACKAGE).as_posix())
def test_imports_go_down_only(source: Path) -> None:
    allowed = LAYERS[: LAYERS.index(_layer(source)) + 1]
    assert _imported_parts(source) <= set(allowed)


LATE = {
    _module_name(source): late_exports(source.read_text(encoding="utf-8"))
    for source in PACKAGE.rglob("*/__init__.py")
    if "export_late(__name__)" in source.read_text(encoding="utf-8")
}
"""The names that packages export late, with their modules."""


@pytest.mark.parametrize("package", LATE)
def test_late_exports_are_names_of_that_package_s_modules(package: str) -> None:
    for name, module in LATE[package].items():
        assert module.startswith(f"{package}.")
        assert getattr(import_module(package), name) is getattr(import_module(module), name)


def test_source_imports_late_exports_from_their_modules() -> None:
    """A package would hide a cycle from the measurement of imports."""
    taken = [
        f"{source.name}: {alias.name} from {node.module}"
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in LATE.get(str(node.module), {})
    ]
    assert not taken


def test_an_import_that_goes_up_is_noticed(tmp_path: Path) -> None:
    guilty = tmp_path / "noise.py"
    guilty.write_text(
        "def late():\n    from privlearn import budget\n    import privlearn.cli.train.train\n    import privlearn\n"
    )
    assert _imported_parts(guilty) == {"budget", "cli", "__init__"}
