"""Bounds bought together, then several models from one sum: three party processes and a coordinator, from the shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from privlearn.data import NumberColumn
from privlearn.parties import simulate
from privlearn.parties.run import load_agreement
from privlearn.release import Moments, Release, verify
from privlearn.statistics.discovery import DiscoveredSchema
from tests.support.process_cases import Site
from tests.support.run_cases import KEYS, SIZES, TABLES

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")

DRAFT = """name: census
columns:
  age: {type: number, lower: 18, upper: 90}
  hours: {type: number, lower: 0, upper: estimate}
  education_years: {type: number, lower: 0, upper: 25}
  sex: {type: category, values: [female, male]}
"""
BOUNDS = ['draft = "wanted.yaml"', "epsilon = 0.8", "delta = 4e-6", "[between]", "hours = [0, 100]"]
MOMENTS = [
    'schema = "bounds.privlearn"',
    'targets = ["hours", "education_years"]',
    "epsilon = 1.2",
    "delta = 5e-6",
]


def write_plan(folder: Path, agreement: list[str]) -> Path:
    (folder / "wanted.yaml").write_text(DRAFT)
    lines = [*agreement, "[parties]", *(f"{party} = {size}" for party, size in SIZES.items())]
    lines += ["[keys]", *(f"{party} = {key!r}" for party, key in KEYS.items())]
    (folder / "plan.toml").write_text("\n".join(lines))
    return folder / "plan.toml"


def run_through(site: Site, agreement: list[str], name: str) -> None:
    """One run of all processes; what it made is in the file of that name, and with every party."""
    write_plan(site.folder, agreement)
    site.start()
    assert site.exit_code("coordinator") == 0, site.log("coordinator")
    assert [site.exit_code(party) for party in SIZES] == [0, 0, 0], site.log("north")
    written = (site.folder / "plan.privlearn").read_bytes()
    assert all((site.folder / f"{party}.privlearn").read_bytes() == written for party in SIZES)
    (site.folder / "plan.privlearn").rename(site.folder / f"{name}.privlearn")


@pytest.mark.slow
def test_bounds_then_two_models(tmp_path: Path) -> None:
    site = Site(tmp_path)
    try:
        run_through(site, BOUNDS, "bounds")
        run_through(site, MOMENTS, "moments")
    finally:
        site.end()
    assert "Question 1 of 1 (second moments with targets): 3 of 3 parties" in site.log("coordinator")
    assert [site.spent(name) for name in SIZES] == [2.0, 2.0, 2.0]
    assert "Its models: privlearn regress plan.privlearn" in site.log("coordinator")
    words = [sys.executable, "-m", "privlearn", "regress", "moments.privlearn"]
    subprocess.run(words, cwd=tmp_path, check=True)
    check_models(tmp_path)


def test_the_same_in_one_process(tmp_path: Path) -> None:
    for content, name in ((BOUNDS, "bounds"), (MOMENTS, "moments")):
        agreement = load_agreement(write_plan(tmp_path, content))
        made = simulate(agreement, {party: TABLES[party] for party in SIZES}, print)
        made.save(tmp_path / f"{name}.privlearn")
    assert isinstance(made, Moments)
    for target in made.targets:
        Release.from_moments(made, target).save(tmp_path / f"moments.{target}.privlearn")
    check_models(tmp_path)


def check_models(folder: Path) -> None:
    """Both are of one run that every party signed, and state what the schema cost beside the sum."""
    bought = DiscoveredSchema.load(folder / "bounds.privlearn").schema
    hours = bought.columns["hours"]
    assert isinstance(hours, NumberColumn)
    assert 40 < hours.upper <= 100
    for target in ("hours", "education_years"):
        proven = verify(folder / f"moments.{target}.privlearn")
        assert proven.certificate.together.epsilon == 2.0
        assert proven.run is not None
        assert set(proven.run.signatures) == set(SIZES)
        model = Release.load(folder / f"moments.{target}.privlearn").model
        assert len(model.predict(TABLES["north"])) == SIZES["north"]
