"""What a party attests to: the sums of its run as it was told of them, and one result.

A coordinator that told the parties different lists of who arrived is found out here: the record of the run agrees with
one list per sum only, and whoever saw another does not sign. More such parties than the plan's dropouts, and there is
no release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.errors import ProtocolError
from privlearn.mechanisms.summed.summed import NoisySum, NoisySums, Question
from privlearn.multiparty.run import conversation
from privlearn.multiparty.run.identity import COORDINATOR_NAME, Identity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.randomness import SecureRandomness
from privlearn.release.archive import json_bytes
from privlearn.release.counts_file import CountsFile
from privlearn.release.outcome import Outcome, read_outcome
from privlearn.release.run_record import RunRecord


class Witness:
    """One party's memory of one run.

    Parameters
    ----------
    plan : JointPlan
    run : bytes
    name : str
    identity : Identity
    """

    def __init__(self, plan: JointPlan, run: bytes, name: str, identity: Identity) -> None:
        self._plan = plan
        self._run = run
        self._name = name
        self._identity = identity
        self._seen: dict[int, tuple[str, ...]] = {}
        self._signed = ""

    def to_dict(self) -> dict[str, Any]:
        """What `resume` needs."""
        return {"seen": self._seen, "signed": self._signed}

    def resume(self, content: Mapping[str, Any]) -> None:
        """Go on with another process's memory."""
        self._seen = {int(question): tuple(names) for question, names in content["seen"].items()}
        self._signed = content["signed"]

    def saw(self, question: int, arrived: list[int]) -> None:
        """Remember whose vectors the coordinator says are in the sum; of one sum it can say so once."""
        names = list(self._plan.parties)
        told = tuple(names[party] for party in arrived)
        if self._seen.setdefault(question, told) != told:
            raise ProtocolError("the coordinator tells two lists of who is in a sum")

    def attest(self, result: bytes, record: bytes) -> bytes:
        """The party's signature under the one result of this run, if its record says what the party saw."""
        release, run = read_outcome(result), _read_record(record)
        self._check(release, run)
        self._signed = release.model_digest
        return self._identity.key.sign(run.statement(self._name, release.model_digest))

    def take(self, content: bytes) -> Outcome:
        """The release of this run; any other is refused."""
        release = read_outcome(content)
        if release.run is None:
            raise ProtocolError("the release has no record of its run")
        self._check(release, release.run)
        signer = conversation.identity_of(self._plan, COORDINATOR_NAME).signing.hex()
        if release.signature is None or release.signature["public_key"] != signer:
            raise ProtocolError("the release is not signed by the coordinator")
        return release

    def _check(self, release: Outcome, run: RunRecord) -> None:
        if run.plan.encode() != self._plan.canonical() or run.run != self._run.hex():
            raise ProtocolError("the release is of another plan or run")
        if release.certificate.guarantee != self._plan.guarantee:
            raise ProtocolError("the release does not state the plan's guarantee")
        if release.certificate.mechanism != self._plan.mechanism:
            raise ProtocolError("the release states other constants than the plan's")
        if dict(enumerate(run.sums)) != dict(enumerate(run.sums)) | self._seen:
            raise ProtocolError("the release says of a sum that others are in it than this party was told")
        if self._signed not in ("", release.model_digest):
            raise ProtocolError("this party signed another result of the run")
        if len(run.sums) != len(self._plan.mechanism.kinds):
            raise ProtocolError("the release has another number of sums than the plan")
        run.check_sums()
        if isinstance(release, CountsFile) and not self._says_what_was_counted(release, run):
            raise ProtocolError("the release says that something else was counted than the plan says")

    def _says_what_was_counted(self, release: CountsFile, run: RunRecord) -> bool:
        """All that the plan says of counts beforehand is in their certificate, some of it by digest."""
        made = self._plan.outcome(_Zeros(len(run.sums[0]), run.records[0]), SecureRandomness())
        return json_bytes(release.certificate.subject) == json_bytes(made.certificate.subject)


@dataclass(frozen=True)
class _Zeros(NoisySums):
    """In place of the sums, which parties never see."""

    parties: int
    total: int

    def ask(self, question: Question) -> NoisySum:
        return NoisySum(np.zeros(question.length), self.total, self.parties)


def _read_record(content: bytes) -> RunRecord:
    try:
        return RunRecord.from_bytes(content)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ProtocolError("the record of the run is not in order") from None
