"""`privlearn regress`: a release file per target, from second moments that a run of several holders opened."""

from __future__ import annotations

from pathlib import Path

from privlearn.parties import simulate
from privlearn.release import Release
from tests.support.cli_support import Run
from tests.support.moments_cases import AGREEMENT
from tests.support.run_cases import TABLES


def test_every_target_gets_its_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "moments.privlearn"
    moments = simulate(AGREEMENT, TABLES)
    moments.save(file)
    assert f"privlearn regress {file}" in run("inspect", file).stdout
    told = run("regress", file)
    assert told.code == 0, told.stderr
    assert "once for all its models" in told.stdout
    told = run("inspect", tmp_path / "moments.education_years.privlearn")
    assert "regression of             education_years" in told.stdout
    assert "paid together with        all regressions from the noisy sum" in told.stdout
    assert run("regress", file).code == 2, "what is there stays"
    for wrong in (["--target", "age"], ["--regularization", 0], ["--out", tmp_path / "one.privlearn"]):
        assert run("regress", file, *wrong, "--force").code == 2
    chosen = ["--target", "hours", "--regularization", 0.1, "--out", tmp_path / "smooth.privlearn"]
    assert run("regress", file, *chosen).code == 0
    assert Release.load(tmp_path / "smooth.privlearn").certificate.task.regularization == 0.1
