"""The plan: what parties sign must be whole, carried out as written, and refused early if it cannot be."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from privlearn import InvalidParameter, SchemaError
from privlearn.data import census_schema, simulated_census
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import LocalAggregation, NoisyDescent, PrivateSGD
from privlearn.parties import JointTraining
from privlearn.release.signatures import in_words

SETTINGS: dict[str, Any] = {
    "parties": {"north": 50, "south": 250, "west": 700},
    "epsilon": 1.0,
    "delta": 1e-5,
}


WEIGHTED = {"name": "income", "classes": ["low", "high"], "weights": {"high": 2.0}}


def agreement_with(**changes: Any) -> JointTraining:
    return JointTraining.from_dict({"schema": census_schema()} | SETTINGS | changes)


CHANGES: dict[str, Any] = {
    "epsilon": 1.5,
    "delta": 1e-6,
    "neighbours": "zero_out",
    "algorithm": "aggregation",
    "loss": "huber_hinge",
    "kernel": {"name": "rbf", "fourier_pairs": 10},
    "rounds": 4,
    "regularization": 0.1,
    "colluding": 2,
    "parties": {"north": 51, "south": 250, "west": 700},
}


@pytest.mark.parametrize("changed", CHANGES)
def test_the_digest_covers_every_setting(changed: str) -> None:
    assert agreement_with(**{changed: CHANGES[changed]}).digest != agreement_with().digest


def test_the_digest_covers_the_dropouts() -> None:
    curious = {"colluding": 0, "accept_curious_parties": True}
    assert agreement_with(dropouts=1, **curious).digest != agreement_with(**curious).digest


def test_the_digest_covers_the_schema_and_the_order_of_parties() -> None:
    other = census_schema().to_dict()
    other["columns"]["age"]["upper"] = 91
    assert agreement_with(schema=other).digest != agreement_with().digest
    turned = dict(reversed(SETTINGS["parties"].items()))
    assert agreement_with(parties=turned).digest != agreement_with().digest


def test_a_plan_survives_json_and_toml(tmp_path: Path) -> None:
    kernel = {"name": "rbf", "gamma": 0.5, "fourier_pairs": 20}
    agreement = agreement_with(kernel=kernel, dropouts=1, colluding=0, accept_curious_parties=True)
    (tmp_path / "plan.json").write_text(json.dumps(agreement.to_dict()))
    census_schema().save(tmp_path / "census.schema.yaml")
    (tmp_path / "plan.toml").write_text(
        'schema = "census.schema.yaml"\nepsilon = 1.0\ndelta = 1e-5\ndropouts = 1\ncolluding = 0\n'
        "accept_curious_parties = true\n"
        "[parties]\nnorth = 50\nsouth = 250\nwest = 700\n"
        '[kernel]\nname = "rbf"\ngamma = 0.5\nfourier_pairs = 20\n'
    )
    for name in ("plan.json", "plan.toml"):
        read = JointTraining.load(tmp_path / name)
        assert read == agreement
        assert read.digest == agreement.digest
    assert json.loads(agreement.canonical()) == agreement.to_dict()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"delta": 0.0}, "delta=1e-6"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"parties": {"a": 2**25, "b": 2**24}, "epsilon": 1e6, "accept_weak_privacy": True}, "bits"),
        ({"algorithm": "aggregation", "delta": 0.0, "epsilon": 1e12, "accept_weak_privacy": True}, "bits"),
        ({"parties": {"alone": 100}}, "at least 2"),
        ({"parties": {"north": 0, "south": 10}}, "at least 1"),
        ({"dropouts": 1}, "Set dropouts = 0: dropouts = 1 needs 4 parties"),
        ({"dropouts": 2, "colluding": 0}, "Set dropouts = 1: dropouts = 2 needs 7 parties"),
        ({"colluding": 3}, "none is left"),
        ({"algorithm": "aggregation", "rounds": 3}, "has one round"),
        ({"algorithm": "average"}, "algorithm"),
        ({"loss": "hinge"}, "loss"),
        ({"width": 0.5}, "has no width"),
        ({"epsilom": 1.0}, "epsilom: unknown setting"),
        ({"kernel": {"name": "polynomial"}}, "only the kernels rbf"),
        ({"schema": census_schema().to_dict() | {"target": None}}, "List the target"),
        ({"schema": census_schema().to_dict() | {"target": WEIGHTED}}, "not supported with several parties"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_carried_out_is_refused_before_anyone_signs(changes: Any, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        agreement_with(**changes)


@pytest.mark.parametrize(
    ("content", "told"), [("epsilon = ", "not valid TOML"), ("epsilon = 1.0", "missing")]
)
def test_unreadable_files_are_told(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(content)
    with pytest.raises(SchemaError, match=told):
        JointTraining.load(path)
    with pytest.raises(SchemaError, match="cannot be read"):
        JointTraining.load(tmp_path / "absent.toml")
    with pytest.raises(SchemaError, match=r"\.toml or \.json"):
        JointTraining.load(tmp_path / "plan.yaml")


def test_algorithms_by_name() -> None:
    assert isinstance(agreement_with().mechanism, NoisyDescent)
    weighted, uniform = (
        agreement_with(algorithm=name).mechanism for name in ("aggregation", "uniform_aggregation")
    )
    assert isinstance(weighted, LocalAggregation)
    assert isinstance(uniform, LocalAggregation)
    assert (weighted.effective_records, uniform.effective_records) == (1000, 150)
    assert agreement_with(algorithm="aggregation", delta=0.0).mechanism.noise == "norm_gamma"
    assert agreement_with(algorithm="psgd", delta=0.0).guarantee == Guarantee(1.0)
    psgd = agreement_with(algorithm="psgd", rounds=20)
    assert isinstance(psgd.mechanism, PrivateSGD)
    assert psgd.mechanism.limit == Guarantee(1.0, 1e-5)
    assert psgd.guarantee == psgd.mechanism.guarantee
    assert psgd.guarantee.epsilon > 5.0


def test_shares_follow_from_dropouts_and_colluders() -> None:
    parties = dict.fromkeys("abcdefgh", 100)
    assert agreement_with(parties=parties, dropouts=2, colluding=1).mechanism.shares == 5
    assert agreement_with(parties=parties).mechanism.shares == 7


def test_a_party_brings_what_the_plan_declares() -> None:
    agreement = agreement_with()
    assert agreement.read_party("north", simulated_census(50, seed=1)).total == 50
    with pytest.raises(InvalidParameter, match="no party 'east'"):
        agreement.read_party("east", simulated_census(50, seed=1))
    with pytest.raises(ValueError, match="declares 50 records") as refusal:
        agreement.read_party("north", simulated_census(57, seed=1))
    assert "57" not in str(refusal.value)


def test_two_hundred_parties_of_a_hundred_thousand_rows_have_room_in_a_sum() -> None:
    sizes = {f"party_{number}": 100_000 for number in range(200)}
    agreement = JointTraining(schema=census_schema(), parties=sizes, epsilon=1.0, delta=1e-9)
    assert agreement.encoding(agreement.mechanism.question(0)).parties == 200


def test_people_compare_128_bits_of_a_plan() -> None:
    agreement = agreement_with()
    assert agreement.fingerprint == in_words(agreement.digest)
