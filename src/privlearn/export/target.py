"""A target of exports: one file that writes a scorecard in a language of its own, and registers itself."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from privlearn.errors import InvalidParameter, did_you_mean, shown
from privlearn.export.fold import scorecard
from privlearn.export.scorecard import Scorecard
from privlearn.extensions import enlist
from privlearn.release.artifact import Release


class ExportTarget(ABC):
    """Settings of one target are the parameters of its class.

    Attributes
    ----------
    name : str
        As in ``privlearn export --to NAME``.
    suffix : str
        Of a file's name.
    is_text : bool, default=True
        Whether a terminal can show it.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    is_text: ClassVar[bool] = True

    @abstractmethod
    def write(self, card: Scorecard) -> bytes:
        """A file's content. It holds what the release holds, and nothing else."""


TARGETS: dict[str, type[ExportTarget]] = {}

Target = TypeVar("Target", bound=type[ExportTarget])


def register_target(kind: Target) -> Target:
    """Make a target known by its name."""
    enlist(TARGETS, kind.name, kind, "target of exports", ("suffix",))
    return kind


def export_release(release: Release, to: str, **settings: Any) -> bytes:
    """A release in another language: raw columns in, predictions and probabilities out, the encoding included.

    Parameters
    ----------
    release : Release
        Of a linear model without text columns.
    to : {"onnx", "sql", "json", "python", "html-calculator"}
    **settings
        Of that target; ``table`` and ``keep`` for SQL.

    Returns
    -------
    bytes
        A file's content. It depends on the release alone, so it costs nothing.
    """
    return target_named(to, settings).write(scorecard(release))


def target_named(to: str, settings: dict[str, Any]) -> ExportTarget:
    if to not in TARGETS:
        meant = did_you_mean(to, TARGETS)
        raise InvalidParameter(f"there is no export to {shown(to)}: {', '.join(TARGETS)}{meant}")
    kind = TARGETS[to]
    unknown = [name for name in settings if name not in inspect.signature(kind).parameters]
    if unknown:
        raise InvalidParameter(f"an export to {to} has no setting {unknown[0]!r}: leave it out")
    return kind(**settings)


def comment_lines(card: Scorecard) -> list[str]:
    """Where an export comes from, for its first lines."""
    about = card.about
    promise = about["promise"] if about["private"] else "NOT PRIVATE: nothing is promised"
    lines = [
        f"Model of {about['target'] or 'a target'} in {about['dataset'] or 'plain arrays'}, by {about['made_with']}.",
        f"Promise: {promise}.",
        f"Release SHA-256:     {about['release_sha256']}",
        f"Certificate SHA-256: {about['certificate_sha256']}",
    ]
    if about.get("missing"):
        lines.insert(1, about["missing"])
    return [
        " ".join(line.split()) for line in lines
    ]  # a name may hold a line break, which would end a comment
