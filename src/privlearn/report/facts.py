"""Public: what papers are written from: certificate, schema, evaluation, and a budget that its holder makes public."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privlearn.data.schema.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, OrdinalColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.evaluation.evaluation import Evaluation
from privlearn.evaluation.intervals import Estimate
from privlearn.evaluation.metrics import LOSSES
from privlearn.guarantee import Guarantee
from privlearn.ledger.statement import Statement
from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel

OPEN = "[to be filled in by the holder]"
"""Stands where no file says anything: nothing is made up."""

SIMPLEST = "accuracy of always answering the most frequent class"


@dataclass(frozen=True)
class Facts:
    """What is known about a release.

    Parameters
    ----------
    release : Release
    evaluation : Evaluation, optional
        Of this release's model; refused if it is another's.
    budget : Statement, optional
        Of the data set's ledger. It is the holder's: whoever gives it makes its total, and what was spent, public.
    """

    release: Release
    evaluation: Evaluation | None = None
    budget: Statement | None = None

    def __post_init__(self) -> None:
        if self.evaluation is None:
            return
        if self.evaluation.about.get("release_sha256") != self.release.undecided.digest:
            raise InvalidParameter("the evaluation is of another model: give this release's own")

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def schema(self) -> Schema | None:
        """None for models of plain arrays."""
        return getattr(base_of(self.release.model.encoder), "schema", None)

    @property
    def dataset(self) -> str:
        return OPEN if self.schema is None else self.schema.name

    @property
    def target(self) -> str:
        return OPEN if self.schema is None or self.schema.target is None else self.schema.target.name

    @property
    def predicts(self) -> str:
        """What comes out, in words."""
        model = self.release.model
        if isinstance(model, LinearModel):
            labels = ", ".join(map(str, model.classes.tolist()))
            return f"{self.target}: one of the classes {labels}"
        return f"{self.target}: a number within public bounds ({model.target_bounds})"

    @property
    def is_classifier(self) -> bool:
        return isinstance(self.release.model, LinearModel)

    @property
    def columns(self) -> dict[str, str]:
        """The columns that the model reads, in words."""
        return (
            {}
            if self.schema is None
            else {name: _in_words(part) for name, part in self.schema.columns.items()}
        )

    @property
    def guarantee(self) -> Guarantee:
        """With the price of what was bought of the schema."""
        return self.certificate.with_alike

    @property
    def promise(self) -> str:
        """In symbols; or why there is none."""
        if self.certificate.is_private:
            return str(self.guarantee)
        return "none: the noise was seeded, or there is none (epsilon = inf)"

    @property
    def parameters(self) -> dict[str, float]:
        """Epsilon and delta; empty where nothing is promised."""
        if not self.certificate.is_private:
            return {}
        return {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta}

    @property
    def beside(self) -> dict[str, str]:
        """What else about these people is in the files, with promises of its own that add to the release's."""
        own = (
            {}
            if self.release.evaluation is None
            else {"scores counted for it": self.release.evaluation.certificate}
        )
        other = {} if self.evaluation is None else {"evaluation": self.evaluation.certificate}
        return {
            f"beside it, {name}": str(certificate.guarantee) for name, certificate in (own | other).items()
        }

    @property
    def strength(self) -> str:
        """What is known of it from public numbers."""
        if not self.certificate.is_private:
            return "there is no promise"
        return (
            self.certificate.weakness
            or "not weak by its numbers: epsilon is at most 20, delta below 1 / records"
        )

    @property
    def counted(self) -> str:
        """How many records or persons, as far as that is public."""
        kept = {name: fact for name, fact in self.told.items() if name.endswith(("records", "persons"))}
        return ", ".join(f"{name}: {fact}" for name, fact in kept.items())

    @property
    def meaning(self) -> str:
        """The promise as sentences."""
        meaning = self.certificate.meaning
        return "Nothing is promised to anyone in the data." if meaning is None else meaning.in_words()

    @property
    def unit(self) -> str:
        """Whose data the promise is about."""
        task = self.certificate.task
        holders = (
            "" if task.parties_per_person == 1 else f" with each of up to {task.parties_per_person} holders"
        )
        rows = "who has one row" if task.rows_per_person == 1 else f"with up to {task.rows_per_person} rows"
        if self.schema is not None and self.schema.person is not None:
            rows = "with all of their rows, which are averaged"
        return f"a person, {rows}{holders}"

    @property
    def other(self) -> str:
        """What happens to that person's data in the other of two neighbouring tables."""
        return f"their record is {self.guarantee.relation.otherwise}"

    @property
    def told(self) -> dict[str, str]:
        """Everything that the certificate states, in words."""
        return self.certificate.facts

    @property
    def threshold(self) -> float | None:
        """Of two classes: above which score the second is said."""
        model = self.release.model
        return model.threshold if isinstance(model, LinearModel) and len(model.classes) == 2 else None

    @property
    def measured_at_another_threshold(self) -> bool:
        """Whether the model's threshold was chosen after the evaluation, or left out of it."""
        if self.evaluation is None or self.threshold is None:
            return False
        return not math.isclose(self.threshold, self.evaluation.about["threshold"], abs_tol=1e-9)

    @property
    def numbers(self) -> dict[str, Estimate]:
        """What the evaluation's counts say of this model, with its own threshold and calibration."""
        if self.evaluation is None:
            return {}
        if not self.measured_at_another_threshold and not self._calibrated:
            return self.evaluation.numbers
        assert self.threshold is not None
        found = self.evaluation.numbers_at(self.threshold)
        return {name: told for name, told in found.items() if not (self._calibrated and name in LOSSES)}

    @property
    def measured(self) -> dict[str, str]:
        """The same in words, and what accuracy is to be compared with."""
        found = {name: str(told) for name, told in self.numbers.items()}
        simplest = None if self.evaluation is None else self.evaluation.most_frequent
        return found if simplest is None else found | {SIMPLEST: str(simplest)}

    @property
    def how_measured(self) -> str:
        if self.evaluation is None:
            return "No evaluation was given, so nothing is said about accuracy."
        return (
            f"Measured on {self.evaluation.about['dataset']} under {self.evaluation.guarantee}, from noisy counts; "
            "intervals cover the population's value with probability 0.95, noise and sampling included."
            f"{self._told_threshold()}"
        )

    def _told_threshold(self) -> str:
        told = ""
        if self.measured_at_another_threshold:
            known = "accuracy" in self.numbers
            told = (
                f" The evaluation was made at another threshold than this model's, {self.threshold:.4g}: "
                + (
                    "accuracy and error rates are computed anew for it, from the counts of scores."
                    if known
                    else "accuracy and error rates are unknown for it, since it lies within a bin of scores."
                )
            )
        return told + (
            " Probabilities were calibrated by it: their losses are unknown." if self._calibrated else ""
        )

    @property
    def _calibrated(self) -> bool:
        decision = getattr(self.release.model, "decision", None)
        return decision is not None and bool(decision.scores)

    @property
    def spent(self) -> str:
        """The budget, if its holder makes it public."""
        if self.budget is None:
            return OPEN
        return (
            f"{self.budget.total} for all releases about these people together ({self.budget.composition} "
            f"composition); {self.budget.spent} of it spent when this was written, by the ledger's account "
            f"{self.budget.dataset!r}"
        )

    def digests(self) -> dict[str, str]:
        return {
            "release SHA-256": self.release.digest,
            "made with": f"privlearn {self.certificate.versions['privlearn']}",
        }


def _in_words(column: AnyColumn) -> str:
    match column:
        case NumberColumn():
            return f"number from {column.lower:g} to {column.upper:g}"
        case DateColumn():
            return f"date from {column.lower} to {column.upper}"
        case CategoryColumn() | OrdinalColumn():
            return f"one of {len(column.values)} listed values"
    return "text, as hashed words"
