"""Commands for several holders: `identity`, `party`, `coordinate`, and `simulate`, which runs all parties locally."""

from __future__ import annotations

from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privlearn.cli.charging import check_budget, open_ledger, print_balance
from privlearn.cli.options import NOT_NEGATIVE, Force, PlanFile, check_writable
from privlearn.cli.terminal import say, warn
from privlearn.errors import InvalidParameter, ProtocolError

if TYPE_CHECKING:
    from privlearn.release.artifact import Outcome


def identity(
    name: Annotated[str, typer.Argument(help="The name in the plan: a party, or coordinator.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Coordinator: a host name or address that parties use; also writes a TLS certificate."
        ),
    ] = None,
    directory: Annotated[Path, typer.Option(help="Directory for the files.")] = Path(),
    renew: Annotated[
        bool,
        typer.Option("--renew", help="With --host: only write a new TLS certificate, and keep NAME.key."),
    ] = False,
) -> None:
    """Create a private key, and print the public line for the plan's \\[keys].

    Writes NAME.key, which stays here. With --host, for the coordinator, also writes the
    TLS certificate NAME.crt, of which every party gets a copy, and its key NAME.tls.key.

    \b
    Examples:
      privlearn identity north
      privlearn identity coordinator --host hub.example.org
      privlearn identity coordinator --host hub.example.org --renew
    """
    from privlearn.parties.run.identity import Identity, write_certificate

    if not name.isidentifier():
        raise InvalidParameter("a name in a plan's [keys] consists of letters, digits and _. Change it.")
    if renew:
        if not host:
            raise InvalidParameter("--renew needs the certificate's names or addresses. Add --host HUB.")
        Identity.read(directory / f"{name}.key")
        certificate, tls_key = directory / f"{name}.crt", directory / f"{name}.tls.key"
        for old in (certificate, tls_key):
            old.unlink(missing_ok=True)
        write_certificate(certificate, tls_key, host)
        typer.echo(f"Wrote {certificate}: give every party a copy. Key, plan and fingerprint are unchanged.")
        return
    created = Identity.generate()
    created.write(directory / f"{name}.key")
    if host:
        write_certificate(directory / f"{name}.crt", directory / f"{name}.tls.key", host)
    typer.echo(f'{name} = "{created.public}"')


def party(
    settings: Annotated[Path, typer.Argument(metavar="MINE.toml", help="This party's settings.")],
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The table: .csv, .csv.gz or .parquet.")
    ] = None,
    give_back: Annotated[
        bool,
        typer.Option(
            "--give-back", help="Only give back what a stopped run of the plan reserved and did not use."
        ),
    ] = False,
) -> None:
    """Take part in a plan with your own rows, within your own limits.

    Checks the plan against the limits in MINE.toml and charges its cost to your
    ledger before signing it. Only masked vectors leave, each with your share of the
    noise; only their sum over all parties can be decrypted. The last lines always
    state what was requested, what it costs and what was given back.
    After a crash the same command continues the run, from the file MINE.*.run.

    \b
    Example, with MINE.toml as in the tutorial on several parties:
      privlearn budget create census --ledger north.ledger --epsilon 2 --delta 1e-5
      privlearn party north.toml --data north.csv
      privlearn party north.toml --give-back
    """
    from privlearn.data.sources.files import open_records
    from privlearn.parties.flower.run import take_part
    from privlearn.parties.run.checkpoints import PartyMemory
    from privlearn.parties.run.identity import Identity
    from privlearn.parties.run.joint_evaluation import load_agreement
    from privlearn.parties.run.party_run import PartyRun
    from privlearn.parties.run.run_budget import RunBudget
    from privlearn.parties.run.settings import PartySettings

    mine = PartySettings.load(settings)
    agreement = load_agreement(mine.plan)
    mine.check(agreement)
    identity = Identity.read(mine.identity)
    ledger = open_ledger(mine.ledger, mine.dataset, agreement.table_schema.name)
    assert ledger is not None
    with closing(PartyMemory(mine.state / f"{settings.stem}.{agreement.digest}.run")) as memory:
        budget = RunBudget(agreement, mine.name, ledger)
        if give_back:
            memory.forget()
            count = budget.cancel_stranded()
            typer.echo(f"Gave back {count} reservations of this plan that were not used for an answer.")
            print_balance(ledger)
            return
        if data is None:
            raise InvalidParameter("this party's table is missing. Add --data FILE.")
        if memory.read() is None:
            if count := budget.cancel_stranded():
                say(f"Gave back {count} reservations of an earlier run, for which nothing was sent.")
            check_budget(ledger, agreement.guarantee)
        rows = agreement.read_party(mine.name, open_records(data, agreement.table_schema))
        run = PartyRun(agreement, mine.name, identity, rows, budget, say, memory)
        say(f"{mine.name}: plan {agreement.fingerprint}, {agreement.guarantee}, within the limits.")
        if agreement.weakness:
            warn(f"This guarantee is {agreement.weakness}.")
        try:
            take_part(
                run,
                identity,
                coordinator=mine.coordinator,
                certificate=mine.certificate,
                wait=mine.wait_seconds,
                timeout=mine.timeout_seconds,
                report=say,
            )
            if run.release is not None and mine.model is not None:
                run.release.save(mine.model, overwrite=True)
                typer.echo(f"Wrote {mine.model}.")
        finally:
            run.settle()
            print_balance(ledger)
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
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all addresses.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 9443,
    out: Annotated[
        Path | None, typer.Option(help="The release file to write.", show_default="PLAN.privlearn")
    ] = None,
    wait: Annotated[
        float, typer.Option(**NOT_NEGATIVE, help="Seconds to wait for parties to connect, or to reconnect.")
    ] = 600.0,
    timeout: Annotated[
        float, typer.Option(**NOT_NEGATIVE, help="Seconds to wait for an answer of a party.")
    ] = 60.0,
    page: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, metavar="PORT", help="Also show the state of the run at http://127.0.0.1:PORT."
        ),
    ] = None,
    end: Annotated[
        bool, typer.Option("--end", help="End the run: inform the parties, and delete its state.")
    ] = False,
    force: Force = False,
) -> None:
    """Coordinate the parties of a plan to train or evaluate one model; their rows stay with them.

    Waits until every party has signed the plan and sent its keys, then asks the plan's
    questions. From then on a party that is late, lost or sends an invalid answer is
    excluded, as long as the plan's dropouts allow it; otherwise the run stops, and no
    sum is decrypted. Ctrl-C, SIGTERM or a crash suspend the run: the same command
    continues it, from the file PLAN.run next to the release. To end it, use --end.

    \b
    Example:
      privlearn identity coordinator --host 127.0.0.1
      privlearn coordinate plan.toml --out income.privlearn
      privlearn coordinate plan.toml --out income.privlearn --end
    """
    from privlearn.budget.pending import CoordinatedRun, remember_job
    from privlearn.parties.flower.run import lead
    from privlearn.parties.run.checkpoints import Journal
    from privlearn.parties.run.identity import Identity
    from privlearn.parties.run.joint_evaluation import load_agreement
    from privlearn.parties.run.state_page import StatePage
    from privlearn.release.verification import verify

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreement = load_agreement(plan)
    state = StatePage(agreement, say)
    with (
        closing(Journal(target.with_suffix(".run"), agreement)) as journal,
        nullcontext() if page is None else state.serving(page),
    ):
        if end and not journal.existed:
            journal.end()
            raise InvalidParameter("there is no run to end. It was not started here, or it is over.")
        if not end:
            remember_job(CoordinatedRun())
        if journal.stored_exchanges:
            state.report(f"Continues the run {journal.run.hex()[:16]}, which was interrupted.")
        release = lead(
            agreement,
            Identity.read(identity),
            host=host,
            port=port,
            certificate=certificate,
            key=tls_key,
            wait=wait,
            timeout=timeout,
            report=state.report,
            journal=journal,
            end=end,
        )
        if release is None:
            typer.echo("Ended the run. Connected parties were informed and give back unused reservations.")
            return
        release.save(target, overwrite=True)
        journal.end()
    verified = verify(target)
    typer.echo(f"Wrote {target}, verified: {verified.recomputed}. {verified.recomputed.in_words()}")
    if verified.weakness:
        warn(f"This guarantee is {verified.weakness}.")
    _print_next_step(release, target)


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
    """Rehearse a plan: run all parties and the coordinator in this process.

    Uses the same messages, masks and noise as a real run, with temporary keys and
    without network or ledgers. This process reads every table.

    \b
    Example:
      privlearn simulate plan.toml north.csv south.csv west.csv
    """
    from privlearn.data.sources.files import open_records
    from privlearn.parties.run.joint_evaluation import load_agreement
    from privlearn.parties.run.simulation import simulate as simulate_run

    target = plan.with_suffix(".privlearn") if out is None else out
    check_writable(target, force)
    agreement = load_agreement(plan)
    if len(tables) != len(agreement.parties):
        names = ", ".join(agreement.parties)
        raise InvalidParameter(f"the number of tables is wrong. Give one for each of {names}, in this order.")
    sources = {
        name: open_records(table, agreement.table_schema)
        for name, table in zip(agreement.parties, tables, strict=True)
    }
    release = simulate_run(agreement, sources, say)
    release.save(target, overwrite=True)
    typer.echo(f"Wrote {target}: {release.certificate.guarantee}.")
    typer.echo(f"Next: privlearn verify {target}")
    _print_next_step(release, target)


def _print_next_step(result: Outcome, target: Path) -> None:
    """Print the command that computes models, if the result is second moments."""
    from privlearn.release.moments_file import Moments

    if isinstance(result, Moments):
        typer.echo(f"Its models: privlearn regress {target}")
