"""privlearn beside its peers: same rows, same splits, same epsilon; error, AUC, log-loss, fit time and memory.

    PRIVLEARN_DATA=... python benchmarks/peers.py               # hours at most; goes on where it was stopped
    PRIVLEARN_DATA=... python benchmarks/peers.py --seeds 1 --data adult breast_cancer --no-tuning
    python benchmarks/peers.py --report                         # page and plot from the results that are there

Each peer is installed into an environment of its own on the first run (peer_environments.py) and fitted there
(peer_worker.py). Results are lines of benchmarks/peers.jsonl, one per fit, so a run that is stopped loses nothing.
docs/benchmarks.md, benchmarks/peers.md and docs/benchmarks.svg are written from them (peers_report.py).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tables
from peer_environments import PACKAGES, peer_python
from peers_report import RESULTS, results, write_report
from pyarrow import feather
from softmax import mnist

from privlearn.data.encoding.column_cells import codes

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 4.0)
WORKER = Path(__file__).with_name("peer_worker.py")
DATA = (*tables.NAMES, "mnist")
SMALL = {"breast_cancer": 12}
"""More splits where a test set has a hundred records: one split says nothing there."""

CHOOSING = 2
"""Splits that all settings are tried on. On later ones: the default, the best so far by error and the best by AUC."""

load, digits = cache(tables.load), cache(mnist)

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "privlearn": [{}, {"model": "PrivateSVC"}],
    "diffprivlib": [{}, {"C": 0.1}, {"C": 0.01}],
    "interpret": [
        {},
        {"learning_rate": 0.03},
        {"learning_rate": 0.1},
        {"max_rounds": 100, "learning_rate": 0.1},
        {"max_rounds": 100, "learning_rate": 0.3},
    ],
    "opacus": [
        {"lr": 0.1, "batch": 256, "epochs": 5, "clip": 1.0},
        {"lr": 4.0, "batch": 2048, "epochs": 5, "clip": 1.0},
        {"lr": 2.0, "batch": 2048, "epochs": 20, "clip": 1.0},
        {"lr": 8.0, "batch": 4096, "epochs": 20, "clip": 0.5},
        {"lr": 32.0, "batch": 4096, "epochs": 20, "clip": 0.5},
    ],
    "scikit-learn": [{}, {"C": 100.0}],
}
"""The first is the library's default (Opacus has none: its tutorials'); the best of all on the test rows is "tuned"."""

DEFAULTS = {name: settings[:1] for name, settings in SETTINGS.items()} | {"privlearn": SETTINGS["privlearn"]}
"""Ours has two classifiers, both with their defaults; it is never tuned."""

Best = dict[str, list[dict[str, Any]]]
"""The settings that did best, by what they were chosen for."""

PROMISES: dict[str, list[tuple[str, float]]] = {
    "privlearn": [("replace_one", DELTA), ("zero_out", DELTA), ("replace_one", 0.0)],
    "diffprivlib": [("replace_one", 0.0)],
    "interpret": [("add_remove", DELTA)],
    "opacus": [("add_remove", DELTA)],
    "scikit-learn": [("none", 0.0)],
}
ENCODINGS = dict.fromkeys(SETTINGS, ("plain", "schema")) | {
    "privlearn": ("plain", "schema", "table"),
    "interpret": ("plain", "columns"),
}
"""The same for all, and last what suits each best: an additive model bins raw columns itself, ours reads the table."""

TUNED_IN_ALL = ("diffprivlib", "scikit-learn")
"""Their fits take less than a second; the others are tuned in the last encoding only."""


def encodings(library: str, data: str) -> tuple[str, ...]:
    return ("pixels",) if data == "mnist" else ENCODINGS[library]


def jobs(
    library: str, data: str, encoding: str, seed: int, settings: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Fits of one library on one split, for each epsilon and promise."""
    epsilons = (None,) if library == "scikit-learn" else EPSILONS
    for chosen, epsilon, (neighbours, delta) in product(settings, epsilons, PROMISES[library]):
        if library == "privlearn" and not delta and (chosen or encoding != "table"):
            continue  # delta = 0 is there for a look beside diffprivlib's default
        yield {
            "library": library,
            "data": data,
            "encoding": encoding,
            "seed": seed,
            "epsilon": epsilon,
            "delta": delta,
            "neighbours": neighbours,
            "settings": chosen,
            "default": chosen == SETTINGS[library][0],
        }


def tuning_jobs(library: str, data: str, encoding: str, seed: int, best: Best) -> Iterator[dict[str, Any]]:
    """All other settings on the first splits, on later ones those that were best there."""
    if library == "privlearn":
        return
    if encoding != encodings(library, data)[-1] and library not in TUNED_IN_ALL:
        return
    for job in jobs(library, data, encoding, seed, SETTINGS[library][1:]):
        if seed < CHOOSING or data in SMALL or job["settings"] in best.get(question(job), []):
            yield job


def question(job: dict[str, Any]) -> str:
    """What a setting is chosen for."""
    return json.dumps(
        [job[name] for name in ("library", "data", "encoding", "epsilon", "delta", "neighbours")]
    )


def best_settings(known: list[dict[str, Any]]) -> Best:
    """For each question the best setting by error, and that by AUC, on the splits that all were tried on."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in known:
        if "error" in line and line["seed"] < CHOOSING:
            found.setdefault(question(line), {}).setdefault(json.dumps(line["settings"]), []).append(line)
    best = {}
    for asked, tried in found.items():
        by_error = min(tried.values(), key=lambda lines: sum(line["error"] for line in lines))
        by_auc = max(tried.values(), key=lambda lines: sum(line["auc"] for line in lines))
        best[asked] = [by_error[0]["settings"], by_auc[0]["settings"]]
    return best


def write_split(path: Path, data: str, encoding: str, seed: int) -> None:
    """Rows to train on and rows for the test, written for any numpy to read; those of a table as files beside."""
    split = pixels() if encoding == "pixels" else table_split(data, encoding, seed)
    for part in ("X_train", "X_test"):
        if encoding == "table":
            feather.write_feather(split.pop(part), path.with_suffix(f".{part}.feather"))
    np.savez(path, **split)


def pixels() -> dict[str, Any]:
    """MNIST has its own test images; a seed changes the noise only."""
    rows = digits(0)
    return {
        "X_train": rows.rows,
        "y_train": rows.labels,
        "X_test": rows.test_rows,
        "y_test": rows.test_labels,
        "classes": 10,
    }


def table_split(data: str, encoding: str, seed: int) -> dict[str, Any]:
    """Four fifths of the rows to train on."""
    table, schema = load(data)
    features, labels = tables.encoded(table, tables.plain(schema) if encoding == "plain" else schema)
    kinds, bounds = ["continuous"] * features.shape[1], np.tile([-1.0, 1.0], (features.shape[1], 1))
    if encoding == "columns":
        features, kinds, bounds = raw_columns(table, schema)
    split = {"kinds": kinds, "bounds": bounds, "classes": 2}
    order = np.random.default_rng(seed).permutation(len(labels))
    for part, numbers in zip(("train", "test"), np.split(order, [int(0.8 * len(labels))]), strict=True):
        split[f"X_{part}"] = table.take(numbers) if encoding == "table" else features[numbers]
        split[f"y_{part}"] = labels[numbers]
    return split


def raw_columns(table: Any, schema: Any) -> tuple[Any, list[str], Any]:
    """Numbers as they are, categories as numbers of the public list; and the public bounds."""
    columns, kinds, bounds = [], [], []
    for name, column in schema.columns.items():
        if column.type == "number":
            columns.append(np.asarray(table[name], dtype=float))
            kinds.append("continuous")
            bounds.append((column.lower, column.upper))
        else:
            columns.append(np.asarray(codes(table[name], column.values, name), dtype=float))
            kinds.append("nominal")
            bounds.append((np.nan, np.nan))
    return np.column_stack(columns), kinds, np.array(bounds)


def run(python: Path, wanted: list[dict[str, Any]]) -> None:
    """Fit in the library's environment, all in one process, and keep each line as it comes."""
    first = wanted[0]
    with tempfile.TemporaryDirectory() as folder:
        for seed in {job["seed"] for job in wanted}:
            write_split(Path(folder) / f"{seed}.npz", first["data"], first["encoding"], seed)
        quiet = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [str(python), str(WORKER), folder, first["library"]]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(json.dumps(wanted))
            worker.stdin.close()
            for line in worker.stdout:
                with RESULTS.open("a", encoding="utf-8") as kept:
                    kept.write(line)
    if worker.returncode:
        raise SystemExit(f"the worker of {first['library']} failed: its message is above")
    named = "{library} ({encoding}) on {data}, from seed {seed}".format_map(first)
    print(f"{named}: {len(wanted)} fits", flush=True)


def measure(options: argparse.Namespace) -> None:
    """What is not known yet, split by split: a process for each library and encoding (small splits share one)."""
    pythons = {
        name: peer_python(name) if name in PACKAGES else Path(sys.executable) for name in options.peers
    }
    for some in range(options.seeds):
        known = results()
        best, there = best_settings(known), {cell(line) for line in known}
        with ThreadPoolExecutor(options.workers) as pool:
            running = []
            for data, library in product(options.data, options.peers):
                seeds = range(some, SMALL[data], options.seeds) if data in SMALL else [some]
                for encoding in encodings(library, data):
                    fits = [
                        job
                        for seed in seeds
                        for job in (
                            *jobs(library, data, encoding, seed, DEFAULTS[library]),
                            *(tuning_jobs(library, data, encoding, seed, best) if options.tuning else ()),
                        )
                    ]
                    wanted = [job for job in fits if cell(job) not in there]
                    if wanted:
                        running.append(pool.submit(run, pythons[library], wanted))
            for done in running:
                done.result()


def cell(job: dict[str, Any]) -> str:
    """What identifies a fit."""
    names = ("library", "data", "encoding", "seed", "epsilon", "delta", "neighbours", "settings")
    return json.dumps([job[name] for name in names])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--peers", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=5, help="splits and noise")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--no-tuning", dest="tuning", action="store_false", help="defaults only")
    parser.add_argument("--report", action="store_true", help="only write the page and the plot")
    options = parser.parse_args()
    if not options.report:
        measure(options)
    write_report()


if __name__ == "__main__":
    main()
