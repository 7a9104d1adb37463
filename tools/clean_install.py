"""Install what `tools.distributions` built in empty environments, and try it: `python -m tools.clean_install dist`.

The libraries come from the package index that pip is configured with. What the whole one trains, the small one verifies
and predicts with, and the predictions agree.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_MEGABYTES = {"privlearn-core": 150.0}
CLOSE = 1e-9
_NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")


def try_all(dist: Path, work: Path) -> None:
    """Wheels first, then source archives; each of both distributions."""
    for form, settings in (("wheel", []), ("sdist", ["--no-binary=privlearn,privlearn-core"])):
        whole = install("privlearn", dist, work / f"{form}-whole", settings)
        small = install("privlearn-core", dist, work / f"{form}-small", settings)
        train(whole, work / form)
        verify_and_predict(whole, small, work / form / "demo-output")
        print(f"{form}: the demonstration, the README's lines, verification and prediction work", flush=True)


def install(name: str, dist: Path, folder: Path, settings: Sequence[str] = ()) -> Path:
    """The environment's folder of programs."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    wanted: list[str | Path] = [
        name,
        "--pre",
        f"--find-links={dist.resolve()}",
        "-c",
        ROOT / "constraints.txt",
        *settings,
    ]
    subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", *wanted], check=True)
    sizes = megabytes(next(folder.rglob("site-packages")))
    total = sum(sizes.values())
    largest = ", ".join(f"{part} {size:.0f}" for part, size in list(sizes.items())[:12])
    print(f"{name}: {total:.0f} MB ({largest})", flush=True)
    if total > MOST_MEGABYTES.get(name, float("inf")):
        raise SystemExit(f"{name} takes more than {MOST_MEGABYTES[name]:.0f} MB")
    return programs


def megabytes(folder: Path) -> dict[str, float]:
    """Of each part, largest first, compiled files included; pip, which every environment has, does not count."""
    sizes = {
        part.name: sum(file.stat().st_size for file in [part, *part.rglob("*")] if file.is_file()) / 1e6
        for part in folder.iterdir()
        if not part.name.startswith(_NOT_COUNTED)
    }
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def train(programs: Path, folder: Path) -> None:
    """The demonstration, then the ten lines of the README."""
    folder.mkdir()
    _run(programs, folder, "privlearn", "demo", "--out", "demo-output")
    lines = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert lines is not None
    _run(programs, folder, "python", "-c", lines[1])


def verify_and_predict(whole: Path, small: Path, folder: Path) -> None:
    """The small one's predictions are the whole one's."""
    release, table = "../income.privlearn", "new.csv"  # of the README, of the demonstration
    _run(small, folder, "privlearn", "verify", release)
    for programs, out in ((whole, "whole.csv"), (small, "small.csv")):
        _run(programs, folder, "privlearn", "predict", release, table, "--probabilities", "--out", out)
    found, expected = (_table(folder / name) for name in ("small.csv", "whole.csv"))
    assert [row[0] for row in found] == [row[0] for row in expected]
    pairs = zip(found[1:], expected[1:], strict=True)
    assert all(abs(float(a[-1]) - float(b[-1])) < CLOSE for a, b in pairs)
    refused = subprocess.run(
        [small / "privlearn", "demo", "--out", "refused"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "pip install privlearn" in refused.stderr


def _table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def _run(programs: Path, folder: Path, *command: str) -> None:
    subprocess.run([programs / command[0], *command[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        try_all(Path(sys.argv[1]), Path(temporary))
