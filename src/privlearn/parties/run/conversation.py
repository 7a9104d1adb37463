"""Messages between the coordinator and the parties, stage by stage, independent of the transport.

    AGREEMENT -> KEYS -> ROSTER -> INBOX   once
    QUESTION -> SURVIVORS                  for each question of the agreement
    RESULT -> RELEASE, or STOP             at the end

At each stage the coordinator sends every party a list of byte strings, and the party answers with another. Answers to
questions of one kind have one length: each kind has its own session of the secure sum, and the set-up stages carry one
string for each session. QUESTION and RESULT also carry the evidence for earlier sums that the party has not seen yet:
four strings for each sum (`Evidence`). A party computes the sums, the next question and the result itself, and answers
or signs only what follows from them.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.mechanisms.summed.summed import NoisySum, Question
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.identity import COORDINATOR_NAME, PublicIdentity
from privlearn.parties.secure_sum.noise_share import Words
from privlearn.parties.secure_sum.session import SumSession
from privlearn.release import run_record

Parts = list[bytes]
Report = Callable[[str], None]
"""Shows one line of progress to the person who runs this process."""

RUN_BYTES = 32
QUESTION_NUMBER = struct.Struct(">I")


class Stage(StrEnum):
    """Stages of a run in their order; STOP may come at any time."""

    AGREEMENT = "agreement"
    KEYS = "keys"
    ROSTER = "roster"
    INBOX = "inbox"
    QUESTION = "question"
    SURVIVORS = "survivors"
    RESULT = "result"
    RELEASE = "release"
    STOP = "stop"


@dataclass(frozen=True)
class Evidence:
    """The signed messages of one sum, from which a party computes the sum itself.

    Attributes
    ----------
    number : bytes
        The question's number.
    question : bytes
        The question as the coordinator sealed it.
    vectors : bytes
        The masked vectors, each signed by its party, joined.
    keys : bytes
        The key of each party that was opened for this sum, joined.
    """

    number: bytes
    question: bytes
    vectors: bytes
    keys: bytes

    @property
    def parts(self) -> Parts:
        """The four byte strings of a message."""
        return [self.number, self.question, self.vectors, self.keys]


def read_evidence(parts: Sequence[bytes]) -> list[Evidence]:
    """Read the evidence for several sums."""
    if len(parts) % 4:
        raise ProtocolError("the evidence for earlier sums is malformed")
    return [Evidence(*parts[start : start + 4]) for start in range(0, len(parts), 4)]


def result_digest(result: bytes, record: bytes) -> bytes:
    """Return what the coordinator seals when it shows a result."""
    return hashlib.sha256(result).digest() + hashlib.sha256(record).digest()


@dataclass(frozen=True)
class QuestionRound:
    """The session and the round of the secure sum in which a question is answered."""

    session: int
    round: int


def identity_of(agreement: Agreement, name: str) -> PublicIdentity:
    """Return the public identity of a party or of the coordinator."""
    if agreement.keys is None:
        raise InvalidParameter(
            "the agreement has no keys. Every party and the coordinator runs `privlearn identity`; put the lines that "
            "it prints into the file's [keys]"
        )
    return PublicIdentity.parse(agreement.keys[name])


def proposal(agreement: Agreement, run: bytes) -> Parts:
    """Return what the coordinator proposes to sign, with its constants, so that other constants are refused now."""
    return [bytes.fromhex(agreement.digest), run, agreement.constants_digest]


def sign_off(agreement: Agreement, run: bytes, name: str) -> bytes:
    """Return what a party signs: the agreement, this run of it, and its own name."""
    return run_record.sign_off(agreement.digest, run, name)


def sum_sessions(agreement: Agreement, run: bytes) -> list[SumSession]:
    """Return a session for each kind of question; its keys and signatures are valid in this run only."""
    identities = tuple(identity_of(agreement, name).signing for name in agreement.parties)
    coordinator = identity_of(agreement, COORDINATOR_NAME).signing
    sessions = []
    for number, questions in _consecutive(agreement):
        length = agreement.mechanism.question(number).length
        context = bytes.fromhex(agreement.digest) + run + QUESTION_NUMBER.pack(number)
        sessions.append(SumSession(agreement.cohort, length, questions, identities, coordinator, context))
    return sessions


def message_digest(stage: str, parts: Parts) -> str:
    """Return the SHA-256 of what one party is sent at a stage; different messages have different digests."""
    digest = hashlib.sha256(f"{stage} {len(parts)}".encode())
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def question_rounds(agreement: Agreement) -> list[QuestionRound]:
    """Return the session and round of each question."""
    kinds = enumerate(_consecutive(agreement))
    return [QuestionRound(session, round) for session, (_, rounds) in kinds for round in range(rounds)]


def noisy_sum(agreement: Agreement, question: Question, names: Sequence[str], words: Words) -> NoisySum:
    """Decode an opened sum over these parties; refuse a sum beyond the bound of the vectors and their noise."""
    encoding = agreement.encoding(question)
    encoding.check_sum(words)
    records = sum(agreement.parties[name] for name in names)
    return NoisySum(encoding.decode(words), records, len(names))


def _consecutive(agreement: Agreement) -> list[tuple[int, int]]:
    """Return the number of the first question of each kind, and how many of that kind follow."""
    runs, first = [], 0
    for _, questions in groupby(agreement.mechanism.kinds):
        count = len(list(questions))
        runs.append((first, count))
        first += count
    return runs
