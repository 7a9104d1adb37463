"""Four party processes and a coordinator's, from the shell: RA12's PSGD and local aggregation over the secure sum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privlearn.data import simulated_census
from privlearn.guarantee import Guarantee
from privlearn.parties import JointTraining
from privlearn.parties.run import Identity
from privlearn.release import verify
from tests.support.killed_runs import ForkedSite
from tests.support.process_cases import Site
from tests.support.run_cases import IDENTITIES, SIZES, TABLES

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")

FOUR = SIZES | {"east": 400}


class FourParties(Site):
    sizes = FOUR
    tables = TABLES | {"east": simulated_census(400, seed=400)}
    identities = IDENTITIES | {"east": Identity.generate()}


class FourForked(FourParties, ForkedSite):
    """The same processes, started quickly."""


def finish(site: Site) -> None:
    try:
        site.start()
        assert site.exit_code("coordinator") == 0, site.log("coordinator")
        assert [site.exit_code(name) for name in FOUR] == [0] * 4
    finally:
        site.end()


def check_release(site: Site, guarantee: Guarantee) -> None:
    proven = verify(site.folder / "plan.privlearn")
    assert proven.is_private
    assert proven.certificate.mechanism.name == "psgd"
    assert proven.claimed == guarantee
    assert "whatever the coordinator and all other parties do" in proven.certificate.mechanism.covers
    released = (site.folder / "plan.privlearn").read_bytes()
    assert all((site.folder / f"{name}.privlearn").read_bytes() == released for name in FOUR)


def test_without_delta_and_with_all_other_parties_colluding(tmp_path: Path) -> None:
    """Pure epsilon for each party's people, whatever the other three do."""
    site = FourParties(tmp_path, algorithm="psgd", delta=0.0, rounds=3, colluding=3)
    finish(site)
    check_release(site, Guarantee(2.0))
    log = site.log("coordinator")
    assert "Question 3 of 3 (gradients): 4 of 4 parties; epsilon so far 2 of 2" in log
    for name in FOUR:
        spent = site.statement(name).spent
        assert (spent.epsilon, spent.delta) == (2.0, 0.0)
        said = re.findall(r"Answered question \d of 3; epsilon so far ([\d.]+) of 2", site.log(name))
        assert [float(epsilon) for epsilon in said] == pytest.approx([2 / 3, 4 / 3, 2.0], rel=1e-2)


def test_algorithm_1_with_its_noise_drawn_once(tmp_path: Path) -> None:
    """The paper's epsilon is claimed for the limit only; certificate and ledger state what the transcript costs."""
    site = FourForked(tmp_path, algorithm="psgd", epsilon=0.1, delta=1e-6, rounds=12)
    finish(site)
    agreement = JointTraining.load(tmp_path / "plan.toml")
    assert agreement.guarantee.epsilon > 0.5
    check_release(site, agreement.guarantee)
    assert all(site.spent(name) == pytest.approx(agreement.guarantee.epsilon) for name in FOUR)


@pytest.mark.parametrize(("algorithm", "delta"), [("aggregation", 1e-5), ("uniform_aggregation", 0.0)])
def test_local_aggregation(tmp_path: Path, algorithm: str, delta: float) -> None:
    """One question: Gaussian shares with a delta, a whole norm-Gamma vector of every party without."""
    site = FourForked(tmp_path, algorithm=algorithm, epsilon=2.0, delta=delta)
    finish(site)
    proven = verify(tmp_path / "plan.privlearn")
    assert proven.claimed == Guarantee(2.0, delta)
    assert proven.certificate.mechanism.name == "local_aggregation"
    assert "Question 1 of 1 (minimisers): 4 of 4 parties; epsilon so far 2 of 2" in site.log("coordinator")
    assert all(site.spent(name) == pytest.approx(2.0) for name in FOUR)
