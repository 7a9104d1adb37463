"""Commands for several holders: identity, party, coordinate, and simulate, which plays them all."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.options import (
    NOT_NEGATIVE,
    Force,
    PlanFile,
    check_room,
    check_writable,
    open_ledger,
    say_what_is_left,
)
from privlearn.cli.terminal import say, warn
from privlearn.errors import InvalidParameter, ProtocolError

if TYPE_CHECKING:
    from privlearn.release.outcome import Outcome


def identity(
    name: Annotated[
        str, typer.Argument(help="The party's name in the plan, or coordinator.", show_default=False)
    ],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Coordinator: a host name or address that parties will use; also makes a TLS certificate.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where to write the files.")] = Path(),
    renew: Annotated[
        bool,
        typer.Option(
            "--renew", help="With --host: a new TLS certificate only. NAME.key, which is in the plan, stays."
        ),
    ] = False,
) -> None:
    """Make a private key, and print the public line for the plan's \\[keys].

    Writes NAME.key, which stays here. With --host, for the coordinator, also the
    TLS certificate NAME.crt, which every party gets a copy of, and its NAME.tls.key.

    \b
    Examples:
      privlearn identity north
      privlearn identity coordinator --host hub.example.org
      privlearn identity coordinator --host hub.example.org --renew
    """
    from privlearn.multiparty.run.identity import Identity, write_certificate

    if not name.isidentifier():
        raise InvalidParameter("a name in a plan's [keys] is made of letters, digits and _: choose another")
    if renew:
        if not host:
            raise InvalidParameter("say for which host names or addresses the certificate is: --host HUB")
        Identity.read(folder / f"{name}.key")
        certificate, tls_key = folder / f"{name}.crt", folder / f"{name}.tls.key"
        for old in (certificate, tls_key):
            old.unlink(missing_ok=True)
        write_certificate(certificate, tls_key, host)
        typer.echo(
            f"Wrote {certificate}: give every party its copy. Key, plan and fingerprint are as they were."
        )
        return
    made = Identity.generate()
    made.write(folder / f"{name}.key")
    if host:
        write_certificate(folder / f"{name}.crt", folder / f"{name}.tls.key", host)
    typer.echo(f'{name} = "{made.public}"')


def party(
    settings: Annotated[
        Path, typer.Argument(metavar="MINE.toml", help="This party's settings.", show_default=False)
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The table: .csv, .csv.gz or .parquet.", show_default=False),
    ] = None,
    give_back: Annotated[
        bool,
        typer.Option(
            "--give-back",
            help="Take no part: give back what a killed run of the plan reserved and did not use.",
        ),
    ] = False,
) -> None:
    """Take part in a plan with your own rows, within your own limits.

    Checks the plan against the limits in MINE.toml and takes its cost out of your
    ledger before signing it. What leaves are vectors under masks, each with your
    share of the noise in it; only their sum over all parties can be opened. However
    it ends, the last lines say what was asked, what it costs and what was given back.
    After a crash the same command goes on with the run, from the file MINE.*.run.

    \b
    Example, with MINE.toml as in the tutorial on several parties:
      privlearn budget create census --ledger north.ledger --epsilon 2 --delta 1e-5
      privlearn party north.toml --data north.csv
      privlearn party north.toml --give-back
    """
    from privlearn.data.sources.files import open_records
    from privlearn.evaluation.together import answers_of, load_plan
    from privlearn.multiparty.flower.run import take_part
    from privlearn.multiparty.run.identity import Identity
    from privlearn.multiparty.run.memory import PartyMemory
    from privlearn.multiparty.run.party_run import PartyRun
    from privlearn.multiparty.run.purse import Purse
    from privlearn.multiparty.run.settings import PartySettings

    mine = PartySettings.load(settings)
    plan = load_plan(mine.plan)
    mine.check(plan)
    identity = Identity.read(mine.identity)
    ledger = open_ledger(mine.ledger, mine.dataset, plan.table_schema.name)
    assert ledger is not None
    with closing(PartyMemory(mine.state / f"{settings.stem}.{plan.digest[:16]}.run")) as memory:
        purse = Purse(plan, mine.name, ledger)
        if give_back:
            memory.forget()
            given = purse.give_back_stranded()
            typer.echo(f"Gave back {given} reservations of this plan that no answer was paid from.")
            say_what_is_left(ledger)
            return
        if data is None:
            raise InvalidParameter("bring this party's table: --data FILE")
        if memory.read() is None:
            if given := purse.give_back_stranded():
                say(f"Gave back {given} reservations of an earlier run: nothing was sent for them.")
            check_room(ledger, plan.guarantee)
        rows = answers_of(plan, mine.name, open_records(data, plan.table_schema))
        run = PartyRun(plan, mine.name, identity, rows, purse, say, memory)
        say(f"{mine.name}: plan {plan.fingerprint}, {plan.guarantee}, within the limits.")
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
                tell=say,
            )
            if run.release is not None and mine.model is not None:
                run.release.save(mine.model, overwrite=True)
                typer.echo(f"Wrote {mine.model}.")
        finally:
            run.settle()
            say_what_is_left(ledger)
    if run.release is None:
        raise ProtocolError(f"the run was stopped: {run.stopped}")


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
        float,
        typer.Option(
            **NOT_NEGATIVE,
            help="Seconds until all parties must have connected, or one that is needed must be back.",
        ),
    ] = 600.0,
    patience: Annotated[
        float, typer.Option(**NOT_NEGATIVE, help="Seconds that a party has for an answer.")
    ] = 60.0,
    page: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="PORT",
            help="Also show the state of the run, on http://127.0.0.1:PORT.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Lead the parties of a plan to one model, or one evaluation; their rows stay with them.

    Waits until every party has signed the plan and given its keys, then asks its
    questions. From then on a party that is late, lost or sends what is not in order
    is left out, as long as the plan's dropouts allow it; beyond that the run stops,
    and nothing is opened. After a crash the same command goes on with the run, from
    a file beside the release: PLAN.run.

    \b
    Example:
      privlearn identity coordinator --host 127.0.0.1
      privlearn coordinate plan.toml --out income.privlearn
    """
    from privlearn.evaluation.together import load_plan
    from privlearn.multiparty.flower.run import lead
    from privlearn.multiparty.run.identity import Identity
    from privlearn.multiparty.run.journal import Journal
    from privlearn.multiparty.run.state_page import StatePage
    from privlearn.release.verification import verify

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreed = load_plan(plan)
    state = StatePage(agreed, say)
    with (
        closing(Journal(target.with_suffix(".run"), agreed)) as journal,
        nullcontext() if page is None else state.serving(page),
    ):
        if journal.found:
            state.tell(f"Goes on with the run {journal.run.hex()[:16]}, which was cut off.")
        release = lead(
            agreed,
            Identity.read(identity),
            host=host,
            port=port,
            certificate=certificate,
            key=tls_key,
            wait=wait,
            patience=patience,
            tell=state.tell,
            journal=journal,
        )
        release.save(target, overwrite=True)
        journal.end()
    proven = verify(target)
    typer.echo(f"Wrote {target}, verified: {proven.recomputed}. {proven.recomputed.in_words()}")
    if proven.certificate.meaning:
        typer.echo(f"Meaning: {proven.certificate.meaning.in_words()}")
    if proven.weakness:
        warn(f"This promise is {proven.weakness}.")
    _say_what_follows(release, target)


def simulate(
    plan: PlanFile,
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE...", help="A table for each party, in the plan's order.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The release file to write.", show_default="PLAN.privlearn")
    ] = None,
    force: Force = False,
) -> None:
    """Rehearse a plan: all parties and the coordinator in this process.

    The same messages, masks and noise as in a real run, with keys made for the
    occasion and without network or ledgers. This process sees every table.

    \b
    Example:
      privlearn simulate plan.toml north.csv south.csv west.csv
    """
    from privlearn.data.sources.files import open_records
    from privlearn.evaluation.together import answers_of, load_plan
    from privlearn.multiparty.run.simulation import rehearsed

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreed = load_plan(plan)
    if len(tables) != len(agreed.parties):
        raise InvalidParameter(f"bring a table for each of {', '.join(agreed.parties)}, in this order")
    rows = {
        name: answers_of(agreed, name, open_records(table, agreed.table_schema))
        for name, table in zip(agreed.parties, tables, strict=True)
    }
    release = rehearsed(agreed, rows, say)
    release.save(target, overwrite=True)
    typer.echo(f"Wrote {target}: {release.certificate.guarantee}.")
    typer.echo(f"Next: privlearn verify {target}")
    _say_what_follows(release, target)


def _say_what_follows(made: Outcome, target: Path) -> None:
    """Of second moments: the models are one command away."""
    from privlearn.release.moments_file import Moments

    if isinstance(made, Moments):
        typer.echo(f"Its models: privlearn regress {target}")
