"""One Python file without dependencies: `standalone.py` with the scorecard in it."""

from __future__ import annotations

from importlib.resources import files

from privlearn.errors import ReleaseError
from privlearn.export.scorecard import Scorecard
from privlearn.export.target import ExportTarget, comment_lines, register_target

_EMPTY = 'json.loads("null")'


@register_target
class PythonTarget(ExportTarget):
    name = "python"
    suffix = ".py"

    def write(self, card: Scorecard) -> bytes:
        source = files("privlearn.export").joinpath("standalone.py").read_text(encoding="utf-8")
        if source.count(_EMPTY) != 1:
            raise ReleaseError("the installed privlearn is damaged: install it again")
        filled = f"json.loads({card.model_dump_json()!a})"
        heading = "".join(f"# {line}\n" for line in comment_lines(card))
        return (heading + source.replace(_EMPTY, filled)).encode()
