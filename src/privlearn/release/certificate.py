"""A release's certificate: everything its promise rests on, recomputed by whoever reads it; of a search too."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from privlearn.errors import VerificationError
from privlearn.extensions import listed
from privlearn.mechanisms.mechanism import ReleaseMechanism, may_follow_centring, mechanisms_of
from privlearn.mechanisms.search.search import Search, Searched
from privlearn.mechanisms.statistics.centring import centring_from_dict
from privlearn.mechanisms.statistics.score_counts import score_counts_from_dict
from privlearn.mechanisms.summed.summed import SummedMechanism
from privlearn.mechanisms.summed.summed_moments import MomentsRegression, SummedMoments
from privlearn.mechanisms.task import Task
from privlearn.release.certified import (
    Certified,
    first_covers,
    first_floating_point,
    in_words,
    read_chosen,
    read_guarantee,
    read_task,
)
from privlearn.release.counts_file import CountsCertificate


@dataclass(frozen=True)
class Certificate(Certified):
    """A release's plan: its mechanism and constants, where its random bits came from, and how rows were encoded.

    The solver's certified gradient norm is stated as the public bound it had to reach, not as the value it reached:
    that depends on the records.
    """

    mechanism: ReleaseMechanism | SummedMechanism

    _subject: ClassVar[str] = "encoding"
    _fields: ClassVar[tuple[str, ...]] = (
        "total", "dimension", "problems", "regularization", "tolerance", "weight_bound", "rows_per_person", "averaged",
    )  # fmt: skip

    @property
    def _task_fields(self) -> tuple[str, ...]:  # type: ignore[override]
        """The number of classes, and of parties that one person's records lie with, where a theorem asks for them."""
        classes = ("classes",) if self.task.classes else ()
        parties = ("parties_per_person",) if self.task.parties_per_person > 1 else ()
        return (*self._fields, *classes, *parties)

    @property
    def _covers(self) -> str:  # type: ignore[override]
        return (self.is_first and first_covers(self.mechanism)) or self.mechanism.covers

    @property
    def task(self) -> Task:
        return self.mechanism.task

    def _counted(self) -> dict[str, str]:
        counted = super()._counted()
        if not isinstance(self.mechanism, SummedMechanism | MomentsRegression):
            return counted
        # parties may be missing from a sum: what was in each, the release's record of its run says
        return {f"{whom} in the plan": number for whom, number in counted.items()}

    @property
    def encoding(self) -> Mapping[str, Any]:
        """How rows become features: schema by name and digest or the norm bound, and the kernel's map."""
        return self.subject

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> ReleaseMechanism | SummedMechanism:
        theorem = record["theorem"]
        guarantee = read_guarantee(record["claim"])
        task = read_task(record, guarantee, **_stated_gap(record), **_stated_beside(record))
        known: dict[str, Any] = {**mechanisms_of(ReleaseMechanism), **mechanisms_of(SummedMechanism)}
        kind = listed(known, theorem["mechanism"], "mechanism")
        reason = kind.explain_refusal(task, theorem["noise"])
        if reason or theorem["noise"] not in kind.combinations[theorem["calibration"]]:
            raise VerificationError(f"no theorem covers this combination{': ' + reason if reason else ''}")
        if task.parties_per_person > 1 and not issubclass(kind, SummedMechanism):
            raise VerificationError(
                "only a sum over several parties speaks of people whom several of them have"
            )
        alone = task.centring is None and (task.score_counts is None or not guarantee.is_private)
        if not alone and not may_follow_centring(task, kind, theorem["noise"], theorem["calibration"]):
            raise VerificationError("no theorem covers this mechanism beside a centring or counts of scores")
        chosen = read_chosen(record["constants"], kind.chosen_constants, guarantee)
        return kind(task, guarantee, theorem["noise"], theorem["calibration"], **chosen)  # type: ignore[no-any-return]

    def _theorem(self) -> dict[str, Any]:
        mechanism = self.mechanism
        return {
            "mechanism": mechanism.name,
            "noise": mechanism.noise,
            "calibration": mechanism.calibration,
            "page": f"docs/theory/{mechanism.page}.md",
        }

    def _solver(self) -> dict[str, Any]:
        """What the solver had to certify before it returned; the hinge has no gradient, and descent no solver."""
        if not self.mechanism.uses_solver:
            return {}
        smooth = math.isfinite(self.task.loss.smoothness)
        bound = (
            {"gradient_norm_at_most": self.task.tolerance}
            if smooth
            else {"duality_gap_at_most": self.task.gap}
        )
        return {"solver": bound | {"certified": True}}

    def _floating_point(self) -> str:
        return (self.is_first and first_floating_point(self.mechanism)) or self.mechanism.floating_point

    def _title(self) -> str:
        mechanism = self.mechanism
        return f"{mechanism.title}, {mechanism.noise} noise, {mechanism.calibration} calibration"

    def _described(self) -> dict[str, str]:
        encoding = {
            f"encoding: {name.replace('_', ' ')}": in_words(fact) for name, fact in self.encoding.items()
        }
        return {"coefficients": f"{self.task.problems} x {self.task.dimension}"} | encoding


_BESIDE: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "centring": centring_from_dict,
    "score_counts": score_counts_from_dict,
}


def _stated_beside(record: Mapping[str, Any]) -> dict[str, Any]:
    """What was bought to move and scale the rows, or to learn probabilities."""
    return {name: read(record[name]) for name, read in _BESIDE.items() if name in record}


def _stated_gap(record: Mapping[str, Any]) -> dict[str, float]:
    """The hinge's duality gap, which a record states with the solver."""
    solver = record.get("solver", {})
    return {"gap": float(solver["duality_gap_at_most"])} if "duality_gap_at_most" in solver else {}


_CANDIDATE = ("claim", "theorem", "task", "constants")


@dataclass(frozen=True)
class SearchCertificate(Certificate):
    """The plan of a search, the plan of each of its candidates, and which one was chosen.

    Chosen candidate and error are the two facts in it that may depend on records; the guarantee covers both.
    """

    mechanism: Searched  # type: ignore[assignment]

    @property
    def chosen(self) -> Certificate:
        """The candidate that the model comes from, alone: its claim is one trial's, not this release's."""
        return self._candidate(self.mechanism.chosen)

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> Searched:  # type: ignore[override]
        searched, constants = record["search"], record["constants"]
        kind: Any = listed(mechanisms_of(Search), record["theorem"]["mechanism"], "mechanism")
        guarantee = read_guarantee(record["claim"])
        candidates = tuple(Certificate._read_mechanism(entry) for entry in searched["candidates"])
        stated = tuple(name for name in kind.chosen_constants if name in constants)
        search = kind(guarantee, candidates, **read_chosen(constants, stated, guarantee))
        parameters = tuple(entry["parameters"] for entry in searched["candidates"])
        return Searched(search, parameters, searched["chosen"], searched["error"])

    @property
    def records(self) -> int:
        return self.mechanism.search.records

    @property
    def _covers(self) -> str:  # type: ignore[override]
        return self.mechanism.search.covers

    def _heading(self) -> dict[str, Any]:
        searched = self.mechanism
        candidates = [
            {"parameters": dict(parameters)} | self._plan_of(place)
            for place, parameters in enumerate(searched.parameters)
        ]
        return {"search": {"chosen": searched.chosen, "error": searched.error, "candidates": candidates}}

    def _plan_of(self, place: int) -> dict[str, Any]:
        written = self._candidate(place).to_dict()
        return {name: written[name] for name in _CANDIDATE}

    def _candidate(self, place: int) -> Certificate:
        mechanism: Any = self.mechanism.search.candidates[place]
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

    def in_search(self) -> dict[str, str]:
        """What came out of the search, in words."""
        searched = self.mechanism
        parameters = searched.parameters[searched.chosen]
        error = {} if searched.error is None else {"error shown": in_words(searched.error)}
        return {
            "chosen": f"{in_words(parameters)}, of {len(searched.parameters)} candidates",
            "its own promise": str(searched.fit.guarantee),
        } | error

    def _described(self) -> dict[str, str]:
        return self.in_search() | self.chosen._described()


@dataclass(frozen=True)
class MomentsCertificate(Certificate):
    """The plan of a noisy sum of second moments, and which of the regressions that follow from it this one is.

    The claim is the sum's. All regressions from it cost that once, and each says so.
    """

    mechanism: MomentsRegression  # type: ignore[assignment]

    @classmethod
    def _read_mechanism(cls, record: Mapping[str, Any]) -> MomentsRegression:  # type: ignore[override]
        stated, moments = record["from_moments"], CountsCertificate._read_mechanism(record)
        if not isinstance(moments, SummedMoments):
            raise VerificationError("no theorem speaks of a regression from such a sum")
        names = ("sum_sha256", "target", "regularization", "persons")
        facts = {name: stated[name] for name in names}
        return MomentsRegression(moments, targets=tuple(stated["targets"]), **facts)

    def _heading(self) -> dict[str, Any]:
        regression = self.mechanism
        stated = {
            "sum_sha256": regression.sum_sha256,
            "targets": list(regression.targets),
            "target": regression.target,
            "regularization": regression.regularization,
            "persons": regression.persons,
        }
        return {"from_moments": stated}

    def _stated_task(self) -> dict[str, Any]:
        return {}

    def _theorem(self) -> dict[str, Any]:
        moments = self.mechanism.sum
        return {"mechanism": moments.name, "noise": moments.noise, "page": f"docs/theory/{moments.page}.md"}

    def _title(self) -> str:
        moments = self.mechanism.sum
        return f"ridge regression from {moments.title}, {moments.noise} noise"

    def _described(self) -> dict[str, str]:
        regression = self.mechanism
        shared = f"all regressions from the noisy sum {regression.sum_sha256}, once"
        return {"regression of": regression.target, "paid together with": shared} | super()._described()


_KINDS: dict[str, type[Certificate]] = {"search": SearchCertificate, "from_moments": MomentsCertificate}


def read_certificate(record: Mapping[str, Any]) -> Certificate:
    """The certificate of a release: of one model, of the best of several, or of one from a noisy sum."""
    kind = next((kind for name, kind in _KINDS.items() if name in record), Certificate)
    return kind.from_dict(record)
