"""What the fixtures of the command line's tests hand out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    code: int
    stdout: str
    stderr: str

    @property
    def told(self) -> str:
        return self.stdout + self.stderr


Run = Callable[..., Result]


@dataclass(frozen=True)
class Census:
    """A folder with a table, its schema and new rows without the target."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def table(self) -> Path:
        return self.folder / "census.csv"

    @property
    def schema(self) -> Path:
        return self.folder / "census.schema.yaml"

    @property
    def new_rows(self) -> Path:
        return self.folder / "new.csv"

    @property
    def ledger(self) -> Path:
        return self.folder / "budgets.db"
