"""`privlearn ask`: the service's verbs from the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.ask import about, approving, results
from privlearn.cli.ask.caller import Asking

ask = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@ask.callback()
def describe(
    context: typer.Context,
    server: Annotated[
        str, typer.Option(envvar="PRIVLEARN_SERVER", metavar="URL", help="The server's address.")
    ] = "http://127.0.0.1:8383",
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="A file that holds your key, and that only you may read.", show_default="$PRIVLEARN_KEY"
        ),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(help="Certificate (PEM) of a private authority.", show_default=False)
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Allow http:// to another machine, if something else encrypts it."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")] = False,
) -> None:
    """Ask a server that `privlearn serve` runs: predictions, models, what is left of the budget.

    Your key is in the environment (PRIVLEARN_KEY) or in a file, never on the command line, where others could see it.

    \b
    Example:
      export PRIVLEARN_KEY=pl_...
      privlearn ask --server https://learner.example datasets
    """
    context.obj = Asking(server, key_file, ca, plain_http, as_json)


for verb in (*about.VERBS, *results.VERBS, *approving.VERBS):
    ask.command()(verb)
