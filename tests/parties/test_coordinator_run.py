"""Whatever a party does wrong leaves it out, and nothing else; beyond the plan's dropouts nothing is opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn.budget import CoordinatedRun, remember_job, watch_charges
from privlearn.errors import ProtocolError, TooFewParties
from privlearn.mechanisms.summed import NoisySum, Question
from privlearn.parties.run import CoordinatorRun, Journal, Parts, PartyRun, RunBudget, Stage
from tests.support.run_cases import IDENTITIES, SIZES, TABLES, Wire, agreement_of

STRICT, LENIENT = agreement_of(), agreement_of(dropouts=1, colluding=0)
Tamper = Callable[[Stage, str, Parts | str], Parts | str | None]


def old_message() -> Tamper:
    """Return a run in which west sends its first gradient again from the second one on."""
    kept: list[Parts | str] = []

    def tamper(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if (stage, name) != (Stage.QUESTION, "west"):
            return reply
        kept.append(reply)
        return kept[1] if len(kept) > 2 else reply

    return tamper


def west(change: Callable[[Parts | str], Parts | str | None], stage: Stage = Stage.QUESTION) -> Tamper:
    return lambda now, name, reply: change(reply) if (now, name) == (stage, "west") else reply


FAILURES: dict[str, tuple[Tamper, str]] = {
    "lost": (west(lambda reply: None), "west did not answer in time"),
    "lost when opening": (west(lambda reply: None, Stage.SURVIVORS), "west did not answer in time"),
    "garbage": (west(lambda reply: [b"garbage" * 100]), "not a message of the secure sum"),
    "empty": (west(lambda reply: []), "wrong number of parts"),
    "too short": (west(lambda reply: [reply[0][:-8]]), "signature"),  # type: ignore[list-item]
    "changed": (west(lambda reply: [bytes([reply[0][0]]) + b"x" * (len(reply[0]) - 1)]), "version"),  # type: ignore[list-item]
    "an old round": (old_message(), "this is round 1"),
    "a refusal": (west(lambda reply: "no more"), "west refused: no more"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_one_failing_party_is_left_out_if_the_plan_allows_it(failure: str) -> None:
    wire = Wire(LENIENT)
    wire.tamper, told = FAILURES[failure]
    release = wire.coordinator.train()
    assert release.certificate.guarantee == LENIENT.guarantee
    assert told in "\n".join(wire.told)


@pytest.mark.parametrize("failure", FAILURES)
def test_beyond_the_plan_the_run_stops_and_everybody_is_told(failure: str) -> None:
    wire = Wire(STRICT)
    wire.tamper, _ = FAILURES[failure]
    with pytest.raises(TooFewParties, match="2 parties"):
        wire.coordinator.train()
    for name in ("north", "south"):
        assert "2 parties" in str(wire.parties[name].stopped)
        assert wire.parties[name].release is None


def test_no_run_without_every_sign_off() -> None:
    for change in (lambda reply: None, lambda reply: [bytes(64)], lambda reply: "not within my limits"):
        wire = Wire(LENIENT)
        wire.tamper = west(change, Stage.AGREEMENT)
        with pytest.raises(TooFewParties, match="no sign-off from west"):
            wire.coordinator.train()
        assert not any("Answered" in line for lines in wire.heard.values() for line in lines)


def test_libraries_that_differ_in_a_last_bit_are_found_before_anything_is_spent() -> None:
    """At the end a party compares constants exactly: there it would refuse what everybody has paid for."""
    wire, elsewhere = Wire(LENIENT), LENIENT.model_copy()
    mechanism: Any = LENIENT.mechanism
    scale = math.nextafter(mechanism.noise_scale, math.inf)
    vars(elsewhere)["mechanism"] = replace(mechanism, noise_scale=scale)
    assert elsewhere.digest == LENIENT.digest
    rows, budget = LENIENT.read_party("west", TABLES["west"]), RunBudget(elsewhere, "west", ledger=None)
    wire.parties["west"] = PartyRun(elsewhere, "west", IDENTITIES["west"], rows, budget, print)
    with pytest.raises(TooFewParties, match="no sign-off from west"):
        wire.coordinator.train()
    assert "west refused: this party and the coordinator compute different constants" in "\n".join(wire.told)
    assert not any(party._budget.answered for party in wire.parties.values())


@pytest.mark.parametrize("stage", [Stage.KEYS, Stage.ROSTER])
def test_the_set_up_needs_everybody_and_costs_nothing_if_it_fails(stage: Stage) -> None:
    """Else a coordinator could show one party fewer others than there are, and open its vector."""
    wire = Wire(LENIENT)
    wire.tamper = west(lambda reply: None, stage)
    with pytest.raises(TooFewParties, match="2 parties answered; 3 are needed"):
        wire.coordinator.train()
    assert not any(party._budget.answered for party in wire.parties.values())


def test_a_party_that_was_late_takes_part_again() -> None:
    wire = Wire(LENIENT)
    asked = []

    def late_once(stage: Stage, name: str, reply: Parts | str) -> Parts | str | None:
        asked.append((stage, name))
        return (
            None
            if asked.count((Stage.QUESTION, "west")) == 1 and stage is Stage.QUESTION and name == "west"
            else reply
        )

    wire.tamper = late_once
    wire.coordinator.train()
    counts = [line.split(": ")[1].split(" of ")[0] for line in wire.told if line.startswith("Question")]
    assert counts == ["2", "3", "3"]


@pytest.mark.parametrize("missing", [False, True])
def test_the_sum_is_the_exact_one_plus_a_share_of_noise_for_each_party_present(missing: bool) -> None:
    wire = Wire(LENIENT)
    if missing:
        wire.tamper = west(lambda reply: None)
    sums: list[tuple[Question, NoisySum]] = []
    ask = CoordinatorRun.ask

    class Watched(CoordinatorRun):
        def ask(self, question: Question) -> NoisySum:
            sums.append((question, ask(self, question)))
            return sums[-1][1]

    Watched(LENIENT, IDENTITIES["coordinator"], wire.exchange, print).train()
    present = [name for name in SIZES if not (missing and name == "west")]
    parties = [LENIENT.read_party(name, TABLES[name]) for name in present]
    for question, total in sums:
        noise = total.vector - np.sum([party.answer(question) for party in parties], axis=0)
        expected = question.noise[0].scale * math.sqrt(
            len(present) / 2
        )  # two shares are enough: one drops out
        deviations = 6.0 / math.sqrt(2 * question.length)
        assert abs(float(np.std(noise)) / expected - 1.0) < deviations
        assert total.total == sum(SIZES[name] for name in present)
    assert {question.kind for question, _ in sums} == {"second_moments", "gradients"}


def test_neither_messages_nor_screens_hold_a_row_or_an_unmasked_vector() -> None:
    wire = Wire(STRICT)
    questions: list[Question] = []
    ask = wire.coordinator.ask
    wire.coordinator.ask = lambda question: (questions.append(question), ask(question))[1]  # type: ignore[method-assign]
    wire.coordinator.train()
    traffic = b"".join(wire.traffic)
    screens = "\n".join([*wire.told, *(line for lines in wire.heard.values() for line in lines)])
    for name, table in TABLES.items():
        party = STRICT.read_party(name, table)
        for question in questions:
            exact = party.answer(question)
            encoding = STRICT.encoding(question)
            large = np.argsort(-np.abs(exact))[:20]
            for form in (exact[large], encoding.encode(exact)[large]):
                assert not any(value.tobytes() in traffic for value in form)
        incomes = {value for value in table["capital_income"].to_pylist() if value and value > 1000}
        assert incomes
        assert not any(str(value) in screens or str(value).encode() in traffic for value in incomes)
        assert not any(np.float64(value).tobytes() in traffic for value in incomes)


def test_a_coordinator_with_another_key_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not the coordinator's key"):
        CoordinatorRun(STRICT, IDENTITIES["north"], lambda stage, parts: {}, print)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_suspends_a_run_that_has_a_file(
    interruption: type[BaseException], tmp_path: Path
) -> None:
    """Parties are told nothing, and the same command goes on; only an explicit end, or a failure, ends the run."""
    wire, path, stages = Wire(STRICT), tmp_path / "plan.run", list[Stage]()

    def interrupted(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        stages.append(stage)
        if stages.count(Stage.QUESTION) == 2:
            raise interruption
        return wire.exchange(stage, parts)

    with closing(Journal(path, STRICT)) as journal:
        run = CoordinatorRun(STRICT, IDENTITIES["coordinator"], interrupted, wire.told.append, journal)
        with pytest.raises(interruption):
            run.train()
    assert Stage.STOP not in stages
    assert path.exists()
    assert not any(party.finished for party in wire.parties.values())
    with closing(Journal(path, STRICT)) as journal:
        assert journal.existed
        again = CoordinatorRun(STRICT, IDENTITIES["coordinator"], wire.exchange, wire.told.append, journal)
        assert again.train().run is not None


def test_an_explicit_end_ends_a_suspended_run(tmp_path: Path) -> None:
    wire, path = Wire(STRICT), tmp_path / "plan.run"
    with closing(Journal(path, STRICT)) as journal:
        assert not journal.existed
        run = CoordinatorRun(STRICT, IDENTITIES["coordinator"], wire.exchange, wire.told.append, journal)
        run._set_up()
    with closing(Journal(path, STRICT)) as journal:
        CoordinatorRun(STRICT, IDENTITIES["coordinator"], wire.exchange, wire.told.append, journal).end(
            "over"
        )
    assert not path.exists()
    assert {party.stopped for party in wire.parties.values()} == {"over"}


def test_whoever_stops_a_coordinator_is_not_told_that_nothing_was_charged() -> None:
    """The parties' ledgers were, and this process cannot see them."""
    with watch_charges() as charges:
        remember_job(CoordinatedRun())
        assert "nothing was charged" not in str(charges)
        assert "charged to their ledgers" in str(charges)
