"""The command line where some libraries cannot be imported: python -m tests.support.blocked NAMES ARGUMENTS."""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib.abc import MetaPathFinder
from typing import Any


class Refuses(MetaPathFinder):
    """As if they were not installed."""

    def __init__(self, libraries: Collection[str]) -> None:
        self._libraries = libraries

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname.partition(".")[0] in self._libraries:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def block(libraries: Collection[str]) -> None:
    sys.meta_path.insert(0, Refuses(libraries))


if __name__ == "__main__":
    block(sys.argv[1].split(","))
    from privlearn.cli import main

    main(sys.argv[2:])
