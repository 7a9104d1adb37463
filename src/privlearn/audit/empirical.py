"""What an audit reports, and a lower bound of epsilon from many runs."""

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
_SHORT = 20  # findings that are listed one by one


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Parameters
    ----------
    check : str
        Which check, in a word or two: ``"replay"``, ``"empirical epsilon"``.
    status : {"passed", "failed", "noted"}
        ``noted``: nothing wrong by itself, but somebody should know.
    what : str
        What was compared, on what.
    why : str
        What the outcome means; for a failure, what is broken.
    numbers : mapping
        What was measured and what was allowed.
    """

    check: str
    status: Status
    what: str
    why: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "status": self.status,
            "what": self.what,
            "why": self.why,
            "numbers": dict(self.numbers),
        }

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())
        said = f"{_MARKS[self.status]} {self.check}: {self.what}" + (f" ({numbers})" if numbers else "")
        return said + (f"\n       {self.why}" if self.why else "")


def judged(
    check: str, what: str, good: bool, why_not: str, numbers: Mapping[str, float] | None = None
) -> Finding:
    """Passed without a word, or failed with the reason."""
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
        return cls(subject, tuple(findings))

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        findings = [finding.to_dict() for finding in self.findings]
        return {"subject": self.subject, "passed": self.passed, "findings": findings}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def describe(self, *, everything: bool = False) -> str:
        """What failed and what should be known, in full; what passed, counted unless ``everything`` is asked for."""
        count = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        verdict = "passed," if self.passed else f"FAILED {len(self.failures)} of"
        passed = [finding for finding in self.findings if finding.status == "passed"]
        shown = [finding for finding in self.findings if everything or finding.status != "passed"]
        counted = [] if everything else Counter(finding.check for finding in passed).items()
        lines = [f"{_MARKS['passed']} {check}: {times} passed" for check, times in counted]
        title = f"audit of {self.subject}: {verdict} {count}"
        return "\n".join([title, *(f"  {line}" for line in [*lines, *shown])])

    def __str__(self) -> str:
        return self.describe(everything=len(self.findings) <= _SHORT)


KNOTS = 65
"""Quantiles of a statistic between which an event's ends are chosen."""

CHOOSING = 0.25
"""Share of the runs that choose the event: rare events need more runs for counting than for finding."""

FEWEST_RUNS = 8


@dataclass(frozen=True)
class EpsilonBound:
    """With probability ``confidence`` over the runs, the true epsilon is at least ``epsilon``.

    Attributes
    ----------
    epsilon, confidence, delta : float
    runs : int
        On each of the two inputs, those for choosing the event included.
    """

    epsilon: float
    confidence: float
    delta: float
    runs: int


@dataclass(frozen=True)
class _Event:
    """low <= statistic <= high, where the statistic is <direction, output>, or the output's norm."""

    direction: Array | None
    low: float
    high: float

    def count(self, outputs: Array) -> int:
        values = _statistic(outputs, self.direction)
        return int(np.count_nonzero((values >= self.low) & (values <= self.high)))


def epsilon_bound(one: Array, other: Array, *, delta: float = 0.0, confidence: float = 0.999) -> EpsilonBound:
    """The largest epsilon that the outputs on two inputs refute, in both directions.

    Parameters
    ----------
    one, other : array of shape (runs, k)
        What left, one row per run, on an input and on its neighbour; runs independent.
    delta : float, default=0.0
        Probability mass that the promise leaves open.
    confidence : float, default=0.999
        Whatever the mechanism, a bound above its true epsilon has at most probability 1 - confidence.

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


def judge_bound(bound: EpsilonBound, promised: float, pair: str) -> Finding:
    """An empirical bound against a promise."""
    return judged(
        "empirical epsilon",
        f"{bound.runs} runs on each of two neighbours ({pair}), confidence {bound.confidence:g}, delta {bound.delta:g}",
        bound.epsilon <= promised,
        "the runs refute the promise: who sees outputs tells the neighbours apart more often than it allows",
        {"at least": bound.epsilon, "promised": promised},
    )


def _best_event(first: Array, second: Array, delta: float, risk: float) -> _Event:
    """The interval of a statistic that would prove most on these runs."""
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
        place = int(np.argmax(bounds))
        if bounds[place] > best:
            best, event = float(bounds[place]), _Event(direction, ends[low[place]], ends[high[place]])
    return event


def _directions(first: Array, second: Array) -> Iterator[Array | None]:
    """Each coordinate, the direction that tells the means apart best, and the norm."""
    dimension = first.shape[1]
    yield from np.eye(dimension)
    if dimension > 1:
        spread = np.atleast_2d(np.cov(first.T)) + np.atleast_2d(np.cov(second.T))
        scale = np.trace(spread) / dimension or 1.0
        yield np.linalg.solve(
            spread + 1e-9 * scale * np.eye(dimension), first.mean(axis=0) - second.mean(axis=0)
        )
        yield None


def _statistic(outputs: Array, direction: Array | None) -> Array:
    return np.asarray(np.linalg.norm(outputs, axis=1) if direction is None else outputs @ direction)


def _bound(hits: Any, of: int, misses: Any, among: int, delta: float, risk: float) -> Array:
    """log((P - delta) / Q), P at its lower and Q at its upper Clopper-Pearson limit; 0 where that says nothing."""
    at_least, at_most = _limits(of, risk)[0][hits], _limits(among, risk)[1][misses]
    return np.asarray(np.log(np.maximum(at_least - delta, at_most) / at_most))


@lru_cache(maxsize=16)
def _limits(trials: int, risk: float) -> tuple[Array, Array]:
    """Clopper-Pearson: for each number of hits, the lower and the upper limit of their probability."""
    hits = np.arange(1, trials + 1)
    lower = np.append(0.0, betaincinv(hits, trials - hits + 1, risk))
    return lower, 1.0 - lower[::-1]


def _check(one: Array, other: Array, delta: float, confidence: float) -> None:
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        raise InvalidParameter("outputs must be two matrices with one row per run and the same columns")
    if min(len(one), len(other)) < FEWEST_RUNS:
        raise InvalidParameter(f"a bound needs at least {FEWEST_RUNS} runs on each input")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise InvalidParameter("outputs must be finite")
    if not 0 < confidence < 1 or not 0 <= delta < 1:
        raise InvalidParameter("confidence must be between 0 and 1, delta in [0, 1)")
