"""One noisy sum of second moments, many regressions: what a person moves, the noise, and models that follow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from privlearn import Schema, verify
from privlearn.arrays import Array
from privlearn.data import SchemaEncoder
from privlearn.errors import (
    DataError,
    InvalidParameter,
    ProtocolError,
    ReleaseError,
    SchemaError,
    VerificationError,
)
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import MECHANISMS
from privlearn.mechanisms.summed import NoisySum, NoisySums, Question, SummedMoments, even_shares, pack
from privlearn.parties import JointMoments, simulate
from privlearn.parties.run import CountedParty, Identity, load_agreement
from privlearn.parties.run.witness import Witness
from privlearn.randomness import SecureRandomness
from privlearn.release import Moments, digest_of, json_bytes, schema_for
from privlearn.statistics.evaluation import Evaluation

ALARM = 1e-6
SIZES = {"north": 600, "south": 1400, "west": 1000}
SCHEMA = Schema.from_dict(
    {
        "name": "clinic",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 100},
            "sex": {"type": "category", "values": ["female", "male"]},
            "stay": {"type": "number", "lower": 0, "upper": 30},
            "cost": {"type": "number", "lower": 0, "upper": 1000},
        },
    }
)


def table(size: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 100, size)
    male = generator.random(size) < 0.5
    return pa.table(
        {
            "age": age,
            "sex": np.where(male, "male", "female"),
            "stay": 5 + 0.2 * age + generator.normal(0, 1, size),
            "cost": 300 + 400 * male + generator.normal(0, 50, size),
        }
    )


TABLES = {name: table(size, size) for name, size in SIZES.items()}


def agreement_of(**changes: Any) -> JointMoments:
    usual: dict[str, Any] = {"schema": SCHEMA, "targets": ("stay", "cost"), "parties": SIZES}
    return JointMoments(**usual | {"epsilon": 2.0, "delta": 1e-5} | changes)


class Exact(NoisySums):
    """The sum of some parties' answers without noise."""

    def __init__(self, agreement: JointMoments, *names: str) -> None:
        self.agreement, self.names = agreement, names

    def ask(self, question: Question) -> NoisySum:
        parties = [self.agreement.read_party(name, TABLES[name]) for name in self.names]
        vector = np.sum([party.answer(question) for party in parties], axis=0)
        return NoisySum(vector, sum(SIZES[name] for name in self.names), len(self.names))


@pytest.fixture(scope="module")
def found() -> Moments:
    return simulate(agreement_of(), TABLES)


@pytest.mark.parametrize("target", ["stay", "cost"])
@pytest.mark.parametrize("regularization", [1e-3, 0.1])
def test_without_noise_it_is_the_pooled_ridge(target: str, regularization: float) -> None:
    agreement, pooled = agreement_of(), pa.concat_tables(TABLES.values())
    model = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness()).model(target, regularization)
    encoder = SchemaEncoder(schema_for(SCHEMA, agreement.targets, target))
    rows = np.asarray(encoder.encode(pooled))
    answers = encoder.encode_targets(pooled.column(target))
    held = rows.T @ rows + len(rows) * regularization * np.eye(rows.shape[1])
    np.testing.assert_allclose(model.coefficients[0], np.linalg.solve(held, rows.T @ answers), atol=1e-6)


def test_one_run_gives_good_models_of_every_target(found: Moments, tmp_path: Path) -> None:
    found.save(tmp_path / "moments.privlearn")
    assert verify(tmp_path / "moments.privlearn").recomputed.epsilon == 2.0
    read, fresh = Moments.load(tmp_path / "moments.privlearn"), table(2000, 7)
    for target in read.targets:
        truth = np.array(fresh[target])
        error = read.model(target).predict(fresh) - truth
        assert np.sqrt(np.mean(error**2)) < 0.6 * truth.std()
    weak, strong = read.model("stay", 1e-3), read.model("stay", 10.0)
    assert np.linalg.norm(strong.coefficients) < np.linalg.norm(weak.coefficients)
    with pytest.raises(InvalidParameter, match="no target 'age'"):
        read.model("age")
    with pytest.raises(InvalidParameter, match="regularization"):
        read.model("stay", 0.0)
    with pytest.raises(ReleaseError):
        Evaluation.load(tmp_path / "moments.privlearn")


def moments_of(agreement: SummedMoments, x: Array, y: Array) -> Array:
    return agreement.answer([pack(np.outer(x, x)), np.outer(y, x).ravel()])


def calibrated(
    targets: int, neighbours: str = "replace_one", features: int = 3, **changes: Any
) -> SummedMoments:
    usual: dict[str, Any] = {"records": 1000, "rows_per_person": 1, "parties": 5, "noise_shares": 3}
    made = SummedMoments.calibrate(
        Guarantee(1.0, 1e-5, neighbours),
        cells=(features * (features + 1) // 2, features * targets),
        weights=even_shares(targets),
        **usual | changes,
    )
    assert isinstance(made, SummedMoments)
    return made


@pytest.mark.parametrize("targets", [1, 2, 5])
def test_no_record_moves_the_sum_further_and_one_does(targets: int) -> None:
    agreement, generator = calibrated(targets), np.random.default_rng(targets)
    exact = agreement.sum_sensitivity
    farthest = 0.0
    for _ in range(3000):
        x, u = generator.normal(size=(2, 3)) * generator.random((2, 1)) ** 0.1
        x, u = x / max(1.0, np.linalg.norm(x)), u / max(1.0, np.linalg.norm(u))
        y, v = np.sign(generator.normal(size=(2, targets))) * generator.choice([1.0, 1.0, 0.3], size=(2, 1))
        farthest = max(
            farthest, float(np.linalg.norm(moments_of(agreement, x, y) - moments_of(agreement, u, v)))
        )
    assert farthest <= exact
    x, u = (
        np.array([1.0, 0.0, 0.0]),
        np.array([0.5, math.sqrt(0.75), 0.0]),
    )  # by the proof: <x, u> = a / 2, v = -y
    y = np.ones(targets)
    worst = float(np.linalg.norm(moments_of(agreement, x, y) - moments_of(agreement, u, -y)))
    assert worst == pytest.approx(exact, rel=1e-4)
    single = calibrated(targets, "zero_out")
    assert np.linalg.norm(moments_of(single, x, y)) <= single.sum_sensitivity
    assert single.sum_sensitivity == pytest.approx(exact / math.sqrt(2.0))


def test_noise_grows_with_people_of_several_parties_and_rows() -> None:
    one = calibrated(2)
    assert MECHANISMS["summed_moments"] is SummedMoments
    for many in (calibrated(2, parties_per_person=3), calibrated(2, rows_per_person=3)):
        assert many.noise_scale == pytest.approx(3 * one.noise_scale, rel=1e-4)
    assert one.spends().delta <= 1e-5


def test_shares_and_cells_that_the_theorem_does_not_cover_are_refused() -> None:
    facts: dict[str, Any] = {"records": 9, "rows_per_person": 1, "parties": 2, "noise_shares": 1}
    for cells, weights in (((6, 3), (1.0, 3.0)), ((5, 3), (1.0, 1.0)), ((6, 4), (1.0, 0.5)), ((6,), (1.0,))):
        with pytest.raises(InvalidParameter):
            SummedMoments.calibrate(Guarantee(1.0, 1e-5), cells=cells, weights=weights, **facts)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_noise_is_what_the_file_states(found: Moments, factor: float) -> None:
    agreement = agreement_of()
    exact = agreement.outcome(Exact(agreement, *SIZES), SecureRandomness())
    scales = [factor * found.about["in_sum"]["noise"] * each for each in agreement.mechanism.deviations]
    drawn = np.concatenate(
        [
            (noisy - true) / scale
            for noisy, true, scale in zip(found.tables, exact.tables, scales, strict=True)
        ]
    )
    chance = 2.0 * min(stats.chi2.cdf(drawn @ drawn, drawn.size), stats.chi2.sf(drawn @ drawn, drawn.size))
    assert (chance > ALARM) == (factor == 1.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": ("sex",)}, "must be a column of numbers"),
        ({"targets": ("weight",)}, "must be a column of numbers"),
        ({"targets": ("stay", "stay")}, "different columns"),
        ({"targets": ("stay", "cost", "age", "sex")}, "must be a column of numbers"),
        ({"schema": schema_for(SCHEMA, ("stay", "cost"), "cost"), "targets": ("age",)}, "schema.target"),
    ],
)
def test_refusals(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        agreement_of(**changes)


def test_a_plan_from_a_file(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "clinic.yaml")
    content = {
        "schema": "clinic.yaml",
        "targets": ["stay", "cost"],
        "parties": SIZES,
        "epsilon": 2.0,
        "delta": 1e-5,
    }
    (tmp_path / "plan.json").write_text(json.dumps(content))
    agreement = load_agreement(tmp_path / "plan.json")
    assert agreement.digest == agreement_of().digest != agreement_of(targets=("stay",)).digest
    assert isinstance(agreement.read_party("north", TABLES["north"]), CountedParty)
    with pytest.raises(DataError, match="declares 600 records"):
        agreement.read_party("north", TABLES["west"])


def forged_about(found: Moments, change: Callable[[dict[str, Any]], object]) -> Moments:
    """Return the same sum with other public parameters, and a certificate that agrees with them."""
    about = json.loads(json.dumps(found.about))
    change(about)
    named = {"targets": about["targets"], "about_sha256": digest_of(json_bytes(about))}
    subject = {**found.certificate.subject, **named}
    certificate = replace(found.certificate, subject=subject)
    return Moments(found.tables, about, certificate)


def wider(about: dict[str, Any]) -> None:
    about["schema"]["columns"]["age"]["upper"] = 1e5


def other_targets(about: dict[str, Any]) -> None:
    about["targets"].reverse()


def fewer_records(about: dict[str, Any]) -> None:
    about["in_sum"]["records"] -= 1


def summed(found: Moments) -> Array:
    """Return the noisy sum behind the tables."""
    roots = [math.sqrt(share) for share in found.certificate.mechanism.shares]
    return np.concatenate([np.ravel(table) * root for table, root in zip(found.tables, roots, strict=True)])


def test_a_party_attests_to_the_plan_s_public_facts_only(found: Moments) -> None:
    assert found.run is not None
    agreement, identity = JointMoments.from_dict(json.loads(found.run.plan)), Identity.generate()

    def attest(made: Moments, **changes: Any) -> bytes:
        assert found.run is not None
        witness = Witness(agreement, bytes.fromhex(found.run.run), "north", identity)
        witness.record_answer(0)
        words = agreement.encoding(agreement.mechanism.question(0)).encode(summed(found))
        witness.record_sum(range(len(agreement.parties)), words)
        return witness.attest(made.to_bytes(), replace(found.run, **changes).to_bytes())

    right = replace(found, run=None, signature=None)
    assert attest(right)
    for change in (wider, other_targets, fewer_records):
        with pytest.raises(ProtocolError, match="does not follow from the sums"):
            attest(forged_about(found, change))
    noisier = replace(agreement.mechanism, noise_scale=50 * agreement.mechanism.noise_scale)
    with pytest.raises(ProtocolError, match="other constants than the agreement's"):
        attest(replace(right, certificate=replace(found.certificate, mechanism=noisier)))
    with pytest.raises(ProtocolError, match="lists other parties in a sum"):
        attest(right, sums=())
    with pytest.raises(ProtocolError, match="lists other parties in a sum"):
        attest(right, sums=(("nobody",),))
    with pytest.raises(ProtocolError, match="does not follow from the sums"):
        attest(replace(right, tables=[table + 1.0 for table in found.tables]))


@pytest.mark.parametrize("change", [wider, other_targets])
def test_a_file_of_another_schema_than_its_run_s_is_refused(
    found: Moments, change: Callable[[dict[str, Any]], object]
) -> None:
    with pytest.raises(VerificationError, match="another schema or targets"):
        replace(forged_about(found, change), run=found.run)
