"""The page of `privlearn compare`: one file, nothing fetched from elsewhere."""

from __future__ import annotations

from html import escape

from privlearn._version import __version__
from privlearn.study.comparison import METHODS, Array, Comparison
from privlearn.study.comparison_figure import draw

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; }
body { max-width: 64rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.warning { border: 2px solid #a33; border-left-width: 10px; background: #fdf0ee; }
.warning { padding: .6rem 1rem; margin: 1rem 0; }
.models { display: grid; gap: 1rem 2rem; }
.models { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
p span { white-space: nowrap; }
svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; position: sticky; left: 0; background: white; white-space: normal; }
tbody th { font-weight: normal; } tr.default > * { font-weight: bold; } td small { color: #666; font-weight: normal; }
footer { color: #666; font-size: .85rem; margin-top: 2rem; }
"""

_WARNING = """
<div class="warning" role="note"><strong>Looking at this page is not private.</strong> These errors were
measured on the table's own rows, without noise and outside any budget. Make such a page from public or
simulated data only; if the table holds people, do not publish it, and do not choose epsilon or a mechanism
by it.</div>
"""


def write_page(comparison: Comparison) -> str:
    """The whole page as HTML."""
    title = f"Error against epsilon: {escape(comparison.dataset)}"
    figures = "".join(
        f"<section><h2>{escape(model.capitalize())}</h2>{draw(comparison, model)}</section>"
        for model in comparison.errors
    )
    tables = "".join(_table(comparison, model) for model in comparison.errors)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_CSS}</style></head><body>
<h1>{title}</h1>{_WARNING}{_introduction(comparison)}
<div class="models">{figures}</div>
<h2>The numbers</h2><p>Mean over the splits, and in small print its standard deviation.</p>
{tables}{_refusals(comparison)}
<footer>Made by <code>privlearn compare</code>, version {__version__}. RA12, CMS11 and RBHT are the
papers' own calibrations; the others are privlearn's tight ones.</footer>
</body></html>
"""


def _introduction(comparison: Comparison) -> str:
    splits = f"{comparison.seeds} random splits" if comparison.seeds > 1 else "one random split"
    return (
        f"<p>{comparison.rows:,} rows; mean over {splits} into 80 % for training and 20 % for the test. "
        f"Gaussian methods promise delta = <span>{comparison.delta:g}</span>, the others delta = 0; neighbours: "
        "replace_one. The dashed line is the same model without privacy, the dotted one always answers the "
        "majority class.</p>"
    )


def _table(comparison: Comparison, model: str) -> str:
    head = "".join(f'<th scope="col">{epsilon:g}</th>' for epsilon in comparison.epsilons)
    rows = "".join(
        _row(name, [_cell(errors) for errors in found], is_default=name == METHODS[0].name)
        for name, found in comparison.errors[model].items()
    )
    columns = len(comparison.epsilons)
    rows += _row("no privacy", [_cell(comparison.plain[model])] * columns)
    rows += _row("always the majority class", [_cell(comparison.majority)] * columns)
    return (
        f'<h3>{escape(model.capitalize())}: test error by epsilon</h3><div class="scroll"><table>'
        f'<thead><tr><th scope="col">method</th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _row(name: str, cells: list[str], is_default: bool = False) -> str:
    marked = ' class="default"' if is_default else ""
    return f'<tr{marked}><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def _cell(errors: Array) -> str:
    return f"<td>{errors.mean():.3f} <small>{errors.std():.3f}</small></td>"


def _refusals(comparison: Comparison) -> str:
    return "".join(f"<p>{escape(name)}: {escape(reason)}.</p>" for name, reason in comparison.refused.items())
