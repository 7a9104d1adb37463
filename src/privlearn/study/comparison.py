"""Error against epsilon for the mechanisms, read off the data: for public or simulated tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import ChosenRows, RowSource
from privlearn.data.sources.table import as_source
from privlearn.errors import DataError, InvalidParameter
from privlearn.estimators.linear import PrivateLogisticRegression
from privlearn.estimators.svc import PrivateSVC

MODELS = {"logistic regression": PrivateLogisticRegression, "support vector machine": PrivateSVC}
_TEST_SHARE = 5
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class Method:
    """A mechanism with its settings; ``pure`` ones promise delta = 0."""

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


@dataclass(frozen=True, eq=False)
class Comparison:
    """Test errors of every method.

    Attributes
    ----------
    dataset : str
    rows : int
    epsilons : tuple of float
    delta : float
    seeds : int
    errors : dict of model to dict of method to array of shape (epsilons, seeds)
    plain : dict of model to array of shape (seeds,)
        Without privacy.
    majority : array of shape (seeds,)
        Of always answering the class that is most frequent in the training part.
    refused : dict of method to str
        Why no theorem covers the method on this schema.
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


def fits_needed(epsilons: Sequence[float], seeds: int) -> int:
    """How many models a comparison trains, for a progress bar."""
    return len(MODELS) * seeds * (1 + len(METHODS) * len(epsilons))


def compare_mechanisms(
    table: Any,
    schema: Schema,
    epsilons: Sequence[float],
    *,
    delta: float,
    seeds: int,
    advance: Callable[[], None],
) -> Comparison:
    """Train every method at every epsilon on random splits, 80 % for training and 20 % for the test."""
    rows = as_source(table)
    splits = list(_splits(rows, schema, seeds))
    errors: dict[str, dict[str, Array]] = {model: {} for model in MODELS}
    refused: dict[str, str] = {}
    with threadpool_limits(limits=1):  # each fit is too short to be shared out among cores
        plain = {model: _errors(splits, model, advance, epsilon=math.inf) for model in MODELS}
        for model, method in product(MODELS, METHODS):
            settings = {"delta": 0.0 if method.pure else delta, **method.settings}
            try:
                curve = [_errors(splits, model, advance, epsilon=level, **settings) for level in epsilons]
            except InvalidParameter as error:
                refused[method.name] = str(error)
            else:
                errors[model][method.name] = np.array(curve)
    majority = np.array([split.majority_error() for split in splits])
    return Comparison(schema.name, len(rows), tuple(epsilons), delta, seeds, errors, plain, majority, refused)


def error_rate(schema: Schema, truth: Any, predicted: Any) -> float:
    """Share of wrong predictions."""
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

    def error(self, model: str, **settings: Any) -> float:
        estimator = MODELS[model](schema=self.schema, random_state=self.seed, **settings).fit(self.training)
        wrong = sum(
            block.num_rows * error_rate(self.schema, block[self.target], estimator.predict(block))
            for block in self.test.blocks()
            if block.num_rows
        )
        return float(wrong / len(self.test))

    def majority_error(self) -> float:
        labels, tested = self._labels(self.training), self._labels(self.test)
        most_frequent = np.bincount(labels[labels >= 0]).argmax()
        return float(np.mean(tested != most_frequent))

    def _labels(self, rows: RowSource[Any]) -> NDArray[np.int64]:
        encode = SchemaEncoder(self.schema).encode_labels
        return np.concatenate([encode(block[self.target]) for block in rows.blocks()])


def _splits(rows: RowSource[Any], schema: Schema, seeds: int) -> Iterator[_Split]:
    if schema.target is None:
        raise InvalidParameter("the schema has no target: add `target:` with its name and classes")
    count = len(rows)
    if count < _FEWEST_ROWS:
        raise DataError(f"a comparison needs at least {_FEWEST_ROWS} rows: a fifth is kept for the test")
    for seed in range(seeds):
        tested = np.zeros(count, dtype=bool)
        tested[np.random.default_rng(seed).permutation(count)[: count // _TEST_SHARE]] = True
        training, test = ChosenRows(rows, ~tested), ChosenRows(rows, tested)
        yield _Split(schema, schema.target.name, seed, training, test)


def _errors(splits: Sequence[_Split], model: str, advance: Callable[[], None], **settings: Any) -> Array:
    """The test error on each split."""
    found = []
    for split in splits:
        found.append(split.error(model, **settings))
        advance()
    return np.array(found)
