"""The errors promised for Adult, and CMS11's Table 1: small versions of benchmarks/adult.py and cms11_table1.py."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif("PRIVLEARN_DATA" not in os.environ, reason="PRIVLEARN_DATA is not set")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


adult = benchmark("adult")
CELLS = [
    (estimator, neighbours, epsilon, wanted)
    for estimator in adult.ESTIMATORS
    for neighbours in adult.EPSILONS
    for epsilon, wanted in zip(adult.EPSILONS[neighbours], adult.WANTED[neighbours], strict=True)
]


@pytest.mark.parametrize(("estimator", "neighbours", "epsilon", "wanted"), CELLS)
def test_default_error(estimator, neighbours: str, epsilon: float, wanted: float) -> None:
    # Three splits of the ten that the benchmark takes; their mean is off by about 0.002 at epsilon 0.1.
    slack = 0.003 if epsilon < 0.5 else 0.001
    assert adult.mean_error(estimator, epsilon, neighbours, seeds=3) <= wanted + slack


def test_cms11_table_1() -> None:
    """Within 0.02 of the print wherever a private row prints below 0.25 (0.03 here, with fewer runs)."""
    table = benchmark("cms11_table1")
    table.EXPONENTS = (-2.5, -2.0, -1.5)
    errors = table.table(folds=10, runs=1)
    for (loss, mechanism), row in table.PRINTED.items():
        for exponent, printed in zip(table.EXPONENTS, row[-3:], strict=True):
            if printed < 0.25:
                assert abs(errors[loss, mechanism, exponent] - printed) <= 0.03
