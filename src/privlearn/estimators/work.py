"""An estimator's rows, read and lifted: ready to be planned for a promise and solved, once or in several trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privlearn.data import Schema
from privlearn.data.purchase import with_purchases
from privlearn.erm import LossFacts
from privlearn.estimators.inputs import EncodedRows
from privlearn.estimators.plan import plan_mechanism
from privlearn.guarantee import Guarantee
from privlearn.ledger import Charge, Cost
from privlearn.mechanisms import DataOracle, ReleaseMechanism
from privlearn.randomness import Randomness
from privlearn.release import Certificate, Model, Release
from privlearn.release.encoders import Encoder, describe_encoding

Array = NDArray[np.float64]
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Work:
    """What `fit` does after reading, step by step.

    Parameters
    ----------
    estimator : PrivateLinearModel
        Whose parameters say what is learnt and how; the promise is given to `plan`.
    loss : LossFacts
    rows : EncodedRows
        In the space where the model is linear.
    released_form : callable
        From coefficients in that space to those that a release holds.
    """

    estimator: Any
    loss: LossFacts
    rows: EncodedRows
    released_form: Callable[[Array], Array]

    def plan(self, guarantee: Guarantee) -> ReleaseMechanism:
        """The calibrated mechanism; it looks at public facts only."""
        estimator, rows = self.estimator, self.rows
        kind, noise = estimator._chosen_mechanism()
        return plan_mechanism(
            estimator._task(self.loss, rows),
            guarantee,
            mechanism=kind,
            noise=noise,
            calibration=estimator.calibration,
            regularization=estimator.regularization,
            points=None if rows.probes is None else len(rows.probes),
        )

    def run(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Array:
        """Touch the data: coefficients in the rows' space, with the mechanism's noise."""
        solve = self.estimator._solver(self.loss, self.rows, mechanism.task)
        return mechanism.run(DataOracle(solve, self.rows.probes), randomness)

    def model(self, coefficients: Array) -> Model:
        """What is released."""
        encoder = cast(Encoder, self.rows.encoder)
        model: Model = self.estimator._model_of(
            self.loss, self.rows, encoder, self.released_form(coefficients)
        )
        return model

    def release(self, mechanism: ReleaseMechanism, randomness: Randomness) -> Release:
        """Touch the data: what may leave, once it is paid for."""
        model = self.model(self.run(mechanism, randomness))
        return Release(model, Certificate.issue(mechanism, randomness, describe_encoding(model.encoder)))

    def on(self, rows: EncodedRows) -> Work:
        """The same work on other rows of the same space."""
        return dataclasses.replace(self, rows=rows)

    def of(self, estimator: Any) -> Work:
        """The work of another estimator, one that reads and lifts rows alike, on the same rows."""
        return dataclasses.replace(self, estimator=estimator, loss=estimator._chosen_loss())


def charge_of(owner: Any, mechanism: Any, records: int, randomness: Randomness) -> Charge:
    """What an estimator's or a search's `fit` costs, by its parameters."""
    schema: Schema | None = owner.schema
    return Charge(
        ledger=owner.ledger,
        cost=Cost(mechanism.guarantee, mechanism.renyi),
        promise=with_purchases(mechanism.guarantee, () if schema is None else schema.bought),
        records=records,
        purpose=f"{type(owner).__name__}.fit",
        schema_digest="" if schema is None else schema.digest,
        secure=randomness.secure,
        accept_weak_privacy=owner.accept_weak_privacy,
    )
