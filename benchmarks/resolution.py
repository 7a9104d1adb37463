"""What the chosen resolution gains over the centred encoding: mean test error against epsilon, 80/20 splits.

    PRIVLEARN_DATA=... python benchmarks/resolution.py [adult covertype ...] [--epsilons 0.1 1] [--strengths 1 1.5 4]

``--strengths`` are N Lambda over the noise in one coordinate of the gradient, "auto" the default regularization. The
same splits and seeds serve both encodings; nothing here looks at test errors to choose. ``covertype_all`` is CoverType
with all its rows, at delta 1e-6; ``smooth`` are simulated measurements, 4,625 records of six columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tables

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema, SchemaEncoder
from privlearn.accounting import gaussian_ratio
from privlearn.data import Resolution
from privlearn.data.encoding.resolution import choose_resolution
from privlearn.guarantee import get_relation

MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC}
EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = (*tables.NAMES, "covertype_all", "smooth")


def load(name: str) -> tuple[pa.Table, Schema]:
    if name == "smooth":
        return smooth()
    if name == "covertype_all":
        return tables.all_covertype(), Schema.load(EXAMPLES / "covertype.schema.yaml")
    return tables.load(name)


def smooth(rows: int = 4625, columns: int = 6) -> tuple[pa.Table, Schema]:
    """Measurements whose effects have no edges."""
    random = np.random.default_rng(0)
    places = random.beta(2.0, 4.0, size=(rows, columns))
    odds = 4.0 * (places[:, 0] - places[:, 1]) + 3.0 * np.sin(4.0 * places[:, 2]) * places[:, 3] - 0.8
    labels = (random.uniform(size=rows) < 1.0 / (1.0 + np.exp(-2.0 * odds))).astype(int)
    described = {f"m{place}": {"type": "number", "lower": 0, "upper": 1} for place in range(columns)}
    schema = Schema.from_dict(
        {"name": "smooth", "columns": described, "target": {"name": "y", "classes": [0, 1]}}
    )
    return pa.table({f"m{place}": places[:, place] for place in range(columns)} | {"y": labels}), schema


def errors(
    features: Any, labels: np.ndarray, model: str, strength: str, noise: float, **settings: Any
) -> float:
    """Mean test error; ``settings`` are the estimator's, and ``seeds``."""
    found, cut = [], int(0.8 * len(labels))
    for seed in range(settings.pop("seeds")):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[:cut], order[cut:]
        regularization = "auto" if strength == "auto" else max(float(strength) * noise, 0.25) / cut
        fitted = MODELS[model](
            regularization=regularization,
            norm_bound=1.0,
            classes=[0, 1],
            fit_intercept=False,
            random_state=seed,
            **settings,
        ).fit(features[train], labels[train])
        found.append(1.0 - fitted.score(features[test], labels[test]))
    return float(np.mean(found))


def cells(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    for name in arguments.data or NAMES:
        table, schema = load(name)
        delta = 1e-6 if name == "covertype_all" else 1e-5
        assert schema.target is not None
        labels = SchemaEncoder(schema).encode_labels(table[schema.target.name])
        for epsilon in arguments.epsilons:
            noise = get_relation(arguments.neighbours).gradients / gaussian_ratio(epsilon, delta)
            chosen = choose_resolution(schema, int(0.8 * len(labels)), noise)
            settings = {"epsilon": epsilon, "delta": delta, "neighbours": arguments.neighbours}
            for resolution in (None, chosen):
                features = SchemaEncoder(schema, resolution=resolution).encode(table)
                for model in arguments.models:
                    for strength in arguments.strengths:
                        began = time.perf_counter()
                        error = errors(
                            features, labels, model, strength, noise, seeds=arguments.seeds, **settings
                        )
                        seconds = (time.perf_counter() - began) / arguments.seeds
                        yield name, epsilon, model, strength, resolution, features.shape[1], error, seconds


def described(resolution: Resolution | None) -> str:
    if resolution is None:
        return "centred"
    bins = f"bins {resolution.bins} {resolution.bin_share:.2f}"
    return f"{bins}, grid {resolution.grid} {resolution.pair_share:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="*", help=f"of {', '.join(NAMES)}; all if none is named")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1.0, 4.0])
    parser.add_argument("--strengths", nargs="+", default=["1.5"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--neighbours", default="zero_out")
    parser.add_argument("--seeds", type=int, default=5)
    line = "{:<14} {:>7} {:<9} {:>8}  {:<28} {:>8} {:>7} {:>7}"
    print(line.format("data", "epsilon", "model", "strength", "encoding", "columns", "error", "seconds"))
    for name, epsilon, model, strength, resolution, columns, error, seconds in cells(parser.parse_args()):
        figures = (columns, f"{error:.4f}", f"{seconds:.2f}")
        print(line.format(name, epsilon, model, strength, described(resolution), *figures), flush=True)


if __name__ == "__main__":
    main()
