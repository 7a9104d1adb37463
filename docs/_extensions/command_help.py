"""The directive ``privlearn-help``: each command's own --help, so that the page cannot grow stale."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Any

import typer.main
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Command = tuple[str, ...]

_PLAIN = {"TYPER_USE_RICH": "0", "COLUMNS": "88", "PYTHONIOENCODING": "utf-8"}


def commands() -> list[Command]:
    """The program itself, its commands, and theirs."""
    from privlearn.cli import app

    return _below((), typer.main.get_command(app))


@cache
def help_text(command: Command) -> str:
    """What ``privlearn COMMAND --help`` prints."""
    typed = [sys.executable, "-m", "privlearn", *command, "--help"]
    done = subprocess.run(typed, env=os.environ | _PLAIN, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip() + "\n"


def _below(path: Command, command: Any) -> list[Command]:
    deeper = [_below((*path, name), child) for name, child in getattr(command, "commands", {}).items()]
    return [path, *(found for part in deeper for found in part)]


class CommandHelp(SphinxDirective):
    """One section per command."""

    def run(self) -> list[nodes.Node]:
        return [self._section(command) for command in commands()]

    def _section(self, command: Command) -> nodes.section:
        title = " ".join(("privlearn", *command))
        text = help_text(command)
        section = nodes.section(ids=[nodes.make_id(title)])
        section += nodes.title(title, title)
        section += nodes.literal_block(text, text, language="text")
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("privlearn-help", CommandHelp)
    return {"parallel_read_safe": True}
