"""Writes deploy/requirements.txt: every package of a server, in the version of constraints.txt, with its file's hash.

    python tools/hashed_requirements.py

pip decides which files these are, for the Python and the machine it runs on; nothing is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "deploy" / "requirements.txt"
HEADING = "# Written by tools/hashed_requirements.py for CPython 3.11 on Linux, x86-64: do not edit.\n"
WANTED = (f"{ROOT}[train,service,postgresql]", "setuptools>=77")


def chosen() -> list[dict[str, Any]]:
    """What pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        typed = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        typed += ["--report", str(report), "-c", str(ROOT / "constraints.txt"), *WANTED]
        subprocess.run(typed, check=True)
        return list(json.loads(report.read_text(encoding="utf-8"))["install"])


def line_of(package: dict[str, Any]) -> str:
    facts, archive = package["metadata"], package["download_info"]["archive_info"]
    return f"{facts['name']}=={facts['version']} \\\n    --hash=sha256:{archive['hashes']['sha256']}\n"


def main() -> None:
    packages = [
        package for package in chosen() if "archive_info" in package["download_info"]
    ]  # not privlearn itself
    lines = sorted(map(line_of, packages), key=str.lower)
    TARGET.write_text(HEADING + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
