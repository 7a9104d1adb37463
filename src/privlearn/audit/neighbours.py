"""Neighbouring data sets that strain a promise most: few records, one of them turned round, silenced or bent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.task import Task

LONGEST = 1.0 - 1e-12  # norm of a record that rounding must not make longer than 1


@dataclass(frozen=True, eq=False)
class Records:
    """Those that are not silent: rows x (times the label's sign for a margin loss), and what regression subtracts.

    For the softmax loss the second are the numbers of the records' classes.

    A record of zeros has a constant loss: it is a deleted one, and is not listed where one that is not there is not
    counted either.
    """

    rows: Array
    offsets: Array

    @classmethod
    def of(cls, rows: Array, offsets: Array | None = None) -> Records:
        return cls(np.asarray(rows), np.zeros(len(rows)) if offsets is None else np.asarray(offsets))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two data sets that differ in one record."""

    name: str
    one: Records
    other: Records


def worst_pairs(task: Task) -> list[Pair]:
    """Neighbours under the task's relation, in its dimension; at most as many records as it has."""
    if task.loss.sees == "residual":
        pairs = _residual_pairs(task)
    elif task.classes:
        pairs = _class_pairs(task)
    else:
        pairs = _line_pairs(task) if task.dimension == 1 else _plane_pairs(task)
    if task.relation.count_is_public:
        return pairs
    return [Pair(pair.name, _listed(pair.one), _listed(pair.other)) for pair in pairs]


def _listed(records: Records) -> Records:
    """Without those that are silent."""
    speaks = records.rows.any(axis=1)
    return Records(records.rows[speaks], records.offsets[speaks])


def _line_pairs(task: Task) -> list[Pair]:
    others = [(0.0, 0.0), (1.0, 1.0), (1.0, -1.0), (0.3, -1.0)]
    replaced = [(1.0, -1.0), (1.0, 0.0), (0.6, -1.0)]
    changed = replaced if task.relation.replaces else [(1.0, 0.0), (-0.5, 0.0)]
    return [
        _pair(f"{a:g} to {b:g} beside {rest}", [[a]], [[b]], [[value] for value in rest], task)
        for (a, b), rest in itertools.product(changed, others)
    ]


def _plane_pairs(task: Task) -> list[Pair]:
    """In the plane of the first two coordinates, and along the diagonal, where coordinates add up most."""
    others = [[0.6, 0.8], [-1.0, 0.0], [0.0, 0.4]]
    pairs = []
    for degrees in (180, 115, 57):
        turned = [np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))]
        pairs.append(_pair(f"turned by {degrees} degrees", [[1.0, 0.0]], [turned], others, task))
    diagonal = np.full((1, task.dimension), task.dimension**-0.5)
    pairs.append(_pair("opposite on the diagonal", diagonal, -diagonal, [], task))
    if not task.relation.replaces:
        return [
            _pair(f"{name} silenced", one, np.zeros_like(one), rest, task)
            for name, one, rest in (
                ("an axis", np.array([[1.0, 0.0]]), others),
                ("the diagonal", diagonal, []),
            )
        ]
    return pairs


def _residual_pairs(task: Task) -> list[Pair]:
    """Of a regression on a line: rows and targets."""
    others = [[(0.0, 0.0)], [(1.0, 1.0), (-1.0, 0.3)], [(1.0, 0.0), (0.3, -1.0)]]
    silent, flipped = (0.0, 0.0), (1.0, -1.0)
    silenced = [((1.0, 1.0), silent), ((1.0, 0.0), silent), ((-0.5, 0.2), silent)]
    replaced = [((1.0, 1.0), flipped), ((1.0, 0.0), flipped), ((1.0, 0.05), (1.0, -0.05))]
    return _pairs_of_two(replaced if task.relation.replaces else silenced, others, task)


def _class_pairs(task: Task) -> list[Pair]:
    """Of the softmax loss on a line: rows and the numbers of their classes."""
    others = [[(0.0, 0.0)], [(1.0, 1.0), (-1.0, 2.0)], [(-1.0, 0.0), (-1.0, 0.0)]]
    silent = (0.0, 0.0)
    silenced = [((1.0, 0.0), silent), ((-0.5, 2.0), silent)]
    replaced = [((1.0, 0.0), (-1.0, 0.0)), ((1.0, 0.0), (1.0, 1.0)), ((1.0, 0.0), (-1.0, 1.0))]
    return _pairs_of_two(replaced if task.relation.replaces else silenced, others, task)


Two = tuple[float, float]


def _pairs_of_two(changed: list[tuple[Two, Two]], others: list[list[Two]], task: Task) -> list[Pair]:
    """On a line: a row and what belongs to it."""
    pairs = []
    for (one, other), rest in itertools.product(changed, others):
        kept = rest[: task.total - 1]
        first, second = (np.array([record, *kept]) for record in (one, other))
        pairs.append(
            Pair(
                f"{one} to {other} beside {kept}",
                *(Records.of(data[:, :1] * LONGEST, data[:, 1]) for data in (first, second)),
            )
        )
    return pairs


def _pair(name: str, one: object, other: object, rest: object, task: Task) -> Pair:
    data = (_widened(changed, rest, task) for changed in (one, other))
    return Pair(name, *map(Records.of, data))


def _widened(changed: object, rest: object, task: Task) -> Array:
    """The changed record and as many others as fit, zeros in the coordinates they do not speak of."""
    rows = np.zeros((0, task.dimension))
    for part in (changed, rest):
        block = np.atleast_2d(np.asarray(part, dtype=float))
        wide = np.zeros((len(block) if block.size else 0, task.dimension))
        wide[:, : block.shape[1]] = block[: len(wide)]
        rows = np.vstack([rows, wide])
    return LONGEST * rows[: task.total]
