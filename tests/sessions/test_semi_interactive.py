"""A model fitted to a session's answers, and sessions sized for a number of queries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.mechanisms import PaperPINP, TightPINP
from privlearn.release import verify
from privlearn.sessions import InteractivePredictor, SessionCertificate, learn_from_answers
from tests.support.session_support import WrittenLearner


def disc(count: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    points = random.normal(size=(count, 2))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * random.random((count, 1)) ** 0.5 * 0.99


def learner(total: int) -> WrittenLearner:
    return WrittenLearner(disc(4, 1), np.array([2.0, -1.5, 1.0, -2.0]), total=total)


@pytest.mark.parametrize("mechanism", ["pinp", "function_release"])
def test_with_many_records_the_model_is_the_learner_everywhere(mechanism: str, tmp_path: Path) -> None:
    machine = learner(10**9)
    opened: dict[str, Any] = {"queries": 80} if mechanism == "pinp" else {}
    with InteractivePredictor(
        machine, Guarantee(1.0, 1e-5), mechanism, state=tmp_path / "s", random_state=0, **opened
    ) as session:
        model = learn_from_answers(session, machine, disc(80, 2))
        again = learn_from_answers(session, machine, disc(80, 2))
    assert np.array_equal(model.coefficients, again.coefficients)  # the same answers, no new ones
    elsewhere = disc(300, 3)
    gaps = model.scores(machine, elsewhere) - machine.values(elsewhere)
    assert np.mean(np.abs(gaps)) < 0.1
    assert np.mean(np.abs(machine.values(elsewhere))) > 0.4


def test_the_model_stays_in_the_ball_when_the_noise_is_large(tmp_path: Path) -> None:
    machine = learner(50)
    with InteractivePredictor(machine, Guarantee(0.1, 1e-5), state=tmp_path / "s", random_state=0) as session:
        model = learn_from_answers(session, machine, disc(30, 2))
        bound = session.certificate.mechanism.kernel_task.norm_bound
    gram = machine.similarity(model.points, model.points)
    length = math.sqrt(float((model.coefficients.T @ gram @ model.coefficients)[0, 0]))
    assert length == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("mode", [TightPINP, PaperPINP], ids=lambda kind: kind.mode)
def test_the_threshold_grows_like_the_logarithm_of_the_queries(mode: Any) -> None:
    facts = learner(10**8).kernel_task("replace_one")
    sizes = [mode.calibrate(facts, Guarantee(1.0, 1e-6), queries=10**k) for k in (2, 4, 8)]
    thresholds = [plan.threshold for plan in sizes]
    assert thresholds[0] < thresholds[1] < thresholds[2] < 3 * thresholds[0]
    surer = mode.calibrate(facts, Guarantee(1.0, 1e-6), queries=100, failure=1e-6)
    assert surer.threshold > thresholds[0]
    for plan in (*sizes, surer):
        assert plan.spends() <= plan.guarantee


def test_paper_mode_with_other_queries_by_hand() -> None:
    facts, queries, failure = learner(10**8).kernel_task("replace_one"), 50, 0.01
    plan = PaperPINP.calibrate(facts, Guarantee(1.0, 1e-6), queries=queries, failure=failure)
    tests, each = math.log(2 * queries / failure), math.log(4e6)
    sensitivity = 2 / (10**8 * 0.01) + 2 * facts.solver_distance + 2 * facts.evaluation_error
    assert plan.updates == int(facts.norm_bound / sensitivity / (200 * math.sqrt(5) * each * tests))
    assert plan.threshold == pytest.approx(4 * plan.answer_scale * tests)
    assert plan.constants()["queries"] == 50


def test_a_sized_session_is_known_again_and_its_certificate_verifies(tmp_path: Path) -> None:
    machine, state = learner(10**8), tmp_path / "s"
    options: dict[str, Any] = {"state": state, "random_state": 0, "mode": "paper"}
    with InteractivePredictor(
        machine, Guarantee(1.0, 1e-6), "pinp", queries=3, failure=0.2, **options
    ) as session:
        session.decide(disc(2, 5))
        session.certificate.save(tmp_path / "c.json")
        threshold = session.certificate.mechanism.constants()["threshold"]
    verify(tmp_path / "c.json")
    mechanism: Any = SessionCertificate.load(tmp_path / "c.json").mechanism
    assert (mechanism.queries, mechanism.threshold) == (3, threshold)
    with InteractivePredictor.reopen(state, machine, random_state=0) as session:
        assert not session.exhausted
        session.decide(disc(2, 6))
        assert session.exhausted  # three of four different points


def test_sizes_are_pinp_s_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="mechanism='pinp'"):
        InteractivePredictor(learner(100), Guarantee(1.0, 1e-5), state=tmp_path / "s", queries=5)
    wrongs: list[dict[str, Any]] = [{"queries": 0}, {"failure": 1.0}]
    for wrong in wrongs:
        with pytest.raises(InvalidParameter):
            TightPINP.calibrate(learner(100).kernel_task("replace_one"), Guarantee(1.0, 1e-5), **wrong)
