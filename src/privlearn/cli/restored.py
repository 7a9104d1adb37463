"""`privlearn restored`: after a backup was put back."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.ledger.composition import Amount


def restored(
    owner: Annotated[
        Path, typer.Argument(metavar="OWNER.toml", help="The holder's file.", show_default=False)
    ],
    lost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DATASET=EPSILON[,DELTA]",
            help="What was spent after the backup was made, if you know it for certain. May be given several times.",
            show_default="everything that is left",
        ),
    ] = None,
) -> None:
    """Make a restored backup safe, before the server starts on it.

    The backup does not know what was answered after it was made. So every budget is
    marked as spent (or by --lost what you know was), trainings under way are ended,
    sessions that add noise to each answer are closed, and all keys are revoked. Released
    models and sessions that answer from a model stay. Stop the server first.

    \b
    Example:
      privlearn restored owner.toml
      privlearn restored owner.toml --lost census=0.5,1e-6 --lost survey=1
    """
    from privlearn.service.restored import settle
    from privlearn.service.service import only_server
    from privlearn.service.settings import Owner

    settings = Owner.load(owner)
    amounts = dict(_amount(text) for text in lost or [])
    server = settings.server
    with nullcontext() if server.ledger else only_server(server.folder):
        spent = settle(server.store, amounts)
    for name, guarantee in spent.items():
        typer.echo(f"{name}: epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g} more are spent.")
    typer.echo("All keys are revoked. Next: privlearn keys create, then privlearn serve.")


def _amount(text: str) -> tuple[str, Amount]:
    from privlearn.ledger.composition import Amount

    name, _, numbers = text.partition("=")
    try:
        epsilon, delta = (
            float(number) for number in (numbers if "," in numbers else f"{numbers},0").split(",")
        )
    except ValueError:
        raise InvalidParameter(f"--lost {text} cannot be read: write --lost census=0.5,1e-6") from None
    return name, Amount(epsilon, delta)
