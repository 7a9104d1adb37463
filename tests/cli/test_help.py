"""Every command explains itself, at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer

from privlearn.cli import app
from privlearn.cli.options import KernelName, LossName
from privlearn.data.sources.files import TEXT
from privlearn.data.sources.program_files import ENDINGS
from privlearn.features import KERNELS
from privlearn.solvers import LOSSES
from tests.support.cli_support import Run

ASK = (
    "datasets", "dataset", "budget", "estimate", "synthetic", "release", "session", "evaluate", "predict", "sessions",
    "certificate", "close", "releases", "download", "jobs", "events",
)  # fmt: skip
COMMANDS = [
    ("schema",),
    ("check",),
    ("plan",),
    ("plan", "check"),
    ("train",),
    ("predict",),
    ("evaluate",),
    ("threshold",),
    ("verify",),
    ("inspect",),
    ("audit",),
    ("budget",),
    ("budget", "create"),
    ("budget", "show"),
    ("ask",),
    ("restored",),
    *(("ask", verb) for verb in ASK),
    ("compare",),
    ("bounds",),
    ("reproduce",),
    ("keys",),
    ("keys", "create"),
    ("keys", "list"),
    ("keys", "revoke"),
    ("demo",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(command: tuple[str, ...], run: Run) -> None:
    told = run(*command, "--help")
    assert told.code == 0
    assert "Example:" in told.stdout
    assert f"privlearn {' '.join(command)} " in told.stdout.split("Example:")[1]


def test_list_of_commands_is_complete(run: Run) -> None:
    told = run("--help").stdout
    listed = {command[0] for command in COMMANDS}
    assert all(f" {name} " in told for name in listed)


def test_verify_documents_its_exit_codes(run: Run) -> None:
    told = run("verify", "--help").stdout
    assert "3  consistent, but not private" in told


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_every_kind_of_file_is_named(command: str, run: Run) -> None:
    told = run(command, "--help").stdout
    assert all(kind in told for kind in ("release", "evaluation", "description", "curvature", "session"))


def test_brackets_are_not_eaten(run: Run) -> None:
    """rich takes [keys] for markup."""
    for asked in (("identity", "--help"), ("--help",)):
        assert "the plan's [keys]" in " ".join(run(*asked).stdout.replace("│", " ").split())


def test_wrong_usage_is_code_2(run: Run) -> None:
    assert run("train").code == 2
    assert run("no-such-command").code == 2
    assert run("budget").code == 2


def test_help_does_not_wait_for_numerical_libraries() -> None:
    script = (
        "import sys\n"
        "from privlearn.cli import main\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'opendp', 'sqlalchemy', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_module_is_the_command() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "privlearn", "--version"], check=True, capture_output=True, text=True
    )
    assert told.stdout.startswith("privlearn ")


def test_every_ending_of_a_table_is_named(run: Run) -> None:
    told = " ".join(run("schema", "--help").stdout.replace("│", " ").split())
    for ending in (*TEXT, ".gz", ".parquet", *ENDINGS):
        assert f" {ending}" in told.replace("(", " ")


def _number_options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from _number_options(below, (*path, name))
    for option in command.params:
        if option.metavar == "FLOAT" or "float" in str(option.type.name).lower():
            yield " ".join((*path, option.opts[0])), option


def test_every_number_explains_a_decimal_comma() -> None:
    found = dict(_number_options(typer.main.get_command(app)))
    assert {"train --epsilon", "evaluate --epsilon", "keys create --days", "bounds --lambda"} <= found.keys()
    for name, option in found.items():
        with pytest.raises(click.BadParameter, match=r"Write it like 0\.5"):
            pytest.fail(f"{name} takes {option.type.convert('0,5', option, None)}")


@pytest.mark.parametrize(
    ("registry", "option"), [(LOSSES, LossName), (KERNELS, KernelName)], ids=["loss", "kernel"]
)
def test_help_names_every_loss_and_kernel_of_the_library(registry: dict[str, type], option: Any) -> None:
    """The help is written by hand, because importing the registries would slow every command down."""
    text = option.__metadata__[0].help
    own = {name for name, kind in registry.items() if kind.__module__.startswith("privlearn.")}
    assert sorted(name for name in own - {"precomputed"} if name not in text) == []
