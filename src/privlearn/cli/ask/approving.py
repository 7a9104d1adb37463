"""`privlearn ask`: what waits for approval, and the decision of a second person."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from privlearn.cli.ask.caller import asking, client_of

Request = Annotated[
    str, typer.Argument(metavar="JOB", help="Its id, as `approvals` shows it.", show_default=False)
]


def approvals(context: typer.Context) -> None:
    """List the requests that wait for approval. For a key of an approver, an auditor or the holder.

    \b
    Example:
      privlearn ask approvals
    """
    columns = ("id", "analyst", "dataset", "kind", "guarantee", "purpose", "legal_basis", "created")
    asking(context).show_list(client_of(context).approvals(), columns, "Nothing waits for approval.")


def approve(
    context: typer.Context,
    job: Request,
    reason: Annotated[str, typer.Option(help="For the analyst and the log.")] = "",
) -> None:
    """Approve another person's request: it waits for its turn, and pays when it begins. For an approver's key.

    \b
    Example:
      privlearn ask approve 5f0c21b7a9d3e864 --reason "as agreed by the board"
    """
    _decide(context, job, "approve", reason)


def decline(
    context: typer.Context,
    job: Request,
    reason: Annotated[str, typer.Option(help="For the analyst and the log.", show_default=False)],
) -> None:
    """Decline another person's request: it ends, unpaid. For an approver's key.

    \b
    Example:
      privlearn ask decline 5f0c21b7a9d3e864 --reason "half of this epsilon is enough for a pilot"
    """
    _decide(context, job, "decline", reason)


def _decide(context: typer.Context, job: str, decision: Literal["approve", "decline"], reason: str) -> None:
    record = client_of(context).decide(job, decision, reason)
    done = {"approve": "approved", "decline": "declined"}[decision]
    asking(context).show(record, [f"Job {job} of {record['analyst']} is {done}."])


VERBS = (approvals, approve, decline)
