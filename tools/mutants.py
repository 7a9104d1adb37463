"""Plant a defect, see a test fail: one at a time, in a copy of the source.

    python -m tools.mutants            all of them
    python -m tools.mutants slack      those whose name contains "slack"

Prints a table of mutation and first failing test; exits with 1 if a mutant survives. The defects are in tools/planted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.planted import MUTANTS
from tools.planted.mutant import Mutant

ROOT = Path(__file__).resolve().parent.parent


def main(only: str = "") -> int:
    chosen = [mutant for mutant in MUTANTS if only in mutant.name]
    if not chosen:  # pytest without a file would run every test there is
        raise SystemExit(f"no mutant's name contains {only!r}")
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(
            ROOT / "src" / "privlearn", source / "privlearn", ignore=shutil.ignore_patterns("__pycache__")
        )
        _require_pass(source, chosen)
        for mutant in chosen:
            killer = _killer(mutant, source)
            print(f"{mutant.name:<42} {killer or 'SURVIVES'}", flush=True)
            survivors += [] if killer else [mutant.name]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were caught")
    return 1 if survivors else 0


def _killer(mutant: Mutant, source: Path) -> str | None:
    """Plant, run, restore; the first test that failed."""
    path = source / "privlearn" / mutant.file
    original = path.read_text()
    if original.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.name}: its text occurs {original.count(mutant.old)} times in {mutant.file}, not once"
        )
    path.write_text(original.replace(mutant.old, mutant.new))
    try:
        return _first_failure(source, mutant.tests)
    finally:
        path.write_text(original)


def _require_pass(source: Path, chosen: list[Mutant]) -> None:
    tests = tuple(dict.fromkeys(name for mutant in chosen for name in mutant.tests))
    if failure := _first_failure(source, tests):
        raise SystemExit(f"without any mutation {failure} fails: mend that first")


def _first_failure(source: Path, tests: tuple[str, ...]) -> str | None:
    paths = [str(ROOT / "tests" / name) for name in tests]
    options = [
        "-x",
        "-q",
        "--tb=no",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-W",
        "default",
        "-m",
        "not slow",
    ]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    check = f"import privlearn, sys; sys.exit(not privlearn.__file__.startswith({str(source)!r}))"
    subprocess.run([sys.executable, "-c", check], env=environment, cwd=source, check=True)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *paths],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", run.stdout, re.MULTILINE)
    return failed.group(1).removeprefix("tests/") if failed else f"pytest ended with {run.returncode}"


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
