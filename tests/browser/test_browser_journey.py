"""The whole way in a browser: look, estimate, try, train, ask, and go on after the server was killed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.demo_server import DemoServer
from tests.support.visitors import left, visiting


@pytest.fixture
def own_demo(tmp_path: Path) -> Iterator[DemoServer]:
    server = DemoServer(tmp_path)
    yield server
    server.kill()


def test_an_analyst_goes_all_the_way_and_a_killed_server_goes_on(
    browser: Browser, own_demo: DemoServer, tmp_path: Path
) -> None:
    with visiting(browser, own_demo, "alice") as page:
        assert left(page, "census") == 4.0
        read_schema(page)
        estimate(page)

        page.get_by_role("button", name="Try it on made-up rows").click()
        page.get_by_role("link", name="Open the session").click()
        expect(page.get_by_text("A trial: this model was trained on made-up rows")).to_be_visible()
        page.get_by_role("link", name="Desk").click()
        assert left(page, "census") == 4.0  # a trial is free

        train(page)
        page.get_by_role("link", name="Open the session").click()
        answer = ask_point(page)
        session = page.url.removesuffix("/point")
        predictions = ask_file(page, tmp_path)

        page.get_by_role("link", name="Desk").click()
        assert left(page, "census") == pytest.approx(3.5)

        # kill -9 while another training is on its way
        page.goto(f"{own_demo.url}/desk/census/train?face=release&learner=svm&epsilon=0.25&delta=1e-6")
        page.get_by_role("button", name="Train: spend epsilon 0.25").click()
        expect(page.get_by_text("Under way on the holder's side")).to_be_visible()
        own_demo.kill()
        own_demo.start()
        # The page that was open follows the training to its end, and nobody has to sign in again.
        page.get_by_role("link", name="Open the release").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the release").click()
        release = tmp_path / "income.privlearn"
        download.value.save_as(release)
        page.goto(session)
        assert ask_point(page) == answer
        assert ask_file(page, tmp_path) == predictions
        page.get_by_role("link", name="Desk").click()
        assert left(page, "census") == pytest.approx(3.25)
        verify(page, release)

    with visiting(browser, own_demo, "holder") as page:
        see_from_the_console(page)


def read_schema(page: Page) -> None:
    page.get_by_role("link", name="census", exact=True).click()
    row = page.get_by_role("row", name=re.compile("capital_income"))
    expect(row).to_contain_text("0 to 1,000,000")
    expect(page.get_by_role("row", name=re.compile("occupation"))).to_contain_text("farming")


def estimate(page: Page) -> None:
    """First with something that is no number: the page says so and keeps what was typed."""
    page.get_by_role("link", name="Estimate and train").click()
    page.get_by_label("Epsilon").fill("a half")
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_label("Epsilon")).to_have_value("a half")
    expect(page.get_by_text("This is not a number")).to_be_visible()
    page.get_by_label("Epsilon").fill("0.5")
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_role("img", name="Gain lost against epsilon")).to_be_visible()
    expect(page.get_by_text("epsilon 3.5 will be left")).to_be_visible()


def train(page: Page) -> None:
    """Twice, by the same form: the second press leads to the first one's training."""
    page.get_by_role("link", name="Estimate and train on census").click()
    page.get_by_label("Epsilon").fill("0.5")
    page.get_by_role("button", name="Estimate").click()
    button = page.get_by_role("button", name="Train: spend epsilon 0.5")
    button.click()
    job = page.url
    with (
        page.expect_navigation()
    ):  # by the page itself: the browser's own way back was seen to lose a busy page
        page.evaluate("history.back()")
    button.click()
    assert page.url == job


def ask_point(page: Page) -> str:
    for column, value in {
        "age": "45",
        "hours": "40",
        "education_years": "17",
        "capital_income": "1000",
    }.items():
        page.get_by_label(column).fill(value)
    page.get_by_label("occupation").select_option("management")
    page.get_by_role("button", name="Predict income").click()
    return page.get_by_role("status").inner_text()


def ask_file(page: Page, folder: Path) -> list[str]:
    rows = folder / "rows.csv"
    columns = "id,age,hours,education_years,capital_income,occupation,region,sex\n"
    rows.write_text(columns + "a,20,20,8,0,farming,east,female\n" + "b,50,45,20,90000,management,west,male\n")
    page.get_by_label("CSV file").set_input_files(rows)
    with page.expect_download() as download:
        page.get_by_role("button", name="Predict and download").click()
    answers = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert [answer["id"] for answer in answers] == ["a", "b"]
    return [answer["prediction"] for answer in answers]


def verify(page: Page, release: Path) -> None:
    page.get_by_role("link", name="Verify").click()
    page.get_by_label("File").set_input_files(release)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("the constants support the claim")).to_be_visible()


def see_from_the_console(page: Page) -> None:
    meter = page.get_by_role("meter", name="Epsilon spent of census")
    assert meter.get_attribute("aria-valuetext") == "0.75 of 6 spent, 5.25 left"
    sessions = page.get_by_role("region", name="Sessions")
    assert sessions.get_by_role("row").count() == 3  # headings, the trial and the real one
    page.get_by_role("link", name="History and analysts of census").click()
    expect(page.get_by_role("img", name="Epsilon spent of census")).to_be_visible()
    assert (
        page.get_by_role("region", name="Entries").get_by_role("row", name=re.compile("alice")).count() == 2
    )
    page.get_by_role("link", name="Log").click()
    expect(page.get_by_text("fetched a release")).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    expect(page.get_by_text("privlearn keys revoke")).to_be_visible()
    assert "pl_" not in page.get_by_role("region", name="Keys").inner_text()
