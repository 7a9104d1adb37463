"""False shares: the sum is opened without them, and those who gave them are named; nobody else is."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable

import numpy as np
import pytest

from privlearn.errors import ProtocolError, TooFewParties
from privlearn.parties import Cohort
from privlearn.parties.run import Parts, Stage
from privlearn.parties.secure_sum import (
    COORDINATOR,
    ENVELOPE_BYTES,
    KEY_BYTES,
    ORDER,
    PUBLIC_BYTES,
    SHARE_BYTES,
    Dealing,
    KeyBook,
    LyingParty,
    MaskingParty,
    Proof,
    RoundKeys,
    Step,
    check_public,
    from_party,
    generate_key,
    public_half,
    read_advertised,
    seal,
    shares_in,
    value_at,
    weighted_sum,
)
from privlearn.parties.secure_sum.party import LIST_BYTES
from tests.support.masking_steps import Steps
from tests.support.run_cases import IDENTITIES, SIZES, Wire, agreement_of

WORDS = np.array([3, 2**63], dtype=np.uint64)
GARBAGE: dict[str, Callable[[], bytes]] = {
    "zeros": lambda: bytes(SHARE_BYTES),
    "beyond the order": lambda: b"\xff" * SHARE_BYTES,
    "random": lambda: secrets.token_bytes(SHARE_BYTES),
}


def revealed_by(steps: Steps, liars: int, garbage: Callable[[], bytes]) -> None:
    """Everybody masks, the first parties reveal garbage, and the others their true shares."""
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, WORDS))
    survivors = steps.coordinator.survivors()
    for number, party in enumerate(steps.parties):
        told = party.reveal(survivors)
        if number < liars:
            false = b"".join(garbage() for _ in steps.parties) + told[-64 - LIST_BYTES : -64]
            told = seal(steps.identities[number], steps.session, Step.REVEALED, number, false)
        steps.coordinator.accept(told)


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("liars", [1, 2])
def test_parties_that_reveal_garbage_are_named_and_worked_around(liars: int, garbage: str) -> None:
    steps = Steps(Cohort(12, dropouts=2, colluding=2), WORDS.size).set_up()
    revealed_by(steps, liars, GARBAGE[garbage])
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(12) * WORDS)
    assert steps.coordinator.liars == set(range(liars))


@pytest.mark.parametrize(("parties", "dropouts", "colluding"), [(25, 4, 4), (16, 3, 3), (35, 5, 4)])
def test_as_many_may_lie_as_may_be_missing_in_every_cohort(
    parties: int, dropouts: int, colluding: int
) -> None:
    """The search for true shares once gave up at four liars of 25, although enough true ones were left."""
    steps = Steps(Cohort(parties, dropouts, colluding), WORDS.size).set_up()
    revealed_by(steps, dropouts, GARBAGE["random"])
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(parties) * WORDS)
    assert steps.coordinator.liars == set(range(dropouts))


def test_one_liar_more_closes_the_sum_and_all_liars_are_named() -> None:
    steps = Steps(Cohort(12, dropouts=2, colluding=2), WORDS.size).set_up()
    revealed_by(steps, 3, GARBAGE["random"])
    with pytest.raises(TooFewParties, match="The sum stays closed"):
        steps.coordinator.total()
    assert steps.coordinator.liars == {0, 1, 2}


def test_one_false_share_is_its_revealer_s_fault_and_not_its_dealer_s() -> None:
    steps = Steps(Cohort(8, dropouts=2), WORDS.size).set_up()
    held = steps.parties[5]._shares[0]
    held[3] = RoundKeys(bytes(SHARE_BYTES), bytes(SHARE_BYTES))
    revealed_by(steps, 0, GARBAGE["zeros"])
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(8) * WORDS)
    assert steps.coordinator.liars == {5}


def dealt_by(lie: Callable[[Dealing, int], Dealing]) -> Steps:
    """Four parties, of which the last deals by other polynomials than it proved."""
    steps = Steps(Cohort(4, dropouts=1), WORDS.size)
    liar = steps.parties[3]
    assert liar._dealing is not None
    liar._dealing = lie(liar._dealing, 3)
    return steps


def other_polynomials(dealing: Dealing, threshold: int) -> Dealing:
    return Dealing.draw([generate_key() for _ in dealing.keys], threshold)


def other_blinds(dealing: Dealing, threshold: int) -> Dealing:
    return dataclasses.replace(dealing, blinds=other_polynomials(dealing, threshold).blinds)


@pytest.mark.parametrize("lie", [other_polynomials, other_blinds])
def test_false_shares_are_refused_before_the_first_question_and_their_dealer_is_named(
    lie: Callable[[Dealing, int], Dealing],
) -> None:
    steps = dealt_by(lie)
    for number, inbox in steps.shared().items():
        if number == 3:
            continue
        with pytest.raises(LyingParty, match="party 3: the shares that it dealt contradict its proof"):
            steps.parties[number].receive(inbox)
        with pytest.raises(ProtocolError, match="session has not started"):
            steps.parties[number].mask(0, WORDS)


def advertised(party: MaskingParty) -> tuple[KeyBook, Proof]:
    return read_advertised(party._advertised, party._session, party._number)


def proofs_of_liars() -> dict[str, tuple[Steps, bytes]]:
    """Return what a party could advertise in place of its keys and their proof."""
    steps = Steps(Cohort(4, dropouts=1), WORDS.size)
    book, proof = advertised(steps.parties[3])
    dealing = steps.parties[3]._dealing
    assert dealing is not None
    point = bytes([2]) + bytes(KEY_BYTES - 1) + b"\x01"
    with pytest.raises(ProtocolError):
        check_public(point)
    stranger = public_half(generate_key())
    other = Dealing.draw([generate_key() for _ in dealing.keys], 3)
    more = dataclasses.replace(proof, combined=tuple((c[0] + 1, *c[1:]) for c in proof.combined))
    return {
        "no points": (steps, bytes(len(steps.parties[3]._advertised))),
        "not on the curve": (steps, book.to_bytes()[:-PUBLIC_BYTES] + point + proof.to_bytes()),
        "a key that it does not have": (steps, book.to_bytes()[:-PUBLIC_BYTES] + stranger + proof.to_bytes()),
        "shares of other keys": (
            steps,
            book.to_bytes() + other.proof(steps.session, 3, book.shared).to_bytes(),
        ),
        "another constant": (steps, book.to_bytes() + more.to_bytes()),
        "another party's": (steps, steps.parties[2]._advertised),
        "a number beyond the order": (steps, steps.parties[3]._advertised[:-KEY_BYTES] + ORDER.to_bytes(32)),
    }


@pytest.mark.parametrize("lie", proofs_of_liars())
def test_keys_without_a_proof_are_refused_when_they_are_advertised(lie: str) -> None:
    """By the coordinator, and by every party if the coordinator passes them on: nothing is charged by then."""
    steps, body = proofs_of_liars()[lie]
    message = seal(steps.identities[3], steps.session, Step.KEYS, 3, body)
    with pytest.raises(LyingParty, match="party 3"):
        steps.coordinator.accept(message)
    adverts = [party.advertise() for party in steps.parties[:3]]
    roster = seal(
        steps.coordinator_identity, steps.session, Step.ROSTER, COORDINATOR, b"".join([*adverts, message])
    )
    with pytest.raises(LyingParty, match="party 3"):
        steps.parties[0].share(roster)


def test_a_polynomial_of_higher_degree_is_found() -> None:
    """A dealer whose shares any T parties would open to something else: honest receivers refuse them."""
    steps = Steps(Cohort(4, dropouts=1), WORDS.size)
    keys = KeyBook.generate(1)
    steep = Dealing.draw(keys.shared, 4)  # four shares open it, not three
    public = keys.public()
    full = steep.proof(steps.session, 3, public.shared)
    cut = dataclasses.replace(full, combined=tuple(part[:3] for part in full.combined))
    body = public.to_bytes() + cut.to_bytes()
    _, proof = read_advertised(body, steps.session, 3)  # the constants fit
    shares = shares_in(steep.shares_of(0))
    assert not any(proof.confirms(0, place, share) for place, share in enumerate(shares))


def test_a_committed_share_off_the_polynomial_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dealer and receiver lie together: the hash fits, the combination does not."""
    steps = Steps(Cohort(4, dropouts=1), WORDS.size)
    keys = KeyBook.generate(1)
    dealing, public = Dealing.draw(keys.shared, 3), keys.public()
    honest = Dealing.shares_of

    def shares_of(self: Dealing, receiver: int) -> bytes:
        shares = honest(self, receiver)
        return shares if receiver != 1 else (1).to_bytes(KEY_BYTES) + shares[KEY_BYTES:]

    monkeypatch.setattr(Dealing, "shares_of", shares_of)
    body = public.to_bytes() + dealing.proof(steps.session, 3, public.shared).to_bytes()
    false = shares_in(dealing.shares_of(1))[0]
    _, proof = read_advertised(body, steps.session, 3)
    assert not proof.confirms(1, 0, false)
    assert proof.confirms(0, 0, shares_in(dealing.shares_of(0))[0])


def test_every_proven_share_is_confirmed_and_no_bit_of_it_may_change() -> None:
    steps = Steps(Cohort(4, dropouts=1), WORDS.size, rounds=2)
    _, proof = advertised(steps.parties[2])
    dealing = steps.parties[2]._dealing
    assert dealing is not None
    for receiver in range(4):
        for place, share in enumerate(shares_in(dealing.shares_of(receiver))):
            assert proof.confirms(receiver, place, share)
            assert not proof.confirms(receiver, (place + 1) % 4, share)
            assert not proof.confirms((receiver + 1) % 4, place, share)
            for bit in (0, 255, 511):
                changed = (int.from_bytes(share) ^ 1 << bit).to_bytes(SHARE_BYTES)
                assert not proof.confirms(receiver, place, changed)


def test_the_combination_hides_the_key() -> None:
    """The proof's polynomial is the key's only under a blind that nobody else knows."""
    key = generate_key()
    steps = Steps(Cohort(4, dropouts=1), 1)
    seen = set()
    for _ in range(20):
        dealing = Dealing.draw([key, generate_key()], 3)
        proof = dealing.proof(steps.session, 0, [public_half(key), public_half(key)])
        seen |= set(proof.combined[0])
        assert value_at(proof.combined[0], 0) != int.from_bytes(key)
    assert len(seen) == 60


def test_sums_of_points_are_those_of_their_keys() -> None:
    for _ in range(20):
        terms = [(secrets.randbelow(ORDER), secrets.randbelow(ORDER - 1) + 1) for _ in range(5)]
        total = sum(weight * key for weight, key in terms) % ORDER
        points = [(weight, public_half(key.to_bytes(KEY_BYTES))) for weight, key in terms]
        assert weighted_sum(points) == public_half(total.to_bytes(KEY_BYTES))
    three, five = (public_half(number.to_bytes(KEY_BYTES)) for number in (3, 5))
    assert weighted_sum([(5, three), (3, five)]) == public_half((30).to_bytes(KEY_BYTES))
    assert weighted_sum([(5, three), (ORDER - 3, five)]) is None
    assert weighted_sum([]) is None


def test_a_run_goes_on_without_the_liar_who_is_named_and_not_asked_any_more() -> None:
    wire = Wire(agreement_of(dropouts=1, colluding=0))
    questions, asked = len(wire.agreement.mechanism.kinds), []

    def lie(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if name == "west":
            asked.append(stage)
        if (stage, name) != (Stage.SURVIVORS, "west") or isinstance(reply, str):
            return reply
        header = reply[0][: ENVELOPE_BYTES - 64]
        content = (
            header + bytes(len(reply[0]) - ENVELOPE_BYTES - LIST_BYTES) + reply[0][-64 - LIST_BYTES : -64]
        )
        return [content + IDENTITIES["west"].key.sign(content)]

    wire.tamper = lie
    release = wire.coordinator.train()
    assert release.run is not None
    assert release.run.sums == (tuple(SIZES), *[("north", "south")] * (questions - 1))
    assert asked.count(Stage.QUESTION) == 1
    assert wire.parties["west"]._budget.answered == {0}
    assert any("west revealed false shares (question 1)" in line for line in wire.told)
    assert not any("north revealed" in line or "south revealed" in line for line in wire.told)


def test_a_lying_dealer_costs_nobody_anything_and_is_named() -> None:
    """Today's run ends at the inbox; it used to end at the first sum, when everybody had paid."""
    wire = Wire(agreement_of(dropouts=1, colluding=0))
    exchange = wire.exchange

    def deal_falsely(stage, parts):  # type: ignore[no-untyped-def]
        if stage is Stage.ROSTER:
            for party in wire.parties["west"]._sums:
                assert party._dealing is not None
                party._dealing = other_polynomials(party._dealing, party._session.cohort.threshold)
        return exchange(stage, parts)

    wire.coordinator._exchange = deal_falsely
    with pytest.raises(TooFewParties, match="The run ends before the first question"):
        wire.coordinator.train()
    assert any("west: the shares that it dealt contradict its proof" in line for line in wire.told)
    assert not any(party._budget.answered for party in wire.parties.values())


def test_an_unusable_key_costs_nobody_anything_and_its_owner_is_named() -> None:
    wire = Wire(agreement_of(dropouts=1, colluding=0))

    def lie(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if (stage, name) != (Stage.KEYS, "west") or isinstance(reply, str):
            return reply
        sessions = wire.parties["west"]._sessions
        return [
            seal(
                IDENTITIES["west"].key,
                session,
                Step.KEYS,
                2,
                bytes(len(from_party(part, session, Step.KEYS).body)),
            )
            for session, part in zip(sessions, reply, strict=True)
        ]

    wire.tamper = lie
    with pytest.raises(TooFewParties):
        wire.coordinator.train()
    assert any(
        "west is left out of this step: a party advertised an unusable key" in line for line in wire.told
    )
    assert not any(party._budget.answered for party in wire.parties.values())
