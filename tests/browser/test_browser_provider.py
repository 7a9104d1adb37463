"""Signing in at a provider, which is a process of its own, with a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.openid_provider import PASSWORD, SECRET, running_provider
from tests.support.ports import free_port
from tests.support.real_server import RealServer
from tests.support.service_support import write_clinic
from tests.support.visitors import PATIENCE, SIZES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("provided")
    port = free_port()
    address = f"http://localhost:{port}"
    with running_provider(f"{address}/signed-in", folder / "provider.log") as issuer:
        owner = write_clinic(folder, server=f"port = {port}")
        (folder / "secret").write_text(SECRET)
        with owner.open("a") as file:
            file.write(_settings(issuer, address))
        running = RealServer(owner, port)
        running.await_ready()
        yield address
        running.kill()


def _settings(issuer: str, address: str) -> str:
    return f"""
[sign_in.openid]
issuer = "{issuer}"
client_id = "privlearn"
client_secret_file = "secret"
address = "{address}"
scopes = ["openid", "profile", "groups"]
name_claim = "sub"
roles_claim = "groups"

[sign_in.openid.roles]
owners = "holder"
researchers = "analyst"
"""


@pytest.fixture(params=SIZES)
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with browser.new_context(viewport=request.param) as context:
        context.set_default_timeout(PATIENCE)
        yield context.new_page()


def enter(page: Page, server: str, who: str, place: str = "/") -> None:
    """By keyboard, from our page through the provider to whatever comes then."""
    page.goto(f"{server}{place}")
    way = page.get_by_role("link", name="Sign in at")
    expect(way).to_be_focused()
    page.keyboard.press("Enter")
    page.locator("input[name=login]").fill(who)
    page.keyboard.press("Enter")
    page.locator("input[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")


def test_an_analyst_is_let_in_where_they_wanted_to_go(page: Page, server: str) -> None:
    enter(page, server, "alice", "/sessions")
    expect(page.get_by_text("Analyst alice")).to_be_visible()
    assert page.url == f"{server}/sessions"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(f"{server}/desk")
    expect(page.get_by_role("link", name="Sign in at")).to_be_visible()


def test_the_holder_by_the_first_of_their_roles(page: Page, server: str) -> None:
    enter(page, server, "olga")
    expect(page.get_by_text("Holder", exact=True)).to_be_visible()
    assert page.url == f"{server}/console"


def test_whoever_has_no_role_stays_outside(page: Page, server: str) -> None:
    enter(page, server, "mallory")
    expect(page.get_by_text("gives you no role here")).to_be_visible()
