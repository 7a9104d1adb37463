"""Certificates of releases: of one model, and of a private search."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.imports import look_up
from privlearn.mechanisms.mechanism import ReleaseMechanism, covers_statistics, mechanisms_of
from privlearn.mechanisms.search.search import Search, SearchResult
from privlearn.mechanisms.summed.summed import SummedMechanism
from privlearn.mechanisms.summed.summed_moments import MomentsRegression
from privlearn.mechanisms.task import STATISTICS
from privlearn.release.base_certificate import (
    BaseCertificate,
    format_value,
    read_calibration,
    read_guarantee,
    read_task,
    theorem_of,
)


@dataclass(frozen=True)
class Certificate(BaseCertificate):
    """Certificate of a release: its mechanism and constants, the source of its random bits, and the encoding.

    The solver's gradient norm is stated as the public bound that it had to reach, not as the value that it reached,
    which depends on the records.
    """

    mechanism: ReleaseMechanism | SummedMechanism

    _subject: ClassVar[str] = "encoding"
    _fields: ClassVar[tuple[str, ...]] = (
        "total", "dimension", "problems", "regularization", "tolerance", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

    @property
    def _task_fields(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the usual fields, and those that only some theorems need: classes, a prior, row weights and so on."""
        classes = ("classes",) if self.task.classes else ()
        parties = ("parties_per_person",) if self.task.parties_per_person > 1 else ()
        prior = ("prior_norm",) if self.task.prior_norm else ()
        offsets = ("offset_bound",) if self.task.offset_bound else ()
        weights = ("largest_ridge",) if self.task.largest_ridge != 1.0 else ()
        rows = ("row_weight_bound",) if self.task.row_weight_bound != 1.0 else ()
        return (*self._fields, *classes, *parties, *prior, *offsets, *weights, *rows)

    def _describe_count(self) -> dict[str, str]:
        count = super()._describe_count()
        if not isinstance(self.mechanism, SummedMechanism | MomentsRegression):
            return count
        # Parties may be missing from a sum; the release's record of its run states what was in each.
        return {f"{unit} in the plan": number for unit, number in count.items()}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """Return how rows become features: schema by name and digest or the norm bound, and the kernel's map."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> ReleaseMechanism | SummedMechanism:
        theorem = record["theorem"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_read_gap(record), **_read_statistics(record))
        kinds: dict[str, Any] = {**mechanisms_of(ReleaseMechanism), **mechanisms_of(SummedMechanism)}
        kind = look_up(kinds, theorem["mechanism"], "mechanism")
        reason = kind.explain_refusal(task, theorem["noise"])
        if reason or theorem["noise"] not in kind.combinations[theorem["calibration"]]:
            raise VerificationError(f"no theorem covers this combination{': ' + reason if reason else ''}")
        if task.parties_per_person > 1 and not issubclass(kind, SummedMechanism):
            raise VerificationError(
                "parties_per_person above 1 needs a mechanism that sums over several parties"
            )
        may_be_exact = not guarantee.is_private and issubclass(kind, ReleaseMechanism)
        alone = not task.statistics or may_be_exact
        if not alone and not covers_statistics(task, kind, theorem["noise"], theorem["calibration"]):
            raise VerificationError("no theorem covers this mechanism together with such statistics")
        constants = read_calibration(record["constants"], kind.calibrated_constants, guarantee)
        return kind(task, guarantee, theorem["noise"], theorem["calibration"], **constants)  # type: ignore[no-any-return]

    def _theorem(self) -> dict[str, Any]:
        return theorem_of(self.mechanism, calibration=self.mechanism.calibration)

    def _solver(self) -> dict[str, Any]:
        """Return what the solver had to certify; the hinge has no gradient, and descent has no solver."""
        if not self.mechanism.uses_solver:
            return {}
        smooth = math.isfinite(self.task.loss.smoothness)
        bound = (
            {"gradient_norm_at_most": self.task.tolerance}
            if smooth
            else {"duality_gap_at_most": self.task.gap}
        )
        return {"solver": bound | {"certified": True}}

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{mechanism.title}, {mechanism.noise} noise, {mechanism.calibration} calibration"

    def _describe_subject(self) -> dict[str, str]:
        encoding = {
            f"encoding: {name.replace('_', ' ')}": format_value(value)
            for name, value in self.encoding.items()
        }
        return {"coefficients": f"{self.task.problems} x {self.task.dimension}"} | encoding


def _read_statistics(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics that were released with the model, within the same guarantee."""
    return {name: kind.from_dict(record[name]) for name, kind in STATISTICS.items() if name in record}


def _read_gap(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the hinge's duality gap, which a record states with the solver."""
    solver = record.get("solver", {})
    return {"gap": float(solver["duality_gap_at_most"])} if "duality_gap_at_most" in solver else {}


_CANDIDATE = ("claim", "theorem", "task", "constants")


@dataclass(frozen=True)
class SearchCertificate(Certificate):
    """Certificate of a private search, with the mechanism of each of its candidates, and which one was chosen.

    The chosen candidate and its error are the two properties that may depend on records; the guarantee covers both.
    """

    mechanism: SearchResult  # type: ignore[assignment]

    @property
    def chosen(self) -> Certificate:
        """Return the certificate of the chosen candidate alone: its claim is that of one trial, not of this release."""
        return self._candidate(self.mechanism.chosen)

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> SearchResult:  # type: ignore[override]
        search_record, constants = record["search"], record["constants"]
        kind: Any = look_up(mechanisms_of(Search), record["theorem"]["mechanism"], "mechanism")
        guarantee = read_guarantee(record["claim"])
        candidates = tuple(Certificate._read_mechanism(entry) for entry in search_record["candidates"])
        names = tuple(name for name in kind.calibrated_constants if name in constants)
        search = kind(guarantee, candidates, **read_calibration(constants, names, guarantee))
        parameters = tuple(entry["parameters"] for entry in search_record["candidates"])
        return SearchResult(search, parameters, search_record["chosen"], search_record["error"])

    @property
    def records(self) -> int:
        return self.mechanism.search.records

    @property
    def _covers(self) -> str:
        return self.mechanism.search.covers

    def _heading(self) -> dict[str, Any]:
        result = self.mechanism
        candidates = [
            {"parameters": dict(parameters)} | self._candidate_record(index)
            for index, parameters in enumerate(result.parameters)
        ]
        return {"search": {"chosen": result.chosen, "error": result.error, "candidates": candidates}}

    def _candidate_record(self, index: int) -> dict[str, Any]:
        record = self._candidate(index).to_dict()
        return {name: record[name] for name in _CANDIDATE}

    def _candidate(self, index: int) -> Certificate:
        mechanism: Any = self.mechanism.search.candidates[index]
        return Certificate(mechanism, self.randomness, self.secure, self.subject, self.versions)

    def _theorem(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism.search.name,
            "page": f"docs/theory/{self.mechanism.search.page}.md",
            "fit": self.chosen._theorem(),
        }

    def _solver(self) -> dict[str, Any]:
        return self.chosen._solver()

    def _floating_point(self) -> str:
        return f"choice: {self.mechanism.search.floating_point}. Fit: {self.chosen._floating_point()}"

    def _title(self) -> str:
        return f"{self.mechanism.search.title}; each: {self.chosen._title()}"

    def describe_search(self) -> dict[str, str]:
        """Return the result of the search as text."""
        result = self.mechanism
        parameters = result.parameters[result.chosen]
        error = {} if result.error is None else {"error shown": format_value(result.error)}
        return {
            "chosen": f"{format_value(parameters)}, of {len(result.parameters)} candidates",
            "its own guarantee": str(result.fit.guarantee),
        } | error

    def _describe_subject(self) -> dict[str, str]:
        return self.describe_search() | self.chosen._describe_subject()
