"""Findings and reports of audits, and a lower bound of epsilon from many runs.

The bound: on part of the runs choose an event (an interval of a statistic of the output), on the others count how often
it occurs on either input. Clopper-Pearson limits of the two probabilities refute every smaller epsilon.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv

from privlearn.arrays import Array
from privlearn.errors import InvalidParameter

Status = Literal["passed", "failed", "noted"]
_MARKS = {"passed": "ok  ", "failed": "FAIL", "noted": "note"}
_MAX_DETAILED = 20  # findings; of more, those that passed are only counted


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Parameters
    ----------
    check : str
        Name of the check: ``"replay"``, ``"empirical epsilon"``.
    status : {"passed", "failed", "noted"}
        ``noted``: not wrong by itself, but worth knowing.
    what : str
        The compared quantities and the input.
    why : str
        The meaning of the outcome; for a failure, the defect.
    numbers : mapping
        Measured and allowed values.
    """

    check: str
    status: Status
    what: str
    why: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "check": self.check,
            "status": self.status,
            "what": self.what,
            "why": self.why,
            "numbers": dict(self.numbers),
        }

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())
        text = f"{_MARKS[self.status]} {self.check}: {self.what}" + (f" ({numbers})" if numbers else "")
        return text + (f"\n       {self.why}" if self.why else "")


def judge(
    check: str, what: str, good: bool, why_not: str, numbers: Mapping[str, float] | None = None
) -> Finding:
    """Return a finding that passed, or one that failed with the reason."""
    return Finding(check, "passed" if good else "failed", what, "" if good else why_not, numbers or {})


@dataclass(frozen=True)
class AuditReport:
    """All findings about one subject. It passed if none of them failed.

    Examples
    --------
    >>> report = AuditReport("a mechanism", (Finding("replay", "passed", "minimiser", numbers={"moved": 0.25}),))
    >>> print(report)
    audit of a mechanism: passed, 1 finding
      ok   replay: minimiser (moved 0.25)
    >>> report.passed
    True
    """

    subject: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, subject: str, findings: Iterable[Finding]) -> AuditReport:
        """Return the report with these findings."""
        return cls(subject, tuple(findings))

    @property
    def passed(self) -> bool:
        """Return whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that failed."""
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"subject": self.subject, "passed": self.passed, "findings": findings}

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def describe(self, *, everything: bool = False) -> str:
        """Return failures and notes in full; checks that passed are counted, or listed with ``everything``."""
        count = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        verdict = "passed," if self.passed else f"FAILED {len(self.failures)} of"
        passed = [finding for finding in self.findings if finding.status == "passed"]
        detailed = [finding for finding in self.findings if everything or finding.status != "passed"]
        counted = [] if everything else Counter(finding.check for finding in passed).items()
        lines = [f"{_MARKS['passed']} {check}: {times} passed" for check, times in counted]
        title = f"audit of {self.subject}: {verdict} {count}"
        return "\n".join([title, *(f"  {line}" for line in [*lines, *detailed])])

    def __str__(self) -> str:
        return self.describe(everything=len(self.findings) <= _MAX_DETAILED)


KNOTS = 65
"""Number of quantiles of a statistic among which an event's ends are chosen."""

CHOOSING = 0.25
"""Share of the runs that choose the event; counting rare events needs more runs than choosing them."""

MIN_RUNS = 8


@dataclass(frozen=True)
class EpsilonBound:
    """With probability ``confidence`` over the runs, the true epsilon is at least ``epsilon``.

    Attributes
    ----------
    epsilon, confidence, delta : float
    runs : int
        Number of runs on each of the two inputs, including those that choose the event.
    """

    epsilon: float
    confidence: float
    delta: float
    runs: int


@dataclass(frozen=True)
class _Event:
    """The event low <= statistic <= high, where the statistic is <direction, output>, or the output's norm."""

    direction: Array | None
    low: float
    high: float

    def count(self, outputs: Array) -> int:
        """Return the number of runs in which the event occurred."""
        values = _statistic(outputs, self.direction)
        return int(np.count_nonzero((values >= self.low) & (values <= self.high)))


def epsilon_bound(one: Array, other: Array, *, delta: float = 0.0, confidence: float = 0.999) -> EpsilonBound:
    """Return a lower bound of epsilon from outputs on two neighbouring inputs, in both directions.

    Parameters
    ----------
    one, other : array of shape (runs, k)
        Outputs on an input and on its neighbour, one row per run; runs are independent.
    delta : float, default=0.0
        Delta of the guarantee.
    confidence : float, default=0.999
        For every mechanism, the bound exceeds the true epsilon with probability at most 1 - confidence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.laplace(0, 1, (4000, 1)), rng.laplace(2, 1, (4000, 1))  # epsilon is 2
    >>> 1.5 < epsilon_bound(one, other).epsilon < 2.0
    True
    >>> epsilon_bound(one, rng.laplace(0, 1, (4000, 1))).epsilon
    0.0
    """
    _check(one, other, delta, confidence)
    risk = (1.0 - confidence) / 4.0  # two directions, two probabilities each
    chosen = int(CHOOSING * min(len(one), len(other)))
    bounds = []
    for first, second in ((one, other), (other, one)):
        event = _best_event(first[:chosen], second[:chosen], delta, risk)
        hits, misses = event.count(first[chosen:]), event.count(second[chosen:])
        bounds.append(_bound(hits, len(first) - chosen, misses, len(second) - chosen, delta, risk))
    return EpsilonBound(max(float(bound) for bound in bounds), confidence, delta, min(len(one), len(other)))


def judge_bound(bound: EpsilonBound, guaranteed: float, pair: str) -> Finding:
    """Compare an empirical bound with the claimed epsilon."""
    return judge(
        "empirical epsilon",
        f"{bound.runs} runs on each of two neighbours ({pair}), confidence {bound.confidence:g}, delta {bound.delta:g}",
        bound.epsilon <= guaranteed,
        "the runs refute the guarantee: outputs distinguish the neighbours more often than it allows",
        {"at least": bound.epsilon, "guaranteed": guaranteed},
    )


def _best_event(first: Array, second: Array, delta: float, risk: float) -> _Event:
    """Return the interval of a statistic with the largest bound on these runs."""
    best, event = -1.0, _Event(None, -np.inf, np.inf)
    for direction in _directions(first, second):
        mine, theirs = (np.sort(_statistic(outputs, direction)) for outputs in (first, second))
        knots = np.unique(
            np.quantile(np.append(mine, theirs), np.linspace(0.0, 1.0, KNOTS), method="nearest")
        )
        ends = np.concatenate([[-np.inf], knots, [np.inf]])
        low, high = np.triu_indices(len(ends))
        hits, misses = (
            np.searchsorted(sample, ends[high], "right") - np.searchsorted(sample, ends[low], "left")
            for sample in (mine, theirs)
        )
        bounds = _bound(hits, len(mine), misses, len(theirs), delta, risk)
        index = int(np.argmax(bounds))
        if bounds[index] > best:
            best, event = float(bounds[index]), _Event(direction, ends[low[index]], ends[high[index]])
    return event


def _directions(first: Array, second: Array) -> Iterator[Array | None]:
    """Yield each coordinate, the direction that separates the means best, and None for the norm."""
    dimension = first.shape[1]
    yield from np.eye(dimension)
    if dimension > 1:
        covariance = np.atleast_2d(np.cov(first.T)) + np.atleast_2d(np.cov(second.T))
        scale = np.trace(covariance) / dimension or 1.0
        yield np.linalg.solve(
            covariance + 1e-9 * scale * np.eye(dimension), first.mean(axis=0) - second.mean(axis=0)
        )
        yield None


def _statistic(outputs: Array, direction: Array | None) -> Array:
    return np.asarray(np.linalg.norm(outputs, axis=1) if direction is None else outputs @ direction)


def _bound(hits: Any, of: int, misses: Any, among: int, delta: float, risk: float) -> Array:
    """Return log((P - delta) / Q), P at its lower and Q at its upper Clopper-Pearson limit, and at least 0."""
    at_least, at_most = _limits(of, risk)[0][hits], _limits(among, risk)[1][misses]
    return np.asarray(np.log(np.maximum(at_least - delta, at_most) / at_most))


@lru_cache(maxsize=16)
def _limits(trials: int, risk: float) -> tuple[Array, Array]:
    """Return Clopper-Pearson limits of a probability, lower and upper, for each number of hits."""
    hits = np.arange(1, trials + 1)
    lower = np.append(0.0, betaincinv(hits, trials - hits + 1, risk))
    return lower, 1.0 - lower[::-1]


def _check(one: Array, other: Array, delta: float, confidence: float) -> None:
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise InvalidParameter("outputs must be two matrices with one row per run and the same columns")
    if min(len(one), len(other)) < MIN_RUNS:
        raise InvalidParameter(f"a bound needs at least {MIN_RUNS} runs on each input")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise InvalidParameter("outputs must be finite")
    if not 0 < confidence < 1 or not 0 <= delta < 1:
        raise InvalidParameter("confidence must be between 0 and 1, delta in [0, 1)")
