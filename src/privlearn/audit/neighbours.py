"""Worst-case neighbouring data sets: few records, one of them negated, zeroed or rotated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.task import Task

MAX_NORM = 1.0 - 1e-12  # below 1, so that rounding does not make a record longer than 1


@dataclass(frozen=True, eq=False)
class Records:
    """Rows x of shape (records, d), multiplied by the label's sign for a margin loss, and one offset for each.

    Offsets are the targets of a regression, or the class numbers of the softmax loss. A row of zeros has a constant
    loss and stands for a deleted record; it is omitted if the number of records is private.
    """

    rows: Array
    offsets: Array

    @classmethod
    def of(cls, rows: Array, offsets: Array | None = None) -> Records:
        """Return records with these offsets, by default zeros."""
        return cls(np.asarray(rows), np.zeros(len(rows)) if offsets is None else np.asarray(offsets))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two data sets that differ in one record."""

    name: str
    one: Records
    other: Records


def worst_pairs(task: Task) -> list[Pair]:
    """Return neighbours under the task's relation, in its dimension, with at most its number of records."""
    if task.loss.argument == "residual":
        pairs = _residual_pairs(task)
    elif task.classes:
        pairs = _class_pairs(task)
    else:
        pairs = _line_pairs(task) if task.dimension == 1 else _plane_pairs(task)
    if task.relation.count_is_public:
        return pairs
    return [Pair(pair.name, _without_zeros(pair.one), _without_zeros(pair.other)) for pair in pairs]


def _without_zeros(records: Records) -> Records:
    present = records.rows.any(axis=1)
    return Records(records.rows[present], records.offsets[present])


def _line_pairs(task: Task) -> list[Pair]:
    others = [(0.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.3, -1.0)]
    replaced = [(1.0, -1.0), (1.0, 0.0), (0.6, -1.0)]
    changed = replaced if task.relation.replaces else [(1.0, 0.0), (-0.5, 0.0)]
    return [
        _pair(f"{a:g} to {b:g} next to {rest}", [[a]], [[b]], [[value] for value in rest], task)
        for (a, b), rest in itertools.product(changed, others)
    ]


def _plane_pairs(task: Task) -> list[Pair]:
    """Return pairs in the plane of the first two coordinates, and along the diagonal, where sums are largest."""
    others = [[0.6, 0.8], [-1.0, 0.0], [0.0, 0.4]]
    pairs = []
    for degrees in (180, 115, 57):
        rotated = [np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))]
        pairs.append(_pair(f"rotated by {degrees} degrees", [[1.0, 0.0]], [rotated], others, task))
    diagonal = np.full((1, task.dimension), task.dimension**-0.5)
    pairs.append(_pair("opposite on the diagonal", diagonal, -diagonal, [], task))
    if not task.relation.replaces:
        return [
            _pair(f"{name} zeroed", one, np.zeros_like(one), rest, task)
            for name, one, rest in (
                ("an axis", np.array([[1.0, 0.0]]), others),
                ("the diagonal", diagonal, []),
            )
        ]
    return pairs


def _residual_pairs(task: Task) -> list[Pair]:
    """Return pairs of a regression on a line: (row, target)."""
    others = [[(0.0, 0.0)], [(1.0, 1.0), (-1.0, 0.3)], [(1.0, 0.0), (0.3, -1.0)]]
    zero, flipped = (0.0, 0.0), (1.0, -1.0)
    zeroed = [((1.0, 1.0), zero), ((1.0, 0.0), zero), ((-0.5, 0.2), zero)]
    replaced = [((1.0, 1.0), flipped), ((1.0, 0.0), flipped), ((1.0, 0.05), (1.0, -0.05))]
    return _pairs_of_two(replaced if task.relation.replaces else zeroed, others, task)


def _class_pairs(task: Task) -> list[Pair]:
    """Return pairs of the softmax loss on a line: (row, number of its class)."""
    others = [[(0.0, 0.0)], [(1.0, 1.0), (-1.0, 2.0)], [(-1.0, 0.0), (-1.0, 0.0)]]
    zero = (0.0, 0.0)
    zeroed = [((1.0, 0.0), zero), ((-0.5, 2.0), zero)]
    replaced = [((1.0, 0.0), (-1.0, 0.0)), ((1.0, 0.0), (1.0, 1.0)), ((1.0, 0.0), (-1.0, 1.0))]
    return _pairs_of_two(replaced if task.relation.replaces else zeroed, others, task)


Two = tuple[float, float]


def _pairs_of_two(changed: list[tuple[Two, Two]], others: list[list[Two]], task: Task) -> list[Pair]:
    """Return pairs on a line, of (row, offset)."""
    pairs = []
    for (one, other), rest in itertools.product(changed, others):
        others_used = rest[: task.total - 1]
        first, second = (np.array([record, *others_used]) for record in (one, other))
        pairs.append(
            Pair(
                f"{one} to {other} next to {others_used}",
                *(Records.of(data[:, :1] * MAX_NORM, data[:, 1]) for data in (first, second)),
            )
        )
    return pairs


def _pair(name: str, one: object, other: object, rest: object, task: Task) -> Pair:
    data = (_pad(changed, rest, task) for changed in (one, other))
    return Pair(name, *map(Records.of, data))


def _pad(changed: object, rest: object, task: Task) -> Array:
    """Return the changed record and as many others as fit, padded with zeros to the task's dimension."""
    rows = np.zeros((0, task.dimension))
    for part in (changed, rest):
        block = np.atleast_2d(np.asarray(part, dtype=float))
        wide = np.zeros((len(block) if block.size else 0, task.dimension))
        wide[:, : block.shape[1]] = block[: len(wide)]
        rows = np.vstack([rows, wide])
    return MAX_NORM * rows[: task.total]
