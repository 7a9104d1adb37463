"""`privlearn ask`: the commands of an analyst who uses a server.

`caller.py` has the server's address, the key and the printing; `about.py` the requests that cost nothing, approvals
included; `results.py` the requests that train, release and predict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.ask import about, results
from privlearn.cli.ask.caller import ServerOptions
from privlearn.cli.charging import with_options

ask = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@ask.callback()
def describe(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(envvar="PRIVLEARN_SERVER", metavar="URL", help="The server's address.")
    ] = "http://127.0.0.1:8383",
    key_file: Annotated[
        Path | None,
        typer.Option(help="A file with your key that only you may read.", show_default="$PRIVLEARN_KEY"),
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="Certificate (PEM) of a private authority.")] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Allow http:// to another machine, if a tunnel encrypts it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """Use a server that `privlearn serve` runs: predictions, models, and what is left of the budget.

    Your key is in the environment (PRIVLEARN_KEY) or in a file, never on the command line, where others could see it.

    \b
    Example:
      export PRIVLEARN_KEY=pl_...
      privlearn ask --server https://learner.example datasets
    """
    context.obj = ServerOptions(server, key_file, ca, plain_http, as_json)


for command in (*about.COMMANDS, *results.COMMANDS):
    ask.command()(with_options(command))
