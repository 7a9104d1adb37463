"""False shares: the sum is opened without them, and those who surely lied are named; nobody else is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from privlearn.errors import ProtocolError
from privlearn.multiparty.run.conversation import Parts, Stage
from privlearn.multiparty.secure_sum.masks import SHARE_BYTES, share_at, split
from privlearn.multiparty.secure_sum.opening import blame, open_secrets
from privlearn.multiparty.secure_sum.session import ENVELOPE_BYTES, Cohort, RoundKeys, Step, public_half, seal
from tests.support.masking_steps import Steps
from tests.support.run_cases import IDENTITIES, SIZES, Wire, plan_of

EIGHT = Cohort(8, dropouts=2, colluding=1)
WORDS = np.array([3, 2**63], dtype=np.uint64)


def masked_by_all(steps: Steps) -> bytes:
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, WORDS))
    return steps.coordinator.survivors()


@pytest.mark.parametrize("liars", [(0,), (11,), (0, 1), (2, 11), (10, 11)])
def test_parties_that_reveal_garbage_are_named_and_worked_around(liars: tuple[int, ...]) -> None:
    steps = Steps(Cohort(12, dropouts=2, colluding=2), WORDS.size).set_up()
    survivors = masked_by_all(steps)
    for number, party in enumerate(steps.parties):
        told = party.reveal(survivors)
        if number in liars:
            told = seal(
                steps.identities[number], steps.session, Step.REVEALED, number, bytes(12 * SHARE_BYTES)
            )
        steps.coordinator.accept(told)
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(12) * WORDS)
    assert steps.coordinator.blame.liars == set(liars)
    assert not steps.coordinator.blame.pairs


def with_false_boxes(dealer: int, receivers: tuple[int, ...]) -> Steps:
    """A dealer whose boxes for these receivers hold shares of nothing, in good order otherwise."""
    steps = Steps(EIGHT, WORDS.size).set_up()
    for receiver in receivers:
        held = steps.parties[receiver]._shares[0]
        held[dealer] = RoundKeys(b"\x00" * SHARE_BYTES, b"\x00" * SHARE_BYTES)
    survivors = masked_by_all(steps)
    for party in steps.parties:
        steps.coordinator.accept(party.reveal(survivors))
    return steps


def test_of_one_false_share_nobody_can_say_who_made_it() -> None:
    """Dealt so by the owner, or revealed so by the receiver: the messages would be the same."""
    steps = with_false_boxes(dealer=3, receivers=(0,))
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(8) * WORDS)
    assert not steps.coordinator.blame.liars
    assert steps.coordinator.blame.pairs == {(0, 3)}


def test_an_owner_that_dealt_false_shares_to_several_is_named_and_they_are_not() -> None:
    steps = with_false_boxes(dealer=3, receivers=(0, 5))
    np.testing.assert_array_equal(steps.coordinator.total(), np.uint64(8) * WORDS)
    assert steps.coordinator.blame.liars == {3}
    assert not steps.coordinator.blame.pairs


def test_a_false_share_of_one_s_own_key_is_one_s_own_fault() -> None:
    assert blame(frozenset({(4, 4)}), colluding=3).liars == {4}


def test_honest_parties_are_never_blamed() -> None:
    """Whatever up to C liars do, as owners and as revealers: every disagreement has a liar in it."""
    for liars in combinations(range(5), 2):
        disputes = [(a, b) for a in range(5) for b in range(5) if (a in liars or b in liars) and a != b]
        for count in range(5):
            for false in combinations(disputes, count):
                found = blame(frozenset(false), colluding=2)
                assert found.liars <= set(liars)
                assert all(set(pair) & set(liars) for pair in found.pairs)


def test_beyond_the_threshold_nothing_is_opened_and_nobody_blamed() -> None:
    secret = bytes(range(32))
    shares = split(secret, 3, range(1, 5))
    answers = {point - 1: share for point, share in shares.items()} | {
        0: bytes(SHARE_BYTES),
        1: bytes(SHARE_BYTES),
    }
    with pytest.raises(ProtocolError, match="too few shares are left to tell which"):
        open_secrets(answers, {0: public_half(secret)}, 3)
    with pytest.raises(ProtocolError, match="the round is lost"):
        open_secrets({0: shares[1], 1: shares[2]}, {0: public_half(secret)}, 3)


def test_a_share_at_another_point() -> None:
    shares = split(bytes(range(32)), 3, range(1, 6))
    assert share_at({point: shares[point] for point in (1, 3, 5)}, 2) == shares[2]


def test_a_run_goes_on_without_the_liar_who_is_named_and_not_asked_any_more() -> None:
    wire = Wire(plan_of(dropouts=1, colluding=0))
    questions, asked = len(wire.plan.mechanism.kinds), []

    def lie(stage: Stage, name: str, reply: Parts | str) -> Parts | str:
        if name == "west":
            asked.append(stage)
        if (stage, name) != (Stage.SURVIVORS, "west") or isinstance(reply, str):
            return reply
        header = reply[0][: ENVELOPE_BYTES - 64]
        content = header + bytes(len(reply[0]) - ENVELOPE_BYTES)
        return [content + IDENTITIES["west"].key.sign(content)]

    wire.tamper = lie
    release = wire.coordinator.train()
    assert release.run is not None
    assert release.run.sums == (tuple(SIZES), *[("north", "south")] * (questions - 1))
    assert asked.count(Stage.QUESTION) == 1
    assert wire.parties["west"]._purse.asked == {0}
    assert any("west gave false shares (question 1)" in line for line in wire.told)
    assert not any("north gave" in line or "south gave" in line for line in wire.told)
