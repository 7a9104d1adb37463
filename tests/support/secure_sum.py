"""A whole secure sum in one process, through the messages that real parties and a real coordinator exchange."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.parties import Cohort
from privlearn.parties.secure_sum import KEY_BYTES, MaskingCoordinator, MaskingParty, SumSession, Words

Observer = Callable[[bytes], None]


class SecureSum:
    """K parties and a coordinator that sum vectors of 64-bit words, round after round.

    Parameters
    ----------
    cohort : Cohort
    dimension : int
    rounds : int, default=1
    observer : callable, optional
        Called with every message that passes the coordinator.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn.parties import FixedPoint
    >>> encoding = FixedPoint(bound=1.0, step=2.0**-30, parties=3)
    >>> words = {number: encoding.encode(np.full(2, 0.25)) for number in range(3)}
    >>> encoding.decode(SecureSum(Cohort(3), dimension=2).total(words))
    array([0.75, 0.75])
    """

    def __init__(
        self, cohort: Cohort, dimension: int, rounds: int = 1, observer: Observer | None = None
    ) -> None:
        keys = (secrets.token_bytes(KEY_BYTES) for _ in range(cohort.parties + 1))
        identities = [Ed25519PrivateKey.from_private_bytes(key) for key in keys]
        coordinator, *parties = (identity.public_key().public_bytes_raw() for identity in identities)
        session = SumSession(cohort, dimension, rounds, tuple(parties), coordinator)
        self._observer = observer
        self.coordinator = MaskingCoordinator(session, identities[0])
        self.parties = [MaskingParty(session, n, identity) for n, identity in enumerate(identities[1:])]
        self._set_up()

    def _set_up(self) -> None:
        for party in self.parties:
            self._deliver(party.advertise())
        roster = self._observe(self.coordinator.roster())
        for party in self.parties:
            self._deliver(party.share(roster))
        for number, inbox in self.coordinator.inboxes().items():
            self.parties[number].receive(self._observe(inbox))

    def total(self, words: Mapping[int, Words], lost_after_masking: Collection[int] = ()) -> Words:
        """Return the sum of one round; parties without words are missing, others may be lost after masking."""
        for number, vector in words.items():
            self._deliver(self.parties[number].mask(self.coordinator.round, vector))
        survivors = self._observe(self.coordinator.survivors())
        for number in set(words) - set(lost_after_masking):
            self._deliver(self.parties[number].reveal(survivors))
        return self.coordinator.total()

    def _deliver(self, message: bytes) -> None:
        self.coordinator.accept(self._observe(message))

    def _observe(self, message: bytes) -> bytes:
        if self._observer:
            self._observer(message)
        return message
