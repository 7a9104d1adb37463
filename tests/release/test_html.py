"""The HTML kit: text is escaped, drawings are described, and colours are written in one module."""

from __future__ import annotations

import re
from pathlib import Path

from privlearn.release import html

SOURCE = Path(html.__file__).parents[1]


def test_text_is_escaped() -> None:
    page = html.page(
        "<b>", html.table(("<i>",), [("<u>", "<s>")], "<em>") + html.property_table({"<q>": "<p>"})
    )
    assert not re.search("<(b|i|u|s|em|q)>", page)
    assert '"&lt;&quot;"' in html.element("rect", fill='<"')
    assert "&lt;x&gt;" in html.svg_text(0, 0, "<x>")


def test_a_figure_is_described_and_a_drawing_without_label_is_skipped() -> None:
    assert 'role="img" aria-label="Curve. 1 at 2"' in html.figure("Curve", "1 at 2", 10, 10, "")
    assert 'aria-hidden="true"' in html.svg(10, 10, "")


def test_colours_are_written_once() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if re.search(r'"#[0-9a-fA-F]{6}"', path.read_text())]
    assert {path.relative_to(SOURCE).as_posix() for path in modules} == {
        "release/html.py",
        "papers/reporting.py",  # black
    }


def test_pages_and_the_server_share_their_colours() -> None:
    declared = re.compile(r"--([a-z-]+): (#[0-9a-f]+)")
    served = (SOURCE / "server/pages/static/style.css").read_text()
    kit = set(declared.findall(html.CSS)) - {("page", "#fff")}  # the server has cards on a tinted page
    assert kit <= set(declared.findall(served))
