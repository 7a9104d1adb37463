"""Train, measure by group, download and verify, in a browser: on the records of other people than it learnt from."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from privlearn import Evaluation
from tests.support.demo_server import DemoServer
from tests.support.visitors import left, visiting


def test_a_release_is_measured_by_group(browser: Browser, demo: DemoServer, tmp_path: Path) -> None:
    with visiting(browser, demo, "alice") as page:
        before = left(page, "village")
        page.goto(f"{demo.url}/desk/census/train?face=release&learner=logistic&epsilon=0.25&delta=1e-6")
        page.get_by_role("button", name="Train: spend epsilon 0.25").click()
        page.get_by_role("link", name="Open the release").click()

        page.get_by_label("Records of").select_option("village")
        page.get_by_label("Groups of").select_option("sex")
        page.get_by_label("Epsilon").fill("much")
        page.get_by_role("button", name="Measure").click()
        expect(page.get_by_text("Epsilon: this is not a number")).to_be_visible()
        page.get_by_label("Records of").select_option("village")
        page.get_by_label("Groups of").select_option("sex")
        page.get_by_label("Epsilon").fill("0.5")
        page.get_by_role("button", name="Measure").click()

        expect(page.get_by_role("img", name="ROC curve")).to_be_visible()
        expect(page.get_by_role("rowheader", name="accuracy", exact=True)).to_be_visible()
        expect(page.get_by_role("rowheader", name="sex = female")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the result").click()
        file = tmp_path / "village.evaluation"
        download.value.save_as(file)
        assert Evaluation.load(file).about["by"] == {"sex": ["female", "male"]}

        page.get_by_role("link", name="Verify").click()
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Verify").click()
        expect(page.get_by_text("the constants support the claim")).to_be_visible()
        page.get_by_role("link", name="Desk").click()
        assert left(page, "village") == before - 0.5
