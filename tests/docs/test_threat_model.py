"""Pages that point to their tests: they are there."""

from __future__ import annotations

import re

import pytest

from tests.support.doc_pages import ROOT


@pytest.mark.parametrize("name", ["threat-model", "evaluation", "refusals"])
def test_every_test_that_is_named_exists(name: str) -> None:
    page = (ROOT / "docs" / "explanation" / f"{name}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)?test_\w+\.py)`", page))
    assert len(named) >= 10
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).is_file()] == []
