"""A whole secure sum in one process, through the messages that real parties and a real coordinator exchange."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.arrays import Array
from privlearn.errors import TooFewParties
from privlearn.multiparty.secure_sum.coordinator import MaskingCoordinator
from privlearn.multiparty.secure_sum.noise_share import FixedPoint, NoiseShare, Words
from privlearn.multiparty.secure_sum.party import MaskingParty
from privlearn.multiparty.secure_sum.session import Cohort, SumSession
from privlearn.randomness import Randomness, SecureRandomness

Observer = Callable[[bytes], None]


class SecureSum:
    """K parties and a coordinator that sum vectors of words, round after round.

    Parameters
    ----------
    cohort : Cohort
    dimension : int
    rounds : int, default=1
    observer : callable, optional
        Is shown every message that passes the coordinator.

    Examples
    --------
    >>> import numpy as np
    >>> encoding = FixedPoint(bound=1.0, step=2.0**-30, parties=3)
    >>> words = {number: encoding.encode(np.full(2, 0.25)) for number in range(3)}
    >>> encoding.decode(SecureSum(Cohort(3), dimension=2).total(words))
    array([0.75, 0.75])
    """

    def __init__(
        self, cohort: Cohort, dimension: int, rounds: int = 1, observer: Observer | None = None
    ) -> None:
        identities = [Ed25519PrivateKey.generate() for _ in range(cohort.parties + 1)]
        coordinator, *parties = (identity.public_key().public_bytes_raw() for identity in identities)
        session = SumSession(cohort, dimension, rounds, tuple(parties), coordinator)
        self._observer = observer
        self.coordinator = MaskingCoordinator(session, identities[0])
        self.parties = [MaskingParty(session, n, identity) for n, identity in enumerate(identities[1:])]
        self._set_up()

    def _set_up(self) -> None:
        for party in self.parties:
            self._deliver(party.advertise())
        roster = self._seen(self.coordinator.roster())
        for party in self.parties:
            self._deliver(party.share(roster))
        for number, inbox in self.coordinator.inboxes().items():
            self.parties[number].receive(self._seen(inbox))

    def total(self, words: Mapping[int, Words], lost_after_masking: Collection[int] = ()) -> Words:
        """The sum of one round. Parties without words are missing from it; others may be lost half way."""
        for number, vector in words.items():
            self._deliver(self.parties[number].mask(self.coordinator.round, vector))
        survivors = self._seen(self.coordinator.survivors())
        for number in set(words) - set(lost_after_masking):
            self._deliver(self.parties[number].reveal(survivors))
        return self.coordinator.total()

    def _deliver(self, message: bytes) -> None:
        self.coordinator.accept(self._seen(message))

    def _seen(self, message: bytes) -> bytes:
        if self._observer:
            self._observer(message)
        return message


def simulate_secure_sum(
    vectors: Mapping[int, Array],
    cohort: Cohort,
    encoding: FixedPoint,
    noise: NoiseShare | None = None,
    randomness: Randomness | None = None,
) -> Array:
    """One round among parties in this process: their vectors' sum, each with its share of the noise.

    Parameters
    ----------
    vectors : mapping of party to array
        A party that is not in it has dropped out.
    cohort : Cohort
    encoding : FixedPoint
        With noise: ``noise.encoding(bound)``.
    noise : NoiseShare, optional
    randomness : Randomness, optional
        For the noise; secure unless given. Keys and masks are always secure: the sum does not depend on them.
    """
    if not vectors:
        raise TooFewParties("no party has a vector to sum")
    dimension = next(iter(vectors.values())).size
    words = {number: encoding.encode(vector) for number, vector in vectors.items()}
    if noise is not None:
        source = randomness or SecureRandomness()
        words = {number: vector + noise.draw(dimension, source) for number, vector in words.items()}
    return encoding.decode(SecureSum(cohort, dimension).total(words))
