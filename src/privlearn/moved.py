"""Names that version 0.1 documented and that are elsewhere now: they work until version 0.3, and say so."""

from __future__ import annotations

import warnings


def say_moved(old: str, new: str) -> None:
    warnings.warn(
        f"{old} is {new} now, and goes away with version 0.3: write that instead",
        DeprecationWarning,
        stacklevel=3,
    )
