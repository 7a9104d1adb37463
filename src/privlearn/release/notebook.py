"""Facts as a notebook shows them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def as_html(title: str, facts: Mapping[str, object]) -> str:
    """A title, and a table of facts to open."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
        f'<td style="text-align: left; overflow-wrap: anywhere">{escape(str(fact))}</td></tr>'
        for name, fact in facts.items()
    )
    return f"<details open><summary><strong>{escape(title)}</strong></summary><table>{rows}</table></details>"
