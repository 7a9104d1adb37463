"""From a plan and tables to a release that a stranger verifies, for every algorithm and feature map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import sqrtm

from privlearn import Release, Schema, VerificationError, verify
from privlearn.data import SchemaEncoder, census_schema, simulated_census
from privlearn.errors import InvalidParameter
from privlearn.features import kernel_from_name
from privlearn.mechanisms.summed import NoisySum, Question
from privlearn.parties import JointTraining, train_together
from privlearn.parties.run import SharedLandmarkFeatures
from privlearn.release import Certificate
from tests.support.oracles import Sums

SIZES = {"north": 100, "south": 400, "west": 1500}
TABLES = {name: simulated_census(size, seed=place) for place, (name, size) in enumerate(SIZES.items())}
PUBLIC = tuple(
    {name: value for name, value in row.items() if name != "income"}
    for row in simulated_census(20, seed=99).to_pylist()
)
KERNELS: dict[str, Any] = {
    "linear": None,
    "fourier": {"name": "rbf", "fourier_pairs": 30, "seed": 5},
    "landmarks": {"name": "polynomial", "degree": 2, "public_rows": PUBLIC},
}


def agreement_of(**settings: Any) -> JointTraining:
    common = {"schema": census_schema(), "parties": SIZES, "epsilon": 2.0, "delta": 1e-4}
    return JointTraining.from_dict(common | settings)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("algorithm", ["descent", "aggregation", "uniform_aggregation", "psgd"])
def test_every_release_verifies(tmp_path: Path, algorithm: str, kernel: str) -> None:
    rounds = {"rounds": 15, "accept_weak_privacy": True} if algorithm == "psgd" else {}
    agreement = agreement_of(algorithm=algorithm, kernel=KERNELS[kernel], **rounds)
    release = train_together(agreement, TABLES, random_state=1)
    release.save(tmp_path / "joint.privlearn")
    proven = verify(tmp_path / "joint.privlearn")
    assert proven.claimed == agreement.guarantee
    assert proven.recomputed <= proven.claimed
    assert not proven.is_private  # seeded
    read = Release.load(tmp_path / "joint.privlearn")
    test = simulated_census(50, seed=7)
    assert read.model.predict(test).tolist() == release.model.predict(test).tolist()


def test_a_forged_certificate_is_found() -> None:
    record = train_together(agreement_of(), TABLES, random_state=1).certificate.to_dict()
    for name, value in (("rounds", record["constants"]["rounds"] + 1), ("noise_scale", 1.0), ("shares", 3)):
        forged = json.loads(json.dumps(record))
        forged["constants"][name] = value
        with pytest.raises(VerificationError):
            Certificate.from_dict(forged)
    assert Certificate.from_dict(record).guarantee.epsilon == 2.0


def test_the_certificate_says_who_sees_what() -> None:
    text = str(train_together(agreement_of(), TABLES, random_state=1).certificate)
    for fact in (
        "coordinator sees",
        "2 of the 3 parties each add their share",
        "secure sum",
        "lie with one party",
    ):
        assert fact in text
    psgd = str(train_together(agreement_of(algorithm="psgd", rounds=5), TABLES, random_state=1).certificate)
    assert "RA12 claims epsilon = 2 for their limit alone" in psgd


def test_secure_noise_makes_a_private_release() -> None:
    release = train_together(agreement_of(algorithm="aggregation"), TABLES)
    assert release.certificate.is_private


@pytest.mark.parametrize("algorithm", ["descent", "aggregation"])
def test_it_learns(algorithm: str) -> None:
    test = simulated_census(4000, seed=7)
    truth = np.array(test["income"].to_pylist())
    sizes = {"north": 500, "south": 5000, "west": 14500}
    tables = {name: simulated_census(size, seed=place) for place, (name, size) in enumerate(sizes.items())}
    agreement = agreement_of(algorithm=algorithm, parties=sizes, delta=1e-5)
    release = train_together(agreement, tables, random_state=1)
    chance = min(np.mean(truth == "low"), np.mean(truth == "high"))
    assert np.mean(release.model.predict(test) != truth) < 0.75 * chance


def test_several_classes_and_weights_of_persons() -> None:
    table = simulated_census(600, seed=3)
    content = census_schema().to_dict()
    del content["columns"]["region"]
    content["target"] = {"name": "region", "classes": ["north", "east", "south", "west"]}
    content["person"] = "person"
    schema = Schema.from_dict(content)
    table = table.append_column("person", [[place // 2 for place in range(600)]])
    agreement = JointTraining(
        schema=schema, parties={"a": 100, "b": 200}, epsilon=4.0, delta=1e-4, regularization=0.01
    )
    assert (agreement.mechanism.task.problems, agreement.mechanism.task.classes) == (1, 4)
    assert agreement.mechanism.task.averaged
    release = train_together(agreement, {"a": table[:200], "b": table[200:]}, random_state=1)
    assert release.model.coefficients.shape == (4, agreement.features.dimension)


def test_landmarks_do_not_depend_on_the_choice_of_eigenvectors() -> None:
    """The symmetric root is unique: each party computes the same features on its own machine."""
    encoder = SchemaEncoder(census_schema())
    kernel = kernel_from_name("rbf", gamma=0.7)
    features = SharedLandmarkFeatures(encoder, kernel, PUBLIC)
    encoded: Any = encoder.encode(simulated_census(30, seed=4))
    points: Any = features.encoder.public_points  # type: ignore[union-attr]
    root = np.real(sqrtm(np.linalg.inv(kernel(points, points))))
    assert features.transform(encoded) == pytest.approx(kernel(encoded, points) @ root, abs=1e-6)
    weights = np.random.default_rng(0).normal(size=(1, features.dimension))
    scores = features.transform(encoded) @ weights.T
    released = (
        features.encoder.encode(simulated_census(30, seed=4)) @ features.release_coefficients(weights).T
    )
    assert released == pytest.approx(scores, abs=1e-8)


@pytest.mark.parametrize("algorithm", ["descent", "aggregation"])
def test_answers_stay_within_the_bound_that_fixed_point_sums_rely_on(algorithm: str) -> None:
    agreement = agreement_of(algorithm=algorithm)
    party = agreement.read_party("west", TABLES["west"])
    kinds = set()

    def ask(question: Question) -> NoisySum:
        vector = party.answer(question)
        assert vector.shape == (question.length,)
        assert np.max(np.abs(vector)) <= question.bound
        kinds.add(question.kind)
        return NoisySum(vector, party.total, 1)

    agreement.mechanism.run(Sums(ask))
    assert kinds


def test_a_party_refuses_what_no_plan_asks() -> None:
    agreement = agreement_of()
    party = agreement.read_party("north", TABLES["north"])
    dimension = agreement.mechanism.task.dimension
    for coefficients in (np.zeros((1, dimension + 1)), np.full((1, dimension), np.nan), None):
        with pytest.raises(InvalidParameter, match="wrong shape"):
            party.answer(Question(0, "gradients", dimension, 1.0, (), coefficients))
    with pytest.raises(InvalidParameter, match="no algorithm asks"):
        party.answer(Question(0, "rows", dimension, 1.0, ()))
    assert repr(party) == "Party(total=100)"


def test_every_party_must_come() -> None:
    with pytest.raises(InvalidParameter, match="north, south, west"):
        train_together(agreement_of(), {"north": TABLES["north"]})


def test_progress_counts_the_questions() -> None:
    seen: list[tuple[int, str]] = []
    agreement = agreement_of()
    train_together(
        agreement, TABLES, random_state=1, progress=lambda asked: seen.append((asked.number, asked.kind))
    )
    assert seen == list(enumerate(agreement.mechanism.kinds))
