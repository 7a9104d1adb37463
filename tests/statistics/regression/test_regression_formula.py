"""Formulas and designs: what a text means, and that rows and units belong together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from privlearn import InvalidParameter, Schema
from privlearn.statistics.regression import Standardised, design_from_dict, design_of, parse_formula

SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 120, "unit": "years"},
            "dose": {"type": "number", "lower": 0.1, "upper": 50},
            "sex": {"type": "category", "values": ["female", "male"]},
            "ward": {"type": "category", "values": ["a", "b", "c"], "unknown": "other"},
            "grade": {"type": "ordinal", "values": ["low", "middle", "high"]},
            "body-mass": {"type": "number", "lower": 10, "upper": 80},
        },
        "target": {"name": "ill", "classes": ["no", "yes"]},
    }
)


def names(formula: str) -> list[str]:
    return design_of(parse_formula(formula), SCHEMA).names[1:]


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("ill ~ age + sex", ["age", "sex[male]"]),
        ("ill ~ 1 + age*sex", ["age", "sex[male]", "age:sex[male]"]),
        ("ill ~ age:sex", ["age:sex[male]"]),
        ("ill ~ poly(age, 3)", ["age", "age^2", "age^3"]),
        ("ill ~ age + I(age**2)", ["age", "age^2"]),
        ("ill ~ age + age^2 + age", ["age", "age^2"]),
        ("ill ~ ward", ["ward[b]", "ward[c]", "ward[other]"]),
        ("ill ~ C(ward, 'c')", ["ward[a]", "ward[b]", "ward[other]"]),
        ('ill ~ C(ward, ref="b")', ["ward[a]", "ward[c]", "ward[other]"]),
        ("ill ~ grade", ["grade"]),
        ("ill ~ C(grade)", ["grade[middle]", "grade[high]"]),
        ("ill ~ log(dose) + `body-mass`", ["log(dose)", "body-mass"]),
        ("ill ~ (age + sex):grade", ["age:grade", "grade:sex[male]"]),
    ],
)
def test_formulas_mean_what_statisticians_expect(formula: str, expected: list[str]) -> None:
    assert names(formula) == expected


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("ill", "without '~'"),
        ("ill ~", "cannot be read"),
        ("ill ~ age +", "to its end"),
        ("ill ~ age ? sex", "near"),
        ("ill ~ 1", "no term"),
        ("ill ~ age - sex", "near '-'"),
        ("ill ~ spline(age)", "no function spline"),
        ("ill ~ CRP [mg/l]", r"between backticks, in single quotes for the shell: 'dead ~ `CRP \[mg/l\]`'"),
        ("ill ~ Alter (Jahre)", "no function Alter.*between backticks"),
        ("ill ~ body", "no column 'body'. Did you mean 'body-mass'"),
        ("ill ~ age^7", "between 1 and 4"),
        ("ill ~ weight", "no column 'weight'"),
        ("ill ~ ill", "is the outcome"),
        ("ill ~ log(age)", "lower bound above 0"),
        ("ill ~ log(sex)", "without a function"),
        ("ill ~ sex^2", "no powers"),
        ("ill ~ age^4:age", "powers in a formula"),
        ("ill ~ C(age)", "no list of values"),
        ("ill ~ C(ward, 'z')", "no value 'z'"),
    ],
)
def test_formulas_that_are_refused(formula: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        names(formula)


@pytest.mark.parametrize(
    "formula",
    [
        "ill ~ age*sex + I(age^2)",
        "ill ~ age:sex + dose",
        "ill ~ age*dose*ward",
        "ill ~ I(age^2)",
        "ill ~ scale(age)*sex",
    ],
)
def test_rows_and_units_give_the_same_predictor(formula: str) -> None:
    """Coefficients of standardised rows, turned into units, predict the same from the raw products."""
    generator = np.random.default_rng(0)
    design = design_of(parse_formula(formula), SCHEMA)
    design = design_from_dict(design.to_dict())
    cells: dict[str, Any] = {
        "age": generator.normal(50, 15, 40),
        "dose": generator.uniform(1, 20, 40),
        "sex": generator.integers(0, 2, 40),
        "ward": generator.integers(-1, 3, 40),
    }
    atoms, known = design.read(cells)
    assert known.all()
    standardised = Standardised(design, atoms.mean(axis=0), atoms.std(axis=0))
    coefficients = generator.standard_normal(design.dimension)
    users = atoms.copy()
    for index, (variable, _) in enumerate(design.atoms):
        if getattr(design.variables[variable], "function", "") == "scale":
            users[:, index] = (users[:, index] - standardised.centres[index]) / standardised.spreads[index]
    products = np.column_stack(
        [
            np.prod([users[:, atom] ** power for atom, power in product] or [np.ones(40)], axis=0)
            for product in design.products
        ]
    )
    assert products @ standardised.to_units @ coefficients == pytest.approx(
        standardised.rows(atoms) @ coefficients
    )


def test_atoms_are_moved_only_where_the_model_contains_what_that_brings_in() -> None:
    assert design_of(parse_formula("ill ~ age*dose"), SCHEMA).movable == [True, True]
    assert design_of(parse_formula("ill ~ age:dose"), SCHEMA).movable == [False, False]
    assert design_of(parse_formula("ill ~ age + age:dose"), SCHEMA).movable == [False, True]
    assert design_of(parse_formula("ill ~ I(age^2)"), SCHEMA).movable == [False]


def test_missing_and_unlisted_cells_leave_a_record_out() -> None:
    design = design_of(parse_formula("ill ~ age + sex + ward + grade"), SCHEMA)
    complete = {"age": 50.0, "sex": 1, "ward": 0, "grade": 2}
    broken: list[dict[str, Any]] = [
        complete | change
        for change in ({"age": np.nan}, {"sex": -2}, {"sex": -1}, {"ward": -2}, {"grade": -1})
    ]
    rows = [complete, complete | {"ward": -1}, *broken]
    cells = {name: np.array([row[name] for row in rows]) for name in complete}
    assert design.read(cells)[1].tolist() == [True, True, *itertools.repeat(False, len(broken))]


def test_products_of_many_powers_stay_finite() -> None:
    """An overflow gave one record the part NaN, which no noise hides."""
    count = 40
    columns = {f"x{index}": {"type": "number", "lower": -1e6, "upper": 1e6} for index in range(count)}
    target = {"name": "y", "lower": 0, "upper": 1}
    schema = Schema.from_dict({"name": "far", "columns": columns, "target": target})
    powers = ":".join(f"x{index}^4" for index in range(count))
    design = design_of(parse_formula(f"y ~ x0 + {powers}"), schema)
    rows = Standardised(design, np.zeros(count), np.full(count, 50.0)).rows(np.full((1, count), 1e6))
    assert np.isfinite(rows).all()
    assert np.isfinite(np.einsum("ij,ij->i", rows, rows)).all()


@pytest.mark.parametrize("term", ["grade", "scale(grade)", "log1p(grade)", "C(grade)"])
def test_ordered_values_that_are_missing_or_not_listed_are_not_numbers(term: str) -> None:
    design = design_of(parse_formula(f"ill ~ {term}"), SCHEMA)
    assert design.read({"grade": np.array([0, -2, 2, -1])})[1].tolist() == [True, False, True, False]
