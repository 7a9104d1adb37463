"""Garbage, replays, strangers and coordinators that ask too much: refused with a reason, and the rest go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from privlearn.errors import DataError, InvalidParameter, PrivlearnError, ProtocolError, TooFewParties
from privlearn.parties import Cohort
from privlearn.parties.secure_sum import (
    COORDINATOR,
    ENVELOPE_BYTES,
    SHARE_BYTES,
    KeyBook,
    MaskingCoordinator,
    MaskingParty,
    Step,
    SumSession,
    advertised_size,
    from_coordinator,
    from_party,
    seal,
)
from privlearn.parties.secure_sum.party import NUMBER, list_digest
from tests.support.masking_steps import Steps

COHORT = Cohort(4, dropouts=1)
WORDS = np.array([3, 2**63], dtype=np.uint64)


def _steps(rounds: int = 1, context: bytes = b"") -> Steps:
    return Steps(COHORT, WORDS.size, rounds, context)


def _ask(steps: Steps, step: Step, body: bytes, round: int = 0) -> bytes:
    """Return a message that a coordinator with its own key could send."""
    return seal(steps.coordinator_identity, steps.session, step, COORDINATOR, body, round)


def _numbers(*numbers: int) -> bytes:
    return b"".join(map(NUMBER.pack, numbers))


READY = _steps().set_up()
GOOD = READY.parties[0].mask(0, WORDS)


@given(st.binary(max_size=400))
def test_random_bytes_are_refused_by_everyone(garbage: bytes) -> None:
    fresh = _steps()
    for take in (READY.coordinator.accept, fresh.parties[0].share, READY.parties[1].reveal):
        with pytest.raises(ProtocolError):
            take(garbage)


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_message_changed_in_any_byte_is_refused(place: int, change: int) -> None:
    changed = bytearray(GOOD)
    changed[place] ^= change
    with pytest.raises(ProtocolError):
        READY.coordinator.accept(bytes(changed))


WRONG: dict[str, tuple[Callable[[Steps], bytes], str]] = {
    "empty": (lambda steps: b"", "too short"),
    "another version": (lambda steps: b"PLS9" + GOOD[4:], "another version"),
    "another run": (lambda steps: _steps(context=b"another").parties[0].advertise(), "another session"),
    "another step": (lambda steps: steps.parties[0].advertise(), "not belong to the current step"),
    "a round ahead": (lambda steps: steps.parties[0].mask(1, WORDS), "for round 1, this is round 0"),
    "a stranger's key": (
        lambda steps: seal(Ed25519PrivateKey.generate(), steps.session, Step.MASKED, 0, bytes(16)),
        "signature is not valid",
    ),
    "another party's name": (
        lambda steps: seal(steps.identities[1], steps.session, Step.MASKED, 0, bytes(16)),
        "signature is not valid",
    ),
    "an unknown number": (
        lambda steps: seal(steps.identities[0], steps.session, Step.MASKED, 9, bytes(16)),
        "not in the session",
    ),
    "the coordinator": (lambda steps: _ask(steps, Step.MASKED, bytes(16)), "not come from a party"),
    "wrong shape": (
        lambda steps: seal(steps.identities[0], steps.session, Step.MASKED, 0, bytes(24)),
        "wrong size",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_message_is_refused_and_the_rest_go_on(name: str) -> None:
    steps = _steps(rounds=2).set_up()
    make, reason = WRONG[name]
    with pytest.raises(ProtocolError, match=reason):
        steps.coordinator.accept(make(steps))
    _run_round(steps, [1, 2, 3])


def _run_round(steps: Steps, numbers: list[int]) -> None:
    for number in numbers:
        steps.coordinator.accept(steps.parties[number].mask(0, WORDS))
    survivors = steps.coordinator.survivors()
    for number in numbers:
        steps.coordinator.accept(steps.parties[number].reveal(survivors))
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(len(numbers)) * WORDS)


def test_a_replay_is_refused() -> None:
    steps = _steps().set_up()
    message = steps.parties[0].mask(0, WORDS)
    steps.coordinator.accept(message)
    with pytest.raises(ProtocolError, match="party 0 has answered this step already"):
        steps.coordinator.accept(message)
    with pytest.raises(ProtocolError, match="round 0 is over"):
        steps.parties[0].mask(0, WORDS)


@pytest.mark.parametrize("step", ["advertise", "share"])
def test_the_coordinator_cannot_set_up_without_everybody(step: str) -> None:
    steps = _steps()
    absent = steps.parties.pop(3)
    if step == "share":
        steps.coordinator.accept(absent.advertise())
    with pytest.raises(TooFewParties, match="3 parties answered; 4 are needed"):
        steps.set_up()
    with pytest.raises(ProtocolError, match="session has not started"):
        absent.mask(0, WORDS)


def test_a_party_gives_no_shares_for_a_roster_without_everybody() -> None:
    steps = _steps()
    keys = [party.advertise() for party in steps.parties]
    for incomplete in (keys[:3], [*keys[:3], keys[0]]):
        with pytest.raises(TooFewParties, match="only 3 parties advertised keys; 4 are needed"):
            steps.parties[0].share(_ask(steps, Step.ROSTER, b"".join(incomplete)))


def test_a_party_takes_no_inbox_without_everybody_s_shares() -> None:
    steps = _steps()
    inbox = from_coordinator(steps.shared()[0], steps.session, Step.INBOX).body
    size = len(inbox) // 3
    for incomplete in (inbox[size:], inbox[:-size], b""):
        with pytest.raises(TooFewParties, match="sent shares; 4"):
            steps.parties[0].receive(_ask(steps, Step.INBOX, incomplete))
    with pytest.raises(ProtocolError, match="session has not started"):
        steps.parties[0].mask(0, WORDS)
    steps.parties[0].receive(_ask(steps, Step.INBOX, inbox))


def test_one_party_s_false_shares_are_found_and_left_out() -> None:
    steps = _steps().set_up()
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, WORDS))
    survivors = steps.coordinator.survivors()
    body = b"\x00" * 4 * SHARE_BYTES + list_digest(_numbers(0, 1, 2, 3))
    garbage = seal(steps.identities[0], steps.session, Step.REVEALED, 0, body)
    for message in (garbage, *(party.reveal(survivors) for party in steps.parties[1:])):
        steps.coordinator.accept(message)
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(4) * WORDS)


@pytest.mark.parametrize("garbage", [b"\x00", b"\xff"], ids=["a wrong number", "no number"])
def test_false_shares_beyond_the_plan_open_nothing(garbage: bytes) -> None:
    steps = _steps().set_up()
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, WORDS))
    survivors = steps.coordinator.survivors()
    body = garbage * 4 * SHARE_BYTES + list_digest(_numbers(0, 1, 2, 3))
    for number, party in enumerate(steps.parties):
        false = seal(steps.identities[number], steps.session, Step.REVEALED, number, body)
        steps.coordinator.accept(false if number < 2 else party.reveal(survivors))
    with pytest.raises(ProtocolError, match="The sum stays closed"):
        steps.coordinator.total()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (_numbers(0, 1), "only 2 parties sent a vector; 3 are needed"),
        (_numbers(0, 0, 1, 2), "malformed"),
        (_numbers(2, 1, 0), "malformed"),
        (_numbers(0, 1, 2, 7), "not in this session"),
        (_numbers(0, 1, 2) + b"\x00", "malformed"),
        (b"", "only 0 parties"),
    ],
    ids=["too few", "twice", "shuffled", "stranger", "half a number", "nobody"],
)
def test_a_party_reveals_nothing_for_a_list_that_is_not_in_order(body: bytes, reason: str) -> None:
    party = READY.parties[2]
    with pytest.raises(ProtocolError, match=reason):
        party.reveal(_ask(READY, Step.SURVIVORS, body))


def test_a_party_answers_a_round_once_and_never_gives_both_shares() -> None:
    steps = _steps(rounds=2).set_up()
    party = steps.parties[1]
    pair, own = zip(*(party._shares[0][number] for number in range(4)), strict=True)
    answer = party.reveal(_ask(steps, Step.SURVIVORS, _numbers(0, 1, 2)))
    body = from_party(answer, steps.session, Step.REVEALED).body
    assert body == b"".join([*own[:3], pair[3]]) + list_digest(_numbers(0, 1, 2))
    for numbers in ((0, 1, 2), (0, 1, 2, 3)):
        with pytest.raises(ProtocolError, match="round 0 was answered already"):
            party.reveal(_ask(steps, Step.SURVIVORS, _numbers(*numbers)))
    with pytest.raises(ProtocolError, match="round 0 is over"):
        party.mask(0, WORDS)
    with pytest.raises(ProtocolError, match="round 2 was answered already, or does not exist"):
        party.reveal(_ask(steps, Step.SURVIVORS, _numbers(0, 1, 2), round=2))


def test_a_round_that_was_passed_over_is_closed_for_good() -> None:
    steps = _steps(rounds=3).set_up()
    party = steps.parties[0]
    party.mask(1, WORDS)
    with pytest.raises(ProtocolError, match="round 0 is over"):
        party.mask(0, WORDS)
    with pytest.raises(ProtocolError, match="round 0 was answered"):
        party.reveal(_ask(steps, Step.SURVIVORS, _numbers(0, 1, 2), round=0))


def test_a_party_takes_orders_from_the_coordinator_only() -> None:
    steps = _steps().set_up()
    forged = seal(steps.identities[1], steps.session, Step.SURVIVORS, 1, _numbers(0, 1, 2))
    with pytest.raises(ProtocolError, match="not come from the coordinator"):
        steps.parties[0].reveal(forged)


def test_the_coordinator_cannot_take_a_party_s_place() -> None:
    """Not with keys of its own, not under a party's name, not by leaving the party out."""
    steps = _steps()
    adverts = [party.advertise() for party in steps.parties]
    own_keys = steps.parties[3]._advertised
    own = _ask(steps, Step.KEYS, own_keys)
    as_party = seal(steps.coordinator_identity, steps.session, Step.KEYS, 3, own_keys)
    for adverts_shown, reason in (
        ([*adverts[:3], own], "not come from a party"),
        ([*adverts[:3], as_party], "signature is not valid"),
        (adverts[1:], "does not contain this party's own keys"),
        (adverts[:2], "only 2 parties advertised keys"),
        ([*adverts, b"more"], "too short"),
    ):
        with pytest.raises(ProtocolError, match=reason):
            steps.parties[0].share(_ask(steps, Step.ROSTER, b"".join(adverts_shown)))
    steps.parties[0].share(_ask(steps, Step.ROSTER, b"".join(adverts)))
    with pytest.raises(ProtocolError, match="already sent"):
        steps.parties[0].share(_ask(steps, Step.ROSTER, b"".join(adverts)))


def test_shares_that_were_touched_on_their_way_are_refused() -> None:
    steps = _steps()
    inboxes = steps.shared()
    body = bytearray(inboxes[0][ENVELOPE_BYTES - 64 : -64])
    size = len(body) // 3
    first, second = bytes(body[:size]), bytes(body[size : 2 * size])
    swapped = first[:2] + second[2:] + second[:2] + first[2:]
    body[5] ^= 1
    for content, reason in (
        (bytes(body), "shares of party 1 were changed"),
        (swapped + bytes(body[2 * size :]), "shares of party 1 were changed"),
        (bytes(body[:-1]), "malformed"),
        (first + first + second, "malformed"),
        (_numbers(0) + first[2:] + second, "malformed"),
        (first, "only 2 parties sent shares"),
    ):
        with pytest.raises(ProtocolError, match=reason):
            steps.parties[0].receive(_ask(steps, Step.INBOX, content))
    steps.parties[0].receive(inboxes[0])
    with pytest.raises(ProtocolError, match="arrive once"):
        steps.parties[0].receive(inboxes[0])


def test_a_key_whose_products_everybody_knows_is_refused() -> None:
    steps = _steps()
    weak = seal(steps.identities[1], steps.session, Step.KEYS, 1, bytes(advertised_size(steps.session)))
    adverts = [weak, *(steps.parties[number].advertise() for number in (0, 2, 3))]
    with pytest.raises(ProtocolError, match="unusable key"):
        steps.parties[0].share(_ask(steps, Step.ROSTER, b"".join(adverts)))


def test_steps_out_of_order_are_refused() -> None:
    steps = _steps()
    with pytest.raises(TooFewParties):
        steps.coordinator.roster()
    for early in (steps.coordinator.inboxes, steps.coordinator.survivors, steps.coordinator.total):
        with pytest.raises(ProtocolError, match="KEYS are due"):
            early()


@pytest.mark.parametrize(
    "words", [WORDS[:1], WORDS.astype(np.int64), WORDS.reshape(1, 2)], ids=lambda w: w.dtype.name
)
def test_only_words_of_the_agreed_shape_are_masked(words: np.ndarray) -> None:
    steps = _steps().set_up()
    with pytest.raises(DataError, match="2 words of 64 bits"):
        steps.parties[0].mask(0, words)
    steps.parties[0].mask(0, WORDS)


def test_identities_must_be_those_of_the_plan() -> None:
    steps = _steps()
    with pytest.raises(InvalidParameter, match="party 1"):
        MaskingParty(steps.session, 1, steps.identities[0])
    with pytest.raises(InvalidParameter, match="coordinator"):
        MaskingCoordinator(steps.session, steps.identities[0])
    keys = steps.session.identities
    for identities in (
        keys[:3],
        (*keys[:3], keys[0]),
        (*keys[:3], steps.session.coordinator),
        (*keys[:3], b"short"),
    ):
        with pytest.raises(InvalidParameter, match="identity keys"):
            SumSession(COHORT, 2, 1, identities, steps.session.coordinator)


def test_every_fact_of_the_session_is_in_its_digest() -> None:
    steps = _steps()
    facts: tuple[Any, ...] = (COHORT, 2, 1, steps.session.identities, steps.session.coordinator, b"")
    others: tuple[Any, ...] = (
        Cohort(4, dropouts=0),
        3,
        2,
        steps.session.identities[::-1],
        bytes(32),
        b"plan",
    )
    variants = [(*facts[:place], other, *facts[place + 1 :]) for place, other in enumerate(others)]
    assert len({SumSession(*variant).digest for variant in [facts, *variants]}) == 7


def test_nothing_secret_is_printed() -> None:
    book = KeyBook.generate(1)
    for shown in (repr(book), repr(READY.parties[0]), str(READY.coordinator)):
        assert not any(key.hex() in shown or str(key) in shown for key in (book.box, *book.rounds[0]))
    assert issubclass(ProtocolError, PrivlearnError)
