"""Every page: readable on a phone and in the dark, named for a screen reader, usable by keyboard and without script."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.demo_server import DemoServer
from tests.support.page_checks import focused_outline, overflow, problems_of
from tests.support.visitors import DESKTOP, PHONE, visiting

_ESTIMATED = "/desk/census/train?face=points&learner=logistic&epsilon=0.1&delta=1e-6"
_OF_ANALYST = [
    "/desk",
    "/desk/census",
    "/desk/census/train?epsilon=x",
    _ESTIMATED,
    "/sessions",
    "/releases",
    "/verify",
]
_OF_HOLDER = ["/console", "/console/census", "/sessions", "/releases", "/keys", "/log", "/nowhere"]
_LARGEST = 30_000


@pytest.fixture(scope="module")
def results(browser: Browser, demo: DemoServer) -> list[str]:
    """Run a trial of each kind and return the results, followed without scripts."""
    with visiting(browser, demo, "alice", java_script_enabled=False) as page:
        return [made(page, demo, face) for face in ("session", "release")]


def made(page: Page, demo: DemoServer, face: str) -> str:
    page.goto(f"{demo.url}/desk/village/train?face={face}&learner=svm&epsilon=1&delta=1e-6")
    page.get_by_role("button", name="Try it on made-up rows").click()
    job = page.url
    page.get_by_role("link", name=f"Open the {face}").click()
    return f"{job.removeprefix(demo.url)} /{face}s/{job.rpartition('/')[2]}"


@pytest.mark.parametrize(("width", "scheme"), [("phone", "dark"), ("desktop", "light")])
@pytest.mark.parametrize("who", ["alice", "holder"])
def test_every_page_can_be_used(
    browser: Browser, demo: DemoServer, results: list[str], who: str, width: str, scheme: Any
) -> None:
    addresses = (_OF_ANALYST if who == "alice" else _OF_HOLDER) + " ".join(results).split()
    viewport = PHONE if width == "phone" else DESKTOP
    with visiting(browser, demo, viewport=viewport, color_scheme=scheme) as page:
        assert problems_of(page) == []
        assert overflow(page) <= 0
    with visiting(browser, demo, who, viewport=viewport, color_scheme=scheme) as page:
        for address in addresses:
            answer = page.goto(demo.url + address)
            assert answer is not None
            assert len(answer.body()) < _LARGEST, address
            assert problems_of(page) == [], address
            assert overflow(page) <= 0, address


def test_the_keyboard_is_enough(browser: Browser, demo: DemoServer) -> None:
    with visiting(browser, demo) as page:
        expect(page.get_by_label("Your key")).to_be_focused()
        page.keyboard.type(demo.keys["alice"])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Your desk")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        go_to(page, "link", "Estimate and train on village")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="What do you want?")).to_be_visible()
        go_to(page, "radio", "Ask here")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("radio", name="Take a model away A release")).to_be_checked()
        go_to(page, "textbox", "Epsilon")
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("2")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Decide")).to_be_visible()
        go_to(page, "button", "Try it on made-up rows (free)")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="Open the release")).to_be_visible()
        go_to(page, "link", "Open the release")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Certificate")).to_be_visible()


def go_to(page: Page, role: Any, name: str) -> None:
    """By the Tab key alone; wherever it stops, one can see where that is."""
    wanted = page.get_by_role(role, name=name).first
    for _ in range(60):
        page.keyboard.press("Tab")
        assert focused_outline(page) != "none"
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the keyboard does not reach the {role} {name!r}")
