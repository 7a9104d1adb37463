"""A learner whose function is written down, and statistical tests of its answers."""

from __future__ import annotations

import copy
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.arrays import Array
from privlearn.data import Part, Schema
from privlearn.errors import DataError
from privlearn.features import Kernel, canonical, kernel_from_name, object_to_bytes
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import FunctionRelease, Task
from privlearn.mechanisms.session import KernelTask
from privlearn.sessions import InteractivePredictor, SharedStore
from privlearn.solvers import HuberHinge

PROMISE = Guarantee(1.0, 1e-5)
SURPRISE = 1e-7
"""A test fails if one of up to ten things that it saw was less likely than this."""


class WrittenLearner:
    """f = sum_i coefficient_i k(centre_i, .) for each row of coefficients, with any public facts."""

    takes_objects = keeps_objects = False
    records_schema: Schema | None = None
    records_part: Part | None = None

    def __init__(
        self,
        centres: Array,
        coefficients: Array,
        *,
        kernel: Kernel | None = None,
        total: int = 2000,
        regularization: float = 0.01,
    ) -> None:
        self.centres, self.coefficients = centres, np.atleast_2d(coefficients)
        self.kernel = kernel or kernel_from_name("rbf", gamma=2.0)
        self.total, self.regularization = total, regularization

    def kernel_task(self, neighbours: str) -> KernelTask:
        functions = len(self.coefficients)
        task = Task(HuberHinge(), self.total, 1, functions, self.regularization, 1e-10, neighbours)
        return KernelTask(task, solver_distance=1e-8)

    def describe(self) -> dict[str, Any]:
        return {"encoding": {}, "kernel": self.kernel.to_dict(), "classes": ["no", "yes"]}

    def encode(self, data: Any) -> Array:
        points = np.asarray(data, dtype=float)
        if not np.all(np.linalg.norm(points, axis=1) <= 1.0):
            raise DataError("too long")
        return points

    def similarity(self, points: Any, others: Any) -> Array:
        return self.kernel(points, others) / self.kernel.bound

    def predict(self, scores: Array) -> NDArray[Any]:
        return np.where(scores[:, 0] > 0, "yes", "no")

    def values(self, points: Any) -> Array:
        return np.asarray(self.similarity(points, self.centres) @ self.coefficients.T)

    def freeze(self) -> Self:
        return copy.copy(self)

    def solve(self) -> Self:
        return self

    def function_bytes(self) -> bytes:
        return self.coefficients.tobytes()

    def training_digest(self) -> str:
        return sha256(self.centres.tobytes()).hexdigest()

    def restore_function(self, content: bytes) -> Self:
        restored = copy.copy(self)
        restored.coefficients = np.frombuffer(content).reshape(self.coefficients.shape)
        return restored


def letter_kernel(X: list[str], Z: list[str]) -> Array:
    """Texts by their shares of letters; a kernel of a user's own, bound 1."""

    def shares(texts: list[str]) -> Array:
        counts = np.array([[text.count(letter) for letter in "abcdefgh"] for text in texts], dtype=float)
        return np.asarray(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1.0))

    return np.asarray(shares(X) @ shares(Z).T)


class WrittenTexts(WrittenLearner):
    """The same over texts."""

    takes_objects = keeps_objects = True

    def encode(self, data: Any) -> Any:
        return [canonical(text) for text in data]

    def training_digest(self) -> str:
        return sha256(object_to_bytes(list(self.centres))).hexdigest()


def written_texts(functions: int = 1, **settings: Any) -> WrittenTexts:
    kernel = Kernel.from_callable(letter_kernel, bound=1.0)
    coefficients = np.array([np.roll([3.0, -4.0, 2.0], turn) for turn in range(functions)])
    return WrittenTexts(["aab", "bcc", "cdd"], coefficients, kernel=kernel, **settings)  # type: ignore[arg-type]


def random_texts(count: int, seed: int) -> list[str]:
    """Different ones."""
    rng = np.random.default_rng(seed)
    texts = ("".join(rng.choice(list("abcdefgh"), 12)) for _ in range(2 * count))
    return list(dict.fromkeys(texts))[:count]


def points_in_ball(count: int, dimension: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * rng.uniform(size=(count, 1)) ** (1.0 / dimension) * 0.999)


def written_learner(functions: int = 1, **settings: Any) -> WrittenLearner:
    coefficients = np.array([np.roll([1.0, -2.0, 0.5, 1.5, -1.0], turn) for turn in range(functions)])
    return WrittenLearner(points_in_ball(5, 3, 99), coefficients, **settings)


def open_session(path: Path | SharedStore, learner: Any = None, **settings: Any) -> InteractivePredictor:
    # Some learners say that they had 10^8 records, so that the noise is small.
    seed = None if "ledger" in settings else 0  # a ledger takes secure noise only
    usual: dict[str, Any] = {"guarantee": PROMISE, "random_state": seed, "accept_weak_privacy": True}
    return InteractivePredictor(learner or written_learner(), state=path, **usual | settings)


def noise_scale(session: InteractivePredictor) -> float:
    """Return the noise scale of a session that releases functions."""
    mechanism = session.certificate.mechanism
    assert isinstance(mechanism, FunctionRelease)
    return mechanism.noise_scale


def least_p_value(noises: NDArray[Any], covariance: NDArray[Any]) -> float:
    """Return the least p-value of three tests that rows are N(0, covariance): total length, coordinate pairs, rows."""
    count, dimension = noises.shape
    white = np.linalg.solve(np.linalg.cholesky(covariance), noises.T).T
    total = float(np.sum(white**2))
    pairs = (white.T @ white)[np.triu_indices(dimension, 1)] / np.sqrt(count)
    lengths = stats.kstest(np.sum(white**2, axis=1), stats.chi2(dimension).cdf).pvalue
    return min(
        2.0 * stats.chi2.cdf(total, count * dimension),
        2.0 * stats.chi2.sf(total, count * dimension),
        2.0 * len(pairs) * stats.norm.sf(np.max(np.abs(pairs))),
        float(lengths),
    )
