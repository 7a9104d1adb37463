"""Public: the coefficients of a formula under a schema, and the rows of numbers that they multiply.

A *variable* is a column of numbers (or a function of one) or a list of categories. It gives one *atom*, or one for each
category but the reference. A *coefficient* belongs to a product of powers of atoms; the intercept to the empty product.
With ``y ~ age + sex + age:sex`` and two sexes, the atoms are ``age`` and ``sex[male]``, and the coefficients are

    (), (age,), (sex[male],), (age, sex[male])

Rows are computed from atoms that are moved to their centre and divided by their spread, wherever the formula contains
the terms that moving an atom brings in. `Standardised.to_units` returns to the units of the table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, did_you_mean
from privlearn.statistics.description.layout import DescribedColumn, described_columns
from privlearn.statistics.regression.formula import Formula, Variable

MAX_COEFFICIENTS = 64
"""Beyond, the noise in the information matrix exceeds it in tables of any usual size."""

NORM = 1.7
"""c^2: the mean squared norm of a row is 1 / c^2, so that few rows exceed 1 and lose weight."""

_FUNCTIONS = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}
_DOMAINS = {"log": 0.0, "log1p": -1.0, "sqrt": -math.ulp(0.0)}
ROOT_MOMENTS = {1: 1.0, 2: math.sqrt(3.0), 3: math.sqrt(15.0), 4: math.sqrt(105.0)}
"""Root mean square of powers of a standard normal variable."""

_FARTHEST = 1e6
"""Standardised atoms beyond it count as this far; such rows have next to no weight."""

_LARGEST = 1e100
"""Products beyond it count as this large: squares and sums of them stay finite, whatever the number of factors."""

Product = tuple[tuple[int, int], ...]
"""Atoms and their powers, in the order of the atoms."""


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or a function of it; ordered values count 0, 1, 2, ..., and dates count days."""

    name: str
    column: str
    function: str
    lower: float
    upper: float
    unit: str = ""

    levels = 1

    def read(self, cells: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        """PRIVATE: return the atom of each row, of shape (rows, 1), and which rows have a value."""
        # of an ordered value; below 0 if it is missing or not listed
        is_index = np.asarray(cells).dtype.kind == "i"
        numbers = np.asarray(cells, dtype=np.float64)
        known = numbers >= 0 if is_index else ~np.isnan(numbers)
        numbers = np.where(known, numbers, 0.0)
        if self.function in _FUNCTIONS:
            low = np.nextafter(_DOMAINS[self.function], np.inf)
            numbers = _FUNCTIONS[self.function](np.maximum(numbers, low))
        return np.clip(numbers, self.lower, self.upper)[:, np.newaxis], known

    def label(self, level: int) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass(frozen=True)
class Levels:
    """A column of categories; ``values[0]`` is the reference."""

    name: str
    column: str
    values: tuple[str, ...]
    order: tuple[int, ...]
    """Index in ``values`` of each value of the column; the last is that of values outside the list, -1 if none."""

    @property
    def levels(self) -> int:
        return len(self.values) - 1

    def read(self, cells: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        """PRIVATE: return the atoms of each row, of shape (rows, levels), and which rows have a value."""
        index = self.index(cells)
        return np.asarray(index[:, np.newaxis] == np.arange(1, self.levels + 1), dtype=float), index >= 0

    def index(self, cells: NDArray[Any]) -> NDArray[np.int64]:
        """PRIVATE: return the index of each row's value; -1 where it is missing or not listed."""
        codes = np.asarray(cells, dtype=np.int64)
        order = np.array(self.order)
        known = np.where(codes >= 0, codes, len(order) - 1)
        return np.asarray(np.where(codes == -2, -1, order[known]))

    def label(self, level: int) -> str:
        return f"{self.name}[{self.values[level + 1]}]"

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "values": list(self.values), "order": list(self.order)}


AnyVariable = Numbers | Levels


@dataclass(frozen=True, eq=False)
class Design:
    """Variables and coefficients of a model.

    For an ordinal outcome of K levels, the first variable has no column: its K - 1 values are the levels that a row
    compares the outcome with.
    """

    variables: tuple[AnyVariable, ...]
    products: tuple[Product, ...]

    @property
    def thresholds(self) -> Levels | None:
        """Return the variable that has no column; None unless the outcome is ordinal."""
        first = self.variables[0]
        return first if isinstance(first, Levels) and not first.column else None

    @property
    def column_variables(self) -> tuple[AnyVariable, ...]:
        """Return the variables that have a column, and thus a histogram."""
        return self.variables if self.thresholds is None else self.variables[1:]

    @property
    def rows_per_record(self) -> int:
        """Return the number of rows of one record: K - 1 for an ordinal outcome of K levels."""
        return 1 if self.thresholds is None else len(self.thresholds.values)

    @property
    def intercepts(self) -> int:
        """Return the number of coefficients that belong to no term of the formula; they come first."""
        return self.rows_per_record

    def with_thresholds(self, name: str, levels: Sequence[str]) -> Design:
        """Return the design with one intercept for each of the levels but the last."""
        values = comparisons(levels)
        variable = Levels(name, "", values, (*range(len(values)), -1))
        shift = variable.levels
        own: list[Product] = [((atom, 1),) for atom in range(shift)]
        others = [tuple((atom + shift, power) for atom, power in product) for product in self.products[1:]]
        return _checked(Design((variable, *self.variables), ((), *own, *others)))

    @property
    def dimension(self) -> int:
        return len(self.products)

    @cached_property
    def atoms(self) -> list[tuple[int, int]]:
        """Return the variable and the level of each atom."""
        return [
            (index, level)
            for index, variable in enumerate(self.variables)
            for level in range(variable.levels)
        ]

    @property
    def names(self) -> list[str]:
        """Return the name of each coefficient."""
        labels = [self.variables[variable].label(level) for variable, level in self.atoms]
        names = [
            ":".join(labels[atom] + (f"^{power}" if power > 1 else "") for atom, power in product)
            or "(intercept)"
            for product in self.products
        ]
        if self.thresholds is not None:
            names[: self.intercepts] = [f"{self.thresholds.name} {value}" for value in self.thresholds.values]
        return names

    def read(self, cells: Mapping[str, Any]) -> tuple[Array, NDArray[np.bool_]]:
        """PRIVATE: return the atoms of each row, of shape (rows, atoms), and which rows have all values."""
        parts = [variable.read(cells[variable.column]) for variable in self.variables]
        return np.hstack([atoms for atoms, _ in parts]), np.logical_and.reduce([known for _, known in parts])

    @cached_property
    def movable(self) -> list[bool]:
        """Return which atoms may be moved: every product with the atom comes with those of lower powers."""
        products = set(self.products)
        return [
            all(
                _without(product, atom, power) in products
                for product in self.products
                for power in range(dict(product).get(atom, 0))
            )
            for atom in range(len(self.atoms))
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "variables": [variable.to_dict() for variable in self.variables],
            "products": [[list(factor) for factor in product] for product in self.products],
        }


def comparisons(levels: Sequence[str]) -> tuple[str, ...]:
    """Return the comparisons with levels of which a record has one row each.

    >>> comparisons(["low", "middle", "high"])
    ('> low', '> middle')
    """
    return tuple(f"> {level}" for level in levels[:-1])


def design_from_dict(record: Mapping[str, Any]) -> Design:
    """Return the design of a file: the inverse of `Design.to_dict`."""
    variables: list[AnyVariable] = [
        Levels(**{**entry, "values": tuple(entry["values"]), "order": tuple(entry["order"])})
        if "values" in entry
        else Numbers(**entry)
        for entry in record["variables"]
    ]
    products = tuple(tuple((int(a), int(p)) for a, p in product) for product in record["products"])
    return Design(tuple(variables), products)


def design_of(formula: Formula, schema: Schema) -> Design:
    """Return the design of a formula under a schema; raise InvalidParameter for columns that it cannot use."""
    columns = described_columns(schema)
    names = list(dict.fromkeys(variable for term in formula.terms for variable, _ in term.powers))
    variables = [read_variable(variable, columns, formula.outcome) for variable in names]
    starts = list(itertools.accumulate((variable.levels for variable in variables), initial=0))
    products: list[Product] = [()]
    for term in formula.terms:
        choices = []
        for variable, power in term.powers:
            index = names.index(variable)
            if power > 1 and isinstance(variables[index], Levels):
                raise InvalidParameter(
                    f"{variable.column!r} is a list of categories, which have no powers. Remove the power."
                )
            choices.append([(starts[index] + level, power) for level in range(variables[index].levels)])
        products += [tuple(sorted(product)) for product in itertools.product(*choices)]
    return _checked(Design(tuple(variables), tuple(dict.fromkeys(products))))


def _checked(design: Design) -> Design:
    """Return the design; raise InvalidParameter for more coefficients than are offered."""
    if design.dimension > MAX_COEFFICIENTS:
        raise InvalidParameter(
            f"the formula has {design.dimension} coefficients, and at most {MAX_COEFFICIENTS} are allowed. Use fewer "
            "terms, or merge categories."
        )
    return design


def read_variable(variable: Variable, columns: Mapping[str, DescribedColumn], outcome: str) -> AnyVariable:
    """Return the variable that a formula names, by its column's public bounds or values."""
    name = variable.column
    if name == outcome:
        raise InvalidParameter(f"{name!r} is the outcome. Remove it from the right side of the formula.")
    if name not in columns:
        raise InvalidParameter(f"the schema has no column {name!r}{did_you_mean(name, columns)}")
    column = columns[name]
    listed = isinstance(column, CategoryColumn) or (
        isinstance(column, OrdinalColumn) and variable.function == "C"
    )
    if listed:
        return _levels(variable, column)
    if variable.function == "C":
        raise InvalidParameter(f"{name!r} has no list of values. Write it without C().")
    return _numbers(variable, column)


def _levels(variable: Variable, column: Any) -> Levels:
    if variable.function not in ("", "C"):
        raise InvalidParameter(f"{variable.column!r} is a list of categories. Write it without a function.")
    labels = [str(value) for value in column.values]
    other = getattr(column, "unknown", "") == "other"
    labels += ["other"] if other else []
    reference = labels[0] if variable.reference is None else variable.reference
    if reference not in labels:
        raise InvalidParameter(
            f"{variable.column!r} has no value {reference!r} that could be the reference"
            f"{did_you_mean(reference, labels)}"
        )
    values = (reference, *(label for label in labels if label != reference))
    order = [values.index(label) for label in labels]
    return Levels(variable.column, variable.column, values, tuple(order if other else [*order, -1]))


def _numbers(variable: Variable, column: Any) -> Numbers:
    function = variable.function
    if isinstance(column, OrdinalColumn):
        lower, upper, own = 0.0, len(column.values) - 1.0, "position"
    elif isinstance(column, DateColumn):
        lower, upper, own = 0.0, float((column.upper - column.lower).days), ""
    else:
        assert isinstance(column, NumberColumn)
        lower, upper, own = column.lower, column.upper, ""
    if function in _FUNCTIONS:
        if not lower > _DOMAINS[function]:
            raise InvalidParameter(
                f"{variable} needs a lower bound above {max(_DOMAINS[function], -1.0):g} in the schema. "
                + ("Write log1p(...), or raise the bound." if function == "log" else "Raise the bound.")
            )
        lower, upper = (float(_FUNCTIONS[function](bound)) for bound in (lower, upper))
    unit = getattr(column, "unit", None) or ""
    return Numbers(str(variable), variable.column, function or own, lower, upper, unit)


def _without(product: Product, atom: int, power: int) -> Product:
    """Return the product with another power of an atom."""
    return tuple((one, power if one == atom else old) for one, old in product if one != atom or power)


@dataclass(frozen=True, eq=False)
class Standardised:
    """A design with released centres and spreads of its atoms: from atoms to rows, and from rows back to units."""

    design: Design
    centres: Array
    spreads: Array

    @property
    def length(self) -> float:
        """Return the factor of every product in a row: 1 / sqrt(c^2 d)."""
        return 1.0 / math.sqrt(NORM * self.design.dimension)

    @cached_property
    def _moves(self) -> Array:
        return np.where(self.design.movable, self.centres, 0.0)

    def rows(self, atoms: Array) -> Array:
        """PRIVATE: return the row of each record; ``atoms`` are as `Design.read` returns them."""
        moved = np.clip((atoms - self._moves) / self.spreads, -_FARTHEST, _FARTHEST)
        columns = np.empty((len(atoms), self.design.dimension))
        for index, product in enumerate(self.design.products):
            column = np.full(len(atoms), self.length)
            for atom, power in product:
                column *= moved[:, atom] ** power / ROOT_MOMENTS[power]
                np.clip(column, -_LARGEST, _LARGEST, out=column)
            columns[:, index] = column
        return columns

    @cached_property
    def to_units(self) -> Array:
        """Return the matrix that turns coefficients of rows into coefficients of the table's own units."""
        indices = {product: index for index, product in enumerate(self.design.products)}
        matrix = np.zeros((self.design.dimension, self.design.dimension))
        for column, product in enumerate(self.design.products):
            for lower, factor in self._expand(product):
                matrix[indices[lower], column] += factor * self.length
        # released as differences from the first intercept
        matrix[1 : self.design.intercepts] += matrix[0]
        return matrix

    def _expand(self, product: Product) -> list[tuple[Product, float]]:
        """Return a product of standardised atoms as a sum of products of the user's atoms."""
        parts: list[tuple[Product, float]] = [((), 1.0)]
        for atom, power in product:
            move, spread = self._user_scale(atom)
            binomial = [
                (lower, math.comb(power, lower) * (-move) ** (power - lower) / spread**power)
                for lower in range(power + 1)
                if move or lower == power
            ]
            parts = [
                (one + (((atom, lower),) if lower else ()), factor * other / ROOT_MOMENTS[power])
                for one, factor in parts
                for lower, other in binomial
            ]
        return parts

    def _user_scale(self, atom: int) -> tuple[float, float]:
        """Return centre and spread of an atom in the user's unit: 0 and 1 where it is the standard deviation."""
        variable = self.design.variables[self.design.atoms[atom][0]]
        if isinstance(variable, Numbers) and variable.function == "scale":
            return 0.0, 1.0
        return float(self._moves[atom]), float(self.spreads[atom])
