"""A small service on made-up rows, for the tests of its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from privlearn.data import Schema, write_table
from privlearn.estimators.forecast import synthetic_table
from privlearn.server.holder import Owner
from privlearn.server.jobs import JobRequest

SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 120},
            "dose": {"type": "number", "lower": 0, "upper": 10},
            "sex": {"type": "category", "values": ["female", "male"]},
        },
        "target": {"name": "outcome", "classes": ["healthy", "ill"]},
    }
)

RECIPES = """
[datasets.clinic.learners.logistic]
model = "logistic"

[datasets.clinic.learners.kernel]
model = "svm"
kernel = "rbf"
gamma = 0.5
"""


def model_request(
    dataset: str,
    kind: str,
    learner: str,
    epsilon: float,
    delta: float = 0.0,
    mechanism: str = "model",
    *,
    points: pa.Table | None = None,
    trial: bool = False,
) -> JobRequest:
    """Return the request of a model."""
    return JobRequest(
        dataset, kind, epsilon, delta, trial, {"learner": learner, "mechanism": mechanism}, points
    )


def changed(request: JobRequest, **changes: Any) -> JobRequest:
    """Return the same request with other values, also in its fields."""
    fields: dict[str, Any] = {name: changes.pop(name) for name in ("learner", "mechanism") if name in changes}
    return replace(request, fields={**request.fields, **fields}, **changes)


def write_clinic(
    folder: Path,
    *,
    store: str | None = None,
    rows: int = 300,
    epsilon: float = 4.0,
    server: str = "",
    dataset: str = "",
) -> Path:
    """Write a holder's directory: table, schema, and owner.toml with analysts alice (all) and bob (a quarter)."""
    write_table(synthetic_table(SCHEMA, rows, seed=7), folder / "clinic.csv")
    SCHEMA.save(folder / "clinic.schema.yaml")
    ledger = f'ledger = "{store}"\n' if store is not None and store.startswith("postgresql") else ""
    (folder / "owner.toml").write_text(
        f"""
[server]
{ledger}{server}

[datasets.clinic]
table = "clinic.csv"
schema = "clinic.schema.yaml"
epsilon = {epsilon}
delta = 1e-5
training_seconds = 0.01
{dataset}
{RECIPES}
[analysts.alice]
clinic = {{ epsilon = {epsilon}, delta = 1e-5 }}

[analysts.bob]
clinic = {{ epsilon = {epsilon / 4}, delta = 2e-6 }}
"""
    )
    return folder / "owner.toml"


def load_clinic(folder: Path, **options: Any) -> Owner:
    return Owner.load(write_clinic(folder, **options))
