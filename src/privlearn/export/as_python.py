"""Write one Python file without dependencies: `standalone.py` with the grammar of cells and the scorecard in it."""

from __future__ import annotations

from importlib.resources import files

from privlearn.errors import ReleaseError
from privlearn.export.scorecard import Scorecard
from privlearn.export.target import ExportTarget, comment_lines, register_target

_EMPTY = 'json.loads("null")'
_GRAMMAR = "from privlearn.data.schema.cell_grammar import BLANKS, CellRules, UnreadableCell\n"
_FUTURE = "from __future__ import annotations\n"


@register_target
class PythonTarget(ExportTarget):
    name = "python"
    suffix = ".py"

    def write(self, card: Scorecard) -> bytes:
        source = files("privlearn.export").joinpath("standalone.py").read_text(encoding="utf-8")
        grammar = files("privlearn.data.schema").joinpath("cell_grammar.py").read_text(encoding="utf-8")
        if source.count(_EMPTY) != 1 or source.count(_GRAMMAR) != 1 or grammar.count(_FUTURE) != 1:
            raise ReleaseError("the installed privlearn is damaged. Install it again.")
        source = source.replace(_GRAMMAR, grammar.split(_FUTURE)[1])
        filled = f"json.loads({card.model_dump_json()!a})"
        heading = "".join(f"# {line}\n" for line in comment_lines(card))
        return (heading + source.replace(_EMPTY, filled)).encode()
