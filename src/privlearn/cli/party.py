"""`privlearn party`: take part in a run of several parties with one's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.ledgers import check_room, open_ledger, say_what_is_left
from privlearn.cli.terminal import say, warn
from privlearn.errors import ProtocolError


def party(
    settings: Annotated[
        Path, typer.Argument(metavar="MINE.toml", help="This party's settings.", show_default=False)
    ],
    data: Annotated[
        Path, typer.Option(metavar="FILE", help="The table: .csv, .csv.gz or .parquet.", show_default=False)
    ],
) -> None:
    """Take part in a plan with your own rows, within your own limits.

    Checks the plan against the limits in MINE.toml and takes its cost out of your
    ledger before signing it. What leaves are vectors under masks, each with your
    share of the noise in it; only their sum over all parties can be opened.

    \b
    Example, with MINE.toml as in the tutorial on several parties:
      privlearn budget create census --ledger north.ledger --epsilon 2 --delta 1e-5
      privlearn party north.toml --data north.csv
    """
    from privlearn.data.files import read_records
    from privlearn.ledger import Cost
    from privlearn.multiparty.flower import take_part
    from privlearn.multiparty.identity import Identity
    from privlearn.multiparty.party import Party
    from privlearn.multiparty.party_run import PartyRun
    from privlearn.multiparty.plan import MultipartyPlan
    from privlearn.multiparty.settings import PartySettings

    mine = PartySettings.load(settings)
    plan = MultipartyPlan.load(mine.plan)
    mine.check(plan)
    identity = Identity.read(mine.identity)
    ledger = open_ledger(mine.ledger, mine.dataset, plan.table_schema.name)
    assert ledger is not None
    check_room(ledger, plan.guarantee)
    rows = Party.from_table(plan, mine.name, read_records(data, plan.table_schema))
    purpose = f"party {mine.name} of the plan {plan.digest[:16]}"
    run = PartyRun(
        plan,
        mine.name,
        identity,
        rows,
        lambda: ledger.reserve(Cost(plan.guarantee, plan.mechanism.renyi), purpose, plan.table_schema.digest),
        say,
    )
    say(f"{mine.name}: plan {plan.digest[:16]}, {plan.guarantee}, within the limits.")
    if plan.weakness:
        warn(f"This promise is {plan.weakness}.")
    try:
        take_part(
            run,
            identity,
            coordinator=mine.coordinator,
            certificate=mine.certificate,
            wait=mine.wait_seconds,
            patience=mine.patience_seconds,
        )
    finally:
        run.give_up()
    if run.release is None:
        raise ProtocolError(f"the run was stopped: {run.stopped}")
    if mine.model is not None:
        run.release.save(mine.model)
        typer.echo(f"Wrote {mine.model}.")
    say_what_is_left(ledger)
