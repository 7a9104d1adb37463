"""Formulas as MathML, written at build time: the site needs no script and no network to show them."""

from __future__ import annotations

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_BARE_LETTER = re.compile(r"\\(mathcal|mathbb) (\w)")


def _mathml(formula: str, display: str) -> str:
    """Return MathML for browsers: \\mathcal D as \\mathcal{D}, else no letter is shown; no blanks around bars."""
    written = convert(_BARE_LETTER.sub(r"\\\1{\2}", formula), display=display)
    return written.replace(
        '<mo stretchy="false">&#x0007C;', '<mo stretchy="false" lspace="0" rspace="0">&#x0007C;'
    )


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{_mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True}
