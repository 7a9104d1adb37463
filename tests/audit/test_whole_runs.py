"""Lists, shares of noise and sessions pass the audit whole, and fail it with less noise than their theorems ask for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from privlearn.arrays import Array
from privlearn.audit import WHOLE_RUNS, WholeRun, audit_mechanism, check_whole_run
from privlearn.guarantee import RELATIONS, Guarantee
from privlearn.randomness import Integers, Randomness, SeededRandomness

CASES = {
    f"{name}, {case.name}": case for name, made in WHOLE_RUNS.items() for case in made(Guarantee(4.0, 0.01))
}


@dataclass
class Planted:
    """A source with less noise in it than it is asked for."""

    source: Randomness
    description = SeededRandomness.description
    secure = False

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        return self.source.discrete_gaussian(scale, size) // 2

    def discrete_laplace(self, scale: float, size: int) -> Integers:
        return self.source.discrete_laplace(scale, size) // 2

    def bits(self, count: int) -> int:
        return self.source.bits(count)


class Shared(Planted):
    """One draw for all numbers."""

    def discrete_gaussian(self, scale: float, size: int) -> Integers:
        return self.source.discrete_gaussian(scale, 1).repeat(size)


def failed(case: WholeRun, runs: int = 500) -> set[str]:
    found = check_whole_run(case, runs=runs, confidence=0.99, seed=1)
    return {finding.check for finding in found if finding.status == "failed"}


def with_source(name: str, source: type[Planted]) -> WholeRun:
    case = CASES[name]
    return dataclasses.replace(case, run=lambda data, randomness: case.run(data, source(randomness)))


SESSIONS = ("function_release", "pinp")


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("name", WHOLE_RUNS)
def test_each_passes(name: str, neighbours: str) -> None:
    report = audit_mechanism(name, epsilon=4.0, neighbours=neighbours, runs=1000)
    assert report.passed, report
    checks = {finding.check for finding in report.findings}
    assert checks == {"certificate", "replay", "released noise", "empirical epsilon"}


@pytest.mark.parametrize("name", CASES)
def test_half_the_noise(name: str) -> None:
    assert "released noise" in failed(with_source(name, Planted))


def test_half_the_noise_is_refuted_by_runs() -> None:
    assert "empirical epsilon" in failed(with_source("function_release, three answers", Planted), runs=3000)


@pytest.mark.parametrize("name", [name for name in CASES if "pinp" not in name])
def test_one_draw_for_several_numbers(name: str) -> None:
    assert "released noise" in failed(with_source(name, Shared))


@pytest.mark.parametrize("name", CASES)
def test_constants_that_do_not_keep_the_promise(name: str) -> None:
    assert failed(dataclasses.replace(CASES[name], spends=Guarantee(4.5, 0.01))) == {"certificate"}


def test_draws_that_follow_the_data() -> None:
    case = CASES["noise_share, a sum with shares of noise"]

    def curious(vector: Array, randomness: Randomness) -> Array:
        randomness.bits(1 + int(vector[0] > 0))
        return case.run(vector, randomness)

    assert failed(dataclasses.replace(case, run=curious)) == {"replay"}
