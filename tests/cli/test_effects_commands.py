"""`privlearn inspect` without noise among its findings, `explain` and `refine`."""

from __future__ import annotations

import re
from pathlib import Path

from privlearn import Release
from tests.support.cli_support import Census, Run


def test_inspect_shows_no_coefficient_unless_asked(
    census: Census, train: Run, run: Run, tmp_path: Path
) -> None:
    model, page = tmp_path / "income.privlearn", tmp_path / "income.html"
    assert train("--epsilon", 1, "--delta", "1e-6").code == 0
    told = run("inspect", model)
    assert "Above the noise: 0 of 7 columns" in told.stdout
    assert "Not above the noise" in told.stdout
    assert "coefficients (noise included)" not in told.stdout
    assert "Largest coefficients (noise included)" in run("inspect", model, "--largest", 5).stdout
    written = run("inspect", model, "--out", page)
    assert f"Wrote {page}" in written.stdout
    assert "Not above the noise" in page.read_text()
    assert run("inspect", model, "--out", page).code == 2
    assert run("inspect", model, "--out", page, "--force").code == 0


def test_inspect_says_why_there_is_nothing_to_show(
    census: Census, train: Run, run: Run, tmp_path: Path
) -> None:
    assert train("--epsilon", 1, "--delta", "1e-6", "--model", "svm", "--loss", "hinge").code == 0
    told = run("inspect", tmp_path / "income.privlearn")
    assert told.code == 0
    assert "cannot be compared with the noise: no intervals are known for this release" in told.stdout
    assert run("inspect", tmp_path / "income.privlearn", "--effects").code == 2


def test_explain_adds_up(census: Census, train: Run, run: Run, tmp_path: Path) -> None:
    assert train("--epsilon", 1, "--delta", "1e-6").code == 0
    rows = tmp_path / "two.csv"
    rows.write_text("".join(census.new_rows.read_text().splitlines(keepends=True)[:3]))
    told = run("explain", tmp_path / "income.privlearn", rows)
    assert told.code == 0, told.stderr
    assert told.stdout.count("score for high") == 2
    first = told.stdout.split("\n\n")[0]
    heading, *lines = first.splitlines()
    score, base = (float(number) for number in re.findall(r"[+-]\d+\.\d+", heading))
    assert re.search(r"\(probability 0\.\d{3}\) = ", heading)
    parts = [float(line.split("noise")[0].split()[-1]) for line in lines]
    assert abs(base + sum(parts) - score) < 0.02  # of numbers rounded to three digits


def test_explain_takes_rows_as_predict_does(census: Census, train: Run, run: Run, tmp_path: Path) -> None:
    assert train("--epsilon", 1, "--delta", "1e-6").code == 0
    header, *lines = census.new_rows.read_text().splitlines()
    rows = tmp_path / "with_ids.csv"
    rows.write_text(
        "".join(f"{line}\n" for line in (f'"person_id",{header}', f"7,{lines[0]}", f"7,{lines[1]}"))
    )
    told = run("explain", tmp_path / "income.privlearn", rows)
    assert told.code == 0, told.stderr
    assert told.stdout.count("score for high") == 2
    kept = run("predict", tmp_path / "income.privlearn", rows, "--keep", "person_id,age")
    assert "no column 'person_id,age', which --keep names. Omit it, or repeat --keep" in kept.stderr
    rows.write_text('"person_id"\n7\n')
    for command in ("explain", "predict"):
        assert run(command, tmp_path / "income.privlearn", rows).code == 1


def test_refine_writes_a_release_that_verifies(census: Census, train: Run, run: Run, tmp_path: Path) -> None:
    model, out = tmp_path / "income.privlearn", tmp_path / "simple.privlearn"
    assert train("--epsilon", 1, "--delta", "1e-6").code == 0
    told = run(
        "refine",
        model,
        "--monotone",
        "hours:increasing",
        "--smooth",
        "age:1",
        "--zero-noise",
        "--round",
        3,
        "--out",
        out,
    )
    assert told.code == 0, told.stderr
    assert "This costs nothing" in told.stdout
    verified = run("verify", out, "--origin", model)
    assert verified.code == 0
    assert f"refined     from {Release.load(model).digest[:12]}" in verified.stdout
    assert "Refined from" in run("inspect", out).stdout
    assert run("verify", model, "--origin", out).code == 1
    for wrong in (["--monotone", "hours"], ["--smooth", "age:x"], ["--flatten", "height"], []):
        assert run("refine", model, *wrong, "--out", tmp_path / "other.privlearn").code == 2
        assert not (tmp_path / "other.privlearn").exists()
