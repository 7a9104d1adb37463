"""Settings of the documentation site: `make docs` builds it, without network access."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from privlearn._version import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "privlearn"
release = __version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "command_help",
    "http_reference",
    "mathml",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"privlearn {release}"
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False

_OUTSIDE_LITERALS = re.compile(r"(``.*?``)")


def _escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write norms as |w|, which reStructuredText would take for substitutions."""
    for number, line in enumerate(lines):
        parts = _OUTSIDE_LITERALS.split(line)
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[number] = "".join(parts)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _escape_bars)
