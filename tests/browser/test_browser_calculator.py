"""The calculator page, typed into by a real browser: it says what `predict` says, and asks nobody."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from privlearn.export import export_release
from tests.support.export_cases import dirty_table, exported_releases, made_up_models, with_model
from tests.support.export_runners import predicted, run_calculator

ROWS = 300


def _opened(browser: Browser, folder: Path, release: Any) -> Page:
    path = folder / "calculator.html"
    path.write_bytes(export_release(release, "html-calculator"))
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(path.as_uri())
    assert asked == [path.as_uri()]
    return page


@pytest.mark.parametrize(
    "case", ["two", "several", "number", "centred", "odds", "decided", "one against the rest"]
)
def test_the_page_agrees(browser: Browser, tmp_path: Path, case: str) -> None:
    trained = exported_releases()
    release = trained[case] if case in trained else with_model(trained["two"], made_up_models()[case])
    table = dirty_table(ROWS)
    labels, numbers = predicted(release, table)
    found, close_to = run_calculator(release, table, _opened(browser, tmp_path, release))
    assert found == labels
    assert np.max(np.abs(np.array(close_to) - numbers)) < 1e-9


def test_somebody_types(browser: Browser, tmp_path: Path) -> None:
    release = exported_releases()["two"]
    page = _opened(browser, tmp_path, release)
    page.get_by_label("age").fill("41")
    page.get_by_label("job").select_option("<b>")
    page.get_by_label("seen").fill("2020-02-29")
    row = {
        "age": 41.0,
        "income": (2**18 - 1) / 2,
        "hour": 12.0,
        "grade": "never",
        "job": "<b>",
        "rooms": 1,
        "smoker": True,
    }
    asked = {name: [cell] for name, cell in (row | {"seen": datetime.date(2020, 2, 29)}).items()}
    likely = release.model.predict_proba(asked)  # type: ignore[union-attr]
    expect(page.locator("#chances")).to_contain_text(f"yes: {100 * likely[0, 1]:.1f} %")
    expect(page.locator("#parts")).to_contain_text("before any column")
    page.get_by_label("age").fill("")
    expect(page.locator("#message")).to_contain_text("Prediction")  # the schema lets ages be missing
