"""The scorecard itself, as JSON; `Scorecard.model_json_schema()` describes it."""

from __future__ import annotations

from privlearn.export.scorecard import Scorecard
from privlearn.export.target import ExportTarget, register_target


@register_target
class JsonTarget(ExportTarget):
    name = "json"
    suffix = ".json"

    def write(self, card: Scorecard) -> bytes:
        return card.model_dump_json(indent=1).encode() + b"\n"
