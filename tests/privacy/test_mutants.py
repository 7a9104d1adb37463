"""The list of planted defects follows the source: each finds its text exactly once (`make mutants` runs them all)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_mutant_finds_its_place() -> None:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "benchmarks" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["mutants"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lost = [
        mutant.name
        for mutant in module.MUTANTS
        if (ROOT / "src" / "privlearn" / mutant.file).read_text().count(mutant.old) != 1
    ]
    assert lost == []
