"""A secure sum by hand, one step at a time, for tests that interfere."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn.parties import Cohort
from privlearn.parties.secure_sum import MaskingCoordinator, MaskingParty, SumSession


class Steps:
    """Parties, coordinator and their identity keys before anything was said."""

    def __init__(self, cohort: Cohort, dimension: int, rounds: int = 1, context: bytes = b"") -> None:
        self.identities = [Ed25519PrivateKey.generate() for _ in range(cohort.parties)]
        self.coordinator_identity = Ed25519PrivateKey.generate()
        keys = tuple(identity.public_key().public_bytes_raw() for identity in self.identities)
        coordinator_key = self.coordinator_identity.public_key().public_bytes_raw()
        self.session = SumSession(cohort, dimension, rounds, keys, coordinator_key, context)
        self.coordinator = MaskingCoordinator(self.session, self.coordinator_identity)
        self.parties = [MaskingParty(self.session, n, key) for n, key in enumerate(self.identities)]

    def advertised(self) -> bytes:
        for party in self.parties:
            self.coordinator.accept(party.advertise())
        return self.coordinator.roster()

    def shared(self) -> dict[int, bytes]:
        roster = self.advertised()
        for party in self.parties:
            self.coordinator.accept(party.share(roster))
        return self.coordinator.inboxes()

    def set_up(self) -> Steps:
        for number, inbox in self.shared().items():
            self.parties[number].receive(inbox)
        return self

    def zeros(self) -> np.ndarray:
        return np.zeros(self.session.dimension, dtype=np.uint64)
