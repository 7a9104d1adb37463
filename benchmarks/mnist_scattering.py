"""Private softmax on scattering features of MNIST: test errors by epsilon and seed, all settings by default.

    python benchmarks/mnist_scattering.py --epsilon 3 1.2 0.5 --seeds 5

The features are computed once; `--whole` times one fit from images to a release instead. Zero-out, delta 1e-5.
"""

from __future__ import annotations

import argparse
import gzip
import math
import resource
import time
from typing import Any

import numpy as np

from privlearn import PrivateLogisticRegression
from privlearn.data.datasets import data_directory
from privlearn.features import ScatteringFeatures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[3.0, 1.2, 0.5])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    images, labels = load("train", arguments.rows)
    test_images, test_labels = load("t10k", 10_000)
    if arguments.whole:
        started, used = time.time(), time.process_time()
        fit(arguments.epsilon[0], 0, images, labels, features="scattering")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{time.time() - started:.0f} s, {time.process_time() - used:.0f} s of processor, {memory:.2f} GB"
        )
        return
    scattering = ScatteringFeatures((28, 28))
    rows, test_rows = (
        scattering.transform(scattering.read(each), "float32") for each in (images, test_images)
    )
    for epsilon in arguments.epsilon:
        errors = []
        for seed in range(arguments.seeds):
            model = fit(epsilon, seed, rows, labels, norm_bound=1.0)
            errors.append(1.0 - model.score(test_rows, test_labels))
            print(f"epsilon {epsilon:g} seed {seed}: {errors[-1]:.4f}", flush=True)
        deviation = np.std(errors) / math.sqrt(len(errors))
        print(f"epsilon {epsilon:g}: {np.mean(errors):.4f} +- {deviation:.4f}", flush=True)


def load(part: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images as bytes of shape (n, 28, 28), and their labels."""
    directory = data_directory() / "mnist"
    with gzip.open(directory / f"{part}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(directory / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(int)
    return images[:rows], labels[:rows]


def fit(
    epsilon: float, seed: int, rows: np.ndarray, labels: np.ndarray, **described: Any
) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(
        epsilon=epsilon, delta=1e-5, neighbours="zero_out", classes=range(10), random_state=seed, **described
    ).fit(rows, labels)


if __name__ == "__main__":
    main()
