"""People whom several parties know: what they move, what the plan adds for them, and what the certificate says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import verify
from privlearn.arrays import Array
from privlearn.data import simulated_census
from privlearn.errors import SchemaError, VerificationError
from privlearn.mechanisms import NoisyDescent
from privlearn.mechanisms.summed import Question, grid_ratio
from privlearn.parties import Cohort, JointTraining, NoiseShare, simulate
from privlearn.release import Certificate
from tests.support.run_cases import SCHEMA, SIZES, TABLES, agreement_of

STRANGERS = simulated_census(400, seed=77)


def descent(agreement: JointTraining) -> NoisyDescent:
    assert isinstance(agreement.mechanism, NoisyDescent)
    return agreement.mechanism


def replaced(table: pa.Table, stranger: int) -> pa.Table:
    """Return the table with its first record replaced by a stranger's."""
    return pa.concat_tables([STRANGERS.slice(stranger, 1), table.slice(1)])


def summed(agreement: JointTraining, question: Question, tables: dict[str, pa.Table]) -> Array:
    answers = [agreement.read_party(name, table).answer(question) for name, table in tables.items()]
    return np.sum(answers, axis=0)


@pytest.mark.parametrize("kind", ["second_moments", "gradients"])
def test_a_person_of_two_parties_moves_a_sum_by_no_more_than_is_paid_for(kind: str) -> None:
    agreement = agreement_of(parties_per_person=2)
    mechanism = descent(agreement)
    generator = np.random.default_rng(4)
    shape = (mechanism.task.problems, mechanism.task.dimension)
    number = mechanism.kinds.index(kind)
    one_party, seen = [], []
    for stranger in range(12):
        asked = mechanism.question(number, generator.normal(size=shape) * 30 if kind == "gradients" else None)
        here = {name: replaced(TABLES[name], stranger) for name in ("north", "south")}
        before = summed(agreement, asked, TABLES)
        seen.append(np.linalg.norm(summed(agreement, asked, TABLES | here) - before))
        one_party.append(np.linalg.norm(summed(agreement, asked, TABLES | {"north": here["north"]}) - before))
    constants = mechanism.constants()
    paid = constants["rounded_sensitivity" if kind == "gradients" else "second_moment_sensitivity"]
    assert max(seen) <= paid
    assert max(seen) > 1.2 * max(one_party)  # the second party's part is felt


def test_the_worst_person_moves_gradients_by_twice_as_much() -> None:
    """All her records have one gradient, and become the opposite in both parties: 2 parties times 2 L."""
    agreement = agreement_of(parties_per_person=2)
    assert descent(agreement).task.gradient_sensitivity == 4.0
    assert descent(agreement_of()).task.gradient_sensitivity == 2.0


def test_twice_the_noise_and_the_promise_stays() -> None:
    usual, careful = descent(agreement_of()), descent(agreement_of(parties_per_person=2))
    assert careful.noise_scale == pytest.approx(2.0 * usual.noise_scale, rel=1e-6)
    assert careful.curvature_noise_scale == pytest.approx(2.0 * usual.curvature_noise_scale, rel=1e-6)
    assert careful.spends().delta <= 1e-5
    for_free = dataclasses.replace(careful, noise_scale=usual.noise_scale)
    assert for_free.spends().delta > 1e-3


@pytest.mark.parametrize("parties", [2, 3])
def test_so_many_rounded_vectors_cost_no_more_than_one_did(parties: int) -> None:
    """What the secure sum's theorem says of the shares is within what a mechanism pays for its grid."""
    for scale in (3.0, 4.1, 5.9):
        share = NoiseShare(scale, Cohort(5, colluding=1), parties)
        assert share.zcdp(1.0, 100) <= 0.5 * (1.0 / scale + grid_ratio(100)) ** 2
    coarse = dataclasses.replace(share, parties_per_person=1)
    assert share.step <= coarse.step / parties
    agreement = agreement_of(parties_per_person=parties)
    dealt = agreement.party_noise(agreement.mechanism.question(1)).share
    assert dealt is not None
    assert dealt.parties_per_person == parties


def test_the_release_says_so_and_verifies(tmp_path: Path) -> None:
    release = simulate(agreement_of(parties_per_person=2), TABLES)
    release.save(tmp_path / "joint.privlearn")
    proven = verify(tmp_path / "joint.privlearn")
    assert proven.certificate.mechanism.task.parties_per_person == 2
    assert "lie with at most 2 parties" in proven.certificate.mechanism.covers
    assert "up to 2" in proven.properties["meaning"]


def test_less_noise_than_for_so_many_parties_is_found(tmp_path: Path) -> None:
    """A certificate that was calibrated for one party and claims two."""
    record: dict[str, Any] = simulate(agreement_of(), TABLES).certificate.to_dict()
    record["task"]["parties_per_person"] = 2
    with pytest.raises(VerificationError):
        Certificate.from_dict(record)


def test_a_plan_says_how_many() -> None:
    with pytest.raises(SchemaError, match="parties_per_person"):
        agreement_of(parties_per_person=4)
    assert agreement_of(parties_per_person=2).digest != agreement_of().digest
    with pytest.raises(SchemaError, match="one record per person"):
        JointTraining(
            schema=SCHEMA,
            parties=SIZES,
            epsilon=1.0,
            delta=1e-5,
            algorithm="psgd",
            rounds=2,
            parties_per_person=2,
            accept_weak_privacy=True,
        )
