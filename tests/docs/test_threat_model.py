"""The threat model points to its tests, and they are there."""

from __future__ import annotations

import re

from tests.support.doc_pages import ROOT


def test_every_test_that_is_named_exists() -> None:
    page = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+/test_\w+\.py)`", page))
    assert len(named) >= 10
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).is_file()] == []
