"""What an audit found: a list of findings, for people and for machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["passed", "failed", "noted"]
_MARKS = {"passed": "ok  ", "failed": "FAIL", "noted": "note"}
_SHORT = 20  # findings that are listed one by one


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Parameters
    ----------
    check : str
        Which check, in a word or two: ``"replay"``, ``"empirical epsilon"``.
    status : {"passed", "failed", "noted"}
        ``noted``: nothing wrong by itself, but somebody should know.
    what : str
        What was compared, on what.
    why : str
        What the outcome means; for a failure, what is broken.
    numbers : mapping
        What was measured and what was allowed.
    """

    check: str
    status: Status
    what: str
    why: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "status": self.status,
            "what": self.what,
            "why": self.why,
            "numbers": dict(self.numbers),
        }

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in self.numbers.items())
        said = f"{_MARKS[self.status]} {self.check}: {self.what}" + (f" ({numbers})" if numbers else "")
        return said + (f"\n       {self.why}" if self.why else "")


def judged(
    check: str, what: str, good: bool, why_not: str, numbers: Mapping[str, float] | None = None
) -> Finding:
    """Passed without a word, or failed with the reason."""
    return Finding(check, "passed" if good else "failed", what, "" if good else why_not, numbers or {})


@dataclass(frozen=True)
class AuditReport:
    """All findings about one subject. It passed if none of them failed.

    Examples
    --------
    >>> report = AuditReport("a mechanism", (Finding("replay", "passed", "minimiser", numbers={"moved": 0.25}),))
    >>> print(report)
    audit of a mechanism: passed, 1 finding
      ok   replay: minimiser (moved 0.25)
    >>> report.passed
    True
    """

    subject: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, subject: str, findings: Iterable[Finding]) -> AuditReport:
        return cls(subject, tuple(findings))

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        findings = [finding.to_dict() for finding in self.findings]
        return {"subject": self.subject, "passed": self.passed, "findings": findings}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def describe(self, *, everything: bool = False) -> str:
        """What failed and what should be known, in full; what passed, counted unless ``everything`` is asked for."""
        count = f"{len(self.findings)} finding{'s' * (len(self.findings) != 1)}"
        verdict = "passed," if self.passed else f"FAILED {len(self.failures)} of"
        passed = [finding for finding in self.findings if finding.status == "passed"]
        shown = [finding for finding in self.findings if everything or finding.status != "passed"]
        counted = [] if everything else Counter(finding.check for finding in passed).items()
        lines = [f"{_MARKS['passed']} {check}: {times} passed" for check, times in counted]
        title = f"audit of {self.subject}: {verdict} {count}"
        return "\n".join([title, *(f"  {line}" for line in [*lines, *shown])])

    def __str__(self) -> str:
        return self.describe(everything=len(self.findings) <= _SHORT)
