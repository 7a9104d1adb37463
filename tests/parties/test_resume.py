"""Killed processes of a run go on: the same bytes again, nothing asked or paid twice, nothing answered anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from privlearn import Ledger, PrivateLogisticRegression
from privlearn.budget import CompositionName, Reservation
from privlearn.errors import InvalidParameter, LedgerError, ProtocolError
from privlearn.guarantee import Guarantee
from privlearn.parties.run import (
    Agreement,
    CoordinatorRun,
    JointEvaluation,
    Journal,
    Parts,
    PartyMemory,
    PartyRun,
    RunBudget,
    Stage,
)
from privlearn.parties.run.identity import COORDINATOR_NAME
from privlearn.release import Outcome
from tests.support.run_cases import IDENTITIES, KEYS, SCHEMA, SIZES, TABLES, agreement_of

AGREEMENT = agreement_of()
ROWS = {name: AGREEMENT.read_party(name, TABLES[name]) for name in SIZES}


@cache
def evaluation() -> JointEvaluation:
    model = PrivateLogisticRegression(epsilon=4.0, delta=1e-5, schema=SCHEMA).fit(TABLES["west"])
    return JointEvaluation(
        release=model.release_, schema=SCHEMA, parties=SIZES, epsilon=2.0, delta=1e-5, keys=KEYS
    )


ANY_PLAN = pytest.mark.parametrize(
    "agreement", [lambda: AGREEMENT, evaluation], ids=["training", "evaluation"]
)


class Killed(BaseException):
    """A process ends."""


class Site:
    """A plan's parties and coordinator with their files; each can be killed and started again."""

    def __init__(
        self, folder: Path, composition: CompositionName = "renyi", agreement: Agreement = AGREEMENT
    ) -> None:
        self.folder, self.composition, self.agreement = folder, composition, agreement
        self.questions = len(agreement.mechanism.kinds)
        self.heard: dict[str, list[str]] = {name: [] for name in SIZES}
        self.told: list[str] = []
        self.answers: dict[tuple[str, bytes], set[bytes]] = {}
        self.sent: list[str] = []
        self.memories: dict[str, PartyMemory] = {}
        self.ledgers = {
            name: Ledger.create(
                folder / f"{name}.db", "census", Guarantee(20.0, 1e-4), composition=composition
            )
            for name in SIZES
        }
        self.parties = {name: self.party(name) for name in SIZES}

    def party(self, name: str) -> PartyRun:
        """Return a new process of a party, which continues from an earlier one's state."""
        if name in self.memories:
            self.memories[name].close()  # as the system does when a process ends
        self.memories[name] = PartyMemory(self.folder / f"{name}.run")
        return PartyRun(
            self.agreement,
            name,
            IDENTITIES[name],
            self.agreement.read_party(name, TABLES[name]),
            RunBudget(self.agreement, name, self.ledgers[name]),
            self.heard[name].append,
            self.memories[name],
        )

    def exchange(self, stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        replies = {}
        for number, own in parts.items():
            name = list(SIZES)[number]
            replies[number] = reply = self.parties[name].reply(stage, own)
            if stage is Stage.QUESTION and isinstance(reply, list):
                self.answers.setdefault((name, own[0]), set()).add(reply[0])
        return replies

    def lead(self, kill_at: int = -1, replies_lost: bool = False) -> Outcome:
        """Return the coordinator's process; killed at this exchange, before it sends or before it has the replies."""
        journal = Journal(self.folder / "plan.run", self.agreement)
        place = journal.stored_exchanges - 1

        def exchange(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
            nonlocal place
            place += 1
            if place == kill_at:
                journal._path = self.folder / "nowhere"  # a killed process writes and ends nothing any more
            if place >= kill_at >= 0 and not (replies_lost and place == kill_at):
                raise Killed
            replies = self.exchange(stage, parts)
            if place == kill_at:
                raise Killed
            return replies

        try:
            return CoordinatorRun(
                self.agreement, IDENTITIES[COORDINATOR_NAME], exchange, self.told.append, journal
            ).train()
        finally:
            journal.close()

    def check_paid_once(self) -> None:
        """Every question has one answer, and the ledgers hold what was answered."""
        assert len(self.answers) == self.questions * len(SIZES)
        assert all(len(different) == 1 for different in self.answers.values())
        for ledger in self.ledgers.values():
            assert {entry.state for entry in ledger.statement().entries} == {"committed"}
            assert len(ledger.statement().entries) == (1 if self.composition == "basic" else self.questions)


@ANY_PLAN
@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_coordinator_killed_at_every_exchange_comes_to_the_same_end(
    tmp_path: Path, composition: CompositionName, agreement: Callable[[], Agreement]
) -> None:
    """Twice at each exchange: before its messages leave, and when all have been answered."""
    site = Site(tmp_path, composition, agreement())
    exchanges = 4 + 2 * site.questions + 2
    for place in range(exchanges):
        for replies_lost in (False, True):
            if place == exchanges - 1 and replies_lost:
                continue  # the parties have their release
            with pytest.raises(Killed):
                site.lead(place, replies_lost)
    release = site.lead()
    site.check_paid_once()
    assert release.run is not None
    assert release.run.sums == (tuple(SIZES),) * site.questions
    assert all(party.release is not None for party in site.parties.values())
    assert not (tmp_path / "nowhere").exists()


@ANY_PLAN
@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_parties_killed_after_every_stage_go_on(
    tmp_path: Path, composition: CompositionName, agreement: Callable[[], Agreement]
) -> None:
    """Their replies are lost with them; the message comes again, and so does the reply, byte for byte."""
    site = Site(tmp_path, composition, agreement())
    delivered = site.exchange

    def killing(stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        if stage in (Stage.RELEASE, Stage.STOP):
            return delivered(stage, parts)
        first = delivered(stage, parts)
        site.parties = {name: site.party(name) for name in SIZES}
        assert delivered(stage, parts) == first
        site.parties = {name: site.party(name) for name in SIZES}
        return first

    site.exchange = killing  # type: ignore[method-assign]
    release = site.lead()
    site.check_paid_once()
    assert release.certificate.guarantee == site.agreement.guarantee
    assert any("Continues the run" in line for line in site.heard["north"])
    for party in site.parties.values():
        party.settle()
    assert not any((tmp_path / f"{name}.run").exists() for name in SIZES)  # secrets of a run that is over


def killed_while_computing(site: Site, question: int) -> None:
    """The party north ends in the middle of its answer."""
    answer = ROWS["north"].answer

    def dying(asked: Any) -> Any:
        if asked.number == question:
            raise Killed
        return answer(asked)

    site.parties["north"]._party = SimpleNamespace(answer=dying)
    with pytest.raises(Killed):
        site.lead()


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_crash_while_an_answer_is_computed_is_an_answer_that_failed(
    tmp_path: Path, composition: CompositionName
) -> None:
    """Else a coordinator could ask until nothing crashes, and learn from each crash."""
    site = Site(tmp_path, composition)
    killed_while_computing(site, question=1)
    north = site.party("north")
    assert north.finished
    assert "ended while it computed the answer to question 2" in str(north.stopped)
    north.settle()
    states = [entry.state for entry in site.ledgers["north"].statement().entries]
    assert states == (["committed"] if composition == "basic" else ["committed", "committed", "cancelled"])
    assert "Answered 2 of 3 questions" in site.heard["north"][-1]


def twin_of(site: Site, folder: Path) -> PartyRun:
    """Another process of north's, with a copy of the file of its run."""
    (folder / "twin.run").write_bytes((folder / "north.run").read_bytes())
    budget = RunBudget(AGREEMENT, "north", site.ledgers["north"])
    memory = PartyMemory(folder / "twin.run")
    return PartyRun(AGREEMENT, "north", IDENTITIES["north"], ROWS["north"], budget, site.told.append, memory)


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_copy_gives_no_shares_for_another_list(tmp_path: Path, composition: CompositionName) -> None:
    """The secure sum's theorem counts one answer to one list per round."""
    site = Site(tmp_path, composition)
    with pytest.raises(Killed):
        site.lead(kill_at=5)
    twin = twin_of(site, tmp_path)
    site.lead()
    with pytest.raises(LedgerError, match="has given other shares of question 1"):
        twin._budget.record_shares(0, b"another list")
    north = site.ledgers["north"]
    paid = Reservation(north.store, north.dataset, north.statement().entries[0].reservation)
    paid.record_shares(7, "the same")
    paid.record_shares(7, "the same")
    assert paid.answered() == ({0, 1, 2} if composition == "basic" else {0})


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_a_copy_of_a_party_that_has_answered_does_not_answer_again(
    tmp_path: Path, composition: CompositionName
) -> None:
    """A file of the run brought back from a backup, or used twice: the ledger knows what was paid for."""
    site = Site(tmp_path, composition)
    with pytest.raises(Killed):
        site.lead(kill_at=6)
    old = (tmp_path / "north.run").read_bytes()
    twin = twin_of(site, tmp_path)
    asked: list[Parts] = []
    exchange = site.exchange

    def watch(stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        asked.append(parts[0])
        return exchange(stage, parts)

    site.exchange = watch  # type: ignore[method-assign]
    with pytest.raises(Killed):
        site.lead(kill_at=7)
    assert twin.reply(Stage.QUESTION, asked[0]) == "for a reason that stays with this party"
    assert "already answered question" in str(twin.stopped)
    (tmp_path / "north.run").write_bytes(old)
    with pytest.raises(LedgerError, match="the file is an old copy"):
        site.party("north")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(InvalidParameter, match="another process works on the run"):
        PartyMemory(tmp_path / "north.run")
    journal = Journal(tmp_path / "plan.run", AGREEMENT)
    mode = (tmp_path / "plan.run").stat().st_mode
    assert mode & 0o077 == 0  # what parties sent is for the coordinator alone
    with pytest.raises(InvalidParameter, match="another process works on the run"):
        Journal(tmp_path / "plan.run", AGREEMENT)
    journal.close()
    Journal(tmp_path / "plan.run", AGREEMENT).close()
    assert site.memories


def test_a_journal_of_another_plan_or_version_is_not_taken_up(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at=6)
    with pytest.raises(InvalidParameter, match="another agreement"):
        Journal(tmp_path / "plan.run", agreement_of(epsilon=1.9))
    path = tmp_path / "plan.run"
    lines = path.read_text().splitlines()
    changed = json.loads(lines[2]) | {"sent": {}}
    path.write_text("\n".join([*lines[:2], json.dumps(changed), *lines[3:]]) + "\n")
    with pytest.raises(InvalidParameter, match="another version"):
        site.lead()
    assert not site.parties["north"].finished  # nobody was told to stop: the version that wrote it can go on
    path.write_text("no journal\n")
    with pytest.raises(InvalidParameter, match="not a coordinator's checkpoint"):
        Journal(path, AGREEMENT)


def test_a_record_that_a_crash_cut_off_had_no_consequence(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at=5)
    path = tmp_path / "plan.run"
    path.write_bytes(path.read_bytes()[:-20])
    assert site.lead().run is not None
    site.check_paid_once()


def test_a_run_that_was_stopped_is_not_taken_up_again(tmp_path: Path) -> None:
    site = Site(tmp_path)
    exchange = site.exchange

    def fewer(stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        replies = exchange(stage, parts)
        return {0: replies[0]} if stage is Stage.SURVIVORS else replies

    site.exchange = fewer  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="The sum stays closed"):
        site.lead()
    assert not (tmp_path / "plan.run").exists()
    assert all(party.stopped for party in site.parties.values())


def test_the_file_of_a_party_is_for_its_owner_only(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at=6)
    assert (tmp_path / "north.run").stat().st_mode & 0o077 == 0
    (tmp_path / "south.run").write_text("{}")
    with pytest.raises(InvalidParameter, match="was written by another version"):
        site.party("south")


@pytest.mark.parametrize(
    ("kill_at", "unused", "shares"),
    [(7, [[], ["1"]], [[], ["0", "1"]]), (8, [[], ["1"]], [[], ["1"]])],
    ids=["masked", "opened"],
)
def test_a_used_key_is_not_kept(
    tmp_path: Path, kill_at: int, unused: list[list[str]], shares: list[list[str]]
) -> None:
    """What was used must not be on disk: with it and old messages a vector would open."""
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at)  # the second question is answered, and then opened
    kept = json.loads((tmp_path / "north.run").read_text())["sums"]
    assert [list(session["unused"]) for session in kept] == unused
    assert [list(session["shares"]) for session in kept] == shares


def test_a_party_of_another_run_is_told_what_to_do(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at=6)
    (tmp_path / "plan.run").unlink()
    with pytest.raises(ProtocolError, match="no sign-off"):
        site.lead()
    assert any("in another run of the agreement. End that one" in line for line in site.told)


def test_a_run_begun_with_a_ledger_goes_on_with_it(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with pytest.raises(Killed):
        site.lead(kill_at=6)
    with pytest.raises(LedgerError, match="begun with a ledger"):
        RunBudget(AGREEMENT, "north", None).resume({"reserved": ["1"], "answered": []}, None)
