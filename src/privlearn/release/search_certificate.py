"""What a tuned release promises: the whole search, with every candidate's constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privlearn.mechanisms import Search, mechanisms_of
from privlearn.mechanisms.search import Searched
from privlearn.release.certificate import Certificate
from privlearn.release.certified import in_words, read_chosen, read_guarantee

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
        listed, constants = record["search"], record["constants"]
        kind: Any = mechanisms_of(Search)[record["theorem"]["mechanism"]]
        guarantee = read_guarantee(record["claim"])
        candidates = tuple(Certificate._read_mechanism(entry) for entry in listed["candidates"])
        stated = tuple(name for name in kind.chosen_constants if name in constants)
        search = kind(guarantee, candidates, **read_chosen(constants, stated, guarantee))
        parameters = tuple(entry["parameters"] for entry in listed["candidates"])
        return Searched(search, parameters, listed["chosen"], listed["error"])

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


def read_certificate(record: Mapping[str, Any]) -> Certificate:
    """The certificate of a release, tuned or not."""
    kind = SearchCertificate if "search" in record else Certificate
    return kind.from_dict(record)
