"""The public facts of a secure sum, agreed before it starts; every key and signature is bound to them."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property

from privlearn.errors import InvalidParameter
from privlearn.multiparty.cohort import Cohort


@dataclass(frozen=True)
class SumSession:
    """Everything that coordinator and parties must agree on.

    Parameters
    ----------
    cohort : Cohort
    dimension : int
        Length of the vectors.
    rounds : int
        How many sums there will be at the most. Rounds are numbered from 0.
    identities : tuple of bytes
        The parties' Ed25519 public keys, 32 bytes each; a party's number is its place here.
    coordinator : bytes
        The coordinator's Ed25519 public key.
    context : bytes, default=b""
        What else the session is about: a digest of the plan and of this run of it.
    """

    cohort: Cohort
    dimension: int
    rounds: int
    identities: tuple[bytes, ...]
    coordinator: bytes
    context: bytes = b""

    def __post_init__(self) -> None:
        if self.dimension < 1 or not 1 <= self.rounds < 2**32:
            raise InvalidParameter("a secure sum has at least one coordinate and one round")
        keys = {*self.identities, self.coordinator}
        if len(self.identities) != self.cohort.parties or len(keys) != self.cohort.parties + 1:
            raise InvalidParameter(
                f"a cohort of {self.cohort.parties} needs as many identity keys, distinct and not the coordinator's"
            )
        if any(len(key) != 32 for key in keys):
            raise InvalidParameter("identity keys are Ed25519 public keys of 32 bytes")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of all fields."""
        cohort = self.cohort
        numbers = (cohort.parties, cohort.dropouts, cohort.colluding, self.dimension, self.rounds)
        described = struct.pack(">5Q", *numbers) + self.coordinator + b"".join(self.identities)
        return hashlib.sha256(b"privlearn secure sum 1" + described + self.context).digest()
