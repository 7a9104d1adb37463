"""A small schema with every kind of column, and the check that an error keeps private cells to itself."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from privlearn.data import Schema
from privlearn.errors import DataError
from tests.support.canary import CANARIES


@pytest.fixture
def schema() -> Schema:
    return Schema.from_dict(
        {
            "name": "clinic",
            "columns": {
                "age": {"type": "number", "lower": 0, "upper": 120},
                "income": {"type": "number", "lower": -10, "upper": 1e6, "scale": "log", "knots": 5},
                "weight": {"type": "number", "lower": 2, "upper": 300, "encoding": "linear"},
                "sex": {"type": "category", "values": ["female", "male"]},
                "ward": {"type": "category", "values": [1, 2, 30]},
                "smoker": {"type": "category", "values": [False, True]},
            },
            "target": {"name": "outcome", "classes": ["healthy", "ill"]},
        }
    )


@pytest.fixture
def columns() -> dict[str, list[Any]]:
    return {
        "age": [34, 71, 5, 120],
        "income": [0.0, 52_000.5, 1e6, -10.0],
        "weight": [70.0, 81.5, 19.25, 300.0],
        "sex": ["female", "male", "male", "female"],
        "ward": [1, 30, 2, 2],
        "smoker": [True, False, False, True],
    }


@contextmanager
def _refused(*mentions: str) -> Iterator[None]:
    with pytest.raises(DataError) as caught:
        yield
    error = caught.value
    for mention in mentions:
        assert mention in str(error)
    chain = "".join(traceback.format_exception(type(error), error, None))
    told = [chain, repr(error), str(error)]
    seen: BaseException | None = error
    while seen is not None:
        told += [repr(seen), str(seen), repr(seen.args), repr(vars(seen))]
        seen = seen.__cause__ or seen.__context__
    for canary in CANARIES:
        assert not any(canary in text for text in told)


@pytest.fixture
def refused() -> Callable[..., AbstractContextManager[None]]:
    """``with refused("age"):`` expects a DataError that mentions age and, in its whole chain, no canary."""
    return _refused


def _exact_squares(rows: Any) -> list[Fraction]:
    if isinstance(rows, sparse.csr_array):
        parts = [rows.data[start:stop] for start, stop in zip(rows.indptr, rows.indptr[1:], strict=False)]
    else:
        parts = list(rows)
    return [sum((Fraction(float(entry)) ** 2 for entry in part if entry), Fraction(0)) for part in parts]


@pytest.fixture
def exact_squares() -> Callable[[Any], list[Fraction]]:
    """Squared norms of rows, without rounding."""
    return _exact_squares


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(20240)
