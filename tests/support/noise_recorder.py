"""Record the noise that a run adds, and replay it on neighbouring rows (the method of arXiv 2602.17454, our own code).

Privlearn adds noise in three functions. In a recorded run each call is written down; in a replayed run each call must
have the same distribution, scale and shape, and returns what it returned before. Whatever else leaves must then be
equal to the last byte: it can only depend on the rows through the noisy numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms import noise as home
from tests.support.combinations import hockey_stick

_FUNCTIONS = dict(home.ADD_NOISE)
ORIGINAL = dict(home.ADD_NOISE)
NORMS = {"gaussian": 2, "laplace": 1, "norm_gamma": 2}


@dataclass
class Call:
    """One addition of noise: what was protected in either run, and what came back."""

    noise: str
    scale: float
    values: Array
    result: Array
    replayed: Array | None = None

    @property
    def distance(self) -> float:
        """Return the distance of the protected values of the two runs; infinite where one is not a number."""
        assert self.replayed is not None, "the replayed run made fewer calls"
        found = float(np.linalg.norm((self.values - self.replayed).ravel(), NORMS[self.noise]))
        return found if math.isfinite(found) else math.inf

    @property
    def ratio(self) -> float:
        """Return the distance over the scale, infinite without noise."""
        return self.distance / self.scale if self.scale > 0.0 else math.inf * (self.distance > 0.0)


@dataclass
class NoiseRecorder:
    """All calls of a recorded run, in order."""

    calls: list[Call] = field(default_factory=list)
    _next: int | None = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        with _patched(self._record):
            yield

    @contextmanager
    def replaying(self) -> Iterator[None]:
        self._next = 0
        with _patched(self._replay):
            yield
        assert self._next == len(self.calls), (
            "the replayed run made fewer calls: control flow depends on rows"
        )

    def delta(self, epsilon: float) -> float:
        """Return the delta of all recorded additions together, from their measured distances, at an epsilon."""
        pure = sum(call.ratio for call in self.calls if call.noise != "gaussian")
        ratio = math.sqrt(sum(call.ratio**2 for call in self.calls if call.noise == "gaussian"))
        if not math.isfinite(pure + ratio):
            return 1.0
        if ratio == 0.0:
            return 0.0 if pure <= epsilon else 1.0 - math.exp(epsilon - pure)
        return hockey_stick(epsilon - pure, ratio)

    def _record(self, noise: str, values: Array, scale: float, randomness: Any) -> Array:
        result = ORIGINAL[noise](values, scale, randomness)
        self.calls.append(Call(noise, scale, np.array(values), np.array(result)))
        return result

    def _replay(self, noise: str, values: Array, scale: float, randomness: Any) -> Array:
        assert self._next is not None
        assert self._next < len(self.calls), "the replayed run made more calls: control flow depends on rows"
        call = self.calls[self._next]
        self._next += 1
        expected = (call.noise, call.scale, call.values.shape)
        assert (noise, scale, np.shape(values)) == expected, "distribution, scale or shape depends on rows"
        call.replayed = np.array(values)
        return call.result.copy()


@contextmanager
def _patched(hook: Callable[..., Array]) -> Iterator[None]:
    """Put a hook in the place of the three functions, wherever they were imported."""
    names = {function: noise for noise, function in _FUNCTIONS.items()}
    hooks = {
        noise: lambda values, scale, randomness, noise=noise: hook(noise, values, scale, randomness)
        for noise in ORIGINAL
    }
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("privlearn.")]
    places = [
        (module, name, function)
        for module in modules
        for name, function in vars(module).items()
        if callable(function) and getattr(function, "__hash__", None) and function in names
    ]
    for module, name, function in places:
        setattr(module, name, hooks[names[function]])
    home.ADD_NOISE.update(hooks)
    try:
        yield
    finally:
        home.ADD_NOISE.update(_FUNCTIONS)
        for module, name, function in places:
            setattr(module, name, function)
