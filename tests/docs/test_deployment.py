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

from privlearn.server.holder import DataSet, Extensions, Limits, Log, Owner, ServerSettings, Telemetry
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
    for part in (ServerSettings, Limits, Log, DataSet, Extensions, Telemetry):
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


def test_the_unit_limits_what_the_server_takes_and_notices_when_it_stands_still(
    unit: configparser.ConfigParser,
) -> None:
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) > 0
    assert re.fullmatch(r"\d+G", service["MemoryMax"])
    assert int(service["LimitNOFILE"]) >= 1024


def test_the_health_check_survives_podman() -> None:
    """Its own image format has no place for one."""
    for text in ((DEPLOY / "Containerfile").read_text(), PAGE.read_text()):
        builds = re.findall(r"podman build .*", text)
        assert builds
        assert all("--format docker" in build for build in builds)


def test_every_package_has_the_version_of_the_constraints_and_a_hash() -> None:
    constraints = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    lines = [
        line for line in (DEPLOY / "requirements.txt").read_text().splitlines() if not line.startswith("#")
    ]
    packages = " ".join(lines).replace("\\ ", "").split("\n")
    found = re.findall(r"([\w.-]+)==(\S+) +--hash=sha256:[0-9a-f]{64}", " ".join(lines).replace("\\", ""))
    assert len(found) == sum("==" in line for line in lines) > 20, packages[:1]
    names = {name.lower().replace("_", "-"): version for name, version in found}
    known = {name.replace("_", "-"): version for name, version in constraints.items()}
    assert {name: version for name, version in names.items() if known.get(name, version) != version} == {}
    assert {"fastapi", "numpy", "cryptography", "psycopg", "setuptools"} <= set(names)


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
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3.11-slim@sha256:[0-9a-f]{64}", bases[0]), (
        "an image's name, of no registry, and its digest"
    )
    assert [rest for word, rest in instructions if word == "USER"] == ["privlearn"]
    check = next(rest for word, rest in instructions if word == "HEALTHCHECK")
    program = json.loads(check[check.index("CMD ") + 4 :])
    ast.parse(program[2])
    installed = [rest for word, rest in instructions if word == "RUN" and "pip install" in rest]
    assert [
        "--require-hashes" in rest or "--no-deps --no-build-isolation ." in rest for rest in installed
    ] == [True, True]
    for word, rest in instructions:
        if word == "COPY" and "--from" not in rest:
            assert all((ROOT / name).exists() for name in rest.split()[:-1])
