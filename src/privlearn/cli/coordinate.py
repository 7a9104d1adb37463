"""`privlearn coordinate`: lead a run of several parties, and write its release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privlearn.cli.options import Force, PlanFile, check_writable
from privlearn.cli.terminal import say, warn


def coordinate(
    plan: PlanFile,
    identity: Annotated[Path, typer.Option(metavar="KEY", help="The coordinator's private key.")] = Path(
        "coordinator.key"
    ),
    certificate: Annotated[Path, typer.Option(metavar="FILE", help="Its TLS certificate.")] = Path(
        "coordinator.crt"
    ),
    tls_key: Annotated[Path, typer.Option(metavar="FILE", help="The certificate's private key.")] = Path(
        "coordinator.tls.key"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 9443,
    out: Annotated[
        Path | None, typer.Option(help="The release file to write.", show_default="PLAN.privlearn")
    ] = None,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds until all parties must have connected.")
    ] = 600.0,
    patience: Annotated[float, typer.Option(min=0, help="Seconds that a party has for an answer.")] = 60.0,
    force: Force = False,
) -> None:
    """Lead the parties of a plan to one model; their rows stay with them.

    Waits until every party has signed the plan and given its keys, then asks its
    questions. From then on a party that is late, lost or sends what is not in order
    is left out, as long as the plan's dropouts allow it; beyond that the run stops,
    and nothing is opened.

    \b
    Example:
      privlearn identity coordinator --host 127.0.0.1
      privlearn coordinate plan.toml --out income.privlearn
    """
    from privlearn.multiparty.flower import lead
    from privlearn.multiparty.identity import Identity
    from privlearn.multiparty.plan import MultipartyPlan
    from privlearn.release.verify import verify

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreed = MultipartyPlan.load(plan)
    release = lead(
        agreed,
        Identity.read(identity),
        host=host,
        port=port,
        certificate=certificate,
        key=tls_key,
        wait=wait,
        patience=patience,
        tell=say,
    )
    release.save(target)
    proven = verify(target)
    typer.echo(f"Wrote {target}, verified: {proven.recomputed}. {proven.recomputed.in_words()}")
    if proven.weakness:
        warn(f"This promise is {proven.weakness}.")
