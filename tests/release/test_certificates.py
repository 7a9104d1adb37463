"""A certificate reads back, and refuses what its constants do not support."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from privlearn import Certificate, VerificationError
from privlearn.randomness import SecureRandomness, SeededRandomness
from privlearn.solvers import Hinge, HuberHinge, Logistic, Multinomial, SmoothedHinge
from tests.support.combinations import PLANS, Plan, every_plan

ENCODING = {"norm_bound": 1.0, "features": 2}
EPSILON, DELTA = 1.3, 1e-4


def certificate(plan: Plan, **task: Any) -> dict[str, Any]:
    mechanism = plan.calibrate(EPSILON, DELTA, **task)
    issued = Certificate.issue(mechanism, SecureRandomness(), ENCODING).to_dict()
    return json.loads(json.dumps(issued))


def numbers(record: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all numbers in a record."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield from numbers(value, (*path, key))
    elif isinstance(record, int | float) and not isinstance(record, bool):
        yield path


def changed(record: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(record)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return result


def value_at(record: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        record = record[key]
    return record


def honest(plan: Plan, path: tuple[str, ...], raised: bool) -> bool:
    """Changes that leave a true statement: a weaker claim, more noise, or what this theorem does not depend on.

    The number of problems and coefficients is compared with the model itself when a release is read.
    """
    if path in {("claim", "epsilon"), ("claim", "delta"), ("constants", "noise_scale")}:
        return raised
    if path == ("constants", "tolerance_noise_scale"):
        return raised
    if path == ("task", "problems"):
        return not raised
    if path[0] == "encoding":
        return True
    if path == ("task", "dimension") and plan.mechanism == "output":
        return not raised or plan.noise != "laplace"
    return False


@every_plan
@pytest.mark.parametrize("problems", [1, 3])
def test_certificate_reads_back(plan: Plan, problems: int) -> None:
    record = certificate(plan, problems=problems)
    again = Certificate.from_dict(record)
    assert again.to_dict() == record
    assert again.is_private
    assert again.guarantee == plan.guarantee(EPSILON, DELTA)
    assert again.mechanism.spends() <= again.guarantee


@pytest.mark.parametrize(
    "loss",
    [Logistic(), HuberHinge(0.25), SmoothedHinge(), Hinge(), Multinomial()],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("noise", ["gaussian", "norm_gamma", "laplace"])
def test_certificate_of_every_loss_reads_back(loss: Any, noise: str) -> None:
    record = certificate(Plan("output", noise, "tight", "zero_out"), loss=loss)
    assert Certificate.from_dict(record).mechanism.task.loss == loss


@every_plan
@pytest.mark.parametrize("problems", [1, 3])
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_changed_number_is_refused(plan: Plan, problems: int, factor: float) -> None:
    record = certificate(plan, problems=problems, dimension=200)
    paths = list(numbers(record))
    assert len(paths) >= 14
    for path in paths:
        value = value_at(record, path)
        step = max(1, round(value * 0.01))
        new = value + math.copysign(step, factor - 1.0) if isinstance(value, int) else value * factor or 0.01
        try:
            accepted = Certificate.from_dict(changed(record, path, type(value)(new)))
        except VerificationError:
            continue
        assert honest(plan, path, raised=new > value), path
        assert accepted.mechanism.spends() <= accepted.guarantee


@every_plan
def test_less_noise_is_refused(plan: Plan) -> None:
    record = certificate(plan)
    for name in ("noise_scale", "tolerance_noise_scale"):
        if name in record["constants"]:
            for factor in (0.5, 0.999, 1e-9, 0.0, -1.0):
                scale = record["constants"][name] * factor
                with pytest.raises(VerificationError):
                    Certificate.from_dict(changed(record, ("constants", name), scale))


def test_refusal_says_what_contradicts_what() -> None:
    record = certificate(PLANS[0])
    with pytest.raises(VerificationError, match="do not follow from its task"):
        Certificate.from_dict(changed(record, ("constants", "slack"), 0.0))
    with pytest.raises(VerificationError, match="does not follow from its constants"):
        Certificate.from_dict(changed(record, ("covers",), "everything"))
    with pytest.raises(VerificationError, match="less than the claim"):
        Certificate.from_dict(changed(record, ("claim", "epsilon"), EPSILON / 2.0))


@every_plan
def test_consistent_forgery_of_less_noise_is_refused(plan: Plan) -> None:
    """The forger recomputes every constant that depends on the noise: the claim still does not follow."""
    mechanism = Certificate.from_dict(certificate(plan)).mechanism
    fields = {name: getattr(mechanism, name) for name in mechanism.calibrated_constants}
    for name in fields:
        if name.endswith("noise_scale"):
            for factor in (0.5, 1e-3, 1e-8):
                kind: Any = type(mechanism)
                scales = fields | {name: fields[name] * factor}
                forged = kind(mechanism.task, mechanism.guarantee, plan.noise, plan.calibration, **scales)
                with pytest.raises(VerificationError):
                    Certificate.from_dict(Certificate.issue(forged, SecureRandomness(), ENCODING).to_dict())


@every_plan
def test_renamed_theorem_is_refused(plan: Plan) -> None:
    record = certificate(plan, total=50)
    # One theorem under two names; and Laplace noise of so large a scale would keep the promise as well.
    honest = {("norm_gamma", "cms11"), ("norm_gamma", "tight")}, {("gaussian", "tight"), ("laplace", "tight")}
    for other in PLANS:
        if other == plan:
            continue
        names = {"mechanism": other.mechanism, "noise": other.noise, "calibration": other.calibration}
        forged = copy.deepcopy(record)
        forged["theorem"] |= names
        forged["claim"]["neighbours"] = other.neighbours
        try:
            accepted = Certificate.from_dict(forged)
        except VerificationError:
            continue
        assert {(plan.noise, plan.calibration), (other.noise, other.calibration)} in honest
        assert (plan.mechanism, plan.neighbours) == ("output", other.neighbours)
        assert accepted.mechanism.spends() <= accepted.guarantee


@pytest.mark.parametrize("plan", [p for p in PLANS if p.mechanism == "objective"], ids=str)
@pytest.mark.parametrize("loss", [HuberHinge(), HuberHinge(0.1), Hinge(), Multinomial()], ids=str)
def test_renamed_loss_is_refused(plan: Plan, loss: Any) -> None:
    with pytest.raises(VerificationError):
        Certificate.from_dict(changed(certificate(plan), ("task", "loss"), loss.to_dict()))


@every_plan
def test_other_loss_under_output_perturbation_needs_its_constants(plan: Plan) -> None:
    for loss in (Hinge(), Multinomial()):
        with pytest.raises(VerificationError):
            Certificate.from_dict(changed(certificate(plan), ("task", "loss"), loss.to_dict()))


@pytest.mark.parametrize(
    "path",
    [
        ("covers",),
        ("floating_point",),
        ("theorem", "page"),
        ("solver", "certified"),
        ("randomness", "secure"),
    ],
)
def test_changed_words_are_refused(path: tuple[str, ...]) -> None:
    record = certificate(PLANS[0])
    for value in ("", "anything", None, False):
        with pytest.raises(VerificationError):
            Certificate.from_dict(changed(record, path, value))


def test_seeded_noise_cannot_be_called_secure() -> None:
    mechanism = PLANS[0].calibrate(EPSILON, DELTA)
    record = Certificate.issue(mechanism, SeededRandomness(1), ENCODING).to_dict()
    assert not Certificate.from_dict(record).is_private
    assert "NOT PRIVATE" in str(Certificate.from_dict(record))
    with pytest.raises(VerificationError):
        Certificate.from_dict(changed(record, ("randomness", "secure"), True))


@every_plan
def test_missing_part_is_refused(plan: Plan) -> None:
    record = certificate(plan)
    for part in record:
        with pytest.raises(VerificationError):
            Certificate.from_dict({key: value for key, value in record.items() if key != part})
        with pytest.raises(VerificationError):
            Certificate.from_dict(record | {part: None})
    with pytest.raises(VerificationError):
        Certificate.from_dict(record | {"note": "private, trust me"})


@pytest.mark.parametrize("epsilon", ["nan", "-1", 0.0, "Infinity", "1.3", [1.3]])
def test_strange_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(VerificationError):
        Certificate.from_dict(changed(certificate(PLANS[0]), ("claim", "epsilon"), epsilon))
