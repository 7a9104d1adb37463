"""Whatever a party does wrong leaves it out, and nothing else; beyond the plan's dropouts nothing is opened."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privlearn.errors import ProtocolError, TooFewParties
from privlearn.mechanisms.summed.summed import NoisySum, Question
from privlearn.multiparty.run.conversation import Parts, Stage, noise_share
from privlearn.multiparty.run.coordinator_run import CoordinatorRun
from privlearn.multiparty.run.party_run import PartyRun
from privlearn.multiparty.run.purse import Purse
from privlearn.multiparty.run.training import Party
from tests.support.run_cases import IDENTITIES, SIZES, TABLES, Wire, plan_of

STRICT, LENIENT = plan_of(), plan_of(dropouts=1, colluding=0)
Tamper = Callable[[Stage, str, Parts | str], Parts | str | None]


def old_message() -> Tamper:
    """From the second gradient on, west sends its first one again."""
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
        wire.tamper = west(change, Stage.PLAN)
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
    rows, purse = Party.from_table(LENIENT, "west", TABLES["west"]), Purse(elsewhere, "west", ledger=None)
    wire.parties["west"] = PartyRun(elsewhere, "west", IDENTITIES["west"], rows, purse, print)
    with pytest.raises(TooFewParties, match="no sign-off from west"):
        wire.coordinator.train()
    assert "west refused: this party computes other constants from the plan" in "\n".join(wire.told)
    assert not any(party._purse.asked for party in wire.parties.values())


@pytest.mark.parametrize("stage", [Stage.KEYS, Stage.ROSTER])
def test_the_set_up_needs_everybody_and_costs_nothing_if_it_fails(stage: Stage) -> None:
    """Else a coordinator could show one party fewer others than there are, and open its vector."""
    wire = Wire(LENIENT)
    wire.tamper = west(lambda reply: None, stage)
    with pytest.raises(TooFewParties, match="2 parties answered, the plan asks for 3"):
        wire.coordinator.train()
    assert not any(party._purse.asked for party in wire.parties.values())


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
    parties = [Party.from_table(LENIENT, name, TABLES[name]) for name in present]
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
    sealed = wire.coordinator._sealed_question
    wire.coordinator._sealed_question = lambda question: (questions.append(question), sealed(question))[1]  # type: ignore[method-assign]
    wire.coordinator.train()
    traffic = b"".join(wire.traffic)
    screens = "\n".join([*wire.told, *(line for lines in wire.heard.values() for line in lines)])
    for name, table in TABLES.items():
        party = Party.from_table(STRICT, name, table)
        for question in questions:
            exact = party.answer(question)
            encoding = noise_share(STRICT, question.number).encoding(question.bound)
            large = np.argsort(-np.abs(exact))[:20]
            for form in (exact[large], encoding.encode(exact)[large]):
                assert not any(value.tobytes() in traffic for value in form)
        incomes = {value for value in table["capital_income"].to_pylist() if value and value > 1000}
        assert incomes
        assert not any(str(value) in screens or str(value).encode() in traffic for value in incomes)
        assert not any(np.float64(value).tobytes() in traffic for value in incomes)


def test_a_coordinator_with_another_key_is_refused() -> None:
    with pytest.raises(ProtocolError, match="another key for the coordinator"):
        CoordinatorRun(STRICT, IDENTITIES["north"], lambda stage, parts: {}, print)
