"""`privlearn reproduce` lists, runs, writes four files, and refuses clearly."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from privlearn.papers import EXPERIMENTS
from tests.support.cli_support import Run


def test_without_a_name_it_lists(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIVLEARN_DATA", raising=False)
    told = run("reproduce")
    assert told.code == 0
    assert all(f"\n{name} " in told.stdout for name in EXPERIMENTS)
    assert "PRIVLEARN_DATA is not set" in told.stdout


def test_table_figure_and_sentence_are_written(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "papers"
    told = run("reproduce", "rbht-bounds", "--quick", "--out", out)
    assert told.code == 0, told.stderr
    assert "The lower bounds lie below" in told.stdout
    files = {path.name.removeprefix("rbht-bounds-quick."): path for path in out.iterdir()}
    assert set(files) == {"csv", "txt", "svg", "png"}
    assert "quick run" in " ".join(ElementTree.parse(files["svg"]).getroot().itertext())
    assert len(files["csv"].read_text().splitlines()) == len(told.stdout.split("\n\n")[0].splitlines()) - 1
    before = files["svg"].read_bytes()
    assert run("reproduce", "rbht-bounds", "--quick", "--out", out).code == 2
    assert run("reproduce", "rbht-bounds", "--quick", "--out", out, "--force").code == 0
    assert files["svg"].read_bytes() == before


def test_what_cannot_be_run_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVLEARN_DATA", str(tmp_path))
    unknown = run("reproduce", "cms11-table9")
    assert unknown.code == 2
    assert "ra12-figure1" in unknown.stderr
    missing = run("reproduce", "cms11-table1", "--out", tmp_path)
    assert missing.code == 1
    assert "adult/adult.data.gz" in missing.stderr
    assert not list(tmp_path.iterdir())
