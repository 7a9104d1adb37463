"""What a holder starts whole: the compose file and the Helm chart, checked by the programs that read them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from privlearn.multiparty.run.identity import write_certificate
from privlearn.service.holder.settings import Owner
from tests.support.doc_pages import ROOT, blocks
from tests.support.nginx import PROGRAM as NGINX
from tests.support.nginx import whole_settings

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "privlearn"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SECRETS = {"PRIVLEARN_DATABASE_PASSWORD": "a", "PRIVLEARN_OPENID_SECRET": "b"}
GIVEN = ["owner.existingSecret=o", "database.existingSecret=d", "tables.existingClaim=t"]


def _compose() -> list[str]:
    """The command, if there is one; `docker` alone may have no `compose`."""
    for command in (["podman-compose"], ["docker-compose"], ["docker", "compose"]):
        if shutil.which(command[0]) and not subprocess.run([*command, "version"], capture_output=True).returncode:
            return command
    return []
