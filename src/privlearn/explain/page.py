"""HTML page of a release's effects: what is above the noise, and what is not."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from privlearn._version import __version__
from privlearn.explain.drawings import MAX_VALUES, column_figure, importance_figure, limits_of, pair_figure
from privlearn.release.html import page

if TYPE_CHECKING:
    from privlearn.explain.column_effects import Effects

MAX_FIGURES = 40  # of columns, and of pairs

_CSS = "body { max-width: 72rem; } p { max-width: 46rem; } .grey svg { filter: grayscale(1); }"


def write_page(effects: Effects) -> str:
    """Return the whole page as HTML; it needs no other file."""
    schema, certificate = effects.schema, effects.release.certificate
    target = "" if schema.target is None else f" of {schema.target.name}"
    guarantee = f"""
<h2>What is guaranteed</h2><p>{escape(str(certificate.guarantee))}. {escape(certificate.guarantee.in_words())}
This page was computed from the released file alone, at no further cost.</p>
<footer>Created by <code>privlearn inspect</code>, version {__version__}, from the release
{effects.release.digest[:12]}.</footer>"""
    title = f"What a model{target} learnt from {schema.name}"
    return page(title, page_part(effects) + guarantee, css=_CSS)


def page_part(effects: Effects) -> str:
    """Return the part that notebooks and the server's pages show too."""
    return "".join(
        [
            _summary(effects),
            importance_figure(effects),
            _columns(effects),
            _pairs(effects),
            _below_noise(effects),
        ]
    )


def _summary(effects: Effects) -> str:
    return f"<p>{escape(effects.summary)}</p><p>{escape(effects.meaning)}</p>"


def _columns(effects: Effects) -> str:
    drawn = [effect for effect in effects.columns if effect.above_noise][:MAX_FIGURES]
    if not drawn:
        return ""
    limits = limits_of(drawn)
    figures = "".join(column_figure(effects, effect, limits) for effect in drawn)
    long = [effect.name for effect in drawn if len(next(iter(effect.bands.values())).names) > MAX_VALUES]
    cut = f"<p>Of {escape(', '.join(long))} the first {MAX_VALUES} values are drawn.</p>" if long else ""
    return (
        f"<h2>Effects above the noise</h2><p>An effect is what a column adds to the score ({escape(effects.unit)}), "
        "less its mean over the column's values, in synthetic rows of the schema in which only this column changes. "
        f'Each interval holds by itself.</p><div class="figures">{figures}</div>{cut}'
    )


def _pairs(effects: Effects) -> str:
    drawn = [effect for effect in effects.pairs if effect.above_noise][:MAX_FIGURES]
    figures = "".join(pair_figure(effect, label) for effect in drawn for label in effect.grids)
    return f'<h2>Pairs above the noise</h2><div class="figures">{figures}</div>' if drawn else ""


def _below_noise(effects: Effects) -> str:
    if not effects.below_noise:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in effects.below_noise)
    hidden = [effect for effect in effects.columns if not effect.above_noise]
    drawn = [effect for effect in hidden if effects.is_informative(effect)][:MAX_FIGURES]
    limits = limits_of(drawn)
    figures = "".join(column_figure(effects, effect, limits) for effect in drawn)
    curves = f'<div class="figures">{figures}</div>'
    curves = (
        f'<details class="grey"><summary>Their curves, with intervals</summary>{curves}</details>'
        if drawn
        else ""
    )
    return (
        "<h2>Not above the noise</h2><p>The file does not show whether these matter. Each moves the score on average "
        f"by at most the number given.</p><ul>{items}</ul>{curves}"
    )
