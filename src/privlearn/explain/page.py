"""Effects of a release's columns as a page: what is above the noise, and what cannot be told from it."""

from __future__ import annotations

from html import escape

from privlearn._version import __version__
from privlearn.explain.column_effects import Effects
from privlearn.explain.drawings import MOST_VALUES, column_figure, importance_figure, limits_of, pair_figure

MOST_FIGURES = 40

_CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p { max-width: 46rem; }
.figures { display: grid; gap: 1.5rem 2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
figure { margin: 0; max-width: 32rem; } figcaption { color: #444; font-size: .9rem; }
svg { width: 100%; height: auto; }
footer { color: #666; font-size: .85rem; margin-top: 2rem; }
@media (prefers-color-scheme: dark) {
  body { background: #10151c; color: #e7ebf1; }
  figcaption, footer { color: #a9b4c2; }
}
"""


def write_page(effects: Effects) -> str:
    """The whole page as HTML; it needs no other file."""
    schema, certificate = effects.schema, effects.release.certificate
    target = "" if schema.target is None else f" of {escape(schema.target.name)}"
    title = f"What a model{target} learnt from {escape(schema.name)}"
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{_CSS}</style></head><body>
<h1>{title}</h1>{page_part(effects)}
<h2>What is promised</h2><p>{escape(str(certificate.guarantee))}. {escape(certificate.guarantee.in_words())}
This page was made from the released file alone, and costs nothing more.</p>
<footer>Made by <code>privlearn inspect</code>, version {__version__}, from the release
{effects.release.digest[:12]}.</footer>
</body></html>
"""


def page_part(effects: Effects) -> str:
    """What a notebook and a page of the server show too."""
    return "".join(
        [_found(effects), importance_figure(effects), _columns(effects), _pairs(effects), _drowned(effects)]
    )


def _found(effects: Effects) -> str:
    return f"<p>{escape(effects.summary)}</p><p>{escape(effects.promise)}</p>"


def _columns(effects: Effects) -> str:
    shown = [effect for effect in effects.columns if effect.above_noise][:MOST_FIGURES]
    if not shown:
        return ""
    limits = limits_of(shown)
    figures = "".join(column_figure(effects, effect, limits) for effect in shown)
    long = [effect.name for effect in shown if len(next(iter(effect.bands.values())).names) > MOST_VALUES]
    cut = f"<p>Of {escape(', '.join(long))} the first {MOST_VALUES} values are drawn.</p>" if long else ""
    return (
        f"<h2>Effects above the noise</h2><p>An effect is what a column adds to the score ({escape(effects.unit)}), "
        "less its mean over the column's values, in made-up rows of the schema in which only this column changes. Each "
        f'interval holds by itself.</p><div class="figures">{figures}</div>{cut}'
    )


def _pairs(effects: Effects) -> str:
    shown = [effect for effect in effects.pairs if effect.above_noise][:MOST_FIGURES]
    figures = "".join(pair_figure(effect, label) for effect in shown for label in effect.grids)
    return f'<h2>Pairs above the noise</h2><div class="figures">{figures}</div>' if shown else ""


def _drowned(effects: Effects) -> str:
    if not effects.drowned:
        return ""
    listed = "".join(f"<li>{escape(line)}</li>" for line in effects.drowned)
    return (
        "<h2>Not above the noise</h2><p>Of these the file does not tell whether they matter. Each could move the score "
        f"by as much as it says here, on average.</p><ul>{listed}</ul>"
    )
