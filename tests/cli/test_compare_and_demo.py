"""The page people look at, and the demonstration that makes one."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pytest

from privlearn import Ledger, Schema
from tests.support.cli_support import Census, Run


def _compare(run: Run, census: Census, *arguments: object) -> str:
    out = census / "page.html"
    told = run("compare", census.table, "--schema", census.schema, "--out", out, "--seeds", 1, *arguments)
    assert told.code == 0, told.stderr
    assert "not private" in told.stderr
    return out.read_text()


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_page_stands_alone_and_warns(run: Run, census: Census) -> None:
    page = _compare(run, census, "--epsilons", "1,0.1")
    elements = _Elements(page)
    assert "Looking at this page is not private." in page
    assert not re.search(r"https?:|//[a-z]|@import|<script|<link|<img", page)
    references = re.findall(r'(?:href|src)="([^"]*)"|url\(([^)]*)\)', page)
    assert all((href or url).startswith("#") for href, url in references)
    drawings = elements.named("svg")
    assert len(drawings) == 2
    assert all(drawing["role"] == "img" and "Test error against epsilon" in str(drawing["aria-label"]) for drawing in drawings)  # fmt: skip  # noqa: E501
    assert [meta.get("content") for meta in elements.named("meta") if meta.get("name") == "viewport"]


def test_page_has_every_number(run: Run, census: Census) -> None:
    page = _compare(run, census, "--epsilons", "0.1,1", "--all-methods")
    rows = re.findall(r'<th scope="row">([^<]*)</th>(.*?)</tr>', page)
    methods = [name for name, _ in rows]
    assert methods[: len(methods) // 2] == methods[len(methods) // 2 :]  # logistic, then svm
    assert {"objective, Gaussian (default)", "output, norm-Gamma, CMS11", "no privacy"} <= set(methods)
    assert all(len(re.findall(r"<td>(?:<b>)?0\.\d{3}", cells)) == 2 for _, cells in rows)


def test_persons_with_several_rows_have_every_method(run: Run, census: Census) -> None:
    Schema.from_dict({**Schema.load(census.schema).to_dict(), "rows_per_person": 2}).save(census.schema)
    page = _compare(run, census, "--epsilons", "1", "--all-methods")
    assert "does not fit" not in page
    assert "objective, Gaussian (default)" in page
    assert "output, Gaussian" in page


def test_two_methods_unless_all_are_asked_for(run: Run, census: Census) -> None:
    page = _compare(run, census, "--epsilons", "1", "--metric", "auc")
    rows = re.findall(r'<th scope="row">([^<]*)</th>', page)
    assert rows == ["objective, Gaussian (default)", "objective, norm-Gamma", "no privacy", "guessing"] * 2
    assert "AUC by epsilon" in page


def test_a_number_is_compared_by_its_mean_error(run: Run, census: Census) -> None:
    content = Schema.load(census.schema).to_dict()
    del content["columns"]["age"]
    Schema.from_dict(content | {"target": {"name": "age", "lower": 0, "upper": 100}}).save(census.schema)
    page = _compare(run, census, "--epsilons", "1")
    assert "Regression: mean absolute error by epsilon" in page
    assert "always the mean" in page
    told = run(
        "compare", census.table, "--schema", census.schema, "--out", census / "q.html", "--metric", "auc"
    )
    assert told.code == 2
    assert "has no AUC" in told.stderr


@pytest.mark.parametrize("epsilons", ["", "1,two", "0,1", "inf", "nan"])
def test_bad_epsilons(epsilons: str, run: Run, census: Census) -> None:
    told = run(
        "compare", census.table, "--schema", census.schema, "--out", census / "p.html", "--epsilons", epsilons
    )
    assert told.code == 2
    assert not (census / "p.html").exists()


def test_without_matplotlib(run: Run, census: Census, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run("compare", census.table, "--schema", census.schema, "--out", census / "page.html")
    assert told.code == 1
    assert "privlearn[plots]" in told.stderr


def test_demo(run: Run, census: Census) -> None:
    folder = census / "demo"
    told = run("demo", "--out", folder, "--rows", 600)
    assert told.code == 0, told.stderr
    assert "What you have now" in told.stdout
    assert "was this person in the data?" in told.stdout
    assert "What a model of income learnt" in (folder / "income.html").read_text()
    assert "Error on new people" in told.stdout
    statement = Ledger.open(folder / "budgets.db", "census").statement()
    assert [entry.state for entry in statement.entries] == ["committed"] * 4
    assert statement.spent.epsilon == 4.4
    for epsilon in ("0.1", "0.3", "1", "3"):
        assert run("verify", folder / f"income-{epsilon}.privlearn").code == 0
    assert run("demo", "--out", folder, "--rows", 600).code == 2
    (folder / "mine.txt").write_text("kept")
    assert run("demo", "--out", folder, "--rows", 600, "--force").code == 0
    assert (folder / "mine.txt").exists()
