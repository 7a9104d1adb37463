"""One honest try of random projections (Lee, Park and Ahn 2025, arXiv 2507.17544) on landmark rows.

    PRIVLEARN_DATA=... python benchmarks/random_projections.py [strings cubic ...] [--seeds 5] [--rows 8000]

The paper's features are h(x) = (g_1(x), ..., g_M(x)) / sqrt(M), each g a draw of the Gaussian process with the kernel
as its covariance, made without the data; objective perturbation follows. On the span of the public points such a draw
is <G, psi(x)> with G standard normal, so that M of them are a random projection of landmark features. Rows are scaled
to norm 1, as `UnitLandmarkFeatures` scales its own, whose errors stand beside. Cells: benchmarks/landmarks.py.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
from landmarks import CELLS, described

from privlearn import PrivateSVC
from privlearn.arrays import rescale_dense
from privlearn.guarantee import Guarantee
from privlearn.randomness import SeededRandomness

SIZES = (25, 50, 100, 200)


def errors(name: str, seed: int, most: int) -> dict[str, float]:
    """Test error of the product's rows, and of projections on so many dimensions."""
    cell = CELLS[name]
    split = cell.split(seed, min(cell.rows, most))
    promise = Guarantee(cell.epsilons[0], cell.settings["delta"])
    settings = {"public_points": split.points, **cell.settings, **described(name), "epsilon": promise.epsilon}
    found = {}
    for size in (None, *SIZES):
        # function release has the kernel's own inner products, which projections start from
        estimator = PrivateSVC(**settings, mechanism="auto" if size is None else "function_release")
        work, test = (
            estimator.prepare(rows, answers, private=True)
            for rows, answers in ((split.train, split.labels), (split.test, split.truth))
        )
        estimator.mechanism = "auto"
        rows, tested = (_projected(part.rows.features, size, seed) for part in (work, test))
        work = work.on(dataclasses.replace(work.rows, features=rows, landmarks=None))
        randomness = SeededRandomness(np.random.default_rng(seed))
        coefficients = work.run(work.calibrate(promise), randomness)
        wrong = (tested @ coefficients[0] > 0) != (test.rows.targets.answers == 1)
        found["unit rows" if size is None else f"M = {size}"] = float(np.mean(wrong))
    return found


def _projected(features: Any, size: int | None, seed: int) -> Any:
    if size is None:
        return features
    directions = np.random.default_rng([seed, size]).standard_normal((features.shape[1], size))
    rows = np.asarray(features, dtype=np.float64) @ directions
    rescale_dense(rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cells", nargs="*", default=["strings", "cubic", "rbf", "adult"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=8000, help="at most so many")
    arguments = parser.parse_args()
    for name in arguments.cells:
        found = [errors(name, seed, arguments.rows) for seed in range(arguments.seeds)]
        means = {kind: np.mean([one[kind] for one in found]) for kind in found[0]}
        print(name, " ".join(f"{kind}: {mean:.4f}" for kind, mean in means.items()), flush=True)


if __name__ == "__main__":
    main()
