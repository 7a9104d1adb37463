"""From a plan and its parties to a release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privlearn.errors import InvalidParameter
from privlearn.mechanisms.summed import Ask, NoisySum, Question
from privlearn.multiparty.party import Party
from privlearn.multiparty.plan import MultipartyPlan
from privlearn.multiparty.trusted_sum import TrustedSum
from privlearn.randomness import Randomness, randomness_from
from privlearn.release import Certificate, LinearModel, Release
from privlearn.release.encoders import describe_encoding
from privlearn.release.model import LINK_OF_LOSS

Progress = Callable[[int, Question], None]
"""Called before each question with its number, counted from 1."""


def train_together(
    plan: MultipartyPlan,
    parties: Sequence[Party],
    *,
    progress: Progress | None = None,
    random_state: Any = None,
) -> Release:
    """Simulate the plan in this process.

    Parameters
    ----------
    plan : MultipartyPlan
    parties : sequence of Party
        All of the plan's.
    progress : callable, optional
        Called before each question with its number and the question.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits; with anything else the release says "not private".
    """
    names = [party.name for party in parties]
    if sorted(names) != sorted(plan.parties) or any(party.plan is not plan for party in parties):
        raise InvalidParameter(f"bring each party of this plan once: {', '.join(plan.parties)}")
    randomness = randomness_from(random_state)
    return coordinate(plan, TrustedSum(plan, parties, randomness), randomness, progress)


def coordinate(
    plan: MultipartyPlan, ask: Ask, randomness: Randomness, progress: Progress | None = None
) -> Release:
    """The coordinator's side: ask the plan's questions through ``ask``, and make the release from noisy sums alone.

    ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
    """
    mechanism, features = plan.mechanism, plan.features
    coefficients = features.released(mechanism.run(_counted(ask, progress)))
    target: Any = plan.table_schema.target
    link = LINK_OF_LOSS.get(plan.loss, "none")
    model = LinearModel(features.encoder, coefficients, np.array(target.classes), link)
    certificate = Certificate.issue(mechanism, randomness, describe_encoding(features.encoder))
    return Release(model, certificate)


def _counted(ask: Ask, progress: Progress | None) -> Ask:
    if progress is None:
        return ask
    number = 0

    def counted(question: Question) -> NoisySum:
        nonlocal number
        number += 1
        progress(number, question)
        return ask(question)

    return counted
