"""Audit an estimator that one cannot look into: fit it many times, on worst-case neighbours, and compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.empirical import FEWEST_RUNS, AuditReport, Finding, epsilon_bound, judge_bound, judged
from privlearn.audit.mechanisms import Progress
from privlearn.audit.samplers import LEVEL
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

Fits = Callable[[Array, NDArray[Any], Sequence[int]], Array]
"""Fits once for each seed and returns the released numbers, of shape (fits, rows, columns): one row per class."""

SCREENING = 8
"""An eighth of the runs goes into choosing the pair of neighbours."""

FITS_FOR_INDEPENDENCE = 60

_NO_BOUND = Finding(
    "empirical epsilon", "noted", "no bound", "its confidence needs independent fits, and these are not"
)


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """Two tables that differ in their first record, which one of them may not have."""

    name: str
    one: tuple[Array, NDArray[Any]]
    other: tuple[Array, NDArray[Any]]


def audit_estimator(
    make: Callable[[int], Any],
    guarantee: Guarantee,
    *,
    norm_bound: float,
    n_features: int = 1,
    seed: int = 0,
    **settings: Any,
) -> AuditReport:
    """Audit any object with ``fit(X, y)`` and ``coef_``, ``coefficients_``, ``decision_function`` or ``predict``.

    Parameters
    ----------
    make : callable
        ``make(seed)`` returns a new estimator whose noise follows from the seed.
    guarantee, norm_bound, n_features, seed, **settings
        Those of `audit_fits`, except ``subject`` and ``replay``.
    """
    return audit_fits(
        _fits_of(make, norm_bound, n_features),
        guarantee,
        subject=f"estimator {type(make(seed)).__name__}",
        norm_bound=norm_bound,
        n_features=n_features,
        seed=seed,
        replay=lambda pair: _same_attributes(make, pair, seed),
        **settings,
    )


def audit_fits(
    fits: Fits,
    guarantee: Guarantee,
    *,
    subject: str,
    norm_bound: float,
    n_features: int = 1,
    labels: Sequence[Any] = (0, 1),
    runs: int = 2000,
    confidence: float = 0.999,
    seed: int = 0,
    progress: Progress | None = None,
    replay: Callable[[LabelledPair], Iterator[Finding]] | None = None,
) -> AuditReport:
    """Audit whatever can be fitted many times at once, for instance in another process.

    Parameters
    ----------
    fits : callable
        ``fits(X, y, seeds)`` fits once for each seed and returns the released numbers, of shape
        (fits, rows, columns): one row per class.
    guarantee : Guarantee
        What is promised. A promise for ``add_remove`` is tested on tables with one record more and less; one for
        ``zero_out`` as what it implies for ``replace_one``: twice the epsilon.
    subject : str
        What the report calls it.
    norm_bound : float
        The largest Euclidean norm of a row that the estimator was told of.
    n_features : int, default=1
    labels : sequence, default=(0, 1)
        The labels that it was told of. With three or more, the noise of the classes is compared.
    runs, confidence, seed, progress
        As for `audit_mechanism`.
    replay : callable, optional
        More findings, from one pair of tables.
    """
    if runs < SCREENING * FEWEST_RUNS:
        raise InvalidParameter(f"an audit needs at least {SCREENING * FEWEST_RUNS} runs, not {runs}")
    pairs = worst_tables(norm_bound, n_features, labels, counted=guarantee.relation.count_is_public)
    seeds = iter(range(seed, seed + 10**9))
    tell = progress or (lambda stage: None)

    def sample(data: tuple[Array, NDArray[Any]], count: int) -> Array:
        return np.asarray(fits(*data, [next(seeds) for _ in range(count)]))

    findings: list[Finding] = []
    if replay is not None:
        findings += replay(pairs[0])
    tell("choosing neighbours")
    pair = _screened(pairs, sample, max(FEWEST_RUNS, runs // SCREENING), guarantee.delta)
    tell(f"{runs} fits on each of two neighbours")
    one, other = (sample(data, runs) for data in (pair.one, pair.other))
    fresh = _fresh_noise(np.concatenate([one, other]))
    findings += [
        fresh,
        _empirical(one, other, guarantee, confidence, pair.name) if fresh.status == "passed" else _NO_BOUND,
    ]
    if len(labels) > 2:
        tell("noise of the classes")
        silent = np.zeros((2 * len(labels), n_features)), np.array([*labels, *labels])
        findings.append(_independent_classes(sample(silent, FITS_FOR_INDEPENDENCE)))
    return AuditReport.of(subject, findings)


def worst_tables(
    norm_bound: float, n_features: int, labels: Sequence[Any], *, counted: bool = True
) -> list[LabelledPair]:
    """One person's row turned round, silenced or labelled otherwise; beside them silent rows of every label.

    Where records are not counted, ``counted=False``, the row is there or it is not.
    """
    if not 0 < norm_bound < math.inf or n_features < 1 or len(labels) < 2:
        raise InvalidParameter("give norm_bound above 0, at least one feature and at least two labels")
    row = norm_bound * np.eye(n_features)[0]
    silent, classes = np.zeros((2 * len(labels), n_features)), np.array([*labels, *labels])

    def table(first: Array, label: Any, rest: Array = silent) -> tuple[Array, NDArray[Any]]:
        return np.vstack([first, rest]), np.append(np.array([label], dtype=classes.dtype), classes)

    crowd = np.tile(row / 2.0, (len(classes), 1))
    last = labels[-1]
    if not counted:
        return [
            LabelledPair("row left out", table(row, last), (silent, classes)),
            LabelledPair("row of another label left out", table(row, labels[0]), (silent, classes)),
            LabelledPair("row left out of a crowd", table(row, last, crowd), (crowd, classes)),
        ]
    return [
        LabelledPair("row silenced", table(row, last), table(0.0 * row, last)),
        LabelledPair("row turned round", table(row, last), table(-row, last)),
        LabelledPair("another label", table(row, last), table(row, labels[0])),
        LabelledPair("row turned round in a crowd", table(row, last, crowd), table(-row, last, crowd)),
    ]


def released_numbers(estimator: Any, probes: Array) -> Array:
    """What a fitted estimator gives away, one row per class: its coefficients, or its scores at the probes."""
    for name in ("coef_", "coefficients_"):
        if hasattr(estimator, name):
            coefficients = np.atleast_2d(np.asarray(getattr(estimator, name), dtype=float))
            intercept = np.atleast_1d(np.asarray(getattr(estimator, "intercept_", 0.0), dtype=float))
            if np.any(intercept):
                coefficients = np.hstack(
                    [coefficients, np.broadcast_to(intercept, len(coefficients))[:, None]]
                )
            return coefficients
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name)(probes), dtype=float).reshape(len(probes), -1).T
    raise InvalidParameter("the estimator has neither coefficients nor predictions to look at")


def _fits_of(make: Callable[[int], Any], norm_bound: float, n_features: int) -> Fits:
    probes = norm_bound * np.vstack([np.eye(n_features), -np.eye(n_features), np.zeros((1, n_features))])

    def fits(X: Array, y: NDArray[Any], seeds: Sequence[int]) -> Array:
        return np.array([released_numbers(make(seed).fit(X, y), probes) for seed in seeds])

    return fits


def _screened(pairs: list[LabelledPair], sample: Any, runs: int, delta: float) -> LabelledPair:
    """The pair that a few runs tell apart best; the runs that count come later."""

    def telling(pair: LabelledPair) -> float:
        one, other = (_flat(sample(data, runs)) for data in (pair.one, pair.other))
        return epsilon_bound(one, other, delta=delta, confidence=0.5).epsilon

    return max(pairs, key=telling)


def promise_for_replacement(guarantee: Guarantee) -> tuple[float, float]:
    """What is promised for replace_one: the epsilon of as many steps as replace a record; delta by group privacy."""
    epsilon, delta, steps = guarantee.epsilon, guarantee.delta, guarantee.relation.replacing
    grown = sum(math.exp(step * epsilon) for step in range(steps)) * delta
    return steps * epsilon, min(grown, 0.999)


def _empirical(one: Array, other: Array, guarantee: Guarantee, confidence: float, pair: str) -> Finding:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.relation.count_is_public:
        epsilon, delta = promise_for_replacement(guarantee)
    bound = epsilon_bound(_flat(one), _flat(other), delta=delta, confidence=confidence)
    return judge_bound(bound, epsilon, pair)


def _fresh_noise(outputs: Array) -> Finding:
    """Continuous noise never repeats."""
    distinct = len(np.unique(_flat(outputs), axis=0))
    return judged(
        "fresh noise",
        "every fit releases other numbers",
        distinct == len(outputs),
        "fits with different seeds released the same numbers: noise is missing or was used again",
        {"fits": len(outputs), "different": distinct},
    )


def _independent_classes(outputs: Array) -> Finding:
    """Silent rows leave nothing but noise in a coefficient; rank correlation of every two classes over the fits."""
    found = [
        (*_rank_correlation(outputs[:, i, 0], outputs[:, j, 0]), i, j)
        for i in range(outputs.shape[1])
        for j in range(i)
    ]
    if not found:
        return Finding("independent noise", "noted", "classes", "one row of coefficients: nothing to compare")
    p_value, correlation, i, j = min(found)
    adjusted = min(1.0, p_value * len(found))
    return judged(
        "independent noise",
        f"classes against each other, {len(outputs)} fits on silent rows",
        adjusted > LEVEL,
        f"classes {j} and {i} share their noise: their difference is released without any",
        {"correlation": correlation, "p-value (adjusted)": adjusted},
    )


def _rank_correlation(first: Array, second: Array) -> tuple[float, float]:
    """p-value and Spearman's correlation; numbers that never change have one only if they are the same."""
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        same = bool(np.array_equal(first, second))
        return float(not same), float(same)
    found = stats.spearmanr(first, second)
    return float(found.pvalue), float(found.statistic)


def _same_attributes(make: Callable[[int], Any], pair: LabelledPair, seed: int) -> Iterator[Finding]:
    """With the same seed: which attributes there are, their shapes and types, and all that is not a real number."""
    one, other = (_attributes(make(seed).fit(*data)) for data in (pair.one, pair.other))
    forms = [{name: form for name, (form, _) in found.items()} for found in (one, other)]
    yield judged(
        "replay",
        "names, shapes and types of fitted attributes, same seed on neighbours",
        forms[0] == forms[1],
        "they depend on the data",
    )
    exact = [name for name, (_, value) in one.items() if value is not None]
    changed = [name for name in exact if one[name] != other.get(name)]
    what = "attributes that hold no real numbers, same seed on neighbours"
    if changed:
        why = f"{', '.join(changed)} depends on the data without noise, unless it follows from noisy numbers"
        yield Finding("replay", "noted", what, why)
    else:
        yield Finding("replay", "passed", what)


def _attributes(estimator: Any) -> dict[str, tuple[Any, Any]]:
    """Form of each fitted array, and its value where it is exact (labels, counts)."""
    found = {}
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and not name.startswith("_"):
            array = np.asarray(value)
            exact = array.dtype.kind in "iubUS"
            found[name] = (array.shape, array.dtype), (array.tolist() if exact else None)
    return found


def _flat(outputs: Array) -> Array:
    return outputs.reshape(len(outputs), -1)
