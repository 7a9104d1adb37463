"""What can be computed about a page's accessibility, in the browser itself."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

from playwright.sync_api import Page

_UNLABELLED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea")]
  .filter(field => !field.labels.length || !field.labels[0].innerText.trim()).map(field => field.outerHTML)"""

_UNNAMED = """() => [...document.querySelectorAll("a, button, [role=img], [role=meter], [role=region]")]
  .filter(e => !(e.innerText || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || "").trim())
  .map(e => e.outerHTML)"""

_HEADINGS = (
    """() => [...document.querySelectorAll("h1, h2, h3, h4")].map(heading => Number(heading.tagName[1]))"""
)

_DANGLING = """() => {
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  const named = [...document.querySelectorAll("[aria-labelledby], [aria-describedby], [for]")].flatMap(e =>
    ["aria-labelledby", "aria-describedby", "for"].flatMap(name => (e.getAttribute(name) || "").split(/\\s+/)));
  return [...ids.filter((id, place) => ids.indexOf(id) !== place), ...named.filter(id => id && !ids.includes(id))];
}"""

# WCAG 2: contrast of every text with what is painted behind it; 4.5, or 3 for large text.
_FAINT = """() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return [...n.slice(0, 3), n[3] ?? 1]; };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const linear = c => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = e => { const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement, style = getComputedStyle(e);
    if (!texts.currentNode.data.trim() || !e.getClientRects().length) continue;
    if (e.closest(".hidden, .skip, title, desc, option")) continue;
    const ground = behind(e), ink = over(parse(e.closest("svg") ? style.fill : style.color), ground);
    const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a), size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < least) found.push(`${texts.currentNode.data.trim()}: ${ratio.toFixed(2)}`);
  }
  return found;
}"""


def problems_of(page: Page) -> list[Any]:
    """Everything that is wrong with a page, of what can be computed."""
    found = [page.evaluate(check) for check in (_UNLABELLED, _UNNAMED, _DANGLING, _FAINT)]
    levels = page.evaluate(_HEADINGS)
    jumps = [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1]
    firsts = [] if levels and levels[0] == 1 and levels.count(1) == 1 else [f"headings {levels}"]
    language = [] if page.locator("html[lang]").count() else ["no language"]
    title = [] if page.title().strip() else ["no title"]
    return list(chain.from_iterable(found)) + jumps + firsts + language + title


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def focused_outline(page: Page) -> str:
    """Return the outline that the browser draws around the focused element."""
    return str(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
