"""A certificate reads back, and refuses what its constants do not support."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from privlearn import Certificate, VerificationError
from privlearn.erm import Hinge, HuberHinge, Logistic, Multinomial, SmoothedHinge
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import ObjectivePerturbation, OutputPerturbation, Task
from privlearn.randomness import SecureRandomness, SeededRandomness
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
    with pytest.raises(VerificationError, match="says something that its constants do not"):
        Certificate.from_dict(changed(record, ("covers",), "everything"))
    with pytest.raises(VerificationError, match="less than the claim"):
        Certificate.from_dict(changed(record, ("claim", "epsilon"), EPSILON / 2.0))


@every_plan
def test_consistent_forgery_of_less_noise_is_refused(plan: Plan) -> None:
    """The forger recomputes every constant that depends on the noise: the claim still does not follow."""
    mechanism = Certificate.from_dict(certificate(plan)).mechanism
    fields = {name: getattr(mechanism, name) for name in mechanism.chosen_constants}
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


FLOATING_POINT_OF_0_1 = {
    "norm_gamma": "no exact sampler is known: combined from exact draws in floating point, result rounded to a public "
    "grid of 2^-40 of the noise scale; the guarantee holds for the ideal law",
    "gaussian": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
    "laplace": "exact discrete sampler on a grid of 2^-44 of the noise scale; rounding is inside the guarantee",
}


@every_plan
def test_files_of_version_0_1_say_what_they_said(plan: Plan) -> None:
    """Their norm-Gamma noise was not drawn exactly, and they cannot be taken for newer ones."""
    record = certificate(plan)
    old = changed(record, ("floating_point",), FLOATING_POINT_OF_0_1[plan.noise])
    old["versions"]["privlearn"] = "0.1.0"
    assert Certificate.from_dict(old).to_dict() == old
    if plan.noise == "norm_gamma":
        for half in ({"versions": record["versions"]}, {"floating_point": record["floating_point"]}):
            with pytest.raises(VerificationError):
                Certificate.from_dict(old | half)


SCALES_OF_0_1 = [
    # classes, epsilon, delta, effective regularization, noise, tolerance's noise, noise of output perturbation
    (1, 1.0, 1e-6, 0.01, 8.53935254277211, 8.247289831759845e-06, 0.0281646104924847),
    (1, 0.1, 1e-8, 0.01, 93.55351693217925, 9.170275227388438e-05, 0.30624998723742364),
    (3, 1.0, 1e-6, 0.01, 14.81369542658328, 1.4284917145494974e-05, 0.04878253634843163),
    (3, 0.1, 1e-8, 0.01, 164.7105543902512, 0.0001588580498908439, 0.5304405377197078),
    (10, 1.0, 1e-6, 0.01, 27.166505220004893, 2.6081261791972557e-05, 0.08906431856805531),
    (10, 0.1, 1e-8, 0.01, 316.55213966458075, 0.00029012816545796873, 0.9684474931064211),
]


@pytest.mark.parametrize("scales", SCALES_OF_0_1, ids=str)
def test_scales_calibrated_by_version_0_1_still_keep_their_promise(scales: tuple[Any, ...]) -> None:
    """It composed otherwise, and rounded nothing upwards; its margin pays for the difference."""
    problems, epsilon, delta, *chosen, output = scales
    task = Task(
        loss=Logistic(), total=30_000, dimension=50, problems=problems, regularization=0.01, tolerance=1e-10,
        neighbours="replace_one",
    )  # fmt: skip
    promise = Guarantee(epsilon, delta)
    assert ObjectivePerturbation(task, promise, "gaussian", "tight", *chosen).spends() <= promise
    assert OutputPerturbation(task, promise, "gaussian", "tight", output).spends() <= promise
