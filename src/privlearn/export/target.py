"""Targets of exports: classes that write a scorecard in one language, and their registry. JSON is one of them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.export.fold import scorecard
from privlearn.export.scorecard import Scorecard
from privlearn.imports import register
from privlearn.release.artifact import Release


class ExportTarget(ABC):
    """A language that scorecards are written in; the parameters of a subclass are its settings.

    Attributes
    ----------
    name : str
        As in ``privlearn export --to NAME``.
    suffix : str
        Suffix of file names.
    is_text : bool, default=True
        Whether a terminal can show the result.
    reads_texts : bool, default=False
        Whether models with columns of text can be written.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    is_text: ClassVar[bool] = True
    reads_texts: ClassVar[bool] = False

    @abstractmethod
    def write(self, card: Scorecard) -> bytes:
        """Return the content of a file, which depends on the release alone."""


TARGETS: dict[str, type[ExportTarget]] = {}

Target = TypeVar("Target", bound=type[ExportTarget])


def register_target(kind: Target) -> Target:
    """Register a target under its name."""
    register(TARGETS, kind.name, kind, "target of exports", ("suffix",))
    return kind


@register_target
class JsonTarget(ExportTarget):
    """The scorecard itself; `Scorecard.model_json_schema()` describes it."""

    name = "json"
    suffix = ".json"
    reads_texts = True

    def write(self, card: Scorecard) -> bytes:
        return card.model_dump_json(indent=1).encode() + b"\n"


def export_release(release: Release, to: str, **settings: Any) -> bytes:
    """Return a release in another language: raw columns in, predictions and probabilities out, encoding included.

    Parameters
    ----------
    release : Release
        A linear model; with text columns for ``json`` and ``python`` only.
    to : {"onnx", "sql", "json", "python", "html-calculator"}
    **settings
        Settings of the target: ``table`` and ``keep`` for SQL.

    Returns
    -------
    bytes
        The content of a file. It depends on the release alone, so it costs nothing.
    """
    target, card = target_named(to, settings), scorecard(release)
    if card.texts and not target.reads_texts:
        raise InvalidParameter(
            f"column {card.texts[0].name!r} is text, which an export to {to} cannot read. Export to python or json, "
            "or predict with Release.load(path).predict(table)."
        )
    return target.write(card)


def target_named(to: str, settings: dict[str, Any]) -> ExportTarget:
    if to not in TARGETS:
        meant = did_you_mean(to, TARGETS)
        raise InvalidParameter(f"unknown export {preview(to)}. Use one of: {', '.join(TARGETS)}{meant}")
    kind = TARGETS[to]
    unknown = [name for name in settings if name not in inspect.signature(kind).parameters]
    if unknown:
        raise InvalidParameter(f"an export to {to} has no setting {unknown[0]!r}. Omit it.")
    return kind(**settings)


def comment_lines(card: Scorecard) -> list[str]:
    """Return the first lines of an export: its origin and guarantee."""
    about = card.about
    guarantee = about["guarantee"] if about["private"] else "NOT PRIVATE, no guarantee"
    lines = [
        f"Model of {about['target'] or 'a target'} in {about['dataset'] or 'plain arrays'}, by {about['made_with']}.",
        f"Guarantee: {guarantee}.",
        f"Release SHA-256:     {about['release_sha256']}",
        f"Certificate SHA-256: {about['certificate_sha256']}",
    ]
    # A name may contain a line break, which would end a comment.
    return [" ".join(line.split()) for line in lines]
