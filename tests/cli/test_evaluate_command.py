"""privlearn evaluate and threshold: files, pages, budgets, and what is refused before anything is charged."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from privlearn import Evaluation, Ledger, Release
from privlearn.data import simulated_census, write_table
from tests.support.cli_support import Census, Run


@pytest.fixture
def trained(budgeted: Census, run: Run) -> Census:
    """Return the budgeted census with a release whose own cost is not in the ledger."""
    done = run(
        "train",
        budgeted.table,
        "--schema",
        budgeted.schema,
        "--epsilon",
        1,
        "--delta",
        0,
        "--out",
        budgeted / "m.privlearn",
    )
    assert done.code == 0, done.told
    return budgeted


def spent(census: Census) -> float:
    return Ledger.open(census.ledger, "census").statement().spent.epsilon


def evaluated(census: Census, run: Run, *options: object) -> Path:
    out = census / "m.evaluation"
    done = run("evaluate", census / "m.privlearn", census.table, "--epsilon", 0.5, "--out", out, *options)
    assert done.code == 0, done.told
    return out


def test_from_a_release_to_a_decided_one(trained: Census, run: Run) -> None:
    page = trained / "m.html"
    out = evaluated(trained, run, "--by", "sex", "--page", page, "--ledger", trained.ledger)
    assert spent(trained) == 0.5
    verified = run("verify", out)
    assert verified.code == 0
    assert "consistent and private" in verified.stdout
    assert "sex = female" in run("inspect", out).stdout
    new = trained / "new.privlearn"
    chosen = run("threshold", trained / "m.privlearn", out, "--false-negative", 3, "--out", new)
    assert chosen.code == 0, chosen.told
    assert spent(trained) == 0.5  # post-processing
    told = run("verify", new)
    assert told.code == 0
    assert "evaluation  (epsilon = 0.5)" in told.stdout
    found = Evaluation.load(out)
    model = Release.load(new).model
    assert model.threshold == found.best_threshold(false_negative=3.0)  # type: ignore[union-attr]
    predicted = run("predict", new, trained.new_rows)
    assert predicted.code == 0
    mistaken = run("predict", out, trained.new_rows)
    assert "this is an evaluation" in mistaken.stderr
    assert "give a release" in mistaken.stderr
    assert f"above {found.best_threshold(false_negative=3.0):.4g}" in run("inspect", new).stdout


def test_inspect_shows_a_calibration(trained: Census, run: Run) -> None:
    clear = ("--epsilon", 50, "--accept-weak-privacy")  # less might be too noisy to calibrate by
    out, new = evaluated(trained, run, *clear), trained / "new.privlearn"
    choice = ("--at", 0.4, "--calibrate", "--out", new)
    assert run("threshold", trained / "m.privlearn", out, *choice).code == 0
    shown = run("inspect", new).stdout
    assert "probabilities above 0.4" in shown
    assert "Calibration, from score to probability: " in shown
    for plain in (run("inspect", trained / "m.privlearn").stdout, run("inspect", out).stdout):
        assert "Calibration, from score" not in plain


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [str(value) for name, value in attributes if name in ("src", "href")]


def test_the_page_stands_alone(trained: Census, run: Run) -> None:
    page = trained / "m.html"
    evaluated(trained, run, "--by", "sex", "--page", page)
    content = page.read_text()
    parser = _Links()
    parser.feed(content)
    assert parser.loaded == []
    assert "script" not in parser.tags
    assert parser.tags.count("figure") >= 2
    for word in (
        "ROC curve",
        "Calibration",
        "accuracy",
        "95 % interval",
        "<h2>Guarantee</h2>",
        "neighbours: replace_one",
    ):
        assert word in content


def test_bad_input_costs_nothing(trained: Census, run: Run) -> None:
    settings = ("--epsilon", 0.5, "--ledger", trained.ledger)
    wrong = trained / "wrong.csv"
    write_table(simulated_census(100, seed=1).drop_columns(["income"]), wrong)
    model, out = trained / "m.privlearn", trained / "e"
    for arguments, message in (
        ((model, wrong, "--out", out), "income"),
        ((model, trained.table, "--by", "age", "--out", out), "not a column with a list of values"),
        ((trained.table, trained.table, "--out", out), "not a privlearn release"),
        ((model, trained.table, "--out", model), "exists"),
        ((model, trained.table, "--page", trained.folder, "--out", out), "is a directory"),
        ((model, trained.table, "--page", out, "--out", out), "another name"),
    ):
        done = run("evaluate", *arguments, *settings)
        assert done.code != 0
        assert message in " ".join(done.stderr.split())
    assert spent(trained) == 0.0
    too_much = run("evaluate", model, trained.table, "--epsilon", 5, "--ledger", trained.ledger, "--out", out)
    assert too_much.code == 1
    assert not out.exists()


def test_a_seed_is_said_not_to_be_private(trained: Census, run: Run) -> None:
    out = evaluated(trained, run, "--seed", 1)
    assert run("verify", out).code == 3
    new = trained / "new.privlearn"
    assert run("threshold", trained / "m.privlearn", out, "--at", 0.4, "--out", new).code == 0
    assert run("verify", new).code == 3  # the model is private, what its threshold came from is not


def test_a_threshold_is_given_or_found(trained: Census, run: Run) -> None:
    out = evaluated(trained, run)
    both = run(
        "threshold", trained / "m.privlearn", out, "--at", 0.4, "--false-negative", 2, "--out", trained / "n"
    )
    assert both.code == 2
    assert "Omit --false-positive and --false-negative" in " ".join(both.stderr.split())
    beyond = run("threshold", trained / "m.privlearn", out, "--at", 7, "--out", trained / "n")
    assert beyond.code == 2
    assert "from 0 to 1" in " ".join(beyond.stderr.split())
    assert not (trained / "n").exists()
