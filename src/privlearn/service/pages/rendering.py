"""Templates, and what every one of them may use."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from privlearn._version import __version__
from privlearn.service.keys import Caller
from privlearn.service.pages import words
from privlearn.service.pages.figures import meter

STATIC = Path(__file__).parent / "static"
_MENUS = {
    "analyst": (
        ("/desk", "Desk"),
        ("/sessions", "Sessions"),
        ("/releases", "Releases"),
        ("/verify", "Verify"),
    ),
    "holder": (
        ("/console", "Budgets"),
        ("/sessions", "Sessions"),
        ("/releases", "Releases"),
        ("/keys", "Keys"),
        ("/log", "Log"),
    ),
}


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("privlearn.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty place on a page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        name: getattr(words, name) for name in ("fact", "number", "number_below", "moment", "size")
    }
    made.globals |= {
        "meter": meter,
        "said": words.said,
        "version": __version__,
        "digest": _digest(),
    }
    return made


def _digest() -> str:
    """Of all that pages load: a new version is fetched though an old one was kept."""
    content = b"".join(path.read_bytes() for path in sorted(STATIC.iterdir()))
    return sha256(content).hexdigest()[:12]


_TEMPLATES = _environment()


def render(
    request: Request, caller: Caller | None, template: str, status: int = 200, **shown: Any
) -> HTMLResponse:
    """A page."""
    menu = _MENUS[caller.role] if caller else ()
    content = _TEMPLATES.get_template(template).render(
        caller=caller, menu=menu, here=request.url.path, **{"errors": {}, **shown}
    )
    return HTMLResponse(content, status)
