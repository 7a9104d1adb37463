"""Time per coordinate of the exact samplers, next to OpenDP's, and the share of noise in a fit.

    python benchmarks/noise.py

Processor time: microseconds per coordinate of each sampler, then one line per fit with 10,000 coefficients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from privlearn import PrivateLogisticRegression
from privlearn.mechanisms import ADD_NOISE
from privlearn.randomness import SecureRandomness

COORDINATES = 10_000
SCALE = 1.3 * 2.0**44
ROWS = 2_000


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of some runs."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(repeats))


def opendp_samplers() -> dict[str, Callable[[Any], Any]]:
    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64"))
    return {
        "gaussian": make_gaussian(space, l2_distance(T=float), scale=SCALE),
        "laplace": make_laplace(space, l1_distance(T=float), scale=SCALE),
    }


def compare_samplers() -> None:
    source, zeros = SecureRandomness(), [0] * COORDINATES
    print(f"microseconds per coordinate, {COORDINATES} integers at scale {SCALE:.3g}:")
    for name, theirs in opendp_samplers().items():
        draw = getattr(source, f"discrete_{name}")
        ours = seconds(lambda draw=draw: draw(SCALE, COORDINATES)) / COORDINATES * 1e6  # type: ignore[misc]
        other = seconds(lambda theirs=theirs: theirs(zeros)) / COORDINATES * 1e6  # type: ignore[misc]
        print(f"  discrete {name:<10} ours {ours:7.3f}   OpenDP {other:7.3f}   ratio {other / ours:5.1f}")
    print("the same, added to a vector and rounded to its grid:")
    for name, add in ADD_NOISE.items():
        took = seconds(lambda add=add: add(np.zeros(COORDINATES), 1.0, source)) / COORDINATES * 1e6  # type: ignore[misc]
        print(f"  {name:<19} ours {took:7.3f}")


@contextmanager
def timed_noise(spent: list[float]) -> Iterator[None]:
    """Add up the time that every call of `ADD_NOISE` takes."""
    original = dict(ADD_NOISE)

    def timed(add: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return add(*arguments)
            finally:
                spent.append(time.process_time() - start)

        return wrapper

    ADD_NOISE.update({name: timed(add) for name, add in original.items()})
    try:
        yield
    finally:
        ADD_NOISE.update(original)


def share_of_a_fit(delta: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, COORDINATES))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = (rows[:, 0] > 0).astype(int)
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=delta, norm_bound=1.0, classes=[0, 1], fit_intercept=False
    )
    spent: list[float] = []
    with timed_noise(spent):
        start = time.process_time()
        model.fit(rows, labels)
        whole = time.process_time() - start
    print(
        f"fit of {COORDINATES} coefficients on {ROWS} rows, delta {delta:g}: {whole:.3f} s, "
        f"noise {sum(spent):.4f} s in {len(spent)} draws, {sum(spent) / whole:.1%}"
    )


if __name__ == "__main__":
    compare_samplers()
    for delta in (1e-6, 0.0):
        share_of_a_fit(delta)
