"""Reading order = data flow = import order: no module imports from below."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.doc_pages import ROOT

LAYERS = (
    "_version", "moved", "errors", "charged", "heavy", "extensions", "arrays", "relation", "guarantee", "randomness",
    "listening", "tracing", "data", "features", "erm", "accounting",
    "mechanisms", "bounds", "release", "storage", "ledger", "splitting", "discovery",
    "estimators", "selection", "planning", "explain", "sessions", "multiparty", "audit", "reproduce",
    "study", "evaluation", "description", "export", "report", "service", "client", "cli",
)  # fmt: skip
PACKAGE = ROOT / "src" / "privlearn"
ABOVE_ALL = {"__init__", "__main__"}
"""The front doors: they may import everything, and nobody imports them."""


def _imported_parts(source: Path) -> set[str]:
    """The parts of privlearn that a file imports, wherever in it the import stands."""
    parts: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.name} has a relative import: write it out"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("privlearn.")}
    return parts


def _layer(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


SOURCES = sorted(source for source in PACKAGE.rglob("*.py") if _layer(source) not in ABOVE_ALL)


def test_every_part_has_a_place() -> None:
    assert {_layer(source) for source in SOURCES} <= set(LAYERS)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.relative_to(PACKAGE).as_posix())
def test_imports_go_down_only(source: Path) -> None:
    allowed = LAYERS[: LAYERS.index(_layer(source)) + 1]
    assert _imported_parts(source) <= set(allowed)


def test_an_import_that_goes_up_is_noticed(tmp_path: Path) -> None:
    guilty = tmp_path / "noise.py"
    guilty.write_text("def late():\n    from privlearn import ledger\n    import privlearn.cli.train.train\n")
    assert _imported_parts(guilty) == {"ledger", "cli"}
