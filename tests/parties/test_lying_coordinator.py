"""What a coordinator opens that tells different parties different things, with up to C parties helping it.

First a model in which every way to lie is counted, then the real parties' code: both agree on what is opened, and
`Cohort` refuses exactly the cohorts in which that is more than one sum, or a sum over too few honest parties.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privlearn.errors import InvalidParameter, TooFewParties
from privlearn.parties import Cohort
from privlearn.parties.run import Stage
from privlearn.parties.secure_sum import (
    COORDINATOR,
    QUESTION_DIGEST_BYTES,
    SHARE_BYTES,
    Step,
    from_coordinator,
    from_party,
    pair_masks,
    recover,
    seal,
    self_mask,
)
from privlearn.parties.secure_sum.party import NUMBER, box_size
from tests.support.masking_steps import Steps
from tests.support.run_cases import IDENTITIES, Wire, agreement_of

Counts = tuple[int, ...]
"""For each honest party, how many of the honest parties are told that it is missing."""


# ---- the model


def all_counts(honest: int, dropouts: int) -> Iterator[Counts]:
    """Yield every way to lie, up to the names of the parties: each honest one misses at most ``dropouts``."""

    def smaller(most: int, left: int, question_rounds: int) -> Iterator[Counts]:
        if not question_rounds:
            yield ()
            return
        for first in range(min(most, left), -1, -1):
            for rest in smaller(first, left - first, question_rounds - 1):
                yield (first, *rest)

    return smaller(honest, honest * dropouts, honest)


def opened_sums(counts: Counts, dropouts: int) -> list[set[int]]:
    """Return the smallest sets of honest parties whose sum of vectors is opened.

    Every helper adds a share to both secrets of everybody, so the honest must give K - dropouts - helpers shares,
    which is their number less ``dropouts``.
    """
    honest, needed = len(counts), len(counts) - dropouts
    pair = {party for party in range(honest) if counts[party] >= needed}
    own = {party for party in range(honest) if honest - counts[party] >= needed}
    rest = set(range(honest)) - pair  # they share masks that nobody can open
    alone = [{party} for party in pair & own]
    return [*alone, rest] if rest and rest <= own else alone


def is_too_much(sums: Sequence[Collection[int]], honest: int, dropouts: int) -> bool:
    return len(sums) > 1 or any(len(each) < honest - dropouts for each in sums)


def can_be_attacked(parties: int, dropouts: int, colluding: int) -> bool:
    if parties - dropouts <= colluding:
        return True  # the helpers' shares open every secret
    return any(
        is_too_much(opened_sums(counts, dropouts), honest, dropouts)
        for honest in range(parties - colluding, parties + 1)
        for counts in all_counts(honest, dropouts)
    )


def stories(counts: Counts) -> list[set[int]]:
    """Whom each honest party is told to be missing, so that the counts come out."""
    told: list[set[int]] = [set() for _ in counts]
    whom = [party for party, count in enumerate(counts) for _ in range(count)]
    for place, party in enumerate(whom):
        told[place % len(told)].add(party)
    return told


@pytest.mark.parametrize(
    ("honest", "dropouts"), [(2, 1), (3, 1), (4, 1), (5, 1), (3, 2), (4, 2), (5, 2), (5, 3)]
)
def test_the_counts_are_all_that_lists_of_survivors_can_do(honest: int, dropouts: int) -> None:
    lists = [
        set(missing)
        for size in range(dropouts + 1)
        for missing in itertools.combinations(range(honest), size)
    ]
    reached: set[Counts] = {(0,) * honest}
    for _ in range(honest):
        reached = {
            tuple(sorted((count + (party in missing) for party, count in enumerate(counts)), reverse=True))
            for counts in reached
            for missing in lists
        }
    assert reached == set(all_counts(honest, dropouts))
    for counts in reached:
        told = stories(counts)
        assert max(map(len, told)) <= dropouts
        assert counts == tuple(sum(party in missing for missing in told) for party in range(honest))


@pytest.mark.parametrize("parties", range(2, 13))
def test_exactly_the_cohorts_that_can_be_attacked_are_refused(parties: int) -> None:
    for dropouts, colluding in itertools.product(range(parties + 1), repeat=2):
        try:
            Cohort(parties, dropouts, colluding)
            accepted = True
        except InvalidParameter:
            accepted = False
        assert accepted != can_be_attacked(parties, dropouts, colluding), (dropouts, colluding)


# ---- the parties' own code


class Liar:
    """A coordinator of real parties; the last ``helpers`` of them give it all they have."""

    def __init__(self, parties: int, dropouts: int, helpers: int) -> None:
        self.honest = range(parties - helpers)
        self.steps = Steps(unchecked(parties, dropouts, helpers), dimension=2).set_up()
        self.helpers = self.steps.parties[len(self.honest) :]
        random = np.random.default_rng(parties)
        self.words = random.integers(0, 2**63, (parties, 2)).astype(np.uint64)

    def opened_sums(self, told_missing: Sequence[set[int]]) -> list[set[int]]:
        """Return the smallest sets of honest parties whose vectors' sum the liar computes, of all sets."""
        helper_keys = [party._unused[0].pair for party in self.helpers]
        masked = [self._masked(party) for party in self.honest]
        secrets = self._secrets(told_missing)
        opened: list[set[int]] = []
        for size in range(1, len(self.honest) + 1):
            for parties in map(set, itertools.combinations(self.honest, size)):
                total = np.sum([masked[party] for party in parties], axis=0, dtype=np.uint64)
                total = total - self._removable(parties, secrets, helper_keys)
                is_sum = (total == np.sum(self.words[list(parties)], axis=0, dtype=np.uint64)).all()
                if is_sum and not any(part <= parties for part in opened):
                    opened.append(parties)
        return opened

    def _masked(self, party: int) -> np.ndarray:
        message = self.steps.parties[party].mask(0, self.words[party])
        body = from_party(message, self.steps.session, Step.MASKED).body
        return np.frombuffer(body[:-QUESTION_DIGEST_BYTES], dtype="<u8").astype(np.uint64)

    def _secrets(self, told_missing: Sequence[set[int]]) -> dict[tuple[int, str], bytes]:
        """Return every private key of an honest party for which there are enough shares."""
        shares: dict[tuple[int, str], dict[int, bytes]] = {}
        for helper in self.helpers:
            for owner, (pair, own) in helper._shares[0].items():
                shares.setdefault((owner, "pair"), {})[helper._number + 1] = pair
                shares.setdefault((owner, "own"), {})[helper._number + 1] = own
        everybody = range(len(self.steps.parties))
        for party, missing in enumerate(told_missing):
            arrived = b"".join(NUMBER.pack(number) for number in everybody if number not in missing)
            list_ = seal(
                self.steps.coordinator_identity, self.steps.session, Step.SURVIVORS, COORDINATOR, arrived
            )
            body = from_party(self.steps.parties[party].reveal(list_), self.steps.session, Step.REVEALED).body
            for owner in everybody:
                kind = "pair" if owner in missing else "own"
                share = body[owner * SHARE_BYTES : (owner + 1) * SHARE_BYTES]
                shares.setdefault((owner, kind), {})[party + 1] = share
        threshold = self.steps.session.cohort.threshold
        return {
            secret: recover(dict(list(given.items())[:threshold]))
            for secret, given in shares.items()
            if len(given) >= threshold and secret[0] in self.honest
        }

    def _removable(
        self, parties: set[int], secrets: dict[tuple[int, str], bytes], helper_keys: Sequence[bytes]
    ) -> np.ndarray:
        """Return all masks in the sum of these parties' vectors whose keys are known."""
        session, public = (
            self.steps.session,
            [book.rounds[0].pair for book in self.steps.parties[0]._books.values()],
        )
        total = np.zeros(session.dimension, dtype=np.uint64)
        for party in parties:
            if (party, "own") in secrets:
                total = total + self_mask(secrets[party, "own"], session, 0, party)
            for helper, key in zip(self.helpers, helper_keys, strict=True):
                total = total - pair_masks(key, {party: public[party]}, session, 0, helper._number)
            for other in set(self.honest) - {party}:
                if other in parties:
                    continue  # their common masks cancel
                if (party, "pair") in secrets:
                    total = total + pair_masks(
                        secrets[party, "pair"], {other: public[other]}, session, 0, party
                    )
                elif (other, "pair") in secrets:
                    total = total - pair_masks(
                        secrets[other, "pair"], {party: public[party]}, session, 0, other
                    )
        return total


def unchecked(parties: int, dropouts: int, colluding: int) -> Cohort:
    """Return a cohort without the checks that might refuse it."""
    cohort = object.__new__(Cohort)
    for name, value in (("parties", parties), ("dropouts", dropouts), ("colluding", colluding)):
        object.__setattr__(cohort, name, value)
    return cohort


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_real_parties_open_what_the_model_says(data: st.DataObject) -> None:
    parties = data.draw(st.integers(3, 6))
    dropouts = data.draw(st.integers(1, parties - 2))
    helpers = data.draw(st.integers(0, parties - dropouts - 1))
    honest = parties - helpers
    one_list = st.sets(st.integers(0, honest - 1), max_size=min(dropouts, honest))
    told = data.draw(st.lists(one_list, min_size=honest, max_size=honest))
    counts = tuple(sum(party in missing for missing in told) for party in range(honest))
    expected = opened_sums(counts, dropouts)
    found = Liar(parties, dropouts, helpers).opened_sums(told)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


@pytest.mark.parametrize(
    ("parties", "dropouts", "helpers"),
    [(3, 1, 1), (4, 1, 2), (5, 2, 0), (5, 2, 1), (6, 2, 0), (8, 2, 2), (7, 3, 0)],
)
def test_the_attack_works_on_real_parties_of_a_refused_cohort(
    parties: int, dropouts: int, helpers: int
) -> None:
    with pytest.raises(InvalidParameter, match="could open the sum of too few"):
        Cohort(parties, dropouts, helpers)
    honest = parties - helpers
    lie = next(
        counts
        for counts in all_counts(honest, dropouts)
        if is_too_much(opened_sums(counts, dropouts), honest, dropouts)
    )
    found = Liar(parties, dropouts, helpers).opened_sums(stories(lie))
    assert is_too_much(found, honest, dropouts)


@pytest.mark.parametrize(("parties", "dropouts", "helpers"), [(4, 1, 1), (5, 1, 2), (7, 2, 0), (8, 2, 1)])
def test_the_same_lie_fails_in_the_smallest_accepted_cohort(
    parties: int, dropouts: int, helpers: int
) -> None:
    """One honest party more than the attack allows: as many as possible are called missing, evenly."""
    Cohort(parties, dropouts, helpers)
    honest = parties - helpers
    share, more = divmod(honest * dropouts, dropouts + 1)
    counts = tuple(share + (party < more) for party in range(dropouts + 1)) + (0,) * (honest - dropouts - 1)
    found = Liar(parties, dropouts, helpers).opened_sums(stories(counts))
    assert not is_too_much(found, honest, dropouts)


def test_a_party_that_is_shown_a_smaller_inbox_takes_no_part() -> None:
    """The attack of the review, message by message: the victim would share masks with the few it is told of."""
    agreement = agreement_of(dropouts=1, colluding=0)
    wire = Wire(agreement)
    exchange = wire.exchange

    def split(stage, parts):  # type: ignore[no-untyped-def]
        if stage is Stage.INBOX:
            parts = parts | {
                0: [cut(session, part) for session, part in zip(sessions(), parts[0], strict=True)]
            }
        return exchange(stage, parts)

    def sessions():  # type: ignore[no-untyped-def]
        return wire.parties["north"]._sessions

    def cut(session, inbox):  # type: ignore[no-untyped-def]
        """Without the last party's box."""
        body = from_coordinator(inbox, session, Step.INBOX).body
        kept = body[: -(NUMBER.size + box_size(session.rounds))]
        return seal(IDENTITIES["coordinator"].key, session, Step.INBOX, COORDINATOR, kept)

    wire.coordinator._exchange = split
    with pytest.raises(TooFewParties, match="north did not accept the others' shares"):
        wire.coordinator.train()
    north = wire.parties["north"]
    assert "Refused to answer (inbox): only 2 parties sent shares; 3" in ("\n".join(wire.heard["north"]))
    assert not any(party._budget.answered for party in wire.parties.values())
    assert north.stopped is not None
    assert not any("Answered" in line for line in wire.heard["north"])
