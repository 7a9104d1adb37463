"""The holder's console by keyboard, on a desktop and on a phone: people, shares and keys; a data set's whole life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from privlearn.server.access import create_key
from privlearn.server.holder import Owner
from privlearn.server.store import open_store
from tests.support.console_support import write_console
from tests.support.page_checks import overflow, problems_of
from tests.support.ports import free_port
from tests.support.real_server import RealServer
from tests.support.visitors import PATIENCE, SIZES


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return a server's address, and a key of its holder."""
    folder, port = tmp_path_factory.mktemp("console"), free_port()
    owner = write_console(folder, server=f"port = {port}")
    key = create_key(open_store(Owner.load(owner)), "holder")
    running = RealServer(owner, port)
    running.await_ready()
    yield running.url, key
    running.kill()


@pytest.fixture(params=SIZES)
def page(browser: Browser, request: pytest.FixtureRequest, place: tuple[str, str]) -> Iterator[Page]:
    with browser.new_context(viewport=request.param) as context:
        context.set_default_timeout(PATIENCE)
        found = context.new_page()
        sign_in(found, *place)
        yield found


def sign_in(page: Page, url: str, key: str) -> None:
    page.goto(url)
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def looked_at(page: Page, name: str, pictures: Path | None) -> None:
    """Nothing that can be computed is wrong with it, and it fits its window."""
    assert problems_of(page) == []
    assert overflow(page) <= 0
    if pictures is not None:
        width = page.viewport_size["width"] if page.viewport_size else 0
        page.screenshot(path=pictures / f"{name}-{width}.png", full_page=True)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


def press_on(page: Page, button: str) -> None:
    """From a form, whose field has the focus, to the question and its button, by keyboard."""
    page.keyboard.press("Enter")
    answer(page, button)


def answer(page: Page, button: str) -> None:
    """Yes; Enter alone does nothing."""
    sure = page.get_by_label("Yes, make this change")
    expect(sure).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=button)).to_be_visible()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")


def test_an_analyst_gets_a_share_and_a_key_that_is_rotated(
    page: Page, browser: Browser, place: tuple[str, str], pictures: Path
) -> None:
    name = f"carol-{page.viewport_size['width']}" if page.viewport_size else ""
    page.get_by_role("link", name="Analysts", exact=True).click()
    looked_at(page, "analysts", pictures)
    page.get_by_role("link", name="Add an analyst").click()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type(name)
    looked_at(page, "add-analyst", pictures)
    press_on(page, "Add the analyst")

    page.get_by_role("link", name="Give a share of clinic").click()
    page.get_by_label("Epsilon").fill("0.5")
    page.get_by_label("Epsilon").press("Enter")
    expect(page.get_by_text("All shares of clinic then come to")).to_be_visible()
    looked_at(page, "share-question", pictures)
    answer(page, "Give this share")
    expect(page.get_by_role("cell", name="epsilon 0.5")).to_be_visible()
    looked_at(page, "analyst", pictures)

    page.get_by_role("link", name="Issue a key").click()
    expect(page.get_by_label("For", exact=True)).to_have_value(name)
    looked_at(page, "issue-key", pictures)
    page.get_by_role("button", name="Continue").press("Enter")
    answer(page, "Issue the key")
    first = page.locator("code").first.inner_text()
    looked_at(page, "new-key", pictures)

    page.get_by_role("link", name="I have copied it").click()
    page.get_by_role("link", name=f"Rotate key {first.split('_')[1]}").click()
    page.get_by_label("Hours").fill("0")
    page.get_by_label("Hours").press("Enter")
    looked_at(page, "rotate-question", pictures)
    answer(page, "Rotate the key")
    second = page.locator("code").first.inner_text()
    page.get_by_role("link", name="I have copied it").click()
    looked_at(page, "keys", pictures)

    with browser.new_context() as context:
        desk = context.new_page()
        desk.goto(place[0])
        desk.get_by_label("Your key").fill(first)
        desk.keyboard.press("Enter")
        expect(desk.get_by_text("is key is not valid")).to_be_visible()
        sign_in(desk, place[0], second)
        expect(desk.get_by_role("heading", name="clinic")).to_be_visible()

    page.goto(f"{place[0]}/analysts/{name}/disable")
    answer(page, "Disable the analyst")
    expect(page.get_by_text("Disabled since")).to_be_visible()


def test_a_data_set_is_added_refreshed_and_retired(
    page: Page, place: tuple[str, str], pictures: Path
) -> None:
    width = page.viewport_size["width"] if page.viewport_size else 0
    first, second = ("ward.csv", "2027/ward.csv") if width > 500 else ("east.csv", "2027/east.csv")
    name = f"ward-{width}"
    page.get_by_role("link", name="Add a data set").click()
    looked_at(page, "add-dataset", pictures)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Table").select_option(f"exports/{first}")
    page.get_by_label("Schema").select_option("exports/ward.schema.yaml")
    page.get_by_label("Epsilon").fill("much")
    page.get_by_label("Epsilon").press("Enter")
    expect(page.get_by_text("This is not a number")).to_be_visible()
    looked_at(page, "add-dataset-wrong", pictures)
    page.get_by_label("Epsilon").fill("3")
    page.get_by_label("Epsilon").press("Enter")
    looked_at(page, "add-dataset-question", pictures)
    answer(page, "Add the data set")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text("3 epsilon left of 3")).to_be_visible()

    page.get_by_role("link", name="Refresh").press("Enter")
    looked_at(page, "refresh", pictures)
    page.get_by_label("Table").select_option(f"exports/{second}")
    page.get_by_label("Schema").select_option("exports/other.schema.yaml")
    page.get_by_role("button", name="Continue").press("Enter")
    expect(page.get_by_text("The schema is different")).to_be_visible()
    page.get_by_label("Schema").select_option("")
    page.get_by_role("button", name="Continue").press("Enter")
    looked_at(page, "refresh-question", pictures)
    answer(page, "Refresh the data set")
    expect(page.get_by_role("cell", name="230")).to_be_visible()
    looked_at(page, "versions", pictures)

    page.get_by_role("link", name="Retire").press("Enter")
    page.get_by_label("Reason").fill("the study is over")
    page.get_by_label("Reason").press("Enter")
    looked_at(page, "retire-question", pictures)
    answer(page, "Retire the data set")
    expect(page.get_by_text("new requests are refused")).to_be_visible()
    page.goto(f"{place[0]}/log")
    expect(page.get_by_role("cell", name="retired a data set").first).to_be_visible()
