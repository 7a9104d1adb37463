"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest

import privlearn
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
