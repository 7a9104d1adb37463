"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

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


@pytest.mark.parametrize(
    "name",
    [
        "data.encoding.encoder:SchemaEncoder",
        "solvers.hinge:minimise_hinge",
        "solvers.kernel.dual:minimise_kernel",
        "solvers.kernel.multinomial:minimise_kernel_multinomial",
        "solvers.multinomial:minimise_multinomial",
        "solvers.solve:minimise",
    ],
)
def test_solvers_and_encoders_have_an_example(name: str) -> None:
    module, item = name.split(":")
    assert ">>> " in getattr(importlib.import_module(f"privlearn.{module}"), item).__doc__
