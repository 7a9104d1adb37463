"""One version, one place; and what is said about the project elsewhere agrees with it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from itertools import chain

import yaml
from typer.testing import CliRunner

from privlearn import __version__
from privlearn.cli import app
from privlearn.release import library_versions
from tests.support.doc_pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "privlearn._version.__version__"}
    stated = [
        source.name
        for source in (ROOT / "src").rglob("*.py")
        if f'"{__version__}"' in source.read_text(encoding="utf-8")
    ]
    assert stated == ["_version.py"]


def test_everything_that_states_the_version_reads_it() -> None:
    assert library_versions()["privlearn"] == __version__
    assert CliRunner().invoke(app, ["--version"]).output == f"privlearn {__version__}\n"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["project"]["license"]
    chart = yaml.safe_load((ROOT / "deploy/helm/privlearn/Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == __version__
    released = __version__.partition(".dev")[0]
    for page in ("README.md", "docs/limitations.md"):
        assert f"Version {released}" in (ROOT / page).read_text(encoding="utf-8")
    assert f"\n## {released}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_workflow_runs_what_a_change_must_pass() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["checks"]
    typed = [step["run"] for step in job["steps"] if "run" in step]
    assert typed == re.findall(r"^(?:timeout \d+ )?(make \w+)", script, re.MULTILINE)
    stated = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == stated


def test_hooks_download_nothing() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")


def test_holders_packages_and_tools_are_pinned_once_each() -> None:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    run = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    tools = [each for group in groups.values() for each in group if isinstance(each, str)]
    holders, developers = _pins("constraints.txt"), _pins("constraints-dev.txt")
    assert _names(run) <= holders
    assert _names(tools) <= holders | developers | {PROJECT["project"]["name"]}
    assert not holders & developers


def _pins(file: str) -> set[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return _names(line for line in lines if not line.startswith("-c "))


def _names(requirements: Iterable[str]) -> set[str]:
    """Return the normalised names of packages, without extras and versions."""
    return {re.split(r"[\[<>=;]", each)[0].lower().replace("_", "-") for each in requirements}
