"""Rehearsals in one process, which sees every party's rows: with the messages of a real run, or with a trusted sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.summed.summed import Noise, NoisySum, NoisySums, Question, SummedMechanism
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.answers import Party
from privlearn.parties.run.conversation import Parts, Report, Stage
from privlearn.parties.run.coordinator_run import CoordinatorRun
from privlearn.parties.run.identity import COORDINATOR_NAME, Identity
from privlearn.parties.run.joint_training import JointTraining
from privlearn.parties.run.party_run import PartyRun
from privlearn.parties.run.run_budget import RunBudget
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.artifact import Release

Progress = Callable[[Question], None]
"""Called with each question before it is asked."""


def discard(line: str) -> None:
    """Ignore a line of progress."""


def simulate(agreement: Agreement, tables: Mapping[str, Any], report: Report = discard) -> Any:
    """Run an agreement of any kind with freshly generated keys and the messages of a real run; return its result.

    Parameters
    ----------
    agreement : Agreement
    tables : dict of str to table
        Each party's rows by its name in the agreement, target column included.
    report : callable, optional
        Called with each line of the coordinator's progress.

    Examples
    --------
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> agreement = JointTraining(
    ...     schema=census_schema(), parties={"north": 500, "south": 2500}, epsilon=2.0, delta=1e-5
    ... )
    >>> tables = {"north": simulated_census(500, seed=1), "south": simulated_census(2500, seed=2)}
    >>> print(simulate(agreement, tables).certificate.guarantee)
    (epsilon = 2, delta = 1e-05)-differential privacy, neighbours: replace_one
    """
    agreement.check_tables(tables)
    answers = {name: agreement.read_party(name, table) for name, table in tables.items()}
    identities = {name: Identity.generate() for name in (COORDINATOR_NAME, *agreement.parties)}
    agreement = agreement.with_keys({name: str(identity.public) for name, identity in identities.items()})
    budgets = {name: RunBudget(agreement, name, ledger=None) for name in agreement.parties}
    parties = [
        PartyRun(agreement, name, identities[name], answers[name], budget, discard)
        for name, budget in budgets.items()
    ]

    def exchange(stage: Stage, parts: Mapping[int, Parts]) -> dict[int, Parts | str]:
        return {number: parties[number].reply(stage, own) for number, own in parts.items()}

    return CoordinatorRun(agreement, identities[COORDINATOR_NAME], exchange, report).train()


class TrustedSum(NoisySums):
    """Adds the parties' answers and as much noise as a secure sum contains when no party is missing.

    Of Gaussian noise that is K shares where ``mechanism.shares`` of them suffice for the guarantee, of norm-Gamma noise
    K whole draws. ``progress`` is called with each question before it is asked.
    """

    def __init__(
        self,
        mechanism: SummedMechanism,
        parties: Sequence[Party],
        randomness: Randomness,
        progress: Progress | None = None,
    ) -> None:
        self._surplus = mechanism.surplus
        self._parties = tuple(parties)
        self._randomness = randomness
        self._progress = progress
        self._run_noise: dict[Noise, Array] = {}

    def ask(self, question: Question) -> NoisySum:
        """Return the noisy sum of all parties' answers."""
        if self._progress is not None:
            self._progress(question)
        vector = np.sum([party.answer(question) for party in self._parties], axis=0)
        for noise in question.noise:
            vector = self._with_noise(vector, noise)
        return NoisySum(vector, sum(party.total for party in self._parties), len(self._parties))

    def _with_noise(self, vector: Array, noise: Noise) -> Array:
        if noise.once_per_run:
            if noise not in self._run_noise:
                self._run_noise[noise] = self._add_noise(np.zeros_like(vector), noise)
            return np.asarray(vector + self._run_noise[noise])
        for _ in range(self._draws(noise)):
            vector = self._add_noise(vector, noise)
        return vector

    def _draws(self, noise: Noise) -> int:
        return len(self._parties) if noise.is_whole else 1

    def _add_noise(self, vector: Array, noise: Noise) -> Array:
        scale = noise.scale * (1.0 if noise.is_whole else self._surplus)
        return ADD_NOISE[noise.distribution](vector, scale, self._randomness)


def train_together(
    agreement: JointTraining,
    tables: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Release:
    """Train with a `TrustedSum`: faster than `simulate`, with the noise of a run in which no party is missing.

    Parameters
    ----------
    agreement : JointTraining
    tables : dict of str to table
        Each party's rows by its name in the agreement, target column included.
    progress : callable, optional
        Called with each question before it is asked.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits; with anything else the release is marked "not private".
    """
    agreement.check_tables(tables)
    randomness = randomness_from(random_state)
    parties = [agreement.read_party(name, table) for name, table in tables.items()]
    return agreement.outcome(TrustedSum(agreement.mechanism, parties, randomness, progress), randomness)
