"""Error of the mechanisms against epsilon, measured without privacy: for public or simulated tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from privlearn.arrays import Array
from privlearn.data.encoding.encoder import SchemaEncoder, from_unit
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import RowSource, SelectedRows
from privlearn.data.sources.table import as_source
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.classifiers import PrivateLogisticRegression
from privlearn.estimators.regressor import PrivateRegressor
from privlearn.estimators.svc import PrivateSVC

CLASSIFIERS = {"logistic regression": PrivateLogisticRegression, "support vector machine": PrivateSVC}
REGRESSIONS = {"regression": PrivateRegressor}
_TEST_SHARE = 5
_MIN_ROWS = 20


@dataclass(frozen=True)
class Method:
    """A mechanism with its settings; ``pure`` ones have delta = 0."""

    name: str
    pure: bool
    settings: Mapping[str, str]


def _method(name: str, mechanism: str, noise: str, calibration: str = "tight") -> Method:
    settings = {"mechanism": mechanism, "noise": noise, "calibration": calibration}
    return Method(name, noise != "gaussian", settings)


METHODS = (
    _method("objective, Gaussian (default)", "objective", "gaussian"),
    _method("objective, Gaussian, RA12", "objective", "gaussian", "ra12"),
    _method("objective, norm-Gamma", "objective", "norm_gamma"),
    _method("objective, norm-Gamma, CMS11", "objective", "norm_gamma", "cms11"),
    _method("output, Gaussian", "output", "gaussian"),
    _method("output, norm-Gamma, CMS11", "output", "norm_gamma", "cms11"),
    _method("output, Laplace, RBHT", "output", "laplace", "rbht"),
)
USUAL = (METHODS[0], METHODS[2])
"""The usual choice: with a delta, or without."""


@dataclass(frozen=True)
class Measure:
    """The measured errors on the test part, and those of a guess that ignores the columns."""

    title: str
    of: Callable[[_Split, Any], float]
    guess: str
    of_guess: Callable[[_Split], float]


def measure_named(name: str, schema: Schema) -> Measure:
    """Return the measure of that name in the shell; for a number, its mean absolute error."""
    target = schema.target
    if target is None:
        raise InvalidParameter("the schema has no target. Add `target:` with its name and classes")
    if name not in ("error", "auc"):
        raise InvalidParameter("--metric must be error or auc")
    if target.bounds is not None:
        if name == "auc":
            raise InvalidParameter("a number has no AUC. Omit --metric")
        return Measure("mean absolute error", _Split.distance, "always the mean", _Split.mean_distance)
    if name == "error":
        return Measure("test error", _Split.error, "always the majority class", _Split.majority_error)
    if len(target.classes) != 2:
        raise InvalidParameter("AUC needs two classes. Omit --metric, or merge classes in the schema")
    return Measure("AUC", _Split.auc, "guessing", lambda split: 0.5)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Measured errors of every method.

    Attributes
    ----------
    dataset : str
    rows : int
    epsilons : tuple of float
    delta : float
    seeds : int
    errors : dict of model to dict of method to array of shape (epsilons, seeds)
    plain : dict of model to array of shape (seeds,)
        Errors without privacy.
    majority : array of shape (seeds,)
        Errors of a guess, such as the most frequent class of the training part.
    refused : dict of method to str
        Why no theorem covers the method on this schema.
    measure : Measure
    """

    dataset: str
    rows: int
    epsilons: tuple[float, ...]
    delta: float
    seeds: int
    errors: dict[str, dict[str, Array]]
    plain: dict[str, Array]
    majority: Array
    refused: dict[str, str]
    measure: Measure


def models_for(schema: Schema) -> Mapping[str, Any]:
    """Return the models for the schema's target."""
    is_number = schema.target is not None and schema.target.bounds is not None
    return REGRESSIONS if is_number else CLASSIFIERS


def fits_needed(schema: Schema, epsilons: Sequence[float], seeds: int, methods: Sequence[Method]) -> int:
    """Return how many models a comparison trains, for a progress bar."""
    return len(models_for(schema)) * seeds * (1 + len(methods) * len(epsilons))


def compare_mechanisms(
    table: Any,
    schema: Schema,
    epsilons: Sequence[float],
    *,
    delta: float,
    seeds: int,
    advance: Callable[[], None],
    methods: Sequence[Method] = METHODS,
    metric: str = "error",
) -> Comparison:
    """Train every method at every epsilon on random splits, 80 % for training and 20 % for the test."""
    measure, models = measure_named(metric, schema), models_for(schema)
    rows = as_source(table)
    splits = list(_splits(rows, schema, seeds))
    errors: dict[str, dict[str, Array]] = {model: {} for model in models}

    def measure_splits(model: str, **settings: Any) -> Array:
        values = []
        for split in splits:
            values.append(measure.of(split, split.fit(models[model], **settings)))
            advance()
        return np.array(values)

    refused: dict[str, str] = {}
    with threadpool_limits(limits=1):  # each fit is too short to use several cores
        plain = {model: measure_splits(model, epsilon=math.inf) for model in models}
        for model, method in product(models, methods):
            settings = {"delta": 0.0 if method.pure else delta, **method.settings}
            try:
                curve = [measure_splits(model, epsilon=level, **settings) for level in epsilons]
            except InvalidParameter as error:
                refused[method.name] = str(error)
            else:
                errors[model][method.name] = np.array(curve)
    majority = np.array([measure.of_guess(split) for split in splits])
    arguments = (schema.name, len(rows), tuple(epsilons), delta, seeds)
    return Comparison(*arguments, errors, plain, majority, refused, measure)


def error_rate(schema: Schema, truth: Any, predicted: Any) -> float:
    """Return the share of wrong predictions."""
    encoder = SchemaEncoder(schema)
    return float(np.mean(encoder.encode_labels(truth) != encoder.encode_labels(predicted)))


@dataclass(frozen=True, eq=False)
class _Split:
    """One random split; its seed also draws the noise."""

    schema: Schema
    target: str
    seed: int
    training: RowSource[Any]
    test: RowSource[Any]

    def fit(self, model: Any, **settings: Any) -> Any:
        return model(schema=self.schema, random_state=self.seed, **settings).fit(self.training)

    def error(self, estimator: Any) -> float:
        wrong = sum(
            block.num_rows * error_rate(self.schema, block[self.target], estimator.predict(block))
            for block in self.test.blocks()
            if block.num_rows
        )
        return float(wrong / len(self.test))

    def auc(self, estimator: Any) -> float:
        scores = self._each(self.test, estimator.decision_function)
        return float(roc_auc_score(self._labels(self.test) == 1, scores))

    def distance(self, estimator: Any) -> float:
        predicted = self._each(self.test, estimator.predict)
        return float(np.mean(np.abs(self._numbers(self.test) - predicted)))

    def mean_distance(self) -> float:
        return float(np.mean(np.abs(self._numbers(self.test) - self._numbers(self.training).mean())))

    def majority_error(self) -> float:
        labels, tested = self._labels(self.training), self._labels(self.test)
        majority = np.bincount(labels[labels >= 0]).argmax()
        return float(np.mean(tested != majority))

    def _numbers(self, rows: RowSource[Any]) -> Array:
        """Return the numbers to predict, clamped to their bounds."""
        assert self.schema.target is not None
        assert self.schema.target.bounds is not None
        encode = SchemaEncoder(self.schema).encode_targets
        scaled = self._each(rows, lambda block: encode(block[self.target]))
        return np.asarray(from_unit(scaled, self.schema.target.bounds))

    def _labels(self, rows: RowSource[Any]) -> NDArray[np.int64]:
        encode = SchemaEncoder(self.schema).encode_labels
        return self._each(rows, lambda block: encode(block[self.target]))

    def _each(self, rows: RowSource[Any], read: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
        """Return one number per row, read block by block."""
        return np.concatenate([read(block) for block in rows.blocks() if block.num_rows])


def _splits(rows: RowSource[Any], schema: Schema, seeds: int) -> Iterator[_Split]:
    assert schema.target is not None
    count = len(rows)
    if count < _MIN_ROWS:
        raise DataError(f"a comparison needs at least {_MIN_ROWS} rows, of which a fifth is for the test")
    for seed in range(seeds):
        tested = np.zeros(count, dtype=bool)
        tested[np.random.default_rng(seed).permutation(count)[: count // _TEST_SHARE]] = True
        training, test = SelectedRows(rows, ~tested), SelectedRows(rows, tested)
        yield _Split(schema, schema.target.name, seed, training, test)
