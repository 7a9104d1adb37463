"""What all drawings share: their style, and how they become files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from privlearn.errors import InvalidParameter, PrivlearnError, shown

STYLE = {
    "font.size": 10,
    "font.family": "sans-serif",
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and copied
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_KINDS = ("svg", "png", "pdf")


def require_matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise PrivlearnError("drawing needs matplotlib: pip install 'privlearn[plots]'") from None
    return matplotlib


def image_of(figure: Any, kind: str) -> bytes:
    """A drawing as the content of a file of that kind, the same bytes at every run."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=_NO_METADATA if kind == "svg" else None, dpi=150)
    return buffer.getvalue()


def kind_of_image(path: Path) -> str:
    """svg, png or pdf, by the name's ending."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _KINDS:
        raise InvalidParameter(f"--out must end in .{', .'.join(_KINDS)}, not {shown(path.name)}")
    return kind
