"""Attacks of the third review on runs of several holders, by a coordinator or a party with the parties' own code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privlearn import Ledger
from privlearn.accounting import gaussian_epsilon
from privlearn.data import census_schema
from privlearn.errors import InvalidParameter, ProtocolError, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.summed import NoisySum, NoisySums, Question
from privlearn.parties import Cohort, JointMoments, JointTraining
from privlearn.parties.run import (
    QUESTION_NUMBER,
    Parts,
    PartyMemory,
    PartyRun,
    RunBudget,
    Stage,
    conversation,
    proposal,
)
from privlearn.parties.run.conversation import RUN_BYTES
from privlearn.parties.secure_sum import (
    COORDINATOR,
    QUESTION_DIGEST_BYTES,
    MaskingCoordinator,
    MaskingParty,
    ShareBox,
    Step,
    Words,
    from_coordinator,
    from_party,
    public_half,
    seal,
    self_mask,
)
from privlearn.parties.secure_sum.party import box_size
from privlearn.randomness import SecureRandomness
from privlearn.release import Release, RunRecord, read_outcome
from tests.support.masking_steps import Steps
from tests.support.run_cases import IDENTITIES, SIZES, TABLES, Wire, agreement_of

AGREEMENT = agreement_of(dropouts=1, colluding=0)
KEY = IDENTITIES["coordinator"].key
NAMES = list(SIZES)


class Invented(NoisySums):
    def ask(self, question: Question) -> NoisySum:
        made_up = np.random.default_rng(question.number).normal(size=question.length)
        return NoisySum(300.0 * made_up, AGREEMENT.total, len(SIZES))


def made_up_result(wire: Wire, run: bytes, sign_offs: Mapping[str, bytes]) -> Parts:
    """Return a forged model, with a record in which all parties are in all sums."""
    made = AGREEMENT.outcome(Invented(), SecureRandomness()).to_bytes()
    signed = {name: signature.hex() for name, signature in sign_offs.items()}
    sums = tuple(tuple(SIZES) for _ in AGREEMENT.mechanism.kinds)
    record = RunRecord(AGREEMENT.canonical().decode(), run.hex(), signed, sums).to_bytes()
    session = wire.parties["north"]._sessions[0]
    body = conversation.result_digest(made, record)
    return [seal(KEY, session, Step.RESULT, COORDINATOR, body), made, record]


def test_nobody_signs_a_result_without_having_answered_a_question() -> None:
    wire, run = Wire(AGREEMENT), b"x" * RUN_BYTES
    sign_offs = {
        name: party.handle(Stage.AGREEMENT, proposal(AGREEMENT, run))[0]
        for name, party in wire.parties.items()
    }
    for party in wire.parties.values():
        told = party.reply(Stage.RESULT, made_up_result(wire, run, sign_offs))
        assert told == "this party was not shown all sums of which the result is computed"


def watched(wire: Wire, change: Any) -> Wire:
    """Let ``change`` alter what each party is sent at a stage."""
    exchange = wire.exchange

    def tampering(stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        return exchange(stage, {party: change(stage, party, list(own)) for party, own in parts.items()})

    wire.coordinator._exchange = tampering
    return wire


def test_a_made_up_result_is_not_signed_after_all_questions_either() -> None:
    wire = Wire(AGREEMENT)

    def forge(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is not Stage.RESULT:
            return parts
        return made_up_result(wire, wire.coordinator._run, wire.coordinator._sign_offs) + parts[3:]

    with pytest.raises(ProtocolError, match="0 parties signed the result"):
        watched(wire, forge).coordinator.train()
    assert any("does not follow from the sums that this party computed" in line for line in wire.told)


def test_a_result_that_the_coordinator_did_not_seal_is_not_signed() -> None:
    wire = Wire(AGREEMENT)

    def unseal(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.RESULT:
            parts[0] = seal(
                IDENTITIES["west"].key, wire.coordinator._sessions[0], Step.RESULT, 2, parts[0][43:-64]
            )
        return parts

    with pytest.raises(ProtocolError, match="0 parties signed"):
        watched(wire, unseal).coordinator.train()


def test_a_result_that_is_slightly_different_is_not_signed() -> None:
    wire = Wire(AGREEMENT)

    def nudge(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is not Stage.RESULT:
            return parts
        release = read_outcome(parts[1])
        assert isinstance(release, Release)
        moved = replace(release.model, coefficients=release.model.coefficients + 1e-4)
        other = replace(release, model=moved).to_bytes()
        sealed = seal(
            KEY,
            wire.coordinator._sessions[0],
            Step.RESULT,
            COORDINATOR,
            conversation.result_digest(other, parts[2]),
        )
        return [sealed, other, *parts[2:]]

    with pytest.raises(ProtocolError, match="0 parties signed"):
        watched(wire, nudge).coordinator.train()


@pytest.mark.parametrize("part", [2, 3], ids=["vectors", "keys"])
def test_a_sum_with_made_up_vectors_or_keys_is_not_believed(part: int) -> None:
    """Evidence for the first sum comes with the second question: one changed byte, and it is not answered."""
    wire = Wire(AGREEMENT)

    def change(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.QUESTION and len(parts) > 2:
            evidence = bytearray(parts[2 + part])
            evidence[len(evidence) // 2] ^= 1
            parts[2 + part] = bytes(evidence)
        return parts

    with pytest.raises(ProtocolError):
        watched(wire, change).coordinator.train()
    assert all(party._budget.answered == {0} for party in wire.parties.values())


def test_a_question_without_evidence_for_the_sums_before_it_is_not_answered() -> None:
    wire = watched(
        Wire(AGREEMENT), lambda stage, party, parts: parts[:2] if stage is Stage.QUESTION else parts
    )
    with pytest.raises(ProtocolError):
        wire.coordinator.train()
    assert all(party._budget.answered == {0} for party in wire.parties.values())


def other_point(wire: Wire, number: int, scale: float = 5.0) -> bytes:
    place = conversation.question_rounds(AGREEMENT)[number]
    task = AGREEMENT.mechanism.task
    body = np.full((task.problems, task.dimension), scale).tobytes()
    return seal(KEY, wire.coordinator._sessions[place.session], Step.QUESTION, COORDINATOR, body, place.round)


@pytest.mark.parametrize("victims", [(0,), (0, 1, 2)], ids=["one party", "all parties"])
def test_a_point_that_the_coordinator_chose_is_not_answered(victims: tuple[int, ...]) -> None:
    """Another question for one party singled out that party's sums, with a correlation of 0.9995."""
    wire = Wire(AGREEMENT)

    def choose(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.QUESTION and parts[0] == QUESTION_NUMBER.pack(1) and party in victims:
            parts[1] = other_point(wire, 1)
        return parts

    watched(wire, choose)
    if len(victims) > AGREEMENT.dropouts:
        with pytest.raises(ProtocolError):
            wire.coordinator.train()
    else:
        assert wire.coordinator.train().run is not None
    for victim in victims:
        assert 1 not in wire.parties[NAMES[victim]]._budget.answered
        assert any("does not follow" in line for line in wire.heard[NAMES[victim]])


def test_vectors_for_different_questions_do_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that colludes can lead honest ones to different points; then their masks do not cancel.

    A coordinator that lies does not look at what the vectors say of their question.
    """
    monkeypatch.setattr(
        "privlearn.parties.secure_sum.masks.question_digest",
        lambda books, question: bytes(QUESTION_DIGEST_BYTES),
    )
    words = np.array([3, 5], dtype=np.uint64)
    for questions, opens in (((b"w", b"w", b"w", b"w"), True), ((b"v", b"w", b"w", b"w"), False)):
        steps = Steps(Cohort(4, dropouts=1), 2).set_up()
        steps.coordinator.question = b"w"
        for party, question in zip(steps.parties, questions, strict=True):
            steps.coordinator.accept(party.mask(0, words, question))
        survivors = steps.coordinator.survivors()
        for party in steps.parties:
            steps.coordinator.accept(party.reveal(survivors))
        assert bool((steps.coordinator.total() == np.uint64(4) * words).all()) is opens


def test_a_missing_party_s_masks_are_removed_for_the_question_that_was_asked() -> None:
    words = np.array([3, 5], dtype=np.uint64)
    steps = Steps(Cohort(4, dropouts=1), 2).set_up()
    steps.coordinator.question = b"w"
    with pytest.raises(ProtocolError, match="party 0 answered another question"):
        steps.coordinator.accept(steps.parties[0].mask(0, words, b"v"))
    for party in steps.parties[1:]:
        steps.coordinator.accept(party.mask(0, words, b"w"))
    survivors = steps.coordinator.survivors()
    for party in steps.parties[1:]:
        steps.coordinator.accept(party.reveal(survivors))
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(3) * words)


def test_a_party_that_is_left_out_of_some_sums_signs_the_ones_that_it_can_check() -> None:
    """It is shown the vectors of the sums that it missed; its name is in none that it did not answer."""
    wire = Wire(AGREEMENT)

    def lose(stage: Stage, name: str, reply: Parts | str) -> Parts | str | None:
        first = wire.coordinator._sums[0].round == 0 and not wire.coordinator._evidence
        return None if name == "west" and stage is Stage.QUESTION and first else reply

    wire.tamper = lose
    release = wire.coordinator.train()
    assert release.run is not None
    assert release.run.sums[0] == ("north", "south")
    assert "west" in release.run.signatures
    witness = wire.parties["west"]._witness
    witness._answered.discard(1)
    with pytest.raises(ProtocolError, match="in a sum that it did not answer for"):
        witness.take(release.to_bytes())


def resumed_party(agreement: JointTraining, path: Path, ledger: Ledger | None = None) -> PartyRun:
    rows = agreement.read_party("north", TABLES["north"])
    budget = RunBudget(agreement, "north", ledger)
    return PartyRun(
        agreement, "north", IDENTITIES["north"], rows, budget, lambda line: None, PartyMemory(path)
    )


def remembering(path: Path, ledger: Ledger) -> Wire:
    wire = Wire(AGREEMENT)
    wire.parties["north"] = resumed_party(AGREEMENT, path, ledger)
    return wire


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(str(tmp_path / "north.ledger"), "census", Guarantee(3.0, 1e-4))


def test_the_file_of_a_run_opens_no_vector_that_was_sent(tmp_path: Path, ledger: Ledger) -> None:
    """With the recorded traffic and the key of the boxes it opened every past round."""
    path = tmp_path / "north.run"
    wire, kept = remembering(path, ledger), list[dict[str, Any]]()

    def copy(stage: Stage, party: int, parts: Parts) -> Parts:
        if path.exists():
            kept.append({"stage": stage, **json.loads(path.read_text())})
        return parts

    watched(wire, copy).coordinator.train()
    asked = [each for each in kept if each["stage"] in (Stage.QUESTION, Stage.SURVIVORS, Stage.RESULT)]
    assert asked
    for each in asked:
        for session in each["sums"]:
            assert session["box"] == session["own_shares"] == ""
            assert session["dealing"] is None
    last = kept[-1]
    assert all(not session["unused"] and not session["shares"] for session in last["sums"])
    later = next(each for each in reversed(asked) if each["next_question"] == 2)
    assert later["sums"][0]["unused"] == later["sums"][0]["shares"] == {}


def test_the_file_of_another_plan_s_run_is_not_gone_on_with(tmp_path: Path, ledger: Ledger) -> None:
    """Its name once held 64 bits of the plan's digest, and its content none: two plans could share a payment."""
    path = tmp_path / "north.run"
    first = resumed_party(AGREEMENT, path, ledger)
    first.handle(Stage.AGREEMENT, proposal(AGREEMENT, b"x" * RUN_BYTES))
    assert first._memory is not None
    first._memory.close()
    with pytest.raises(ProtocolError, match="belongs to another agreement"):
        resumed_party(agreement_of(dropouts=1, colluding=0, epsilon=1.5), path, ledger)
    (entry,) = ledger.statement().entries
    assert AGREEMENT.digest in entry.purpose


def test_boxes_that_are_locked_again_have_another_nonce(tmp_path: Path, ledger: Ledger) -> None:
    """A file brought back from before the shares were given: the same key must not lock two contents alike."""
    path = tmp_path / "north.run"
    wire, copies, replies = remembering(path, ledger), list[bytes](), list[Parts]()

    def again(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.ROSTER and party == 0:
            saved = path.read_bytes()
            north = wire.parties["north"]
            replies.append(north.handle(stage, parts))
            assert north._memory is not None
            north._memory.close()
            path.write_bytes(saved)
            wire.parties["north"] = resumed_party(AGREEMENT, path, ledger)
            replies.append(wire.parties["north"].handle(stage, parts))
            copies.append(saved)
        return parts

    watched(wire, again).coordinator.train()
    session = wire.parties["north"]._sessions[-1]
    one, other = (from_party(reply[-1], session, Step.SHARES).body for reply in replies)
    size = box_size(session.rounds)
    for start in range(0, len(one), size):
        assert one[start : start + 12] != other[start : start + 12]
    box = ShareBox(b"\x01" * 32, public_half(b"\x02" * 32), session, 0, 1)
    assert box.unlock(box.lock(b"content")) == b"content"
    assert box.lock(b"content") != box.lock(b"content")


CURIOUS: dict[str, Any] = {
    "schema": census_schema(),
    "parties": {"north": 5000, "south": 5000},
    "epsilon": 2.0,
    "delta": 1e-6,
    "colluding": 0,
}


def test_a_plan_without_colluding_parties_needs_a_word() -> None:
    with pytest.raises((InvalidParameter, SchemaError), match="accept_curious_parties = true"):
        JointTraining(**CURIOUS)
    assert JointTraining(**CURIOUS, accept_curious_parties=True).colluding == 0
    moments = CURIOUS | {"schema": census_schema().model_copy(update={"target": None})}
    with pytest.raises((InvalidParameter, SchemaError), match="accept_curious_parties = true"):
        JointMoments(**moments, targets=("hours",))


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_the_certificate_states_epsilon_towards_another_party(parties: int) -> None:
    """A party subtracts one share of ``parties``: the ratio grows by sqrt(K / (K - 1))."""
    names = {f"p{number}": 5000 for number in range(parties)}
    agreement = JointTraining(**CURIOUS | {"parties": names}, accept_curious_parties=True)
    towards = agreement.towards_a_party
    assert towards is not None
    ratio = agreement.mechanism.ratio * math.sqrt(parties / (parties - 1))  # type: ignore[attr-defined]
    assert towards.epsilon == pytest.approx(gaussian_epsilon(ratio, 1e-6), rel=1e-6)
    assert towards.epsilon > 2.05
    assert (
        f"epsilon = {towards.epsilon:.6g} at the same delta is left towards it" in agreement.mechanism.covers
    )
    assert str(towards) in agreement.summary()["towards a party"]
    moments = JointMoments(
        **CURIOUS | {"parties": names, "schema": census_schema().model_copy(update={"target": None})},
        targets=("hours",),
        accept_curious_parties=True,
    )
    assert moments.towards_a_party is not None
    assert moments.towards_a_party.epsilon == pytest.approx(towards.epsilon, rel=1e-4)


def test_with_a_colluding_party_the_guarantee_holds_towards_each() -> None:
    agreement = JointTraining(**CURIOUS | {"colluding": 1})
    assert agreement.towards_a_party == agreement.guarantee
    assert "its own share of the noise: it is one of those that may collude." in agreement.mechanism.covers
    assert "left towards it" not in agreement.mechanism.covers
    assert agreement.summary()["towards a party"] == str(agreement.guarantee)


def test_dropping_a_party_leaves_only_the_noise_and_the_certificate_says_so() -> None:
    assert "only the noise protects them" in AGREEMENT.mechanism.covers
    whole = agreement_of(dropouts=1, colluding=0, algorithm="aggregation", rounds=None, delta=0.0)
    assert "only the noise protects them" in whole.mechanism.covers


def test_what_the_coordinator_shows_each_party_opens_one_sum_and_no_single_vector() -> None:
    """Evidence holds masked vectors and one opened key of each party: the pair masks of those present stay."""
    wire, seen = Wire(AGREEMENT), list[Parts]()

    def keep(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.RESULT and party == 0:
            seen.append(parts)
        return parts

    watched(wire, keep).coordinator.train()
    (evidence,) = conversation.read_evidence(seen[0][3:])
    north = wire.parties["north"]
    place = conversation.question_rounds(AGREEMENT)[-1]
    session = north._sessions[place.session]
    vectors = np.frombuffer(
        from_party(evidence.vectors[: len(evidence.vectors) // 3], session, Step.MASKED).body[
            :-QUESTION_DIGEST_BYTES
        ],
        "<u8",
    )
    left = vectors - self_mask(evidence.keys[:32], session, place.round, 0)
    encoding = AGREEMENT.encoding(AGREEMENT.mechanism.question(len(AGREEMENT.mechanism.kinds) - 1))
    assert np.median(np.abs(encoding.decode(left))) > 2.0**60 * encoding.step


def sealed_question(wire: Wire, number: int, body: bytes) -> bytes:
    place = conversation.question_rounds(wire.agreement)[number]
    return seal(KEY, wire.coordinator._sessions[place.session], Step.QUESTION, COORDINATOR, body, place.round)


@pytest.mark.parametrize("number", [0, 2], ids=["second moments", "gradients"])
def test_evidence_for_another_question_than_was_answered_is_not_believed(number: int) -> None:
    """Masks with a missing party would be removed for another question: the coordinator could choose the sum."""
    wire = Wire(AGREEMENT)
    wire.tamper = lambda stage, name, reply: None if stage is Stage.QUESTION and name == "west" else reply

    def change(stage: Stage, party: int, parts: Parts) -> Parts:
        for start in range(2 if stage is Stage.QUESTION else 3, len(parts), 4):
            if stage in (Stage.QUESTION, Stage.RESULT) and parts[start] == QUESTION_NUMBER.pack(number):
                session = wire.coordinator._sessions[conversation.question_rounds(AGREEMENT)[number].session]
                body = from_coordinator(parts[start + 1], session, Step.QUESTION).body
                nudged = (np.frombuffer(body) * (1 + 1e-9)).tobytes() if body else b"made up"
                parts[start + 1] = sealed_question(wire, number, nudged)
        return parts

    with pytest.raises(ProtocolError):
        watched(wire, change).coordinator.train()
    told = "has no content" if number == 0 else "answers another question than the one in the evidence"
    assert all(any(told in line for line in lines) for lines in wire.heard.values())
    assert not any(party._witness._signed for party in wire.parties.values())


def test_a_question_without_coefficients_has_no_content() -> None:
    wire = Wire(AGREEMENT)

    def change(stage: Stage, party: int, parts: Parts) -> Parts:
        if stage is Stage.QUESTION and parts[0] == QUESTION_NUMBER.pack(0):
            parts[1] = sealed_question(wire, 0, b"made up")
        return parts

    with pytest.raises(ProtocolError):
        watched(wire, change).coordinator.train()
    assert not any(party._budget.answered for party in wire.parties.values())


def opened(steps: Steps, words: Words) -> tuple[bytes, bytes]:
    """Return the evidence for the first sum, to which all bring the same words."""
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, words))
    survivors = steps.coordinator.survivors()
    for party in steps.parties:
        steps.coordinator.accept(party.reveal(survivors))
    steps.coordinator.total()
    return steps.coordinator.evidence


def test_vectors_of_another_run_with_the_same_name_are_not_believed() -> None:
    words = np.array([3, 5], dtype=np.uint64)
    steps = Steps(Cohort(3), 2)
    again = Steps(Cohort(3), 2)
    again.session, again.identities = steps.session, steps.identities
    again.coordinator = MaskingCoordinator(steps.session, steps.coordinator_identity)
    again.parties = [MaskingParty(steps.session, n, key) for n, key in enumerate(steps.identities)]
    (old, _), (new, keys) = opened(steps.set_up(), words), opened(again.set_up(), words)
    size = len(old) // 3
    np.testing.assert_array_equal(again.parties[1].check_sum(0, b"", new, keys)[1], np.uint64(3) * words)
    for party in again.parties:
        with pytest.raises(ProtocolError, match="party 0 answers another question"):
            party.check_sum(0, b"", old[:size] + new[size:], keys)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_party_knows_its_own_vector_in_evidence(restarted: bool) -> None:
    words = np.array([3, 5], dtype=np.uint64)
    steps = Steps(Cohort(3), 2).set_up()
    vectors, keys = opened(steps, words)
    size, first = len(vectors) // 3, steps.parties[0]
    body = from_party(vectors[:size], steps.session, Step.MASKED).body
    other = seal(steps.identities[0], steps.session, Step.MASKED, 0, bytes([body[0] ^ 1]) + body[1:])
    if restarted:
        kept = json.loads(json.dumps(first.to_dict()))
        first = MaskingParty.from_dict(steps.session, 0, steps.identities[0], kept)
    np.testing.assert_array_equal(first.check_sum(0, b"", vectors, keys)[1], np.uint64(3) * words)
    with pytest.raises(ProtocolError, match="another vector of this party than it sent"):
        first.check_sum(0, b"", other + vectors[size:], keys)


def test_a_sum_beyond_what_parties_can_add_up_to_is_refused() -> None:
    question = AGREEMENT.mechanism.question(0)
    largest = int(AGREEMENT.encoding(question)._max_sum())
    for steps, fits in ((largest, True), (-largest, True), (2 * largest, False), (-2 * largest, False)):
        words = np.full(question.length, steps % 2**64, dtype=np.uint64)
        if fits:
            conversation.noisy_sum(AGREEMENT, question, NAMES, words)
        else:
            with pytest.raises(ProtocolError, match="exceeds the bound"):
                conversation.noisy_sum(AGREEMENT, question, NAMES, words)
