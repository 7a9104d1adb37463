"""The audit passes every mechanism, and fails each of the defects planted here, for the right reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from privlearn.arrays import Array
from privlearn.audit import WHOLE_RUNS, AuditReport, Case, audit_case, audit_mechanism, cases, mechanism_names
from privlearn.errors import InvalidParameter
from privlearn.guarantee import RELATIONS, Guarantee
from privlearn.mechanisms import (
    MECHANISMS,
    ObjectivePerturbation,
    OutputPerturbation,
    PrecomputedMinimisers,
    ReleaseMechanism,
    Task,
    mechanisms_of,
)
from privlearn.randomness import Randomness
from privlearn.solvers import HuberHinge
from tests.support.oracles import Solver

RUNS = 400
FITTED = tuple(mechanisms_of(ReleaseMechanism))


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", FITTED)
def test_every_mechanism_passes(name: str, neighbours: str) -> None:
    report = audit_mechanism(name, neighbours=neighbours, runs=200)
    assert report.passed, report
    checks = {finding.check for finding in report.findings}
    assert {"certificate", "replay", "exact curve", "empirical epsilon"} <= checks


def test_every_mechanism_is_listed() -> None:
    assert set(mechanism_names()) == {*FITTED, *WHOLE_RUNS}
    with pytest.raises(InvalidParameter, match="objective"):
        audit_mechanism("subjective")


def failed(mechanism: Any, points: Array | None = None, sampled: bool = True) -> set[str]:
    """Return the names of the failed checks; for the replay, what was replayed."""
    found = audit_case(Case("planted", mechanism, points, sampled), runs=RUNS, confidence=0.99, seed=1)
    report = AuditReport.of("planted", found)
    assert not report.passed
    return {f.what.split(",")[0] if f.check == "replay" else f.check for f in report.failures}


@pytest.mark.parametrize("name", FITTED)
def test_half_the_noise(name: str) -> None:
    promise = Guarantee(4.0, 0.01)
    case = next(case for case in cases(name, promise) if case.sampled)
    halved = dataclasses.replace(case.mechanism, noise_scale=case.mechanism.noise_scale / 2.0)
    found = failed(halved, case.points, sampled=name in MECHANISMS)
    assert {"certificate"} <= found
    # TDDL's and TDIL's composition theorems are not tight: their exact curves survive half the noise here
    kind: Any = MECHANISMS[name]
    assert kind.answers_questions or {"exact curve", "empirical epsilon"} & found


def task(**facts: Any) -> Task:
    known: dict[str, Any] = {
        "loss": HuberHinge(),
        "total": 3,
        "dimension": 1,
        "problems": 1,
        "regularization": 50.0,
    }
    return Task(**known | {"tolerance": 1e-10, "neighbours": "replace_one"} | facts)


def output(kind: Any = OutputPerturbation, noise: str = "norm_gamma", **facts: Any) -> Any:
    return kind.calibrate(task(**facts), Guarantee(1.0), noise, "tight")


@dataclass(frozen=True)
class Stingy(OutputPerturbation):
    """Certifies one scale, draws another."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        return OutputPerturbation.run(
            dataclasses.replace(self, noise_scale=0.6 * self.noise_scale), oracle, randomness
        )


def test_less_noise_than_certified() -> None:
    found = failed(output(Stingy, "laplace"))
    assert {"number and scales of noise draws against the certificate", "released noise"} <= found
    assert "released noise" in failed(output(Stingy), sampled=False)  # whose draws are of a unit scale


@dataclass(frozen=True)
class Curious(OutputPerturbation):
    """Draws once more if it likes what it sees: control flow depends on the data."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        if oracle.minimise(None, self.effective_regularization)[0, 0] > 0:
            randomness.bits(1)
        return OutputPerturbation.run(self, oracle, randomness)


@dataclass(frozen=True)
class Generous(OutputPerturbation):
    """Noise in proportion to the minimiser."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        exact = oracle.minimise(None, self.effective_regularization)
        noise = OutputPerturbation.run(self, oracle, randomness) - exact
        return exact + noise * (1.0 + exact)


@dataclass(frozen=True)
class Shapely(OutputPerturbation):
    """The release's shape depends on the data."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        found = OutputPerturbation.run(self, oracle, randomness)
        return found if oracle.minimise(None, self.effective_regularization)[0, 0] > 0 else found[:, 0]


@dataclass(frozen=True)
class Adaptive(ObjectivePerturbation):
    """Regularises more if the plain minimiser is long."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        def adapted(linear: Array | None, regularization: float) -> Array:
            length = float(np.linalg.norm(oracle.minimise(None, regularization)))
            return np.asarray(oracle.minimise(linear, regularization * (1.0 + length)))

        return ObjectivePerturbation.run(self, Solver(adapted), randomness)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Curious, "random draws: kinds"),
        (Generous, "added noise"),
        (Shapely, "shape and type of the release"),
        (Adaptive, "queries to the solver"),
    ],
)
def test_what_depends_on_the_data_beside_the_minimiser(kind: Any, reason: str) -> None:
    assert reason in failed(output(kind), sampled=False)


@dataclass(frozen=True)
class Shared(OutputPerturbation):
    """One noise vector for all classes."""

    def run(self, oracle: Any, randomness: Randomness) -> Array:
        exact = oracle.minimise(None, self.effective_regularization)
        one = dataclasses.replace(self, task=dataclasses.replace(self.task, problems=1))
        silent = PrecomputedMinimisers(np.zeros((1, exact.shape[1])))
        return np.asarray(exact + OutputPerturbation.run(one, silent, randomness))


def test_noise_shared_between_classes() -> None:
    found = failed(output(Shared, problems=3, dimension=3), sampled=False)
    assert {"number and scales of noise draws against the certificate", "released noise"} <= found


class Steeper(HuberHinge):
    """Twice as steep, and as curved, as its constants say: a wrong sensitivity."""

    def first_derivative(self, z: Array) -> Array:
        return 2.0 * super().first_derivative(z)

    def second_derivative(self, z: Array) -> Array:
        return 2.0 * super().second_derivative(z)


def test_wrong_sensitivity() -> None:
    assert {"minimiser", "exact curve"} <= failed(output(loss=Steeper()), sampled=False)
    found = failed(output(ObjectivePerturbation, loss=Steeper()), sampled=False)
    assert {"sum of gradients", "perturbed minimiser", "exact curve"} <= found


class FlatTask(Task):
    """Forgets the Jacobian."""

    def jacobian_slack(self, regularization: float) -> float:
        return 1e-12


def test_skipped_slack() -> None:
    facts = {f.name: getattr(task(regularization=0.3), f.name) for f in dataclasses.fields(Task)}
    mechanism = ObjectivePerturbation.calibrate(FlatTask(**facts), Guarantee(1.0), "norm_gamma", "tight")
    assert {"log-determinant of the Jacobian", "exact curve"} <= failed(mechanism, sampled=False)


@pytest.mark.parametrize("everything", [True, False])
def test_the_report_says_what_failed(everything: bool) -> None:
    found = audit_case(Case("planted", output(Shapely), None, False), runs=64, confidence=0.99, seed=1)
    report = AuditReport.of("planted", found)
    told = report.describe(everything=everything)
    assert "FAIL replay: shape and type" in told
    assert "the form of the release depends on the data" in told
    assert ("certificate: guarantee recomputed" in told) == everything
    record = report.to_dict()
    assert record["passed"] is False
    assert {f["status"] for f in record["findings"]} == {"passed", "failed"}


def test_progress_names_the_cases() -> None:
    heard: list[str] = []
    tell: Callable[[str], None] = heard.append
    audit_mechanism("tddl", runs=64, progress=tell)
    assert heard == ["laplace, jt13, in the plane"]
