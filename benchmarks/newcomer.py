"""Base rates and units of simulated tables as a new user meets them: rare outcomes, costs with generous bounds, counts.

    python benchmarks/newcomer.py [rates] [costs] [visits] [--splits 5]

Rates: mean prediction over the training rate, log-loss compared with the constant rate, AUC, of logistic regression on
frauds (1.7 %) and readmissions of a clinic. Costs: R^2 with three upper bounds of the same costs. Visits: counts.
A tenth of the rows is held out; means over the splits. The authors of offsets and units had seen these tables: they are
no held-out evidence for those.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from privlearn import PrivateLogisticRegression, PrivateRegressor

Rng = np.random.Generator
EPSILONS = (0.5, 1.0, 4.0)


class Table(NamedTuple):
    schema: dict[str, Any]
    rows: pd.DataFrame


def clinic(rng: Rng) -> Table:
    """Readmissions: 8,000 patients, a log-normal marker with missing cells."""
    n = 8000
    age, sex = rng.integers(18, 95, n), rng.choice(["male", "female"], n)
    town = rng.choice(["Cologne", "Munster", "Dusseldorf", "Giessen"], n, p=[0.4, 0.3, 0.2, 0.1])
    bmi, crp = np.round(rng.normal(26, 4.5, n), 1), np.round(np.exp(rng.normal(1, 1.2, n)), 2)
    smoking = rng.choice(["never", "former", "daily"], n, p=[0.5, 0.3, 0.2])
    odds = -3 + 0.04 * (age - 50) + 0.5 * (smoking == "daily") + 0.35 * np.log(crp) + 0.06 * (bmi - 26)
    again = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    crp[rng.random(n) < 0.05] = np.nan
    columns = {
        "age": {"type": "number", "lower": 18, "upper": 100},
        "sex": {"type": "category", "values": ["male", "female", "other"]},
        "height": {"type": "number", "lower": 120, "upper": 220},
        "bmi": {"type": "number", "lower": 12, "upper": 60},
        "crp": {"type": "number", "lower": 0, "upper": 500, "scale": "log", "missing": "zero"},
        "town": {"type": "category", "values": ["Cologne", "Munster", "Dusseldorf", "Giessen"]},
        "smoking": {"type": "ordinal", "values": ["never", "former", "daily"]},
    }
    height = np.round(rng.normal(172, 9, n), 1)
    cells = {
        "age": age,
        "sex": sex,
        "height": height,
        "bmi": bmi,
        "crp": crp,
        "town": town,
        "smoking": smoking,
    }
    return _table("clinic", columns, {"name": "again", "classes": ["no", "yes"]}, cells | {"again": again})


def frauds(rng: Rng) -> Table:
    """40,000 payments, 1.7 % of them frauds."""
    n = 40000
    numbers = np.round(rng.normal(0, 1, (n, 6)), 3).T
    channel = rng.choice(["web", "atm", "pos"], n)
    odds = -5.6 + 1.2 * numbers[0] + 0.8 * numbers[1] - 0.6 * numbers[2] + 0.7 * (channel == "web")
    names = ["amount", "night", "tenure", "x4", "x5", "x6"]
    columns: dict[str, Any] = {name: {"type": "number", "lower": -4, "upper": 4} for name in names}
    columns["channel"] = {"type": "category", "values": ["web", "atm", "pos"]}
    fraud = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    cells = dict(zip(names, numbers, strict=True)) | {"channel": channel, "fraud": fraud}
    return _table("fraud", columns, {"name": "fraud", "classes": [0, 1]}, cells)


def costs(rng: Rng, upper: float = 150_000.0) -> Table:
    """20,000 stays in hospital: about 5,500 with a deviation of 3,800, skewed to the right."""
    n = 20000
    days, age, icu = rng.geometric(0.18, n), rng.integers(18, 95, n), rng.choice([0, 1], n, p=[0.88, 0.12])
    group = rng.choice(8, n)
    mean = 900 + 420 * days + 5200 * icu + 12 * age
    mean = mean + np.array([0, 300, 900, -200, 2500, 100, 600, 1500])[group]
    columns = {
        "age": {"type": "number", "lower": 18, "upper": 110},
        "days": {"type": "number", "lower": 1, "upper": 200, "scale": "log"},
        "icu": {"type": "category", "values": [0, 1]},
        "group": {"type": "category", "values": list("ABCDEFGH")},
    }
    cost = np.round(np.exp(rng.normal(0, 0.35, n)) * mean, 2).clip(0, 150_000)
    cells = {"age": age, "days": days, "icu": icu, "group": np.array(list("ABCDEFGH"))[group], "cost": cost}
    return _table("cost", columns, {"name": "cost", "lower": 0, "upper": upper}, cells)


def visits(rng: Rng) -> Table:
    """12,000 people and their visits: overdispersed counts."""
    n = 12000
    age, chronic = rng.integers(0, 95, n), rng.integers(0, 6, n)
    distance = np.round(np.exp(rng.normal(2, 1, n)), 1)
    insurance = rng.choice(["public", "private", "none"], n, p=[0.7, 0.2, 0.1])
    odds = -0.6 + 0.012 * age + 0.30 * chronic - 0.01 * distance
    odds = odds + 0.2 * (insurance == "private") - 0.5 * (insurance == "none")
    columns = {
        "age": {"type": "number", "lower": 0, "upper": 110},
        "chronic": {"type": "number", "lower": 0, "upper": 10},
        "distance": {"type": "number", "lower": 0, "upper": 1000, "scale": "log"},
        "insurance": {"type": "category", "values": ["public", "private", "none"]},
    }
    number = np.minimum(rng.poisson(np.exp(odds) * rng.gamma(2, 0.5, n)), 30)
    cells = {"age": age, "chronic": chronic, "distance": distance, "insurance": insurance, "visits": number}
    return _table("visits", columns, {"name": "visits", "lower": 0, "upper": 30}, cells)


def trial(rng: Rng) -> Table:
    """Relapses of 400 patients."""
    n = 400
    age, size = rng.integers(20, 90, n), np.round(rng.gamma(3, 8, n), 1)
    stage, arm = rng.choice(["I", "II", "III", "IV"], n, p=[0.4, 0.3, 0.2, 0.1]), rng.choice(["A", "B"], n)
    odds = (
        -1.5
        + 0.03 * (age - 60)
        + 0.05 * (size - 24)
        + 0.9 * np.isin(stage, ["III", "IV"])
        - 0.8 * (arm == "B")
    )
    relapse = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    columns = {
        "age": {"type": "number", "lower": 18, "upper": 100},
        "size": {"type": "number", "lower": 0, "upper": 200, "scale": "log"},
        "stage": {"type": "ordinal", "values": ["I", "II", "III", "IV"]},
        "arm": {"type": "category", "values": ["A", "B"]},
    }
    cells = {"age": age, "size": size, "stage": stage, "arm": arm, "relapse": relapse}
    return _table("trial", columns, {"name": "relapse", "classes": ["no", "yes"]}, cells)


def complications(rng: Rng) -> Table:
    """9,000 visits of 3,000 patients with diabetes, who differ beyond what the columns explain."""
    n = 9000
    patient, risk = rng.integers(1, 3001, n), rng.normal(0, 1, 3001)
    pressure, sugar = np.round(rng.normal(130, 18, n)), np.round(rng.normal(6.5, 1.1, n), 1)
    odds = -1 + 0.9 * (sugar - 6.5) + 0.02 * (pressure - 130) + 0.5 * risk[patient]
    drugs = ["metformin", "insulin", "none"]
    columns = {
        "pressure": {"type": "number", "lower": 60, "upper": 250},
        "sugar": {"type": "number", "lower": 3, "upper": 15},
        "drug": {"type": "category", "values": drugs},
    }
    cells = {"patient": patient, "pressure": pressure, "sugar": sugar, "drug": rng.choice(drugs, n)}
    cells["complication"] = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    target = {"name": "complication", "classes": ["no", "yes"]}
    schema = {"name": "complications", "columns": columns, "target": target, "person": "patient"}
    return Table(schema, pd.DataFrame(cells))


SYMPTOMS = {
    "fever": 0.8, "cough": 0.5, "fall": 0.3, "fracture": 1.5, "chest pain": 1.8, "dizzy": 0.2, "check-up": -1.5,
    "rash": -0.8, "headache": -0.2, "bleeding": 1.3,
}  # fmt: skip


def emergency(rng: Rng) -> Table:
    """Admissions from 15,000 visits to an emergency room, with a note in words."""
    n = 15000
    words, odds = np.array(list(SYMPTOMS)), np.array(list(SYMPTOMS.values()))
    chosen, triage = (
        rng.choice(len(words), (n, 3)),
        rng.choice(["green", "yellow", "red"], n, p=[0.5, 0.35, 0.15]),
    )
    notes = [f"Patient presents with {words[a]} and {words[b]}; {words[c]} denied." for a, b, c in chosen]
    total = odds[chosen[:, :2]].sum(axis=1) - 2 - 0.6 * (triage == "green") + 1.2 * (triage == "red")
    admit = np.where(rng.random(n) < 1 / (1 + np.exp(-total)), "yes", "no")
    columns = {
        "note": {"type": "text"},
        "triage": {"type": "ordinal", "values": ["green", "yellow", "red"]},
    }
    cells = {"note": notes, "triage": triage, "admit": admit}
    return _table("emergency", columns, {"name": "admit", "classes": ["no", "yes"]}, cells)


def _table(name: str, columns: dict[str, Any], target: dict[str, Any], cells: dict[str, Any]) -> Table:
    schema = {"name": name, "columns": columns, "target": target, "one_row_per_person": True}
    return Table(schema, pd.DataFrame(cells))


def split(table: Table, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = np.random.default_rng(seed).permutation(len(table.rows))
    held = len(order) // 10
    return table.rows.iloc[order[held:]], table.rows.iloc[order[:held]]


def show_rates(splits: int) -> None:
    print("| table | epsilon | mean prediction / rate | log-loss | of the constant rate | AUC |")
    print("|---|---|---|---|---|---|")
    for make in (frauds, clinic):
        table = make(np.random.default_rng(11))
        target = table.schema["target"]
        for epsilon in (*EPSILONS, np.inf):
            found = []
            for seed in range(splits if np.isfinite(epsilon) else 1):
                train, test = split(table, seed)
                positive = (test[target["name"]] == target["classes"][1]).to_numpy()
                rate = float((train[target["name"]] == target["classes"][1]).mean())
                model = PrivateLogisticRegression(epsilon=epsilon, delta=1e-6, schema=table.schema).fit(train)
                likely = model.predict_proba(test)[:, 1]
                constant = log_loss(positive, np.full(len(test), rate))
                predicted = model.predict_proba(train)[:, 1].mean()
                loss, auc = log_loss(positive, likely), roc_auc_score(positive, likely)
                found.append((predicted / rate, loss, constant, auc))
            ratio, loss, constant, auc = np.mean(found, axis=0)
            print(
                f"| {table.schema['name']} | {epsilon:g} | {ratio:.3f} | {loss:.4f} | {constant:.4f} | {auc:.4f} |",
                flush=True,
            )


def _r2(table: Table, splits: int, **parameters: Any) -> float:
    found = []
    name = table.schema["target"]["name"]
    for seed in range(splits):
        train, test = split(table, seed)
        model = PrivateRegressor(schema=table.schema, **parameters).fit(train)
        found.append(r2_score(test[name], model.predict(test)))
    return float(np.mean(found))


def show_costs(splits: int) -> None:
    print("| upper bound | delta | epsilon 1 | epsilon 4 | epsilon inf |")
    print("|---|---|---|---|---|")
    for upper in (40_000.0, 150_000.0, 1_000_000.0):
        table = costs(np.random.default_rng(11), upper)
        for delta in (1e-6, 0.0):
            cells = [
                _r2(table, splits if np.isfinite(epsilon) else 1, epsilon=epsilon, delta=delta)
                for epsilon in (1.0, 4.0, np.inf)
            ]
            print(
                f"| {upper:,.0f} | {delta:g} | " + " | ".join(f"{r2:.3f}" for r2 in cells) + " |", flush=True
            )


def show_visits(splits: int) -> None:
    print("| table | epsilon 0.5 | epsilon 1 | epsilon 4 | epsilon inf |")
    print("|---|---|---|---|---|")
    cells = [
        _r2(visits(np.random.default_rng(11)), splits if np.isfinite(e) else 1, epsilon=e, delta=1e-6)
        for e in (*EPSILONS, np.inf)
    ]
    print("| visits | " + " | ".join(f"{r2:.3f}" for r2 in cells) + " |", flush=True)


PARTS = {"rates": show_rates, "costs": show_costs, "visits": show_visits}

if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        PARTS[part](options.splits)
