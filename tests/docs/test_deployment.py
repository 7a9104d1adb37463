"""What a holder copies: the example of owner.toml, the systemd unit, the Containerfile."""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from privlearn.service.holder.settings import DataSet, Extensions, Limits, Owner, ServerSettings
from tests.support.doc_pages import ROOT, blocks

DEPLOY = ROOT / "deploy"
PAGE = ROOT / "docs" / "how-to" / "serve.md"


def test_the_example_is_accepted_and_names_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clinic_kernels.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    (example,) = [block.text for block in blocks(PAGE) if block.language == "toml"]
    (tmp_path / "owner.toml").write_text(example)
    owner = Owner.load(tmp_path / "owner.toml")
    assert owner.share("alice", "census") is not None
    assert owner.server.training_processes == 1
    for part in (ServerSettings, Limits, DataSet, Extensions):
        names = {field.alias or name for name, field in part.model_fields.items()}
        assert {name for name in names if not re.search(rf"\b{name}\b", example)} == set()


@pytest.fixture
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(DEPLOY / "privlearn.service")
    return parser


def test_the_unit_keeps_the_records_on_the_machine(unit: configparser.ConfigParser) -> None:
    service = unit["Service"]
    assert service["User"] == "privlearn"
    assert service["LimitCORE"] == "0"
    assert service["MemorySwapMax"] == "0"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    assert service["CapabilityBoundingSet"] == ""
    assert shlex.split(service["ExecStart"])[1] == "serve"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_rates_the_unit_as_the_page_says() -> None:
    typed = [
        "systemd-analyze",
        "security",
        "--offline=true",
        "--json=short",
        str(DEPLOY / "privlearn.service"),
    ]
    done = subprocess.run(typed, capture_output=True, text=True, check=False)
    if "unknown unit" in done.stderr.lower() or not done.stdout:
        pytest.skip(f"this systemd cannot rate a file: {done.stderr.strip()}")
    unmet = [finding["name"] for finding in json.loads(done.stdout) if finding["set"] is False]
    assert "NoNewPrivileges=" not in unmet
    assert len(unmet) <= 12


def test_the_container_runs_as_nobody_in_particular_and_says_how_it_is() -> None:
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if re.match(r"[A-Z]+ ", line)]
    bases = [rest.split()[0] for word, rest in instructions if word == "FROM"]
    assert bases == ["python:3.11-slim"] * 2, "an image's name, of no registry"
    assert [rest for word, rest in instructions if word == "USER"] == ["privlearn"]
    check = next(rest for word, rest in instructions if word == "HEALTHCHECK")
    program = json.loads(check[check.index("CMD ") + 4 :])
    ast.parse(program[2])
    for word, rest in instructions:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / name).exists() for name in rest.split()[:-1])
