"""Compare what an example prints with what its page shows; a shell runs the `$` lines of a console block."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.support.waiting import run_to_end

DOCUMENTED_PORT = 8383
TOOLS = Path(sys.executable).parent

_NUMBER = re.compile(r"[0-9a-f]{32,}|\d+(\.\d+)?(e[+-]?\d+)?")
_DRAWING = re.compile(r"[^\x00-\x7f]+")


def run_console(block: str, folder: Path, port: int = DOCUMENTED_PORT, commands: Path = TOOLS) -> None:
    """Run each command in turn; it must succeed, or fail as the page says, and print the lines that it shows.

    Commands are looked for in that folder first.
    """
    for command, shown in _commands(block):
        done = run_to_end(["bash", "-c", command], cwd=folder, env=_environment(port, commands))
        printed = done.stdout + done.stderr
        refusal = f"(exit code {done.returncode})"
        assert done.returncode == 0 or refusal in shown, f"$ {command}\n{printed}"
        check_printed(f"{printed}\n{refusal}", shown, f"$ {command}")


def on_port(text: str, port: int) -> str:
    """Return the example with another port, because the documented one may be in use."""
    text = text.replace("privlearn serve --demo", f"privlearn serve --demo --port {port}")
    return text.replace(str(DOCUMENTED_PORT), str(port))


def check_printed(printed: str, shown: list[str], example: str) -> None:
    """Check that every line that the page shows was printed.

    Numbers, times, bars and borders may differ; a line of dots stands for lines that the page leaves out.
    """
    lines = {_masked(line) for line in printed.splitlines()}
    missing = [line for line in shown if line.strip() not in ("", "...") and _masked(line) not in lines]
    assert not missing, f"{example}\ndid not print: {missing}\nbut:\n{printed}"


def _commands(block: str) -> list[tuple[str, list[str]]]:
    commands: list[tuple[str, list[str]]] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            while command.endswith("\\"):
                command = command[:-1] + next(lines).strip()
            commands.append((command, []))
        elif line.strip():
            commands[-1][1].append(line)
    return commands


def _masked(line: str) -> str:
    return " ".join(_DRAWING.sub(" ", _NUMBER.sub("#", line)).split())


def _environment(port: int, commands: Path) -> dict[str, str]:
    """Return the variables of a terminal in which the project's environment is active."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(commands), str(TOOLS), os.environ["PATH"]]),
        "COLUMNS": "80",
        "OMP_NUM_THREADS": "1",
        "PRIVLEARN_SERVER": f"http://127.0.0.1:{port}",
    }
