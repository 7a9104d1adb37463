"""The notebook of examples runs from top to bottom and leaves a verified release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "digits.ipynb"


def test_the_notebook_of_digits_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), "digits.ipynb", "exec"), names)
        assert not cell["outputs"]
    assert str(names["release"].certificate.guarantee).startswith("(epsilon = 3, delta = 1e-05)")
    assert names["accuracy"] > 0.6
