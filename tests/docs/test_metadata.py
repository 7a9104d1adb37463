"""One version, one place; and what is said about the project elsewhere agrees with it."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from typer.testing import CliRunner

from privlearn import __version__
from privlearn.cli import app
from privlearn.release.base_certificate import library_versions
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
    released = __version__.partition(".dev")[0]
    assert f"Version {released}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"\n## {released}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_hooks_download_nothing() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")


@pytest.mark.parametrize("extra", [None, *PROJECT["project"]["optional-dependencies"]])
def test_every_dependency_is_pinned(extra: str | None) -> None:
    project = PROJECT["project"]
    wanted = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {_plain(line.split("==")[0]) for line in pins.splitlines()}
    names = {_plain(re.split(r"[\[<>=]", requirement)[0]) for requirement in wanted} - {"privlearn-core"}
    assert names <= pinned


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
