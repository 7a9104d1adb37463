"""What the coordinator sees, alone and with the keys of colluding parties: no single party's vector."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp

from privlearn.errors import ProtocolError
from privlearn.parties import Cohort, FixedPoint
from privlearn.parties.secure_sum import (
    COORDINATOR,
    ENVELOPE_BYTES,
    QUESTION_DIGEST_BYTES,
    SHARE_BYTES,
    RoundKeys,
    Step,
    Words,
    pair_masks,
    public_half,
    recover,
    seal,
    self_mask,
)
from privlearn.parties.secure_sum.party import NUMBER
from tests.support.masking_steps import Steps
from tests.support.secure_sum import SecureSum

DIMENSION = 4096
ENCODING = FixedPoint(bound=8.0, step=2.0**-30, parties=6)
INPUTS = {
    "zeros": np.zeros(DIMENSION),
    "ramp": np.linspace(-8.0, 8.0, DIMENSION),
    "constant": np.full(DIMENSION, 7.25),
}
BY_INPUT = pytest.mark.parametrize("vector", INPUTS.values(), ids=INPUTS.keys())


def _uniform(content: bytes) -> bool:
    """Bytes, and the low bits that a value of few digits would leave empty, look as if drawn uniformly."""
    words = np.frombuffer(content, "<u8")
    columns = words.view(np.uint8).reshape(-1, 8)
    counts = [np.bincount(columns[:, place], minlength=256) for place in range(8)]
    steps = np.bincount(np.diff(words).view(np.uint8), minlength=256)
    return all(chisquare(count).pvalue > 1e-10 for count in [*counts, steps])


def _body(message: bytes) -> bytes:
    return message[ENVELOPE_BYTES - 64 : -64]


def _vector(message: bytes) -> Words:
    return np.frombuffer(_body(message)[:-QUESTION_DIGEST_BYTES], "<u8").astype(np.uint64)


class Recorded:
    """A round whose coordinator keeps everything, with the keys of all parties as they were before it."""

    def __init__(self, cohort: Cohort, vector: np.ndarray, absent: tuple[int, ...] = ()) -> None:
        self.steps = steps = Steps(cohort, DIMENSION).set_up()
        self.keys: list[RoundKeys] = [party._unused[0] for party in steps.parties]
        self.masked = {
            number: party.mask(0, ENCODING.encode(vector))
            for number, party in enumerate(steps.parties)
            if number not in absent
        }
        for message in self.masked.values():
            steps.coordinator.accept(message)
        survivors = steps.coordinator.survivors()
        self.answers = {number: steps.parties[number].reveal(survivors) for number in self.masked}
        for answer in self.answers.values():
            steps.coordinator.accept(answer)
        self.total = steps.coordinator.total()

    def opened(self, target: int, helpers: range) -> np.ndarray:
        """Return the target's masked vector without its own opened mask, and its masks with the helpers."""
        threshold = self.steps.session.cohort.threshold
        part = slice(target * SHARE_BYTES, (target + 1) * SHARE_BYTES)
        answers = list(self.answers.items())[:threshold]
        own = recover({number + 1: _body(answer)[part] for number, answer in answers})
        remainder = _vector(self.masked[target]) - self_mask(own, self.steps.session, 0, target)
        public = public_half(self.keys[target].pair)
        for helper in helpers:
            remainder = remainder + pair_masks(
                self.keys[helper].pair, {target: public}, self.steps.session, 0, helper
            )
        return remainder


def test_an_encoded_vector_is_not_uniform() -> None:
    """The test would notice a vector that was not masked, or by a constant."""
    for vector in INPUTS.values():
        assert not _uniform(ENCODING.encode(vector).tobytes())
        assert not _uniform((ENCODING.encode(vector) + np.uint64(0x9E3779B97F4A7C15)).tobytes())


@BY_INPUT
def test_a_masked_vector_is_uniform_whatever_is_in_it(vector: np.ndarray) -> None:
    recorded = Recorded(Cohort(3), vector)
    for message in recorded.masked.values():
        assert _uniform(_vector(message).tobytes())
    np.testing.assert_array_equal(recorded.total, np.uint64(3) * ENCODING.encode(vector))


def test_no_message_of_a_whole_session_holds_a_party_s_vector() -> None:
    seen: list[bytes] = []
    words = {n: ENCODING.encode(vector) for n, vector in enumerate(INPUTS.values())}
    summation = SecureSum(Cohort(3), DIMENSION, observer=seen.append)
    summation.total(words)
    everything = b"".join(seen)
    for word in {*words[1].tolist(), *words[2].tolist()}:
        assert word.to_bytes(8, "little") not in everything


@BY_INPUT
def test_coordinator_and_colluding_parties_still_see_uniform_words(vector: np.ndarray) -> None:
    """They subtract every mask they know; what is left of an honest party's vector is masked by another honest one."""
    recorded = Recorded(Cohort(6, dropouts=1, colluding=3), vector)
    for target in (3, 4, 5):
        assert _uniform(recorded.opened(target, helpers=range(3)).tobytes())


def test_what_they_see_does_not_depend_on_the_vector() -> None:
    """The same for two vectors that are as far apart as the encoding allows."""
    one, other = (
        Recorded(Cohort(6, dropouts=1, colluding=3), np.full(DIMENSION, value)).opened(5, helpers=range(3))
        for value in (-8.0, 8.0)
    )
    assert ks_2samp(one, other).pvalue > 1e-9


@BY_INPUT
def test_with_everybody_else_s_keys_the_vector_falls_out(vector: np.ndarray) -> None:
    """The control: the same arithmetic with all other keys opens it, so above it failed for want of a key."""
    recorded = Recorded(Cohort(6, dropouts=1, colluding=3), vector)
    np.testing.assert_array_equal(recorded.opened(5, helpers=range(5)), ENCODING.encode(vector))


def test_what_colluding_parties_hold_of_a_missing_party_opens_no_key() -> None:
    steps = Steps(Cohort(6, dropouts=1, colluding=3), DIMENSION).set_up()
    target = steps.parties[5]._unused[0]
    held = {number + 1: steps.parties[number]._shares[0][5] for number in range(3)}
    for kind, secret in enumerate(target):
        shares = {point: pair[kind] for point, pair in held.items()}
        assert recover(shares) != secret


def test_a_vector_that_comes_late_stays_closed() -> None:
    """Its pair key was opened because it was missing; its own mask then never is."""
    recorded = Recorded(Cohort(6, dropouts=1, colluding=0), INPUTS["ramp"], absent=(5,))
    steps, session = recorded.steps, recorded.steps.session
    late = steps.parties[5].mask(0, ENCODING.encode(INPUTS["ramp"]))
    with pytest.raises(ProtocolError, match="this is round 1"):
        steps.coordinator.accept(late)
    others = {number: public_half(keys.pair) for number, keys in enumerate(recorded.keys) if number != 5}
    known = pair_masks(recorded.keys[5].pair, others, session, 0, 5)
    assert _uniform((_vector(late) - known).tobytes())
    full_list = b"".join(NUMBER.pack(number) for number in range(6))
    again = seal(steps.coordinator_identity, session, Step.SURVIVORS, COORDINATOR, full_list)
    for party in steps.parties[:5]:
        with pytest.raises(ProtocolError, match="was answered already"):
            party.reveal(again)


def test_earlier_rounds_stay_closed_when_a_party_drops_out_later() -> None:
    """Round 0 opened the party's own mask, round 1 its pair key; the keys of the two rounds have nothing in common."""
    steps = Steps(Cohort(4, dropouts=1), DIMENSION, rounds=2).set_up()
    first, second = (steps.parties[0]._unused[round] for round in (0, 1))
    assert len({*first, *second}) == 4
    for party in steps.parties:
        steps.coordinator.accept(party.mask(0, steps.zeros()))
    survivors = steps.coordinator.survivors()
    for party in steps.parties:
        steps.coordinator.accept(party.reveal(survivors))
        assert 0 not in party._unused
        assert 0 not in party._shares
