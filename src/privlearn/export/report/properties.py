"""Public: the properties of a release, or of estimates, that reports state: certificate, schema, results and budget."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from privlearn.budget.statement import Statement
from privlearn.data.schema.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, OrdinalColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.release.artifact import Release
from privlearn.release.base_certificate import BaseCertificate
from privlearn.release.certificate import Certificate
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel
from privlearn.statistics.evaluation.evaluation import Evaluation
from privlearn.statistics.evaluation.metrics import LOSSES
from privlearn.statistics.intervals import Estimate
from privlearn.statistics.regression.estimates import Estimates

OPEN = "[to be filled in by the holder]"
"""Placeholder for information that no file contains."""

BASELINE = "accuracy of always predicting the most frequent class"


class FileProperties(ABC):
    """The statements of a file's certificate and of the holder's budget, as text for reports."""

    budget: Statement | None

    @property
    @abstractmethod
    def file(self) -> Release | Estimates: ...

    @property
    @abstractmethod
    def dataset(self) -> str: ...

    @property
    @abstractmethod
    def unit(self) -> str:
        """Return the unit of privacy: whose data are protected."""

    @property
    def certificate(self) -> BaseCertificate:
        return self.file.certificate

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the model together with the private bounds of its schema."""
        return self.certificate.together

    @property
    def stated_guarantee(self) -> str:
        """Return the guarantee in symbols, or the reason why there is none."""
        if self.certificate.is_private:
            return str(self.guarantee)
        return "none: the noise was seeded, or there is none (epsilon = inf)"

    @property
    def size(self) -> str:
        """Return the number of records or persons, as far as it is public."""
        names = [name for name in self.statements if name.endswith(("records", "persons"))]
        return ", ".join(f"{name}: {self.statements[name]}" for name in names)

    @property
    def meaning(self) -> str:
        """Return the guarantee as sentences."""
        meaning = self.certificate.meaning
        return "Nothing is guaranteed to anyone in the data." if meaning is None else meaning.in_words()

    @property
    def statements(self) -> dict[str, str]:
        """Return everything that the certificate states, as text."""
        return self.certificate.properties

    @property
    def total_cost(self) -> str:
        """Return the budget and what was spent, if the holder publishes it."""
        if self.budget is None:
            return OPEN
        return (
            f"{self.budget.total} for all releases about these people together ({self.budget.composition} "
            f"composition); {self.budget.spent} of it spent when this was written, by the ledger's account "
            f"{self.budget.dataset!r}"
        )


@dataclass(frozen=True)
class EstimatesProperties(FileProperties):
    """The properties of a table of estimates, as text for reports."""

    estimates: Estimates
    budget: Statement | None = None

    @property
    def file(self) -> Estimates:
        return self.estimates

    @property
    def dataset(self) -> str:
        return str(self.estimates.about["dataset"])

    @property
    def unit(self) -> str:
        persons = self.certificate.subject["persons"]
        return f"a person, {'with all of their rows, which are averaged' if persons else 'who has one row'}"


@dataclass(frozen=True)
class ReleaseProperties(FileProperties):
    """The properties of a release, as text for reports.

    Parameters
    ----------
    release : Release
    evaluation : Evaluation, optional
        Evaluation of this release's model; others are refused.
    budget : Statement, optional
        Statement of the data set's ledger. Passing it publishes its total and what was spent, so the holder decides.
    """

    release: Release
    evaluation: Evaluation | None = None
    budget: Statement | None = None

    def __post_init__(self) -> None:
        if self.evaluation is None:
            return
        if self.evaluation.about.get("release_sha256") != self.release.undecided.digest:
            raise InvalidParameter("the evaluation is of another model. Pass the evaluation of this release.")

    @property
    def file(self) -> Release:
        return self.release

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def schema(self) -> Schema | None:
        """Return the schema; None for models of plain arrays."""
        return getattr(base_of(self.release.model.encoder), "schema", None)

    @property
    def dataset(self) -> str:
        return OPEN if self.schema is None else self.schema.name

    @property
    def target(self) -> str:
        return OPEN if self.schema is None or self.schema.target is None else self.schema.target.name

    @property
    def predicts(self) -> str:
        """Return the target and its classes or bounds."""
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
        """Return a description of each column that the model reads."""
        if self.schema is None:
            return {}
        return {name: _describe(column) for name, column in self.schema.columns.items()}

    @property
    def parameters(self) -> dict[str, float]:
        """Return epsilon and delta; empty without a guarantee."""
        if not self.certificate.is_private:
            return {}
        return {"epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta}

    @property
    def additional_guarantees(self) -> dict[str, str]:
        """Return the guarantees of other counts of these people in the files, which add to the release's."""
        scored = self.release.evaluation
        own = {} if scored is None else {"scores counted for it": scored.certificate}
        other = {} if self.evaluation is None else {"evaluation": self.evaluation.certificate}
        return {
            f"in addition, {name}": str(certificate.guarantee) for name, certificate in (own | other).items()
        }

    @property
    def strength(self) -> str:
        """Return whether the guarantee is weak, by public numbers."""
        if not self.certificate.is_private:
            return "no guarantee"
        return (
            self.certificate.weakness
            or f"not weak by its numbers: epsilon is at most 20, delta below 1 / {self.certificate.count_noun}"
        )

    @property
    def unit(self) -> str:
        """Return the unit of privacy: whose data are protected."""
        task = self.certificate.task
        holders = (
            "" if task.parties_per_person == 1 else f" with each of up to {task.parties_per_person} holders"
        )
        rows = "who has one row" if task.rows_per_person == 1 else f"with up to {task.rows_per_person} rows"
        if task.averaged:
            rows = "with all of their rows, which are averaged"
        return f"a person, {rows}{holders}"

    @property
    def persons_in_training(self) -> tuple[str, ...]:
        """Return how rows of one person are weighed, where persons have several or rows have weights."""
        task = self.certificate.task
        weight = None if self.schema is None else self.schema.weight
        if weight is not None and weight.upper is None:
            return (
                f"Every person weighs the same, and their rows in proportion to {weight.column}: predictions are for "
                "a random row of a random person.",
            )
        if weight is not None:
            unit = "person weighs the mean over their rows of" if task.averaged else "row weighs its"
            return (
                f"A {unit} {weight.column}, cut at {weight.upper:g}: predictions are for the population that the "
                "weights represent.",
            )
        if task.averaged:
            return (
                "Every person weighs the same, however many rows they have: predictions are for a random row of a "
                "random person.",
            )
        if task.rows_per_person > 1:
            return (
                "Every row weighs the same, and a person has several: predictions are for a random row, so people "
                "with many rows weigh more.",
            )
        return ()

    @property
    def other(self) -> str:
        """Return how that person's data differ in a neighbouring table."""
        return f"their record is {self.guarantee.relation.change}"

    @property
    def threshold(self) -> float | None:
        """Return the score above which the second of two classes is predicted."""
        model = self.release.model
        return model.threshold if isinstance(model, LinearModel) and len(model.classes) == 2 else None

    @property
    def has_other_threshold(self) -> bool:
        """Return whether the evaluation was made at another threshold than the model's."""
        if self.evaluation is None or self.threshold is None:
            return False
        return not math.isclose(self.threshold, self.evaluation.about["threshold"], abs_tol=1e-9)

    @property
    def numbers(self) -> dict[str, Estimate]:
        """Return the evaluation's numbers for this model, with its threshold and calibration."""
        if self.evaluation is None:
            return {}
        if not self.has_other_threshold and not self._is_calibrated:
            return self.evaluation.numbers
        assert self.threshold is not None
        numbers = self.evaluation.numbers_at(self.threshold)
        omitted = LOSSES if self._is_calibrated else ()
        return {name: estimate for name, estimate in numbers.items() if name not in omitted}

    @property
    def accuracy(self) -> dict[str, str]:
        """Return `numbers` as text, with a baseline for the accuracy."""
        texts = {name: str(estimate) for name, estimate in self.numbers.items()}
        baseline = None if self.evaluation is None else self.evaluation.most_frequent
        return texts if baseline is None else texts | {BASELINE: str(baseline)}

    @property
    def measurement(self) -> str:
        """Return sentences on how the accuracy was measured."""
        if self.evaluation is None:
            return "No evaluation was given, so the accuracy is not stated."
        return (
            f"Measured on {self.evaluation.about['dataset']} under {self.evaluation.guarantee}, from noisy counts; "
            "intervals cover the population's value with probability 0.95, noise and sampling included."
            f"{self._threshold_note()}"
        )

    def _threshold_note(self) -> str:
        calibrated = " Probabilities were calibrated with it: their losses are unknown."
        note = calibrated if self._is_calibrated else ""
        if not self.has_other_threshold:
            return note
        rates = (
            "accuracy and error rates are computed for it from the counts of scores."
            if "accuracy" in self.numbers
            else "accuracy and error rates are unknown for it, since it lies within a bin of scores."
        )
        return f" The evaluation was made at another threshold than this model's, {self.threshold:.4g}: {rates}{note}"

    @property
    def _is_calibrated(self) -> bool:
        decision = getattr(self.release.model, "decision", None)
        return decision is not None and bool(decision.scores)

    def digests(self) -> dict[str, str]:
        return {
            "release SHA-256": self.release.digest,
            "made with": f"privlearn {self.certificate.versions['privlearn']}",
        }


def _describe(column: AnyColumn) -> str:
    match column:
        case NumberColumn():
            return f"number from {column.lower:g} to {column.upper:g}"
        case DateColumn():
            return f"date from {column.lower} to {column.upper}"
        case CategoryColumn() | OrdinalColumn():
            return f"one of {len(column.values)} listed values"
    return "text, as hashed words"
