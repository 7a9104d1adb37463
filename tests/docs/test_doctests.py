"""The examples in docstrings run."""

from __future__ import annotations

import ast
import doctest
import importlib
import re

import pytest

import privlearn
from privlearn.features import FEATURE_MAPS, KERNELS
from privlearn.mechanisms import MECHANISMS
from privlearn.solvers import LOSSES
from tests.support.doc_pages import ROOT

MODULES = sorted(
    ".".join(source.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for source in (ROOT / "src" / "privlearn").rglob("*.py")
    if ">>> " in source.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize(
    "name", ["Guarantee", "Schema", "SchemaEncoder", "Ledger", "PrivateLogisticRegression"]
)
def test_main_classes_have_an_example(name: str) -> None:
    assert ">>> " in (getattr(privlearn, name).__doc__ or "")


@pytest.mark.parametrize(
    "registry", [MECHANISMS, LOSSES, KERNELS, FEATURE_MAPS], ids=["mechanism", "loss", "kernel", "map"]
)
def test_every_registered_class_has_an_example(registry: dict[str, type]) -> None:
    for name in MODULES:
        importlib.import_module(name)  # registers its classes
    own = [kind for kind in registry.values() if kind.__module__.startswith("privlearn.")]
    assert own
    assert [kind.__name__ for kind in own if ">>> " not in (kind.__doc__ or "")] == []


def defined_in(directory: str, pattern: str) -> list[tuple[str, str]]:
    """Return the name and the docstring of each public class and function of a directory whose name matches."""
    sources = sorted((ROOT / "src" / "privlearn" / directory).rglob("*.py"))
    nodes = [node for source in sources for node in ast.parse(source.read_text(encoding="utf-8")).body]
    items = [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [(node.name, ast.get_docstring(node) or "") for node in items if re.fullmatch(pattern, node.name)]


@pytest.mark.parametrize(
    ("directory", "pattern", "number"),
    [
        ("solvers", "minimise.*", 8),
        ("data/encoding", "[A-Z].*Encoder", 3),
        ("features", "[A-Z].*Encoder", 1),
        ("release", "[A-Z].*Encoder", 2),
    ],
)
def test_every_solver_and_encoder_has_an_example(directory: str, pattern: str, number: int) -> None:
    items = defined_in(directory, pattern)
    assert len(items) >= number
    assert [name for name, text in items if ">>> " not in text] == []
