"""Takes the documentation's screenshots: python tools/screenshots.py (needs Chromium and the test extra)."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "screenshots"
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from tests.support.demo_server import DemoServer  # noqa: E402 - found only now
from tests.support.visitors import PHONE, visiting  # noqa: E402

_COLOURS = 160
_WIDE = {"width": 1000, "height": 760}
_TRAININGS = (
    ("alice", "session", "logistic", "0.5"),
    ("bob", "release", "svm", "0.75"),
    ("alice", "release", "logistic", "1"),
    ("alice", "session", "svm", "0.25"),
)


def main() -> None:
    chromium = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        server = DemoServer(Path(folder))
        try:
            session, *_ = (train(browser, server, *training) for training in _TRAININGS)
            as_analyst(browser, server, session, "light", _WIDE, "")
            as_analyst(browser, server, session, "dark", PHONE, "-phone")
            as_holder(browser, server, "light", "")
            as_holder(browser, server, "dark", "-dark")
        finally:
            server.kill()
            browser.close()


def train(browser: Browser, server: DemoServer, who: str, face: str, learner: str, epsilon: str) -> str:
    """The address of what was made."""
    with visiting(browser, server, who) as page:
        page.goto(
            f"{server.url}/desk/census/train?face={face}&learner={learner}&epsilon={epsilon}&delta=1e-6"
        )
        page.get_by_role("button", name="Train: spend").click()
        page.get_by_role("link", name="Open the").click()
        return page.url


def as_analyst(
    browser: Browser, server: DemoServer, session: str, scheme: Any, window: Any, suffix: str
) -> None:
    with visiting(browser, server, "alice", viewport=window, color_scheme=scheme) as page:
        keep(page, f"desk{suffix}")
        if not suffix:
            page.goto(f"{server.url}/desk/census/train?learner=logistic&epsilon=0.2&delta=1e-6")
            keep(page, "estimate", page.locator("#estimate"))
        page.goto(session)
        for column, value in {
            "age": "45",
            "hours": "40",
            "education_years": "17",
            "capital_income": "1000",
        }.items():
            page.get_by_label(column).fill(value)
        page.get_by_role("button", name="Predict income").click()
        keep(page, f"session{suffix}")


def as_holder(browser: Browser, server: DemoServer, scheme: Any, suffix: str) -> None:
    with visiting(browser, server, "holder", viewport=_WIDE, color_scheme=scheme) as page:
        page.goto(f"{server.url}/console/census")
        keep(page, f"budget{suffix}", page.locator("main"))


def keep(page: Page, name: str, part: Any = None) -> None:
    """A few colours are enough for text and lines, and a file of a third."""
    page.wait_for_load_state("load")
    taken = Image.open(io.BytesIO((part or page).screenshot())).convert("RGB")
    taken.quantize(_COLOURS, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
