"""Other libraries, each in a virtual environment of its own: none of them is a dependency of privlearn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-peers"
PINS = Path(__file__).with_name("peers-constraints.txt")
PACKAGES = {
    "diffprivlib": ["diffprivlib"],
    "opacus": ["torch", "opacus"],
    "interpret": ["interpret-core"],
}


def peer_python(name: str) -> Path:
    """The interpreter of a library's environment, made on the first call."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {name} into {folder.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "-c", str(PINS), *PACKAGES[name]], check=True)
        (folder / "ready").touch()
    return python
