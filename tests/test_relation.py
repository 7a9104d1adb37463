"""A relation is a value that states all its facts; an unknown one fails closed."""

from __future__ import annotations

import dataclasses

import pytest

from privlearn.errors import InvalidParameter
from privlearn.guarantee import RELATIONS, Guarantee, Relation, get_relation, register_relation
from privlearn.mechanisms import Task
from privlearn.solvers import Logistic


@pytest.mark.parametrize("name", ["add_one", "", None, 1, ["zero_out"]])
def test_an_unknown_relation_is_refused_wherever_it_is_named(name: object) -> None:
    with pytest.raises(InvalidParameter, match="replace_one"):
        get_relation(name)
    with pytest.raises(InvalidParameter, match="neighbours must be one of"):
        Guarantee(1.0, 0.0, name)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="neighbours must be one of"):
        Task(Logistic(), 10, 2, 1, 0.1, 1e-10, name)  # type: ignore[arg-type]


def test_no_fact_has_a_default() -> None:
    assert all(
        field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        for field in dataclasses.fields(Relation)
    )


def test_a_name_is_given_once() -> None:
    with pytest.raises(InvalidParameter, match="already"):
        register_relation(dataclasses.replace(RELATIONS["zero_out"], gradients=2))
    register_relation(RELATIONS["zero_out"])  # a module that is imported again


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_facts_follow_from_how_many_records_are_at_stake(relation: Relation) -> None:
    assert relation.gradients == (2 if relation.replaces else 1)
    assert relation.moments**2 == pytest.approx(relation.gradients)
    assert relation.counts**2 == pytest.approx(relation.gradients)
    assert relation.replacing == (1 if relation.replaces else 2)
