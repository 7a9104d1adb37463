"""Several classes: softmax with noise in the objective against one-vs-rest, on digits and forests.

    PRIVLEARN_DATA=... python benchmarks/softmax.py [mnist covertype] [--epsilon 1.2 4] [--seeds 1] [--loss multinomial]

MNIST: raw pixels, each image scaled to norm 1, its own test images. CoverType: seven kinds of cover through the example
schema's encoder, 50,000 rows to learn from. Defaults, delta 1e-5, zero_out. Prints the test error, N Lambda, the noise
in the objective, the tolerance, seconds on the clock and on the processors, and the machine's load.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tables import encoded, load

from privlearn import PrivateLogisticRegression
from privlearn.data.datasets import load_covertype

TRAINING_ROWS = 50_000


class Split(NamedTuple):
    """Rows of norm 1 and the numbers of their classes, to learn from and to test on."""

    rows: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray


def mnist(seed: int) -> Split:
    """The usual split; the seed changes the noise only."""
    images = [_pixels(f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    labels = [_bytes(f"{part}-labels-idx1-ubyte.gz", 8).astype(int) for part in ("train", "t10k")]
    return Split(images[0], labels[0], images[1], labels[1])


def _bytes(name: str, header: int) -> np.ndarray:
    with gzip.open(Path(os.environ["PRIVLEARN_DATA"]) / "mnist" / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def _pixels(name: str) -> np.ndarray:
    rows = _bytes(name, 16).reshape(-1, 784).astype(float)
    scaled: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    return scaled


def covertype(seed: int) -> Split:
    rows = encoded(*load("covertype")).features
    cover = load_covertype()[1]
    labels = cover[np.random.default_rng(0).permutation(len(cover))[: len(rows)]] - 1  # as `load` takes them
    order = np.random.default_rng(seed).permutation(len(rows))
    train, test = order[:TRAINING_ROWS], order[TRAINING_ROWS:]
    return Split(rows[train], labels[train], rows[test], labels[test])


DATA = {"mnist": mnist, "covertype": covertype}


def measure(split: Split, epsilon: float, loss: str, seed: int) -> str:
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=1e-5,
        neighbours="zero_out",
        norm_bound=1.0,
        classes=sorted(set(split.labels.tolist())),
        loss=loss,
        random_state=seed,
    )
    clock, processors = time.perf_counter(), time.process_time()
    model.fit(split.rows, split.labels)
    clock, processors = time.perf_counter() - clock, time.process_time() - processors
    mechanism: Any = model.certificate_.mechanism
    strength = mechanism.task.total * mechanism.effective_regularization
    return (
        f"error {1 - model.score(split.test_rows, split.test_labels):.4f}  N Lambda {strength:.3g}  "
        f"noise {mechanism.noise_scale:.3g}  tolerance {mechanism.task.tolerance:.1e}  "
        f"{clock:.0f} s, processors {processors:.0f} s, load {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", nargs="*", metavar="{mnist,covertype}")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.2, 4.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--loss", default="multinomial", choices=["multinomial", "logistic"])
    arguments = parser.parse_args()
    for name in arguments.data or DATA:
        for seed in range(arguments.seeds):
            split = DATA[name](seed)
            for epsilon in arguments.epsilon:
                found = measure(split, epsilon, arguments.loss, seed)
                print(f"{name} epsilon {epsilon:g} seed {seed}: {found}", flush=True)


if __name__ == "__main__":
    main()
