"""Several rows per person, on the stays of diabetics (diabetes130): what each way to declare them costs.

    PRIVLEARN_DATA=... python benchmarks/persons.py [--splits 3] [--epsilons 1 4] [--patients 70000]

Patients are split at random, four fifths to learn from. Error and AUC are those of patients who were not learnt from,
each counted once, with equal weights for their stays. "output" repeats the first way with output perturbation.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import roc_auc_score

from privlearn import PrivateLogisticRegression, Schema
from privlearn.data.sources.files import read_table

DELTA = 1e-6
MOST_STAYS = 40
AGES = [f"[{age}-{age + 10})" for age in range(0, 100, 10)]
VISITS = {"type": "number", "lower": 0, "scale": "log"}
CONTENT: dict[str, Any] = {
    "name": "diabetes",
    "person": "patient_nbr",
    "file": {"missing": ["?"]},
    "columns": {
        "race": {
            "type": "category",
            "values": ["AfricanAmerican", "Asian", "Caucasian", "Hispanic", "Other"],
            "missing": "zero",
        },
        "gender": {"type": "category", "values": ["Female", "Male"], "unknown": "zero"},
        "age": {"type": "ordinal", "values": AGES},
        "time_in_hospital": {"type": "number", "lower": 1, "upper": 14},
        "num_medications": VISITS | {"upper": 100},
        "number_outpatient": VISITS | {"upper": 50},
        "number_emergency": VISITS | {"upper": 100},
        "number_inpatient": VISITS | {"upper": 25},
        "number_diagnoses": {"type": "number", "lower": 1, "upper": 16},
        "insulin": {"type": "ordinal", "values": ["No", "Down", "Steady", "Up"]},
        "diabetesMed": {"type": "category", "values": ["No", "Yes"]},
    },
    "target": {
        "name": "readmitted",
        "classes": ["stayed home", "came back"],
        "merge": {"stayed home": ["NO"], "came back": ["<30", ">30"]},
    },
}


def stays() -> pa.Table:
    archive = Path(os.environ["PRIVLEARN_DATA"]) / "diabetes130" / "dataset_diabetes.zip"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive) as packed:
        packed.extract("dataset_diabetes/diabetic_data.csv", folder)
        return read_table(Path(folder) / "dataset_diabetes" / "diabetic_data.csv", Schema.from_dict(CONTENT))


def without_person(**instead: Any) -> Schema:
    return Schema.from_dict({name: part for name, part in CONTENT.items() if name != "person"} | instead)


def ways(table: pa.Table, first: np.ndarray) -> dict[str, tuple[Schema, pa.Table]]:
    """Schema and rows of each."""
    return {
        "person: the patient": (Schema.from_dict(CONTENT), table),
        "one row beforehand: the first stay": (
            without_person(one_row_per_person=True),
            table.filter(pa.array(first)),
        ),
        f"rows_per_person: {MOST_STAYS}": (without_person(rows_per_person=MOST_STAYS), table),
        "person, output": (Schema.from_dict(CONTENT), table),
    }


def patient_scores(model: Any, table: pa.Table, patients: np.ndarray) -> tuple[float, float]:
    """Return error and AUC, persons weighing the same."""
    came_back = np.array([label != "NO" for label in table.column("readmitted").to_pylist()])
    scores = model.predict_proba(table)[:, 1]
    _, person = np.unique(patients, return_inverse=True)
    weights = 1.0 / np.bincount(person)[person]
    error = np.average((scores > 0.5) != came_back, weights=weights)
    return float(error), float(roc_auc_score(came_back, scores, sample_weight=weights))


def measured(splits: int, epsilons: list[float], most: int) -> None:
    table = stays()
    patients = np.array(table.column("patient_nbr").to_pylist())
    everybody = np.unique(patients)
    print("way                                  epsilon  persons or rows  mechanism   error and AUC")
    for place in range(4):
        for epsilon in (*epsilons, math.inf):
            errors = []
            for seed in range(splits):
                chosen = np.random.default_rng(seed).permutation(everybody)[:most]
                cut = len(chosen) * 4 // 5
                train, test = np.isin(patients, chosen[:cut]), np.isin(patients, chosen[cut:])
                rows = table.filter(pa.array(train))
                first = np.zeros(len(rows), bool)
                first[np.unique(patients[train], return_index=True)[1]] = True
                name, (schema, used) = list(ways(rows, first).items())[place]
                delta = 0.0 if math.isinf(epsilon) else DELTA
                mechanism = "output" if name.endswith("output") else "auto"
                model = PrivateLogisticRegression(
                    epsilon=epsilon, delta=delta, schema=schema, mechanism=mechanism, random_state=seed
                ).fit(used)
                errors.append(patient_scores(model, table.filter(pa.array(test)), patients[test]))
                task = model.certificate_.mechanism
            (error, auc), (spread, auc_spread) = (
                np.mean(errors, axis=0),
                np.std(errors, axis=0, ddof=min(splits - 1, 1)) / math.sqrt(splits),
            )
            print(
                f"{name:<36} {epsilon:>7g}  {task.task.total:>15,}  {task.name:<10}  "
                f"{error:.4f} +- {spread:.4f}  {auc:.4f} +- {auc_spread:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--patients", type=int, default=80_000)
    asked = parser.parse_args()
    measured(asked.splits, asked.epsilons, asked.patients)
