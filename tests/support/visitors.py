"""People at a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from tests.support.demo_server import DemoServer

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1100, "height": 800}
SIZES = [
    pytest.param(DESKTOP, id="desktop", marks=pytest.mark.slow),  # the narrow page is the harder one
    pytest.param(PHONE, id="phone"),
]
PATIENCE = 120_000
"""Milliseconds, for a machine that has other things to do."""


@contextmanager
def visiting(browser: Browser, server: DemoServer, key: str = "", **options: Any) -> Iterator[Page]:
    """Open a browser signed in as the key's owner; fail if its policy refuses something that the page loads."""
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Refused" in message.text:
            complaints.append(message.text)

    with browser.new_context(**{"viewport": DESKTOP, **options}) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(server.url)
        if key:
            page.get_by_label("Your key").fill(server.keys[key])
            page.get_by_label("Your key").press("Enter")
            expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        yield page
    assert not complaints


def left(page: Page, dataset: str) -> float:
    """Return the remaining budget on the meter of the desk."""
    meter = page.get_by_role("meter", name=f"Epsilon spent of your share of {dataset}")
    total, spent = meter.get_attribute("aria-valuemax"), meter.get_attribute("aria-valuenow")
    assert total is not None
    assert spent is not None
    return float(total) - float(spent)
