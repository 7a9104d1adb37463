"""Every experiment's quick variant runs, and gives a table, a figure and a sentence."""

from __future__ import annotations

import csv
import io
import math
import os
import re

import pytest

from privlearn.errors import DataError, InvalidParameter
from privlearn.papers import EXPERIMENTS, Result, experiment, ra12
from privlearn.papers.reporting import mean_error, tally


@pytest.fixture
def one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """RA12's figures are averages over five tables, also where they are quick; here the first will do."""
    first = ra12.breast_cancer_splits(seed=0)[:1]
    monkeypatch.setattr(ra12, "breast_cancer_splits", lambda seed: first)
    monkeypatch.setattr(ra12, "DATA_SETS", len(first))


@pytest.mark.usefixtures("one_table")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_quick_variant_runs(name: str) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("matplotlib.figure")
    item = EXPERIMENTS[name]
    if item.files and "PRIVLEARN_DATA" not in os.environ:
        pytest.skip("PRIVLEARN_DATA is not set")
    parts: list[object] = []

    def track(items):  # type: ignore[no-untyped-def]
        for part in items:
            parts.append(part)
            yield part

    result = item.run(quick=True, track=track)
    assert parts, "nothing would move the progress bar"
    assert len({tuple(row) for row in result.table}) == 1
    numbers = [value for row in result.table for value in row.values() if isinstance(value, float)]
    assert all(map(math.isfinite, numbers))
    assert any("default" in row["algorithm"] or "our" in row["algorithm"] for row in result.table)
    assert "nan" not in result.agreement
    if name != "rbht-bounds":  # formulas: its quick variant is the same
        assert result.agreement.startswith("QUICK RUN")
        assert "no claim" in result.agreement
        assert result.agreement.count(". ") == 2, "more than the warning"
        assert not re.search(r"claims? |\d of \d", result.agreement.replace("no claim", ""))
    figure = result.figure(matplotlib)
    assert all(axes.get_xlabel() and axes.lines for axes in figure.axes)
    drawn = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {row["algorithm"] for row in result.table} <= drawn


def test_a_table_is_written_for_people_and_programs() -> None:
    rows = (
        {"algorithm": "a, b", "error": 0.123456789, "paper": None},
        {"algorithm": "c", "error": 1.0, "paper": 0.5},
    )
    result = Result("title", rows, lambda matplotlib: None, "agreement")
    read = list(csv.DictReader(io.StringIO(result.csv())))
    assert read[0] == {"algorithm": "a, b", "error": "0.123456789", "paper": ""}
    assert result.lines()[1].split() == ["a,", "b", "0.1235"]
    assert len(set(map(len, result.lines()))) == 1


def test_means_and_shares() -> None:
    assert mean_error([0.1, 0.3]) == pytest.approx({"error": 0.2, "standard_error": 0.1})
    assert mean_error([0.1]) == {"error": 0.1, "standard_error": None}
    assert tally([True, False, True]) == "2 of 3"


def test_what_is_missing_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PRIVLEARN_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"covtype/covtype\.csv\.gz .*PRIVLEARN_DATA"):
        experiment("jt13-figure2a").run(quick=True)
    monkeypatch.delenv("PRIVLEARN_DATA")
    with pytest.raises(DataError, match="Set it to the directory"):
        experiment("cms11-table1").run(quick=True)
    with pytest.raises(InvalidParameter, match="cms11-table1, cms11-table2"):
        experiment("cms11-table3")
