"""A model evaluated on the records of several holders: exact counts, the promised noise, the lost not counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from privlearn import PrivateLogisticRegression, PrivateRegressor, Release, Schema, verify
from privlearn.data import census_schema, simulated_census
from privlearn.errors import DataError, InvalidParameter, SchemaError, VerificationError
from privlearn.mechanisms.summed import NoisySum, NoisySums, Question
from privlearn.parties import JointTraining, simulate
from privlearn.parties.run import JointEvaluation, load_agreement
from privlearn.randomness import SecureRandomness
from privlearn.statistics.evaluation import Evaluation

ALARM = 1e-6
SIZES = {"north": 500, "south": 1500, "west": 1000}
TABLES = {name: simulated_census(size, seed=size) for name, size in SIZES.items()}


@pytest.fixture(scope="module")
def release() -> Release:
    model = PrivateLogisticRegression(epsilon=4.0, delta=1e-5, schema=census_schema(), random_state=1)
    return model.fit(simulated_census(3000, seed=9)).release_


def agreement_of(release: Release, **changes: Any) -> JointEvaluation:
    usual: dict[str, Any] = {"schema": census_schema(), "parties": SIZES, "epsilon": 2.0, "delta": 1e-5}
    return JointEvaluation(release=release, **usual | changes)


class Exact(NoisySums):
    """The sum of some parties' answers without noise."""

    def __init__(self, agreement: JointEvaluation, *names: str) -> None:
        self.agreement, self.names = agreement, names

    def ask(self, question: Question) -> NoisySum:
        parties = [self.agreement.read_party(name, TABLES[name]) for name in self.names]
        vector = np.sum([party.answer(question) for party in parties], axis=0)
        return NoisySum(vector, sum(SIZES[name] for name in self.names), len(self.names))


def test_without_noise_it_is_the_pooled_evaluation(release: Release) -> None:
    agreement = agreement_of(release, by=("region",))
    told = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness())
    pooled = pa.concat_tables(TABLES.values())
    said = np.asarray(release.model.predict(pooled))
    truth = np.array(pooled[agreement.table_schema.target.name].to_pylist())  # type: ignore[union-attr]
    assert told["error"].value == pytest.approx(np.mean(said != truth), abs=1e-9)
    assert told.records == 3000
    by_party = {group.group: group for group in told.groups if group.column == "party"}
    start = 0
    for name, size in SIZES.items():
        own = slice(start, start + size)
        start += size
        assert by_party[name].records == pytest.approx(size)
        assert by_party[name].rates["error"].value == pytest.approx(np.mean(said[own] != truth[own]))
    assert {group.group for group in told.groups if group.column == "region"} == {
        "north",
        "east",
        "south",
        "west",
    }


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_noise_of_a_rehearsal_is_what_its_intervals_reckon_with(release: Release, factor: float) -> None:
    agreement = agreement_of(release)
    exact = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness())
    drawn = np.concatenate(
        [
            ((noisy - true) / (factor * told._deviation(place))).ravel()
            for told in [simulate(agreement, TABLES) for _ in range(4)]
            for place, (noisy, true) in enumerate(zip(told.tables, exact.tables, strict=True))
        ]
    )
    chance = 2.0 * min(stats.chi2.cdf(drawn @ drawn, drawn.size), stats.chi2.sf(drawn @ drawn, drawn.size))
    assert (chance > ALARM) == (factor == 1.0)


def test_a_lost_party_is_not_counted(release: Release) -> None:
    agreement = agreement_of(release, dropouts=1, colluding=0, accept_curious_parties=True)
    told = agreement.outcome(Exact(agreement, "north", "south"), SecureRandomness())
    assert told.records == 2000
    assert " 2000 records" in str(told)
    assert told._noise_factor == 1.0


def test_the_file_is_certified_and_bound_to_its_run(release: Release, tmp_path: Path) -> None:
    told = simulate(agreement_of(release), TABLES)
    told.save(tmp_path / "joint.privlearn")
    proven = verify(tmp_path / "joint.privlearn")
    assert (proven.recomputed.epsilon, proven.is_private) == (2.0, True)
    assert proven.run is not None
    assert "3000 in 1 of 1 sums" in proven.properties["records"]
    assert Evaluation.load(tmp_path / "joint.privlearn")["error"] == told["error"]
    lie = dict(told.about) | {"in_sum": {"parties": 3, "records": 30_000, "noise": 0.1}}
    with pytest.raises(VerificationError):
        Evaluation.from_bytes(dataclasses.replace(told, about=lie, signature=None).to_bytes())


def test_a_number(tmp_path: Path) -> None:
    content = census_schema().to_dict()
    age = content["columns"].pop("age")
    schema = Schema.from_dict(
        content | {"target": {"name": "age", "lower": age["lower"], "upper": age["upper"]}}
    )
    model = PrivateRegressor(epsilon=4.0, delta=1e-5, schema=schema, random_state=1)
    release = model.fit(simulated_census(3000, seed=9)).release_
    told = simulate(agreement_of(release, schema=schema, by=("region",)), TABLES)
    assert 0.0 < told["mean absolute error"].value < 30.0
    assert {group.group for group in told.groups if group.column == "party"} == set(SIZES)


def test_plans_from_files(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "income.privlearn")
    sizes = "\n".join(f"{name} = {size}" for name, size in SIZES.items())
    text = f'release = "income.privlearn"\nepsilon = 2.0\ndelta = 1e-5\nby = ["region"]\n[parties]\n{sizes}\n'
    (tmp_path / "evaluate.toml").write_text(text)
    agreement = load_agreement(tmp_path / "evaluate.toml")
    assert isinstance(agreement, JointEvaluation)
    assert agreement.digest == agreement_of(release, by=("region",)).digest
    assert agreement.to_dict()["release_sha256"] == release.digest
    census_schema().save(tmp_path / "census.yaml")
    of_training = text.replace('release = "income.privlearn"', 'schema = "census.yaml"')
    (tmp_path / "train.toml").write_text(of_training.replace('by = ["region"]\n', ""))
    training = load_agreement(tmp_path / "train.toml")
    assert isinstance(training, JointTraining)
    assert training.read_party("north", TABLES["north"]).total == 500


def test_another_model_is_another_plan(release: Release) -> None:
    model = PrivateLogisticRegression(epsilon=4.0, delta=1e-5, schema=census_schema(), random_state=2)
    other = model.fit(simulated_census(3000, seed=9)).release_
    assert agreement_of(release).digest != agreement_of(other).digest


def test_a_table_of_another_size_stays_home(release: Release) -> None:
    with pytest.raises(DataError, match="another number"):
        agreement_of(release).read_party("north", TABLES["south"])
    with pytest.raises(InvalidParameter, match="no party"):
        agreement_of(release).read_party("nobody", TABLES["south"])


def test_more_records_than_expected_are_cut_off(release: Release) -> None:
    """Where their number is private, nothing may be refused for it."""
    agreement = agreement_of(
        release, neighbours="add_remove", parties={"north": 1, "south": 1500, "west": 1000}
    )
    many = simulated_census(20_000, seed=4)
    question = agreement.mechanism.question(0)
    answer = agreement.read_party("north", many).answer(question)
    assert np.abs(answer).max() <= question.bound / 2501


@pytest.mark.parametrize(
    "changes", [{"by": ("age",)}, {"delta": 0.0}, {"epsilon": 50.0}, {"by": ("nobody",)}], ids=str
)
def test_plans_that_cannot_be(release: Release, changes: dict[str, Any]) -> None:
    with pytest.raises((SchemaError, InvalidParameter)):
        agreement_of(release, **changes)


def test_rows_stay_out_of_the_repr(release: Release) -> None:
    assert repr(agreement_of(release).read_party("north", TABLES["north"])) == "CountedParty()"
