"""Plant one defect at a time in a copy of the source and check that a test fails.

    python -m tools.mutants                        all defects, on two processes
    python -m tools.mutants slack --workers 1      the defects whose name contains "slack"
    python -m tools.mutants --find "a <= b"        addresses where this code occurs, for a new defect
    python -m tools.mutants --rename old=new       rename an identifier in all defects (see tools/planted/rename.py)

Prints each defect with the first test that failed. The exit code is 1 if a defect survives. The defects are listed
in tools/planted.

Most of a run would be imports, so workers are forked from a process that has already imported the third-party
libraries, and the copies of the source contain compiled files.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from tools.planted import MUTANTS
from tools.planted.mutant import Mutant, TextMutant
from tools.planted.pattern import find_addresses
from tools.planted.rename import rename

MAX_SECONDS = 240
"""Processor time after which a defect counts as noticed: some turn a rejection sampler into an endless loop."""

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ["-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-W", "default", "-m", "not slow"]
PRELOADED = [
    "pytest", "hypothesis", "numpy", "scipy.optimize", "scipy.stats", "sklearn.linear_model", "pyarrow.parquet",
    "pandas", "pydantic", "sqlalchemy.orm", "flint", "cryptography.hazmat.primitives.asymmetric.ed25519",
    "typer.testing",
]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check that the tests notice planted defects.")
    parser.add_argument("name", nargs="?", default="", help="run the defects whose name contains this text")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument("--find", metavar="CODE", help="print the addresses where this code occurs")
    parser.add_argument(
        "--rename", metavar="[ADDRESS:]OLD=NEW", nargs="+", help="rename identifiers in all defects"
    )
    options = parser.parse_args(arguments)
    if options.find:
        return _print_addresses(options.find)
    if options.rename:
        return rename(options.rename)
    selected = [mutant for mutant in MUTANTS if options.name in mutant.name]
    if not selected:
        raise SystemExit(f"no defect's name contains {options.name!r}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        source = _compiled_copy(Path(directory))
        _check_unchanged_source(source, selected, options.workers)
        survivors = _run_all(source, selected, options.workers)
    minutes = (time.monotonic() - started) / 60
    caught = len(selected) - len(survivors)
    print(f"{caught} of {len(selected)} defects were caught, in {minutes:.1f} minutes")
    for name in survivors:
        print(f"survived: {name}")
    return 1 if survivors else 0


def _print_addresses(code: str) -> int:
    for path in sorted((ROOT / "src").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for name, line in find_addresses(ast.parse(path.read_text()), code):
            print(f"{module}:{name}  (line {line})")
    return 0


def _compiled_copy(directory: Path) -> Path:
    """Copy the source with compiled files; copies of that copy keep them, because modification times are kept."""
    source = directory / "unchanged"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(source, quiet=1)
    return source


def _check_unchanged_source(source: Path, selected: Sequence[Mutant | TextMutant], workers: int) -> None:
    """Stop if a test fails without any defect."""
    paths = dict.fromkeys(_paths(*(name for mutant in selected for name in mutant.tests)))
    parallel = ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", *parallel, *OPTIONS, *paths],
        env=environment,
        cwd=ROOT,
        check=False,
    )
    if run.returncode:
        raise SystemExit("a test fails without any defect; fix that first")


def _run_all(source: Path, selected: Sequence[Mutant | TextMutant], workers: int) -> list[str]:
    """Return the names of the defects that no test noticed."""
    context = multiprocessing.get_context("forkserver")
    os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported in the fork server
    context.set_forkserver_preload(PRELOADED)
    survivors = []
    with context.Pool(workers, maxtasksperchild=1) as pool:
        outcomes = pool.imap(partial(_first_failure, source=source), selected, chunksize=1)
        for mutant, failure in zip(selected, outcomes, strict=True):
            print(f"{mutant.name:<42} {failure or 'SURVIVES'}", flush=True)
            survivors += [] if failure else [mutant.name]
    return survivors


def _first_failure(mutant: Mutant | TextMutant, source: Path) -> str | None:
    """Run the defect's tests against a changed copy of the source; return the first failure.

    Runs in a process of its own.
    """
    with tempfile.TemporaryDirectory(dir=source.parent) as directory:
        changed = Path(directory) / "src"
        shutil.copytree(source, changed)
        _plant(mutant, Path(directory))
        os.environ |= {"PYTHONPATH": str(changed), "PYTHONDONTWRITEBYTECODE": "1"}
        os.chdir(ROOT)
        sys.path[:0] = [str(changed)]
        recorder = _FailureRecorder(changed)
        signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        with (
            open(os.devnull, "w") as silence,
            contextlib.redirect_stdout(silence),
            contextlib.redirect_stderr(silence),
        ):
            code = pytest.main(["-x", *OPTIONS, *_paths(*mutant.tests)], plugins=[recorder])
    return None if code == 0 else recorder.failure or f"pytest ended with {int(code)}"


def _stop(signal_number: int, frame: object) -> None:
    pytest.exit(f"more than {MAX_SECONDS} seconds of processor time", returncode=124)


def _plant(mutant: Mutant | TextMutant, root: Path) -> None:
    path = mutant.file(root)
    try:
        changed = mutant.planted(path.read_text())
    except LookupError as error:
        raise SystemExit(f"{error}. Correct its address or its pattern in tools/planted.") from None
    path.unlink()  # a new file with a new modification time, so that it is compiled again
    path.write_text(changed)


def _paths(*tests: str) -> list[str]:
    return [str(ROOT / "tests" / name) for name in tests]


class _FailureRecorder:
    """A pytest plugin that keeps the name of the first failure and checks which source is tested."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self.failure: str | None = None

    def pytest_sessionstart(self) -> None:
        import privlearn

        if not str(privlearn.__file__).startswith(str(self._source)):
            raise pytest.UsageError("the tests would not import the changed source")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._keep(report)

    def _keep(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed and self.failure is None:
            self.failure = report.nodeid.removeprefix("tests/")


if __name__ == "__main__":
    raise SystemExit(main())
