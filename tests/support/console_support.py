"""A small service whose console has a source, with tables to make data sets of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privlearn.data import write_table
from privlearn.estimators.forecast import synthetic_table
from privlearn.server.access import Caller
from privlearn.server.holder import Owner
from tests.support.service_support import SCHEMA, write_clinic

HOLDER = Caller("0123456789abcdef", "holder")
BUDGET = {"epsilon": 3.0, "delta": 1e-6, "training_seconds": 0.01}


def write_console(folder: Path, *, console: str = "", **options: Any) -> Path:
    """Write the clinic's directory with exports next to it: two years of two wards, a schema, and a different one."""
    path = write_clinic(folder, **options)
    exports = folder / "exports"
    (exports / "2027").mkdir(parents=True)
    for seed, ward in enumerate(("ward.csv", "east.csv")):
        write_table(synthetic_table(SCHEMA, 200, seed=10 + seed), exports / ward)
        write_table(synthetic_table(SCHEMA, 230, seed=20 + seed), exports / "2027" / ward)
    SCHEMA.model_copy(update={"name": "ward"}).save(exports / "ward.schema.yaml")
    other = SCHEMA.to_dict()
    other["columns"]["age"]["upper"] = 100
    type(SCHEMA).from_dict({**other, "name": "ward"}).save(exports / "other.schema.yaml")
    (folder / "secret.csv").write_text("password\nhunter2\n")
    with path.open("a") as file:
        file.write(f'\n[console]\nsources = {{ exports = "exports" }}\n{console}\n')
    return path


def load_console(folder: Path, **options: Any) -> Owner:
    return Owner.load(write_console(folder, **options))
