"""How long a session's answers and fits take.

    python benchmarks/sessions.py                 # 1,000 adaptive answers; fits of 6,000 simulated people
    python benchmarks/sessions.py --quick         # 100 answers, 500 people

Answers: each point is asked once the answer before has arrived, by one process; on rows of an array and of a schema
with the RBF kernel, and on short texts with a function as kernel, which is asked about all records and all texts
before. "processor" is their processor time, "kernel" how much of it that function takes. "commits" are as many bare
commits of the same size, with the same settings, on the same disk: what durability costs, whatever the library does.

Fits: `KernelLearner.fit` from the table against scikit-learn's SVC on the encoded rows, with its own tolerance (1e-3),
the same kernel and C = 1 / (n Lambda); processor time, the least of three runs. Ours proves its distance from
the minimiser; SVC's stopping rule proves nothing. Run it with OMP_NUM_THREADS=1, as SVC has one thread.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.svm import SVC

from privlearn import Guarantee, InteractivePredictor, KernelLearner, NothingRecorded
from privlearn.data.datasets import census_schema, simulated_census

PROMISE = Guarantee(1.0, 1e-6)
GAMMA = 2.0
REPEATS = 3
BUCKETS = 256
WORDS = {0: ["match", "goal", "team", "coach", "league"], 1: ["court", "vote", "law", "minister", "budget"]}


class TrigramKernel:
    """Cosine of the texts' counts of three letters, hashed; knows how long it has worked."""

    __name__ = "trigrams"

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, X: list[str], Z: list[str]) -> Any:
        start = time.process_time()
        left, right = (np.concatenate([*map(_trigrams, texts)]) for texts in (X, Z))
        values = left.reshape(-1, BUCKETS) @ right.reshape(-1, BUCKETS).T
        self.seconds += time.process_time() - start
        return values


@cache
def _trigrams(text: str) -> Any:
    """How often each run of three letters occurs, in buckets, at norm 1."""
    runs = [crc32(text[place : place + 3].encode()) % BUCKETS for place in range(len(text) - 2)]
    counts = np.bincount(runs, minlength=BUCKETS)
    return counts / np.linalg.norm(counts)


def texts(count: int, seed: int) -> tuple[list[str], Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    return [" ".join(rng.choice(WORDS[label], 8)) for label in labels], labels


def adaptive(session: InteractivePredictor, points: list[Any]) -> tuple[float, float]:
    """Wall and processor seconds of asking one point after the other."""
    wall, processor = time.perf_counter(), time.process_time()
    for point in points:
        session.decide(point)
    return time.perf_counter() - wall, time.process_time() - processor


def bare_commits(folder: Path, count: int) -> float:
    """Wall seconds of as many commits of a growing row, and of nothing else."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE answers (number INTEGER PRIMARY KEY, memory BLOB)")
    start = time.perf_counter()
    for number in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO answers VALUES (?, ?)", (number, bytes(8 * number)))
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return seconds


def answers(count: int) -> None:
    people, (read, labels) = simulated_census(4_000, seed=1), texts(300, 1)
    schema = KernelLearner(gamma=GAMMA, schema=census_schema(), guarantee=PROMISE).fit(people)
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (4_000 + count, 10))
    array = KernelLearner(gamma=GAMMA, norm_bound=3.0, classes=[0, 1], guarantee=PROMISE)
    array.fit(X[count:], (X[count:, 0] > 0.0).astype(int))
    trigrams = TrigramKernel()
    own = KernelLearner(kernel=trigrams, kernel_bound=1.0, classes=[0, 1], guarantee=PROMISE)
    points = simulated_census(count, seed=2).to_pylist()
    cases = {
        "array, 4,000 records": (array, list(X[:count])),
        "schema, 4,000 records": (schema, points),
        "texts, 300 records": (own.fit(read, labels), texts(count, 2)[0]),
    }
    print(f"{count} answers, one by one:            wall  processor   kernel  commits (seconds)")
    for name, (learner, chosen) in cases.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            with InteractivePredictor(learner, PROMISE, state=folder / "a.session") as session:
                before = trigrams.seconds
                wall, processor = adaptive(session, chosen)
                kernel = trigrams.seconds - before
            bare = bare_commits(folder, count)
            print(f"  {name:<30}{wall:>10.2f} {processor:>10.2f} {kernel:>8.2f} {bare:>8.2f}", flush=True)


def least(work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def fits(count: int) -> None:
    people = simulated_census(count, seed=1)
    print(f"fits of {count} records: Lambda, ours, SVC (processor seconds), ratio")
    for loss in ("huber_hinge", "hinge"):
        for regularization in ("auto", 1e-3, 1e-4):
            learner = KernelLearner(
                gamma=GAMMA,
                schema=census_schema(),
                guarantee=PROMISE,
                loss=loss,
                regularization=regularization,
            )
            ours = least(lambda learner=learner: learner.fit(people))  # type: ignore[misc]
            strength = learner.freeze().kernel_task("replace_one").task.regularization
            features = learner.freeze().encode(people)
            peer = SVC(C=1.0 / (count * strength), gamma=GAMMA, cache_size=1000)
            theirs = least(lambda peer=peer, features=features: peer.fit(features, people["income"]))  # type: ignore[misc]
            print(
                f"  {loss:<12} {strength:>8.1e} {ours:>7.2f} {theirs:>7.2f} {ours / theirs:>6.2f}", flush=True
            )


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="100 answers, 500 people")
    quick = options.parse_args().quick
    warnings.simplefilter("ignore", NothingRecorded)
    answers(100 if quick else 1_000)
    fits(500 if quick else 6_000)


if __name__ == "__main__":
    main()
