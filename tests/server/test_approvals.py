"""What a second person must approve waits for that, spends nothing meanwhile, and is decided once, by another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.errors import BudgetExceeded, InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.server import Conflict, Forbidden, NotFound, Service, timing
from privlearn.server.access import Caller, as_caller, create_key, revoke_key
from privlearn.server.holder import Catalog, Owner
from privlearn.server.jobs import Job, JobRequest, approvals, queue, run_job
from privlearn.server.store import first_head, iterate_events, open_store, settle, verify_log
from privlearn.server.store.events import events
from tests.support.forked import fork
from tests.support.raw_store import execute
from tests.support.service_support import changed, load_clinic, model_request

ALICE, BOB = Caller("k1", "analyst", "alice"), Caller("k2", "analyst", "bob")
BEA, CARL = Caller("k3", "approver", "bea"), Caller("k4", "approver", "carl")
HOLDER, AUDITOR = Caller("k0", "holder"), Caller("k5", "auditor", "ada")
ABOVE = "approval = { above = { release = 0.4, session = 1.0 }, days = 2 }"
WORDS = {"purpose": "a score, <for> the ward", "legal_basis": "=consent"}
LARGE = changed(model_request("clinic", "release", "logistic", 0.5), **WORDS)
PATIENCE = timedelta(days=2)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return load_clinic(tmp_path, dataset=ABOVE)


@pytest.fixture
def place(owner: Owner) -> str:
    return open_store(owner)


@pytest.fixture
def each_owner(store: str, tmp_path: Path) -> Owner:
    """Return an owner's settings; tests run with a store on SQLite and on PostgreSQL."""
    return load_clinic(tmp_path, store=store, dataset=ABOVE)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that runs no approved job."""
    running = Service(load_clinic(tmp_path_factory.mktemp("clinic"), dataset=ABOVE))
    yield running
    running.stop()


def asked(place: str, request: JobRequest = LARGE, analyst: str = "alice", **options: Any) -> Job:
    promise = Guarantee(request.epsilon)
    return queue.submit(place, analyst, request, promise, "", approval_within=PATIENCE, **options)


def run_all(owner: Owner) -> list[str]:
    """Ids of what was claimed and run."""
    store, catalog, done = owner.server.store, Catalog(owner), []
    while (job := queue.claim(store)) is not None:
        assert run_job(store, catalog, job) == ""
        done.append(job.id)
    return done


def reserved(store: str) -> list[str]:
    return [entry.reservation for entry in Ledger.open(store, "clinic").statement().entries]


def test_what_waits_for_approval_is_not_run_and_reserves_nothing(each_owner: Owner) -> None:
    owner, place = each_owner, open_store(each_owner)
    job = asked(place)
    assert job.state == "waiting_for_approval"
    assert run_all(owner) == []
    assert reserved(place) == []
    approvals.decide(place, job.id, BEA, "approve", "as agreed")
    assert run_all(owner) == [job.id]
    assert reserved(place) == [job.id]
    over = queue.find(place, job.id)
    assert (over.state, over.decided_by, over.decision) == ("done", "bea", "as agreed")


def test_what_is_declined_ends_unpaid(owner: Owner, place: str) -> None:
    job = asked(place)
    over = approvals.decide(place, job.id, BEA, "decline", "too much")
    assert (over.state, over.is_over) == ("declined", True)
    assert over.failure == "declined by bea: too much; nothing was spent"
    assert run_all(owner) == reserved(place) == []
    with pytest.raises(Conflict):
        queue.cancel(place, job.id, "alice")


def test_a_decision_is_one_line_of_the_log_and_made_once(each_owner: Owner) -> None:
    place = open_store(each_owner)
    job = asked(place)
    for _ in range(2):  # a lost answer, and the same again
        assert approvals.decide(place, job.id, BEA, "approve", "fine").state == "waiting"
    for who, decision in ((CARL, "approve"), (CARL, "decline"), (BEA, "decline")):
        with pytest.raises(Conflict, match="bea has decided"):
            approvals.decide(place, job.id, who, decision, "no")  # type: ignore[arg-type]
    (line,) = [event for event in events(place) if event.actor == "bea"]
    assert (line.action, line.details["job"], line.details["reason"]) == (
        "approved a request",
        job.id,
        "fine",
    )
    verify_log(first_head(place), iterate_events(place))


@pytest.mark.parametrize(
    ("asked_by", "key_id", "approver"),
    [
        ("alice", "0123456789abcdef", Caller("k9", "approver", "alice")),
        ("alice", "0123456789abcdef", as_caller("approver", "alice")),
        ("alice", "openid:alice", Caller("k9", "approver", "alice")),
        ("alice", "openid:alice", as_caller("approver", "Alice ")),
        ("holder", "openid:olga", as_caller("approver", "olga")),
        ("holder", "openid:olga", Caller("k9", "approver", "OLGA")),
    ],
)
def test_nobody_approves_their_own(place: str, asked_by: str, key_id: str, approver: Caller) -> None:
    """With a key or by the provider, as far as names tell."""
    job = asked(place, analyst=asked_by, key_id=key_id)
    for decision in ("approve", "decline"):
        with pytest.raises(Forbidden, match="your own"):
            approvals.decide(place, job.id, approver, decision, "me")
    assert queue.find(place, job.id).state == "waiting_for_approval"
    assert approvals.decide(place, job.id, BEA, "approve", "").state == "waiting"


def test_what_nobody_decides_on_ends_in_time(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = asked(place)
    assert approvals.end_undecided(place) == []
    later = timing.now() + PATIENCE
    monkeypatch.setattr(approvals, "now", lambda: later)
    with pytest.raises(Conflict, match="no longer waits"):  # even if the watch has not looked yet
        approvals.decide(place, job.id, BEA, "approve", "")
    (over,) = approvals.end_undecided(place)
    assert (over.id, over.state) == (job.id, "failed")
    assert over.failure == "it was not approved in time; nothing was spent"
    assert approvals.end_undecided(place) == []


def test_it_is_cancelled_ends_with_its_key_and_counts_as_waiting(place: str) -> None:
    key_id = create_key(place, "analyst", "alice").split("_")[1]
    cancelled, revoked = asked(place), asked(place, key_id=key_id)
    assert queue.cancel(place, cancelled.id, "alice").failure == "cancelled by alice; nothing was spent"
    revoke_key(place, key_id)
    queue.end_revoked(place)
    assert "revoked" in queue.find(place, revoked.id).failure
    for job in (cancelled, revoked):
        with pytest.raises(Conflict):
            approvals.decide(place, job.id, BEA, "approve", "")


def test_a_restored_backup_ends_what_waited(place: str) -> None:
    """It may have been approved, and run, after the backup was made."""
    job = asked(place)
    settle(place, {})
    assert queue.find(place, job.id).state == "failed"


KILLS: dict[str, Callable[[str, str], Any]] = {
    "before the decision": lambda store, job_id: None,
    "after the decision": lambda store, job_id: approvals.decide(store, job_id, BEA, "approve", ""),
    "after it was claimed": lambda store, job_id: (
        approvals.decide(store, job_id, BEA, "approve", ""),
        queue.claim(store),
    ),
}


@pytest.mark.parametrize("moment", KILLS)
def test_killed_at_any_moment_it_is_paid_once(owner: Owner, place: str, moment: str) -> None:
    job = asked(place)

    def child() -> None:
        KILLS[moment](place, job.id)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(fork(child), 0)
    approvals.decide(place, job.id, BEA, "approve", "")
    queue.expire_leases(place)
    assert run_all(owner) == [job.id]
    assert reserved(place) == [job.id]
    assert len([event for event in events(place) if event.action == "approved a request"]) == 1
    verify_log(first_head(place), iterate_events(place))


def test_which_requests_wait(service: Service) -> None:
    small, trial = replace(LARGE, epsilon=0.4), replace(LARGE, trial=True)
    session = changed(model_request("clinic", "session", "logistic", 0.5))
    assert [service.ask(ALICE, request).state for request in (small, trial, session)] == ["waiting"] * 3
    job = service.ask(ALICE, LARGE)
    assert (job.state, job.purpose, job.legal_basis) == ("waiting_for_approval", *WORDS.values())
    assert service.ask(HOLDER, LARGE).state == "waiting_for_approval"
    assert events(service.store, 2)[1].details["purpose"] == WORDS["purpose"]


@pytest.mark.parametrize("missing", WORDS)
def test_without_purpose_or_legal_basis_nothing_is_asked(service: Service, missing: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{missing} is required"):
        service.ask(ALICE, replace(LARGE, **{missing: ""}))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=f"^{missing} is required"):
        service.ask(ALICE, replace(LARGE, **{missing: "\u3164\u2800"}))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=f"^{missing} must be one line"):
        service.ask(ALICE, replace(LARGE, **{missing: "two\nlines"}))  # type: ignore[arg-type]


def test_who_may_decide_and_who_may_look(service: Service) -> None:
    job = service.ask(ALICE, LARGE)
    for caller in (ALICE, BOB, HOLDER, AUDITOR, Caller("k", "monitor")):
        with pytest.raises(Forbidden):
            service.approvals.decide(caller, job.id, "approve")
    for caller in (ALICE, BOB):
        with pytest.raises(Forbidden):
            service.approvals.case(caller, job.id)
    elsewhere = Caller("k", "approver", "eve", frozenset({"ward"}))
    with pytest.raises(NotFound):
        service.approvals.decide(elsewhere, job.id, "approve")
    assert service.approvals.waiting(elsewhere, 10) == []
    for caller in (BEA, AUDITOR, HOLDER):
        case = service.approvals.case(caller, job.id)
        assert case.job == job
        assert case.estimate["verdict"]
        assert case.standing.share is not None
        assert (case.standing.share.account, case.is_own) == ("alice", False)
        assert job in service.approvals.waiting(caller, 10)
    for wrong in ("", "two\nlines", "x" * 501):
        with pytest.raises(InvalidParameter):
            service.approvals.decide(BEA, job.id, "decline", wrong)
    assert service.approvals.decide(BEA, job.id, "decline", "no").state == "declined"


def test_an_approver_sees_what_was_asked_for_since(service: Service) -> None:
    job, later = service.ask(BOB, LARGE), service.ask(BOB, LARGE)
    assert service.approvals.case(BEA, job.id).history[0] == later
    assert job in service.approvals.case(BEA, later.id).history
    assert later not in service.approvals.case(BEA, later.id).history


def test_what_waits_for_approval_ends_with_its_data_set(tmp_path: Path) -> None:
    job = asked(open_store(load_clinic(tmp_path, dataset=ABOVE)))
    service = Service(load_clinic(tmp_path, dataset=f"retired = true\n{ABOVE}"))
    service._keep_up()
    assert queue.find(service.store, job.id).failure == "its data set was retired; nothing was spent"
    service.stop()


def test_a_role_is_no_share(service: Service) -> None:
    """An approver or auditor with an analyst's name sees requests, and is that analyst in nothing else."""
    job = service.ask(ALICE, replace(LARGE, epsilon=0.1))
    for role in ("approver", "auditor"):
        namesake = Caller("k", role, "alice")
        assert service.job(namesake, job.id) == job
        assert service.entries(namesake, "clinic", 10) == service.entries(HOLDER, "clinic", 10)
        with pytest.raises(Forbidden):
            service.ask(namesake, replace(LARGE, epsilon=0.1))
        with pytest.raises(NotFound):
            service.cancel(namesake, job.id)
        assert service.results(namesake, limit=10) == []
    with pytest.raises(Forbidden):
        service.events(BEA)
    assert service.events(AUDITOR)


def test_what_has_no_room_any_more_is_not_approved(tmp_path: Path) -> None:
    service = Service(load_clinic(tmp_path, dataset=ABOVE))
    job = service.ask(BOB, LARGE)
    share = Ledger.open(service.store, "clinic").of_account("bob", Guarantee(1.0, 2e-6))
    share.reserve(Cost(Guarantee(0.9)), "spent meanwhile").commit()
    with pytest.raises(BudgetExceeded, match="the analyst's share is too small"):
        service.approvals.decide(BEA, job.id, "approve")
    assert "is too small" in service.approvals.case(BEA, job.id).obstacle
    assert service.approvals.decide(BEA, job.id, "decline", "no room").state == "declined"
    assert service.approvals.case(BEA, job.id).obstacle == ""
    service.stop()


@pytest.mark.parametrize("above", ["-1", '"much"', "{ release = -0.1 }"])
def test_limits_that_make_no_sense(tmp_path: Path, above: str) -> None:
    with pytest.raises(SchemaError, match="above"):
        load_clinic(tmp_path, dataset=f"approval = {{ above = {above} }}")


def test_a_misspelt_kind_would_let_everything_pass(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'sesion'"):
        Service(load_clinic(tmp_path, dataset="approval = { above = { sesion = 1.0 } }"))


def test_states_are_counted(place: str) -> None:
    asked(place)
    assert queue.count_by_state(place)["waiting_for_approval"] == 1
    assert execute(place, "SELECT decide_by FROM jobs") != [("",)]
