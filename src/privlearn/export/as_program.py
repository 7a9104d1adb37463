"""Write a release as a program without dependencies: a page with a form, or one Python file.

The page takes raw cells and shows the prediction and the contribution of each column; it sends no requests. The file is
`standalone.py` with the grammar of cells and the scorecard in it.
"""

from __future__ import annotations

import datetime
from html import escape
from importlib.resources import files

from privlearn.errors import ReleaseError
from privlearn.export.scorecard import Amounts, ListInput, NumberInput, Scorecard
from privlearn.export.target import ExportTarget, comment_lines, register_target
from privlearn.release.html import BLUE, ORANGE, page

_CSS = f"""
form {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .6rem 1.2rem; }}
label {{ display: block; }}
input, select {{ font: inherit; width: 100%; box-sizing: border-box; }}
#message {{ font-size: 1.3rem; font-weight: 600; }} .bar {{ display: inline-block; height: .8rem; }}
#parts td:last-child {{ text-align: left; }} .up {{ background: {BLUE}; }} .down {{ background: {ORANGE}; }}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@register_target
class HtmlTarget(ExportTarget):
    name = "html-calculator"
    suffix = ".html"

    def write(self, card: Scorecard) -> bytes:
        title = f"Calculator: {card.about['target'] or 'a prediction'}"
        fields = "".join(map(_field, card.inputs))
        script = files("privlearn.export").joinpath("calculator.js").read_text(encoding="utf-8")
        model = card.model_dump_json().replace("<", "\\u003c")  # no tag may end the script early
        origin = "<br>".join(map(escape, comment_lines(card)))
        body = f"""
<form id="form" autocomplete="off">{fields}</form>
<h2>Result</h2><p id="message" role="status"></p>
<div id="result"><ul id="chances"></ul>
<h2>What adds up to it</h2><p>{_meaning(card)}</p>
<div class="scroll"><table><tbody id="parts"></tbody></table></div></div>
<footer><p>What is typed here stays here: the page makes no request. The model's coefficients carry noise, so
small parts mean little.</p><p>{origin}</p></footer>
<script type="application/json" id="model">{model}</script>
<script>{script}</script>"""
        policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        return page(title, body, css=_CSS, head=policy).encode()


def _meaning(card: Scorecard) -> str:
    """Return a sentence on the unit of the contributions."""
    if isinstance(card.outcome, Amounts):
        return "In the units of what is predicted, counted from the middle of its bounds."
    labels = card.outcome.labels
    if len(labels) == 2:
        return f"The sum is the score; the larger it is, the likelier is <em>{escape(str(labels[1]))}</em>."
    return "The sum is the score of the predicted class."


def _field(column: NumberInput | ListInput) -> str:
    name = escape(column.name)
    notes = [note for note in (column.description, column.unit and f"in {column.unit}") if note]
    about = f" <small>{escape(', '.join(notes))}</small>" if notes else ""
    field = _choices(column) if isinstance(column, ListInput) else _number(column)
    return f"<label>{name}{about}{field.replace('COLUMN', name)}</label>"


def _choices(column: ListInput) -> str:
    options = [
        f'<option value="{index}">{escape(str(value))}</option>' for index, value in enumerate(column.values)
    ]
    if column.unknown == "other":
        options.append(f'<option value="{len(column.values)}">(other)</option>')
    if column.missing == "zero":
        options.append('<option value="">(missing)</option>')
    return f'<select data-column="COLUMN">{"".join(options)}</select>'


def _number(column: NumberInput) -> str:
    if column.lower is None or column.upper is None:
        return '<input data-column="COLUMN" type="number" step="any" value="0">'
    middle = (column.lower + column.upper) / 2.0
    ends = [column.lower, column.upper, middle]
    if column.type == "date":
        lower, upper, start = (
            (datetime.date(1970, 1, 1) + datetime.timedelta(int(end))).isoformat() for end in ends
        )
        return f'<input data-column="COLUMN" type="date" min="{lower}" max="{upper}" value="{start}">'
    lower, upper, start = (f"{end:.12g}" for end in ends)
    return (
        f'<input data-column="COLUMN" type="number" step="any" min="{lower}" max="{upper}" value="{start}">'
        f"<small>{lower} to {upper}</small>"
    )


_EMPTY = 'json.loads("null")'
_GRAMMAR = "from privlearn.data.schema.cell_grammar import BLANKS, HOURS, CellRules, UnreadableCell\n"
_FUTURE = "from __future__ import annotations\n"


@register_target
class PythonTarget(ExportTarget):
    name = "python"
    suffix = ".py"
    reads_texts = True

    def write(self, card: Scorecard) -> bytes:
        source = files("privlearn.export").joinpath("standalone.py").read_text(encoding="utf-8")
        grammar = files("privlearn.data.schema").joinpath("cell_grammar.py").read_text(encoding="utf-8")
        if source.count(_EMPTY) != 1 or source.count(_GRAMMAR) != 1 or grammar.count(_FUTURE) != 1:
            raise ReleaseError("the installed privlearn is damaged. Install it again.")
        source = source.replace(_GRAMMAR, grammar.split(_FUTURE)[1])
        filled = f"json.loads({card.model_dump_json()!a})"
        heading = "".join(f"# {line}\n" for line in comment_lines(card))
        return (heading + source.replace(_EMPTY, filled)).encode()
