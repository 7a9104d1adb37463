"""An analyst asks, another person approves by keyboard, and the analyst gets the result: on desktop and phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from privlearn.server.access import create_key
from privlearn.server.access.keys import Role
from privlearn.server.holder import Owner
from tests.support.page_checks import focused_outline, overflow, problems_of
from tests.support.ports import free_port
from tests.support.real_server import RealServer
from tests.support.service_support import write_clinic
from tests.support.visitors import PATIENCE, SIZES

PURPOSE, BASIS = "A risk score for the emergency ward", "Consent of the patients, study 2026-14"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Address and store."""
    folder, port = tmp_path_factory.mktemp("approved"), free_port()
    owner = write_clinic(folder, server=f"port = {port}", dataset="approval = { above = 0.3 }")
    running = RealServer(owner, port)
    running.await_ready()
    yield running.url, Owner.load(owner).server.store
    running.kill()


@contextmanager
def signed_in(
    browser: Browser, clinic: tuple[str, str], size: Any, role: Role, person: str
) -> Iterator[Page]:
    url, store = clinic
    with browser.new_context(viewport=size) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(url)
        page.get_by_label("Your key").fill(create_key(store, role, person))
        page.keyboard.press("Enter")
        expect(page.get_by_text(f"{role.capitalize()} {person}")).to_be_visible()
        yield page


def tab_to(page: Page, target: Locator) -> None:
    """As people without a mouse do."""
    expect(target).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            assert focused_outline(page) != "none"
            return
    raise AssertionError("no key leads there")


def check(page: Page) -> None:
    assert problems_of(page) == []
    assert overflow(page) <= 0


@pytest.mark.parametrize("size", SIZES)
def test_a_request_is_approved_by_another_person(
    browser: Browser, clinic: tuple[str, str], size: Any
) -> None:
    with (
        signed_in(browser, clinic, size, "analyst", "alice") as alice,
        signed_in(browser, clinic, size, "approver", "bea") as bea,
    ):
        alice.goto(f"{clinic[0]}/desk/clinic/train?face=release&learner=logistic&epsilon=0.5&delta=0")
        check(alice)
        alice.get_by_label("Purpose").fill(PURPOSE)
        alice.get_by_label("Legal basis").fill(BASIS)
        tab_to(alice, alice.get_by_role("button", name="Ask for approval: epsilon 0.5"))
        alice.keyboard.press("Enter")
        expect(alice.get_by_role("heading", name="Waiting for approval")).to_be_visible()
        check(alice)
        job = alice.url.rpartition("/")[2]

        bea.reload()
        check(bea)
        tab_to(bea, bea.get_by_role("link", name=job[:8]))
        bea.keyboard.press("Enter")
        expect(bea.get_by_role("cell", name=PURPOSE, exact=True)).to_be_visible()
        expect(bea.get_by_role("cell", name=BASIS, exact=True)).to_be_visible()
        expect(bea.get_by_role("meter", name="Epsilon spent by alice")).to_be_visible()
        check(bea)
        tab_to(bea, bea.get_by_label("Reason"))
        bea.keyboard.type("As agreed by the board")
        tab_to(bea, bea.get_by_role("button", name="Approve"))
        bea.keyboard.press("Enter")
        expect(bea.get_by_role("cell", name="As agreed by the board")).to_be_visible()
        check(bea)

        alice.reload()
        expect(alice.get_by_role("heading", name="Finished")).to_be_visible()
        expect(alice.get_by_role("cell", name="As agreed by the board")).to_be_visible()
        alice.get_by_role("link", name="Open the release").click()
        with alice.expect_download() as download:
            alice.get_by_role("link", name="Download the release").click()
        assert download.value.suggested_filename.endswith(".privlearn")
