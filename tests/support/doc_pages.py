"""The documentation's pages and the fenced blocks in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)\s*$", re.DOTALL | re.MULTILINE
)
_OPTION = re.compile(r"\A:(\w+):[ ]*(.*)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the file name in its caption, if any."""

    language: str
    text: str
    caption: str | None


def pages() -> list[Path]:
    """Return every Markdown page of the repository: those at the root and those under docs."""
    documents = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    return [*sorted(ROOT.glob("*.md")), *sorted(documents)]


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    return [_block(match) for match in _FENCE.finditer(page.read_text(encoding="utf-8"))]


def without_blocks(page: Path) -> str:
    """Return the page's prose, for tests that must not look into code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _block(match: re.Match[str]) -> Block:
    language = match["info"].removeprefix("{code-block}").strip()
    text, options = match["body"], {}
    if match["info"].startswith("{"):
        while option := _OPTION.match(text):
            options[option[1]] = option[2]
            text = text[option.end() :]
    return Block(language, text.lstrip("\n"), options.get("caption"))
