"""Nothing in the core needs POSIX: training, prediction, verification and commands can be imported without it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_pages import ROOT

PACKAGE = ROOT / "src" / "privlearn"
ONLY_POSIX = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop")
NAMES_OF_POSIX = {
    "os": {
        *(
            "chown",
            "fchmod",
            "fchown",
            "fork",
            "forkpty",
            "getegid",
            "geteuid",
            "getgid",
            "getpgid",
            "getuid",
        ),
        *("killpg", "mkfifo", "O_DIRECTORY", "O_NOFOLLOW", "register_at_fork", "sched_getaffinity", "setsid"),
        *("setuid", "sync", "uname", "wait", "waitpid"),
    },
    "signal": {"SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGQUIT", "SIGUSR1", "SIGUSR2", "alarm", "pause"},
}
NOT_CORE = ("service", "multiparty/flower")
"""The server, and runs of several holders; what of them needs POSIX says so where it is used."""


def _core() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(NOT_CORE)
        and "migrations/versions" not in path.as_posix()  # run by alembic, in its own way
    ]


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_IMPORT = """
import sys
import asyncio, multiprocessing, subprocess, tempfile  # of the standard library, which has its own way on Windows
import alembic, cryptography, opendp, pyarrow.parquet, scipy.stats, sklearn.linear_model, sqlalchemy, typer
from tests.support.blocked import block
names, modules = sys.argv[1].split(","), sys.argv[2].split(",")
for name in names:
    sys.modules.pop(name, None)
block(names)
for module in modules:
    __import__(module)
"""


def test_the_core_is_imported_without_modules_of_posix() -> None:
    modules = [_module(path) for path in _core() if path.stem != "__main__"]
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT, ",".join(ONLY_POSIX), ",".join(modules)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("path", _core(), ids=_module)
def test_the_core_uses_no_name_that_windows_lacks(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.attr not in NAMES_OF_POSIX.get(node.value.id, ())
