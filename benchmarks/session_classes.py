"""Sessions of several classes: softmax against one against the rest, at the same promise.

    python benchmarks/session_classes.py [--seeds 5]

scikit-learn's digits (1,797 images, ten classes), four fifths to learn from, the rest asked in one session each.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from privlearn import Guarantee, InteractivePredictor, KernelLearner, NothingRecorded

LOSSES = {"softmax": None, "one against the rest": "huber_hinge"}


def error(images: Any, digits: Any, split: Any, promise: Guarantee, loss: str | None) -> float:
    learn, ask = split
    learner = KernelLearner(
        kernel="rbf", gamma=3.0, norm_bound=1.0, classes=list(range(10)), guarantee=promise, loss=loss
    )
    learner.fit(images[learn], digits[learn])
    with (
        tempfile.TemporaryDirectory() as folder,
        InteractivePredictor(learner, promise, state=Path(folder) / "digits.session") as session,
    ):
        return float(np.mean(session.predict(images[ask]) != digits[ask]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NothingRecorded)
    images, digits = load_digits(return_X_y=True)
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    for epsilon in asked.epsilons:
        promise = Guarantee(epsilon, 1e-5, "zero_out")
        for name, loss in LOSSES.items():
            errors = []
            for seed in range(asked.seeds):
                places = np.random.default_rng(seed).permutation(len(images))
                split = np.split(places, [4 * len(places) // 5])
                errors.append(error(images, digits, split, promise, loss))
            spread = np.std(errors, ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else np.nan
            print(f"epsilon {epsilon:g}  {name:22} error {np.mean(errors):.3f} +- {spread:.3f}", flush=True)


if __name__ == "__main__":
    main()
