"""What coordinator and parties say to each other, stage by stage, whatever carries it.

    PLAN -> KEYS -> ROSTER -> INBOX        once
    QUESTION -> SURVIVORS                  for each of the plan's questions
    RESULT -> RELEASE, or STOP             at the end

At each stage the coordinator sends every party a few byte strings, and a party answers with a few. Questions of one
kind have answers of one length: each kind has its own session of the secure sum, and the stages of setting up carry
one string for each session. RESULT shows the model and the record of the run, which a party signs if it saw the same.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from privlearn.errors import InvalidParameter
from privlearn.mechanisms.summed.summed import Question
from privlearn.multiparty.run.identity import COORDINATOR_NAME, PublicIdentity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.secure_sum.noise_share import FixedPoint, NoiseShare
from privlearn.multiparty.secure_sum.session import SumSession
from privlearn.release import run_record

Parts = list[bytes]
Tell = Callable[[str], None]
"""Shows a line to whoever sits before the screen."""

RUN_BYTES = 32
QUESTION_NUMBER = struct.Struct(">I")


class Stage(StrEnum):
    PLAN = "plan"
    KEYS = "keys"
    ROSTER = "roster"
    INBOX = "inbox"
    QUESTION = "question"
    SURVIVORS = "survivors"
    RESULT = "result"
    RELEASE = "release"
    STOP = "stop"


@dataclass(frozen=True)
class Place:
    """Where in the secure sum a question is answered."""

    session: int
    round: int


def identity_of(plan: JointPlan, name: str) -> PublicIdentity:
    if plan.keys is None:
        raise InvalidParameter(
            "the plan has no keys: every party and the coordinator makes one with `privlearn identity`, and the "
            "lines that it prints go into the plan's [keys]"
        )
    return PublicIdentity.parse(plan.keys[name])


def proposal(plan: JointPlan, run: bytes) -> Parts:
    """What the coordinator asks every party to sign, and by what constants: who computes others refuses now."""
    return [bytes.fromhex(plan.digest), run, plan.constants_digest]


def sign_off(plan: JointPlan, run: bytes, name: str) -> bytes:
    """What a party signs: this plan, this run of it, and its own name."""
    return run_record.sign_off(plan.digest, run, name)


def sum_sessions(plan: JointPlan, run: bytes) -> list[SumSession]:
    """A session for each kind of question; keys and signatures hold for this plan and this run only."""
    identities = tuple(identity_of(plan, name).signing for name in plan.parties)
    coordinator = identity_of(plan, COORDINATOR_NAME).signing
    sessions = []
    for number, questions in _consecutive(plan):
        length = plan.mechanism.question(number).length
        context = bytes.fromhex(plan.digest) + run + QUESTION_NUMBER.pack(number)
        sessions.append(SumSession(plan.cohort, length, questions, identities, coordinator, context))
    return sessions


def message_digest(stage: str, parts: Parts) -> str:
    """SHA-256 of what one party is sent at a stage: equal for the same message alone."""
    digest = hashlib.sha256(f"{stage} {len(parts)}".encode())
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def places(plan: JointPlan) -> list[Place]:
    """Each question's session and round."""
    kinds = enumerate(_consecutive(plan))
    return [Place(session, round) for session, (_, rounds) in kinds for round in range(rounds)]


def noise_share(plan: JointPlan, number: int) -> NoiseShare:
    """One party's share of a question's noise; refused if that noise cannot be dealt out."""
    noise = plan.mechanism.question(number).noise
    if len(noise) != 1 or noise[0].law != "gaussian" or noise[0].kept or noise[0].by_each:
        raise InvalidParameter(
            "the plan's noise cannot be dealt out among parties: take algorithm descent or aggregation with a delta "
            "above 0 (privlearn.multiparty.train_together simulates the others, without a secure sum)"
        )
    return NoiseShare(noise[0].scale, plan.cohort, plan.parties_per_person)


def encoding(plan: JointPlan, question: Question) -> FixedPoint:
    """The integers of a question's answers.

    A party keeps to its own part of the bound (`Party.answer`), so it holds for the sum too, however many they are.
    """
    return noise_share(plan, question.number).encoding(question.bound, sum_bound=question.bound)


def check_can_be_summed(plan: JointPlan) -> None:
    """Refuse before anything is paid for a plan whose noise or sums the secure sum cannot carry."""
    for number, _ in _consecutive(plan):
        encoding(plan, plan.mechanism.question(number))


def _consecutive(plan: JointPlan) -> list[tuple[int, int]]:
    """Number of the first question of each kind, and how many there are."""
    runs, first = [], 0
    for _, questions in groupby(plan.mechanism.kinds):
        count = len(list(questions))
        runs.append((first, count))
        first += count
    return runs
