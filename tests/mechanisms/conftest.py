"""Shared by the tests of mechanisms that answer in sessions."""

from __future__ import annotations

import pytest

from privlearn.budget.storage import sqlite


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistical tests write thousands of answers and survive no power loss: they need not wait for the disk."""
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")
