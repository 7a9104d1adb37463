"""The HTML kit: one palette, one style sheet, and functions for pages, tables, figures and SVG shapes.

Everything that privlearn shows as HTML is built from it: pages that stand alone (effects, evaluations, descriptions,
reports, comparisons), notebook views, and figures on the server's pages. Pages are one file without requests. The kit
uses the standard library only, since it is part of the smallest installation, which has no template engine.

Parameters called ``body``, ``cells`` or ``content`` are HTML; all others are plain text and are escaped here.

>>> element("text", "a &lt; b", x=1.0, text_anchor="end")
'<text x="1" text-anchor="end">a &lt; b</text>'
>>> table(("class", "rate"), [("yes", "0.9")])
'<div class="scroll"><table><thead><tr><th scope="col">class</th><th scope="col">rate</th></tr></thead><tbody><tr><th scope="row">yes</th><td>0.9</td></tr></tbody></table></div>'
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

# The palette of Okabe and Ito, which colour-blind readers can distinguish; olive replaces its yellow, which is too
# pale for lines.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
OLIVE, SKY, YELLOW = "#8A7A00", "#56B4E9", "#E69F00"
COLOURS = (BLUE, ORANGE, GREEN, PINK, OLIVE, SKY, YELLOW)
GREY, GRID = "#777777", "#dddddd"

CSS = """
:root { --page: #fff; --text: #1a2230; --muted: #535e6e; --line: #d5dbe3; --bad: #a3211b; --bad-soft: #fdebe9; }
@media (prefers-color-scheme: dark) {
  :root { --page: #10151c; --text: #e7ebf1; --muted: #a9b4c2; --line: #344051; --bad: #ff9d94; --bad-soft: #3a1f20; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); }
body { max-width: 64rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.warning { border: 2px solid var(--bad); border-left-width: 10px; background: var(--bad-soft); }
.warning { padding: .6rem 1rem; margin: 1rem 0; }
.figures { display: grid; gap: 1rem 2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
figure { margin: 0; max-width: 32rem; } figcaption, label small { color: var(--muted); font-size: .9rem; }
svg { width: 100%; height: auto; } td svg { width: auto; display: block; }
p span { white-space: nowrap; }
.scroll { overflow-x: auto; margin-bottom: 1rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--page); }
th:first-child { min-width: 7rem; overflow-wrap: anywhere; } thead th, th:first-child { white-space: normal; }
tbody th { font-weight: normal; }
td small { color: var(--muted); font-weight: normal; }
footer { color: var(--muted); font-size: .85rem; margin-top: 2rem; overflow-wrap: anywhere; }
"""


def page(title: str, body: str, *, css: str = "", head: str = "") -> str:
    """Return a page that stands alone; ``css`` is added to the shared style sheet, ``head`` to the head."""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">{head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{CSS}{css}</style></head><body>
<h1>{escape(title)}</h1>{body}
</body></html>
"""


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; underscores in names of attributes become hyphens, and numbers have four digits.

    ``class_`` is the attribute class; an attribute that is None is left out.
    """
    parts = [
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return f"<{tag}{''.join(parts)}>{content}</{tag}>" if content else f"<{tag}{''.join(parts)}/>"


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> str:
    """Return a table of plain text, below a heading if ``title`` is given."""
    return html_table(headings, ([escape(cell) for cell in row] for row in rows), title)


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> str:
    """Return a table whose cells are HTML; the first cell of a row is its heading."""
    body = "".join(table_row(*cells) for cells in rows)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return (
        f'{heading}<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def table_row(first: str, *cells: str) -> str:
    """Return a row of HTML cells with a heading."""
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def property_table(properties: Mapping[str, object]) -> str:
    """Return names and values as a table without headings."""
    rows = "".join(table_row(escape(name), escape(str(value))) for name, value in properties.items())
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def svg(width: int, height: int, content: str, *, label: str = "") -> str:
    """Return a drawing; without a label, screen readers skip it."""
    described = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    size: dict[str, object] = {"width": width, "viewBox": f"0 0 {width} {height}", **described}
    if not label:
        size["height"] = height
    return element("svg", content, **size, font_size=11, font_family="sans-serif", fill="currentColor")


def figure(caption: str, description: str, width: int, height: int, content: str) -> str:
    """Return a drawing with a caption; ``description`` has the same numbers for screen readers."""
    drawing = svg(width, height, content, label=f"{caption}. {description}")
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def svg_text(x: float, y: float, text: str, anchor: str = "start", colour: str | None = None) -> str:
    """Return text in a drawing; by default in the colour of the page's text."""
    return element("text", escape(text), x=float(x), y=float(y), text_anchor=anchor, fill=colour)


def svg_points(points: Iterable[tuple[float, float]]) -> str:
    """Return points as polylines and polygons write them."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def notebook_view(title: str, properties: Mapping[str, object]) -> str:
    """Return a title and a table of properties, as notebooks show objects; style sheets are not available there."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
        f'<td style="text-align: left; overflow-wrap: anywhere">{escape(str(value))}</td></tr>'
        for name, value in properties.items()
    )
    return f"<details open><summary><strong>{escape(title)}</strong></summary><table>{rows}</table></details>"
