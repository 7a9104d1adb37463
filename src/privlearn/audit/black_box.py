"""Audit an estimator as a black box: fit it many times on worst-case neighbours, and compare the outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from privlearn.arrays import Array
from privlearn.audit.empirical import MIN_RUNS, AuditReport, Finding, epsilon_bound, judge, judge_bound
from privlearn.audit.mechanisms import Progress
from privlearn.audit.samplers import LEVEL
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee

Fits = Callable[[Array, NDArray[Any], Sequence[int]], Array]
"""Fits once for each seed; returns the released numbers, of shape (fits, rows, columns) with one row per class."""

SCREENING = 8
"""One part in this many of the runs chooses the pair of neighbours."""

FITS_FOR_INDEPENDENCE = 60

_NO_BOUND = Finding(
    "empirical epsilon", "noted", "no bound", "the fits are not independent, as its confidence requires"
)


@dataclass(frozen=True, eq=False)
class LabelledPair:
    """Two tables (X, y) that differ in their first record, which may be absent from one of them."""

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
    """Audit anything that can be fitted many times at once, for instance in another process.

    Parameters
    ----------
    fits : callable
        ``fits(X, y, seeds)`` fits once for each seed and returns the released numbers, of shape
        (fits, rows, columns): one row per class.
    guarantee : Guarantee
        The claimed guarantee. For ``add_remove`` it is tested on tables with one record more and less; for ``zero_out``
        what it implies for ``replace_one`` is tested: 2 epsilon and (1 + e^epsilon) delta.
    subject : str
        Name in the report.
    norm_bound : float
        Maximum Euclidean norm of a row, as configured in the estimator.
    n_features : int, default=1
    labels : sequence, default=(0, 1)
        All labels. With three or more, the noise of the classes is compared.
    runs, confidence, seed, progress
        As for `audit_mechanism`.
    replay : callable, optional
        Returns more findings about one pair of tables.
    """
    if runs < SCREENING * MIN_RUNS:
        raise InvalidParameter(f"an audit needs at least {SCREENING * MIN_RUNS} runs, not {runs}")
    pairs = worst_tables(norm_bound, n_features, labels, counted=guarantee.relation.count_is_public)
    seeds = iter(range(seed, seed + 10**9))
    report = progress or (lambda stage: None)

    def sample(data: tuple[Array, NDArray[Any]], count: int) -> Array:
        return np.asarray(fits(*data, [next(seeds) for _ in range(count)]))

    findings: list[Finding] = []
    if replay is not None:
        findings += replay(pairs[0])
    report("choosing neighbours")
    pair = _best_pair(pairs, sample, max(MIN_RUNS, runs // SCREENING), guarantee.delta)
    report(f"{runs} fits on each of two neighbours")
    one, other = (sample(data, runs) for data in (pair.one, pair.other))
    fresh = _fresh_noise(np.concatenate([one, other]))
    findings += [
        fresh,
        _empirical(one, other, guarantee, confidence, pair.name) if fresh.status == "passed" else _NO_BOUND,
    ]
    if len(labels) > 2:
        report("noise of the classes")
        silent = np.zeros((2 * len(labels), n_features)), np.array([*labels, *labels])
        findings.append(_independent_classes(sample(silent, FITS_FOR_INDEPENDENCE)))
    return AuditReport.of(subject, findings)


def worst_tables(
    norm_bound: float, n_features: int, labels: Sequence[Any], *, counted: bool = True
) -> list[LabelledPair]:
    """Return pairs in which one row is negated, zeroed or relabelled, next to rows of zeros with every label.

    If the number of records is private, ``counted=False``, the row is present or absent.
    """
    if not 0 < norm_bound < math.inf or n_features < 1 or len(labels) < 2:
        raise InvalidParameter("norm_bound must be above 0, with at least one feature and two labels")
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


def extract_numbers(estimator: Any, probes: Array) -> Array:
    """Return what a fitted estimator reveals, one row per class: its coefficients, or its scores at the probes."""
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
    raise InvalidParameter(
        "the estimator has neither coefficients nor predictions. Give it coef_, decision_function or predict"
    )


def _fits_of(make: Callable[[int], Any], norm_bound: float, n_features: int) -> Fits:
    probes = norm_bound * np.vstack([np.eye(n_features), -np.eye(n_features), np.zeros((1, n_features))])

    def fits(X: Array, y: NDArray[Any], seeds: Sequence[int]) -> Array:
        return np.array([extract_numbers(make(seed).fit(X, y), probes) for seed in seeds])

    return fits


def _best_pair(pairs: list[LabelledPair], sample: Any, runs: int, delta: float) -> LabelledPair:
    """Return the pair that a few runs distinguish best; later runs give the bound."""

    def empirical_epsilon(pair: LabelledPair) -> float:
        one, other = (_flat(sample(data, runs)) for data in (pair.one, pair.other))
        return epsilon_bound(one, other, delta=delta, confidence=0.5).epsilon

    return max(pairs, key=empirical_epsilon)


def replacement_guarantee(guarantee: Guarantee) -> tuple[float, float]:
    """Return the epsilon and delta that a guarantee implies for replace_one, by group privacy."""
    epsilon, delta, steps = guarantee.epsilon, guarantee.delta, guarantee.relation.replacing
    group_delta = sum(math.exp(step * epsilon) for step in range(steps)) * delta
    return steps * epsilon, min(group_delta, 0.999)


def _empirical(one: Array, other: Array, guarantee: Guarantee, confidence: float, pair: str) -> Finding:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.relation.count_is_public:
        epsilon, delta = replacement_guarantee(guarantee)
    bound = epsilon_bound(_flat(one), _flat(other), delta=delta, confidence=confidence)
    return judge_bound(bound, epsilon, pair)


def _fresh_noise(outputs: Array) -> Finding:
    """Check that no two fits release the same numbers: continuous noise never repeats."""
    distinct = len(np.unique(_flat(outputs), axis=0))
    return judge(
        "fresh noise",
        "every fit releases different numbers",
        distinct == len(outputs),
        "fits with different seeds released the same numbers: noise is missing or was used again",
        {"fits": len(outputs), "different": distinct},
    )


def _independent_classes(outputs: Array) -> Finding:
    """Check the rank correlation of every two classes over fits on rows of zeros, which leave only noise."""
    pairs = [(i, j) for i in range(outputs.shape[1]) for j in range(i)]
    tests = [(*_rank_correlation(outputs[:, i, 0], outputs[:, j, 0]), i, j) for i, j in pairs]
    if not tests:
        return Finding("independent noise", "noted", "classes", "one row of coefficients: nothing to compare")
    p_value, correlation, i, j = min(tests)
    adjusted = min(1.0, p_value * len(tests))
    return judge(
        "independent noise",
        f"classes against each other, {len(outputs)} fits on silent rows",
        adjusted > LEVEL,
        f"classes {j} and {i} share their noise: their difference is released without noise",
        {"correlation": correlation, "p-value (adjusted)": adjusted},
    )


def _rank_correlation(first: Array, second: Array) -> tuple[float, float]:
    """Return the p-value and Spearman's correlation; constant numbers are correlated only if they are equal."""
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        same = bool(np.array_equal(first, second))
        return float(not same), float(same)
    test = stats.spearmanr(first, second)
    return float(test.pvalue), float(test.statistic)


def _same_attributes(make: Callable[[int], Any], pair: LabelledPair, seed: int) -> Iterator[Finding]:
    """Compare fitted attributes on neighbours with the same seed: names, shapes, types, and values without noise."""
    one, other = (_attributes(make(seed).fit(*data)) for data in (pair.one, pair.other))
    forms = [{name: form for name, (form, _) in fitted.items()} for fitted in (one, other)]
    what = "names, shapes and types of fitted attributes, same seed on neighbours"
    yield judge("replay", what, forms[0] == forms[1], "they depend on the data")
    exact = [name for name, (_, value) in one.items() if value is not None]
    changed = [name for name in exact if one[name] != other.get(name)]
    what = "attributes that are not real numbers, same seed on neighbours"
    if changed:
        why = f"{', '.join(changed)} depends on the data without noise, unless it follows from noisy numbers"
        yield Finding("replay", "noted", what, why)
    else:
        yield Finding("replay", "passed", what)


def _attributes(estimator: Any) -> dict[str, tuple[Any, Any]]:
    """Return the form of each fitted array, and its value if it is exact (labels, counts)."""
    attributes = {}
    for name, value in sorted(vars(estimator).items()):
        if name.endswith("_") and not name.startswith("_"):
            array = np.asarray(value)
            exact = array.dtype.kind in "iubUS"
            attributes[name] = (array.shape, array.dtype), (array.tolist() if exact else None)
    return attributes


def _flat(outputs: Array) -> Array:
    return outputs.reshape(len(outputs), -1)
