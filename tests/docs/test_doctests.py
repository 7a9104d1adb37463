"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import privlearn

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(privlearn.__path__, "privlearn.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize(
    "name", ["Guarantee", "Schema", "SchemaEncoder", "Ledger", "PrivateLogisticRegression"]
)
def test_main_classes_have_an_example(name: str) -> None:
    assert ">>> " in (getattr(privlearn, name).__doc__ or "")
