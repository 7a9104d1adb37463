"""Record of a run of several holders: the agreement, who signed it, and whose records are in which sum.

Every party signs the record together with the model, so a release belongs to one run of one plan, and a stranger can
check that with the keys in the plan. A party attests to what it computed itself, from the vectors that the others
signed: who is in each sum, and that the result follows from the sums.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from privlearn.data.schema.schema import Schema
from privlearn.errors import VerificationError
from privlearn.mechanisms.summed.summed import SummedMechanism
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.release.archive import json_bytes
from privlearn.release.signatures import in_words

_SIGNING_BYTES = 32  # of a party's public identity, which begins with its Ed25519 key


@dataclass(frozen=True)
class RunRecord:
    """One run of a plan.

    Attributes
    ----------
    plan : str
        As all parties signed it: canonical JSON, with their names, numbers of records and public keys.
    run : str
        The run's name, hexadecimal.
    sign_offs : mapping of str to str
        For each party its signature over plan and run, hexadecimal, given before the run.
    sums : tuple of tuple of str
        For each question, the parties whose vectors are in the opened sum.
    signatures : mapping of str to str
        For each party that took part until the end, its signature over all of this and the model. There are at least
        as many as a sum needs parties.
    """

    plan: str
    run: str
    sign_offs: Mapping[str, str]
    sums: tuple[tuple[str, ...], ...]
    signatures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, content: bytes) -> RunRecord:
        record = json.loads(content)
        sums = tuple(tuple(map(str, names)) for names in record.pop("sums"))
        return cls(sums=sums, **record)

    def to_bytes(self) -> bytes:
        return json_bytes(
            {
                "plan": self.plan,
                "run": self.run,
                "sign_offs": dict(self.sign_offs),
                "sums": [list(names) for names in self.sums],
                "signatures": dict(self.signatures),
            }
        )

    @property
    def plan_digest(self) -> str:
        return hashlib.sha256(self.plan.encode("ascii")).hexdigest()

    @property
    def records(self) -> list[int]:
        """Return, per question, how many records the plan declares for the parties in its sum."""
        return [sum(self._parties[name] for name in names) for names in self.sums]

    @property
    def properties(self) -> dict[str, str]:
        """Return the record as text, by name."""
        answers = Counter(name for names in self.sums for name in names)
        total, absent = len(self.sums), [name for name in self._parties if name not in self.signatures]
        alike = Counter(self.records)
        return {
            "plan": in_words(self.plan_digest),
            "run": self.run,
            "records": ", ".join(f"{records} in {sums} of {total} sums" for records, sums in alike.items()),
            "parties": ", ".join(f"{name} in {answers[name]}" for name in self._parties),
            "attested": ", ".join(self.signatures) + (f"; not by {', '.join(absent)}" if absent else ""),
        }

    def statement(self, name: str, model_digest: str) -> bytes:
        """Return the bytes that the party of that name signs at the end."""
        agreed = [self.plan_digest, self.run, self.sums, model_digest, name]
        return b"privlearn run 1\0" + hashlib.sha256(json_bytes(agreed)).digest()

    def check(self, mechanism: Any, schema_digest: str | None, model_digest: str) -> None:
        """Raise VerificationError unless all signatures are valid and the plan is that of the release."""
        plan, parties = self._content, self._parties
        needed = len(parties) - plan["dropouts"]
        of_this_plan = (
            isinstance(mechanism, SummedMechanism | SummedCounts)
            and schema_digest == Schema.from_dict(plan["schema"]).digest
            and mechanism.records == sum(parties.values())
            and mechanism.holders == (len(parties), needed - plan["colluding"], plan["parties_per_person"])
            and len(self.sums) == len(mechanism.kinds)
        )
        if not of_this_plan:
            raise VerificationError("the release and the record of its run are of different plans")
        self.check_sums()
        if set(self.sign_offs) != set(parties) or not needed <= len(self.signatures):
            raise VerificationError("signatures of parties are missing from the record of the run")
        for name, signature in self.sign_offs.items():
            self._check(name, signature, sign_off(self.plan_digest, bytes.fromhex(self.run), name))
        for name, signature in self.signatures.items():
            self._check(name, signature, self.statement(name, model_digest))

    def check_sums(self) -> None:
        """Raise VerificationError for a sum of too few parties, or of others than the plan's."""
        parties = self._parties
        needed = len(parties) - self._content["dropouts"]
        if any(not needed <= len(set(names) & set(parties)) == len(names) for names in self.sums):
            raise VerificationError("the record of the run has a sum that the plan does not allow")

    def _check(self, name: str, signature: str, content: bytes) -> None:
        key = base64.urlsafe_b64decode(self._content["keys"][name])[:_SIGNING_BYTES]
        if name not in self._parties or not has_signed(key, bytes.fromhex(signature), content):
            raise VerificationError(f"the record of the run was not signed by {name!r}")

    @cached_property
    def _content(self) -> dict[str, Any]:
        return dict(json.loads(self.plan))

    @property
    def _parties(self) -> dict[str, int]:
        return dict(self._content["parties"])


def sign_off(plan_digest: str, run: bytes, name: str) -> bytes:
    """Return the bytes that a party signs before a run: the digest of the plan, the run, and the party's name."""
    return b"privlearn sign-off 1\0" + bytes.fromhex(plan_digest) + run + name.encode()


def has_signed(public_key: bytes, signature: bytes, content: bytes) -> bool:
    """Return whether the signature over the content was made with this Ed25519 key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, content)
    except InvalidSignature:
        return False
    return True
