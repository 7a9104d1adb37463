"""Witness: a party recomputes the sums, questions and result of a run, and signs only a result that follows from them.

The coordinator draws nothing at random, so a party that has the sums can do all that the coordinator does: it computes
each next question, and at the end the result, and refuses any that do not follow. For each sum the coordinator shows
it the signed masked vectors and the keys that were opened (`MaskingParty.check_sum`).

Machines may round differently, so points and coefficients are compared up to `TOLERANCE`, and everything else exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.errors import ProtocolError
from privlearn.mechanisms.summed.summed import NoisySum, NoisySums, Question
from privlearn.parties.run import conversation
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.identity import COORDINATOR_NAME, Identity
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.randomness import SecureRandomness
from privlearn.release.archive import read_array
from privlearn.release.artifact import Outcome, read_outcome
from privlearn.release.run_record import RunRecord

TOLERANCE = 1e-6
"""Maximum distance of a point or coefficient from the one computed here, relative to the largest of them.

Rounding moves them by far less, and the noise by far more."""


class Witness:
    """The record of one party in one run: its computed sums, its answers and its signatures."""

    def __init__(self, agreement: Agreement, run: bytes, name: str, identity: Identity) -> None:
        self._agreement = agreement
        self._run = run
        self._name = name
        self._identity = identity
        self._arrived: dict[int, tuple[str, ...]] = {}
        self._answered: set[int] = set()
        self._sums: list[tuple[tuple[str, ...], Words]] = []
        self._next: tuple[int, Question] | None = None
        self._signed = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what `resume` needs: noisy sums, and nothing about the masks of single vectors."""
        sums = [[list(names), words.astype("<u8").tobytes().hex()] for names, words in self._sums]
        answered = sorted(self._answered)
        return {"arrived": self._arrived, "answered": answered, "sums": sums, "signed": self._signed}

    def resume(self, content: Mapping[str, Any]) -> None:
        """Continue from another process's `to_dict`."""
        self._arrived = {int(question): tuple(names) for question, names in content["arrived"].items()}
        self._answered = set(content["answered"])
        self._sums = [
            (tuple(names), np.frombuffer(bytes.fromhex(words), dtype="<u8").astype(np.uint64))
            for names, words in content["sums"]
        ]
        self._signed = content["signed"]

    @property
    def known(self) -> int:
        """Number of sums that this party has computed, in the order of the questions."""
        return len(self._sums)

    def record_answer(self, question: int) -> None:
        """Record that this party's vector for the question may leave."""
        self._answered.add(question)

    def record_arrived(self, question: int, arrived: Sequence[int]) -> None:
        """Record the coordinator's list of vectors in a sum; refuse a second, different list."""
        names = self._names(arrived)
        if self._arrived.setdefault(question, names) != names:
            raise ProtocolError("the coordinator sent two different lists of the parties in a sum")

    def record_sum(self, arrived: Sequence[int], words: Words) -> None:
        """Record the next sum, which this party computed from signed vectors."""
        self.record_arrived(self.known, arrived)
        self._sums.append((self._names(arrived), words))

    def check_question(self, question: Question) -> None:
        """Refuse a question that does not follow from the sums before it."""
        if question.number != self.known:
            raise ProtocolError(
                f"question {question.number + 1} was asked before this party was shown the sums of all earlier ones"
            )
        if self._next is None or self._next[0] != question.number:
            self._next = question.number, self._next_question()
        if not _is_near(question.coefficients, self._next[1].coefficients):
            raise ProtocolError(
                f"question {question.number + 1} does not follow from the agreement and the sums before it"
            )

    def attest(self, result: bytes, record: bytes) -> bytes:
        """Sign the one result of this run, if it follows from the sums that the party computed."""
        if self.known < len(self._agreement.mechanism.kinds):
            raise ProtocolError("this party was not shown all sums of which the result is computed")
        release, run = read_outcome(result), _read_record(record)
        self._check(release, run)
        if run.sums != tuple(names for names, _ in self._sums):
            raise ProtocolError("the record of the run lists other sums than this party computed")
        if not _same_files(release, self._replay()):
            raise ProtocolError("the result does not follow from the sums that this party computed")
        self._signed = release.model_digest
        return self._identity.key.sign(run.statement(self._name, release.model_digest))

    def take(self, content: bytes) -> Outcome:
        """Return the release of this run; refuse any other."""
        release = read_outcome(content)
        if release.run is None:
            raise ProtocolError("the release has no record of its run")
        self._check(release, release.run)
        signer = conversation.identity_of(self._agreement, COORDINATOR_NAME).signing.hex()
        if release.signature is None or release.signature["public_key"] != signer:
            raise ProtocolError("the release is not signed by the coordinator")
        return release

    def _check(self, release: Outcome, run: RunRecord) -> None:
        if run.plan.encode() != self._agreement.canonical() or run.run != self._run.hex():
            raise ProtocolError("the release belongs to another agreement or run")
        if release.certificate.guarantee != self._agreement.guarantee:
            raise ProtocolError("the release does not state the agreement's guarantee")
        if release.certificate.mechanism != self._agreement.mechanism:
            raise ProtocolError("the release states other constants than the agreement's")
        if dict(enumerate(run.sums)) != dict(enumerate(run.sums)) | self._arrived:
            raise ProtocolError("the release lists other parties in a sum than the coordinator's list did")
        if self._signed not in ("", release.model_digest):
            raise ProtocolError("this party signed another result of the run")
        if len(run.sums) != len(self._agreement.mechanism.kinds):
            raise ProtocolError("the release has another number of sums than the agreement")
        if any(self._name in names and number not in self._answered for number, names in enumerate(run.sums)):
            raise ProtocolError("the release lists this party in a sum that it did not answer for")
        run.check_sums()

    def _next_question(self) -> Question:
        """Return the question that the agreement's mechanism asks next."""
        try:
            self._replay()
        except _NextQuestion as reached:
            return reached.question
        raise ProtocolError("the agreement has no further question")

    def _replay(self) -> Outcome:
        """Repeat the coordinator's computation with the sums that this party computed."""
        try:
            with np.errstate(all="ignore"):
                return self._agreement.outcome(_Recorded(self._agreement, self._sums), SecureRandomness())
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            raise ProtocolError("no result can be computed from the opened sums") from None

    def _names(self, numbers: Sequence[int]) -> tuple[str, ...]:
        names = list(self._agreement.parties)
        return tuple(names[number] for number in numbers)


class _NextQuestion(Exception):
    """Ends a replay at the first question whose sum is not known."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


@dataclass(frozen=True)
class _Recorded(NoisySums):
    """The sums of a run so far, in the order of the questions."""

    agreement: Agreement
    sums: Sequence[tuple[tuple[str, ...], Words]]

    def ask(self, question: Question) -> NoisySum:
        if question.number >= len(self.sums):
            raise _NextQuestion(question)
        names, words = self.sums[question.number]
        return conversation.noisy_sum(self.agreement, question, names, words)


def _same_files(one: Outcome, other: Outcome) -> bool:
    """Return whether two release files agree, arrays up to rounding and everything else exactly."""
    left, right = one.members(), other.members()
    return left.keys() == right.keys() and all(
        _is_near(read_array(left[name]), read_array(right[name]))
        if name.endswith(".npy")
        else left[name] == right[name]
        for name in left
    )


def _is_near(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype != np.float64:
        return bool(np.array_equal(one, other))
    scale = float(np.max(np.abs(other), initial=0.0))
    return bool(np.all(np.abs(one - other) <= TOLERANCE * scale))


def _read_record(content: bytes) -> RunRecord:
    try:
        return RunRecord.from_bytes(content)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise ProtocolError("the record of the run is malformed") from None
