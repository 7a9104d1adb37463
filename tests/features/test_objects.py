"""Canonical bytes of objects: one encoding for each, none for two, and the object comes back."""

from __future__ import annotations

import datetime
import math
from collections import namedtuple
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from privlearn.errors import DataError
from privlearn.features import canonical, list_objects, object_from_bytes, object_to_bytes

NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.just(-0.0)
)
ARRAYS = arrays.arrays(
    dtype=st.sampled_from(["<f8", ">f8", "<f4", "<i8", "|u1", "|b1"]),
    shape=arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    elements={"allow_nan": False, "allow_infinity": False},
)
LEAVES = st.one_of(st.none(), NUMBERS, st.text(), st.text("ab", max_size=2), st.binary(max_size=3), ARRAYS)
OBJECTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=2), st.integers(0, 3)), inner, max_size=3),
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    """Written a second time: equal types, equal values, in every part."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        kinds = one.dtype.newbyteorder("<") == other.dtype.newbyteorder("<")
        return kinds and one.shape == other.shape and bool(np.all(one == other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            same(one[key], other[key]) and type(key) in {type(name) for name in other if name == key}
            for key in one
        )
    return bool(one == other)


@given(OBJECTS, OBJECTS)
def test_two_objects_share_their_bytes_only_if_they_are_the_same(one: Any, other: Any) -> None:
    assert (object_to_bytes(one) == object_to_bytes(other)) == same(one, other)


@given(OBJECTS)
def test_an_object_comes_back_and_keeps_its_bytes(value: Any) -> None:
    content = object_to_bytes(value)
    assert same(object_from_bytes(content), value)
    assert object_to_bytes(canonical(value)) == content


@given(st.lists(st.text("ab", max_size=3), max_size=4), st.lists(st.text("ab", max_size=3), max_size=4))
def test_no_two_lists_run_together(one: list[str], other: list[str]) -> None:
    """["ab", "c"] and ["a", "bc"] have the same letters."""
    assert (object_to_bytes(one) == object_to_bytes(other)) == (one == other)


def test_what_is_the_same_object() -> None:
    assert object_to_bytes({"a": 1, "b": 2}) == object_to_bytes({"b": 2, "a": 1})
    assert object_to_bytes(-0.0) == object_to_bytes(0.0)
    assert object_to_bytes(np.array([-0.0])) == object_to_bytes(np.array([0.0]))
    assert object_to_bytes(np.float64(0.5)) == object_to_bytes(0.5)
    assert object_to_bytes(np.str_("a")) == object_to_bytes("a")
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert object_to_bytes(fortran) == object_to_bytes(np.ascontiguousarray(fortran))
    assert len({object_to_bytes(value) for value in (1, 1.0, True, "1", b"1", [1], (1,), np.array(1))}) == 8


def test_what_the_kernel_reads_cannot_be_changed_by_whoever_asked() -> None:
    mine = np.zeros(3)
    kept = canonical(mine)
    mine[0] = 1.0
    assert kept.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1.0


_Pair = namedtuple("_Pair", "a b")
_ENDLESS: list[Any] = []
_ENDLESS.append(_ENDLESS)


@pytest.mark.parametrize(
    "value",
    [
        object(), {1, 2}, datetime.date(1999, 12, 31), math.nan, math.inf, np.array([math.nan]), np.array(["a"]),
        np.array([object()]), np.longdouble(1), 1j, _Pair(1, 2), ["secret 4711", object()], _ENDLESS,
    ],
)  # fmt: skip
def test_what_bytes_cannot_hold_is_refused_without_repeating_it(value: Any) -> None:
    with pytest.raises(DataError, match="key=, a function whose result the kernel reads") as refusal:
        object_to_bytes(value)
    assert refusal.value.__context__ is None
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize(
    "texts",
    [["a", "b"], ("a", "b"), pd.Series(["a", "b"]), pa.array(["a", "b"]), np.array(["a", "b"]), iter("ab")],
    ids=lambda texts: type(texts).__name__,
)
def test_many_objects(texts: Any) -> None:
    assert list_objects(texts) == ["a", "b"]


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ("text", "Put it in a list"),
        ({"a": [1]}, "schema="),
        (pd.DataFrame({"a": [1]}), "schema="),
        (np.eye(2), "norm_bound"),
        (sparse.eye(2), "norm_bound"),
        (3, "not a list"),
    ],
)
def test_what_is_no_list_of_objects_is_refused(points: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        list_objects(points)
