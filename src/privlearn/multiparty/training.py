"""From a plan and its parties to a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

Progress = Callable[[Question], None]
"""Called before each question is asked."""


def train_together(
    plan: MultipartyPlan,
    tables: Mapping[str, Any],
    *,
    progress: Progress | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Release:
    """Simulate the plan in this process, which sees every party's rows; the release is that of a real run.

    Parameters
    ----------
    plan : MultipartyPlan
    tables : dict of str to table
        Each party's rows by its name in the plan, target column included.
    progress : callable, optional
        Called with each question before it is asked.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits; with anything else the release says "not private".

    Examples
    --------
    >>> from privlearn.data.simulated import census_schema, simulated_census
    >>> plan = MultipartyPlan(
    ...     schema=census_schema(), parties={"north": 500, "south": 2500}, epsilon=2.0, delta=1e-5
    ... )
    >>> release = train_together(
    ...     plan, {"north": simulated_census(500, seed=1), "south": simulated_census(2500, seed=2)}
    ... )
    >>> print(release.certificate.guarantee)
    (epsilon = 2, delta = 1e-05)-differential privacy, neighbours: replace_one
    """
    if sorted(tables) != sorted(plan.parties):
        raise InvalidParameter(f"bring a table of each party of the plan: {', '.join(plan.parties)}")
    randomness = randomness_from(random_state)
    parties = [Party.from_table(plan, name, table) for name, table in tables.items()]
    return coordinate(plan, TrustedSum(plan.mechanism, parties, randomness), randomness, progress)


def coordinate(
    plan: MultipartyPlan, ask: Ask, randomness: Randomness, progress: Progress | None = None
) -> Release:
    """The coordinator's side: ask the plan's questions through ``ask``, and make the release from noisy sums alone.

    ``randomness`` is what the parties draw their noise from, for the certificate; nothing is drawn here.
    """
    mechanism, features = plan.mechanism, plan.features
    coefficients = features.released(mechanism.run(ask if progress is None else _shown(ask, progress)))
    target: Any = plan.table_schema.target
    link = plan.mechanism.task.loss.link
    model = LinearModel(features.encoder, coefficients, np.array(target.classes), link)
    certificate = Certificate.issue(mechanism, randomness, describe_encoding(features.encoder))
    return Release(model, certificate)


def _shown(ask: Ask, progress: Progress) -> Ask:
    def shown(question: Question) -> NoisySum:
        progress(question)
        return ask(question)

    return shown
