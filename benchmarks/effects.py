"""Which columns a released model shows as important: do fits agree, and is a column of pure noise ever shown?

    PRIVLEARN_DATA=... python benchmarks/effects.py agreement [--fits 20] [--epsilon 1]
    python benchmarks/effects.py idle [--runs 200] [--sizes 6000 45000] [--encodings linear] [--bars curvature]

`agreement` fits Adult again and again and compares the order of its columns. `idle` makes tables in which three columns
have nothing to do with the answer (crowded numbers, and lists of which some values are rare, where answers are rare)
and counts how often any of them is shown as above the noise, with the free error bars and with a bought curvature.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy import stats

from privlearn import PrivateLogisticRegression, Schema, curvature, effects
from privlearn.data.datasets import load_adult

ADULT = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
LISTED = [f"v{place}" for place in range(12)]
IDLE = ("crowded", "listed", "flag")
ENCODINGS: dict[str, dict[str, Any]] = {"default": {}, "linear": {"encoding": "linear"}}
BASES = {"half yes": 0.0, "few yes": -4.0}


def importances(
    fits: int, epsilon: float, rows: int | None = None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of Adult's columns; how important each fit says that they are; and which it shows as above the noise."""
    table, schema = load_adult(), Schema.load(ADULT)
    names = list(schema.columns)
    found, shown = np.empty((fits, len(names))), np.empty((fits, len(names)), bool)
    for seed in track(range(fits), description="Adult", transient=True):
        model = PrivateLogisticRegression(epsilon=epsilon, delta=1e-5, schema=schema, random_state=seed)
        told = effects(model.fit(table.slice(0, rows)).release_)
        found[seed] = [told[name].importance for name in names]
        shown[seed] = [told[name].above_noise for name in names]
    return names, found, shown


def rank_correlation(found: np.ndarray) -> float:
    """Mean over all pairs of fits."""
    return float(
        np.mean([stats.spearmanr(one, other).statistic for one, other in itertools.combinations(found, 2)])
    )


def idle_schema(encoding: dict[str, Any]) -> Schema:
    number = {"type": "number", "lower": 0, "upper": 1} | encoding
    columns = {
        "real": number,
        "ward": {"type": "category", "values": list("abc")},
        "crowded": number,
        "listed": {"type": "category", "values": LISTED},
        "flag": {"type": "category", "values": ["no", "yes"]},
    }
    target = {"name": "answer", "classes": ["no", "yes"]}
    return Schema.from_dict({"name": "idle", "columns": columns, "target": target})


def idle_table(records: int, base: float, random: np.random.Generator) -> dict[str, Any]:
    """Answers follow two columns; the other three are independent of everything."""
    real, ward = random.uniform(size=records), random.choice(list("abc"), records, p=[0.7, 0.2, 0.1])
    shares = 1.0 / np.arange(1, 13) ** 2
    odds = base + 3.0 * (real - 0.5) + (ward == "b")
    return {
        "real": real,
        "ward": ward,
        "crowded": random.beta(1, 8, size=records),
        "listed": random.choice(LISTED, records, p=shares / shares.sum()),
        "flag": random.choice(["no", "yes"], records, p=[0.95, 0.05]),
        "answer": np.where(odds + random.logistic(size=records) > 0.0, "yes", "no"),
    }


def alarms(
    records: int, base: float, encoding: dict[str, Any], buys: bool, seed: int
) -> tuple[bool, bool] | None:
    """Whether any idle column is shown, and whether the real one is; ``None`` where intervals are refused."""
    table = idle_table(records, base, np.random.default_rng(seed))
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, schema=idle_schema(encoding), random_state=seed
    )
    release = model.fit(table).release_
    bought = curvature(release, table, epsilon=1.0, delta=1e-6, random_state=seed) if buys else None
    told = effects(release, bought)
    return any(told[name].above_noise for name in IDLE), told["real"].above_noise


def show_agreement(fits: int, epsilon: float) -> None:
    names, found, shown = importances(fits, epsilon)
    order = np.argsort(-found.mean(axis=0))
    for place in order:
        print(
            f"{names[place]:<16} importance {found[:, place].mean():.3f} +- {found[:, place].std():.3f}, "
            f"above the noise in {shown[:, place].sum()} of {fits} fits"
        )
    print(f"mean rank correlation of all columns: {rank_correlation(found):.3f}")
    print(f"mean rank correlation of the ten most important: {rank_correlation(found[:, order[:10]]):.3f}")
    tops = [set(np.argsort(-fit)[:10]) for fit in found]
    shared = np.mean([len(one & other) for one, other in itertools.combinations(tops, 2)])
    print(f"of each fit's ten most important columns, two fits share {shared:.1f} on average")


def show_idle(runs: int, sizes: list[int], encodings: list[str], bars: list[str]) -> None:
    print("records  encoding  answers   bars      alarms         95 % bound  real column shown")
    for records, label, (kind, base), bar in itertools.product(sizes, encodings, BASES.items(), bars):
        buys = bar == "curvature"
        if buys and records > 20_000 and label == "default":
            continue  # fine bins: more coefficients than a curvature is sold for
        told = [alarms(records, base, ENCODINGS[label], buys, seed) for seed in range(runs)]
        false, real = (sum(pair[place] for pair in told if pair) for place in (0, 1))
        bound = stats.binomtest(false, runs).proportion_ci(0.95, method="exact").high
        print(
            f"{records:7d}  {label:<8}  {kind:<8}  {bar:<9} {false:3d} of {runs:4d}   {bound:8.1%}   "
            f"{real / runs:8.0%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["agreement", "idle"])
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[6_000, 45_000])
    parser.add_argument("--encodings", nargs="+", choices=list(ENCODINGS), default=list(ENCODINGS))
    parser.add_argument("--bars", nargs="+", choices=["free", "curvature"], default=["free", "curvature"])
    asked = parser.parse_args()
    if asked.part == "agreement":
        show_agreement(asked.fits, asked.epsilon)
    else:
        show_idle(asked.runs, asked.sizes, asked.encodings, asked.bars)


if __name__ == "__main__":
    main()
