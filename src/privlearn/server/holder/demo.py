"""A demonstration holder: two tables of simulated people, a file owner.toml, and keys to try everything."""

from __future__ import annotations

from pathlib import Path

from privlearn.data.datasets import census_schema, simulated_census
from privlearn.data.sources.files import write_table
from privlearn.server.access.keys import HOLDER, create_key
from privlearn.server.holder.settings import Owner
from privlearn.server.store.store import open_store

_PEOPLE = {"census": (20_000, 2024), "village": (2_000, 2025)}
"""Number and seed; the village is small enough for kernel machines."""


def write_demo(directory: Path) -> Path:
    """Write tables, schemas and owner.toml unless they exist; return the path of owner.toml."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner = directory / "owner.toml"
    if owner.exists():
        return owner
    for name, (people, seed) in _PEOPLE.items():
        write_table(simulated_census(people, seed), directory / f"{name}.csv")
        census_schema().model_copy(update={"name": name}).save(directory / f"{name}.schema.yaml")
    owner.write_text(_OWNER, encoding="utf-8")
    return owner


def demo_keys(path: Path) -> dict[str, str]:
    """Create a key for the holder and one for each analyst of the file."""
    owner = Owner.load(path)
    store = open_store(owner)
    of_analysts = {name: create_key(store, "analyst", name) for name in owner.analysts}
    return {HOLDER: create_key(store, "holder")} | of_analysts


_OWNER = """\
# A demonstration: all people in these tables are simulated.

[server]
host = "127.0.0.1"
port = 8383
directory = "state"

[datasets.census]
table = "census.csv"
schema = "census.schema.yaml"
epsilon = 6.0
delta = 1e-5

[datasets.census.learners.logistic]
model = "logistic"

[datasets.census.learners.svm]
model = "svm"

[datasets.census.learners.smooth]
model = "svm"
kernel = "rbf"

[datasets.village]
table = "village.csv"
schema = "village.schema.yaml"
epsilon = 12.0
delta = 1e-5

[datasets.village.learners.svm]
model = "svm"

[datasets.village.learners.smooth]
model = "svm"
kernel = "rbf"

[analysts.alice]
census = { epsilon = 4.0, delta = 6e-6 }
village = { epsilon = 8.0, delta = 6e-6 }

[analysts.bob]
census = { epsilon = 2.0, delta = 4e-6 }
"""
