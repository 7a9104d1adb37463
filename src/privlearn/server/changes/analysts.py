"""Changes of analysts: add, rename, disable and enable them, and give or withdraw their shares of data sets."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from privlearn.errors import InvalidParameter
from privlearn.server.access.keys import Caller, end_key, forget_keys
from privlearn.server.access.logins import forget_logins
from privlearn.server.changes.change import change_transaction, one_line, refuse_declared
from privlearn.server.holder.dataset_settings import Share, check_name, check_share
from privlearn.server.holder.settings import check_analyst
from privlearn.server.jobs import queue
from privlearn.server.jobs.approvals import normalize_name
from privlearn.server.refusals import Conflict, NotFound
from privlearn.server.service import Service
from privlearn.server.store.tables import analysts, jobs, keys, logins, shares
from privlearn.server.timing import as_text, now


@dataclass(frozen=True)
class AnalystView:
    """An analyst that the holder's file declares or that was added on the console.

    Attributes
    ----------
    name, title : str
    declared : bool
        Whether owner.toml declares the analyst, so that the console cannot change it.
    disabled : str
        Time at which the analyst was disabled; empty if enabled.
    shares : dict of str to Share
        Share of each data set, by name.
    fixed : frozenset of str
        Data sets whose share is declared in owner.toml.
    """

    name: str
    title: str
    declared: bool
    disabled: str
    shares: dict[str, Share]
    fixed: frozenset[str]


def all_analysts(service: Service) -> list[AnalystView]:
    """Return all analysts; those that the holder's file declares come first."""
    names = [
        *service.owner.analysts,
        *sorted(set(service.catalogs.console_state.analysts) - set(service.owner.analysts)),
    ]
    return [find_analyst(service, name) for name in names]


def find_analyst(service: Service, name: str) -> AnalystView:
    """Return an analyst by name, with the shares that are in force now."""
    declared, added = name in service.owner.analysts, service.catalogs.console_state.analysts.get(name)
    if not declared and added is None:
        raise NotFound("there is no such analyst. Choose one of the list.")
    # Shares of the file and the console together; a disabled analyst is not in the catalog.
    in_force = service.catalog.owner.analysts.get(name)
    of_console = {
        dataset: share
        for (analyst, dataset), share in service.catalogs.console_state.shares.items()
        if analyst == name
    }
    return AnalystView(
        name=name,
        title=added.title if added else "",
        declared=declared,
        disabled=added.disabled if added and not declared else "",
        shares=of_console if in_force is None else in_force,
        fixed=frozenset(service.owner.analysts.get(name, {})),
    )


def check_new_analyst(service: Service, name: str) -> None:
    """Refuse a name that is not valid, is taken, or looks like another analyst's name in an approval."""
    try:
        check_name(name)
        check_analyst(name)
    except ValueError as error:
        raise InvalidParameter(f"name: {error}") from None
    if name in service.owner.analysts:
        raise refuse_declared(f"analyst {name}")
    if name in service.catalogs.console_state.analysts:
        raise Conflict(f"an analyst {name} exists already. Choose another name, or enable that analyst.")
    for other in (*service.owner.analysts, *service.catalogs.console_state.analysts):
        if normalize_name(other) == normalize_name(name):
            raise Conflict(f"approvals cannot tell this name from {other}'s. Choose another name.")


def add_analyst(service: Service, caller: Caller, name: str, title: str = "") -> None:
    """Add an analyst, without shares and keys."""
    title = one_line(title, "title")
    with change_transaction(service, caller, "added an analyst", analyst=name, title=title) as connection:
        check_new_analyst(service, name)
        connection.execute(insert(analysts).values(name=name, title=title, created=as_text(now())))


def rename_analyst(service: Service, caller: Caller, name: str, title: str) -> None:
    """Change the title that pages show; the name in the ledger and in the log stays."""
    title = one_line(title, "title")
    with change_transaction(service, caller, "renamed an analyst", analyst=name, title=title) as connection:
        check_editable_analyst(service, name)
        connection.execute(update(analysts).where(analysts.c.name == name).values(title=title))


def disable_analyst(service: Service, caller: Caller, name: str) -> None:
    """Revoke all keys, sign out all browsers and end waiting jobs without a charge; keep shares and results."""
    with change_transaction(service, caller, "disabled an analyst", analyst=name) as connection:
        if check_editable_analyst(service, name).disabled:
            raise Conflict(f"analyst {name} is disabled already. Nothing was changed.")
        valid_keys = select(keys.c.id).where(
            keys.c.role == "analyst", keys.c.analyst == name, keys.c.revoked == ""
        )
        for key_id in connection.scalars(valid_keys).all():
            end_key(connection, key_id)
        connection.execute(delete(logins).where(logins.c.role == "analyst", logins.c.person == name))
        connection.execute(update(analysts).where(analysts.c.name == name).values(disabled=as_text(now())))
        waiting = (jobs.c.analyst == name) & jobs.c.state.in_(queue.NOT_BEGUN)
        queue.end_with(connection, service.store, waiting, "the analyst was disabled")
    forget_keys()
    forget_logins()


def enable_analyst(service: Service, caller: Caller, name: str) -> None:
    """Enable an analyst again, with the earlier shares; new keys must be issued."""
    with change_transaction(service, caller, "enabled an analyst", analyst=name) as connection:
        if not check_editable_analyst(service, name).disabled:
            raise Conflict(f"analyst {name} is not disabled. Nothing was changed.")
        connection.execute(update(analysts).where(analysts.c.name == name).values(disabled=""))


def check_new_share(service: Service, analyst: str, dataset: str, share: Share, reason: str) -> Share | None:
    """Return the analyst's present share, if any; refuse the new one if it is not allowed."""
    before = check_changeable_share(service, analyst, dataset)
    try:
        check_share("epsilon", share, service.catalog.owner.datasets.get(dataset))
    except ValueError as error:
        raise InvalidParameter(str(error)) from None
    if before is not None and (share.epsilon > before.epsilon or share.delta > before.delta) and not reason:
        raise InvalidParameter("reason: a higher share needs a reason for the audit log. Give one.")
    return before


def give_share(
    service: Service, caller: Caller, analyst: str, dataset: str, share: Share, reason: str = ""
) -> None:
    """Set how much of a data set's budget an analyst may spend: a limit, not a reservation."""
    reason = one_line(reason, "reason")
    before = check_new_share(service, analyst, dataset, share, reason)
    details = {"analyst": analyst, "epsilon": share.epsilon, "delta": share.delta}
    details |= {"epsilon_before": before.epsilon, "delta_before": before.delta} if before else {}
    with change_transaction(service, caller, "gave a share", dataset, **details, reason=reason) as connection:
        if check_new_share(service, analyst, dataset, share, reason) != before:
            raise Conflict("this share was changed in the meantime. Look at it again and repeat the change.")
        this = (shares.c.analyst == analyst) & (shares.c.dataset == dataset)
        connection.execute(delete(shares).where(this))
        connection.execute(insert(shares).values(analyst=analyst, dataset=dataset, **share.model_dump()))


def withdraw_share(service: Service, caller: Caller, analyst: str, dataset: str) -> None:
    """Remove the analyst's share, which hides the data set from them; earlier costs still count."""
    with change_transaction(service, caller, "withdrew a share", dataset, analyst=analyst) as connection:
        if check_changeable_share(service, analyst, dataset) is None:
            raise NotFound(f"analyst {analyst} has no share of {dataset}. Nothing was changed.")
        connection.execute(delete(shares).where(shares.c.analyst == analyst, shares.c.dataset == dataset))


def check_editable_analyst(service: Service, name: str) -> AnalystView:
    """Return the analyst; refuse one that the holder's file declares."""
    found = find_analyst(service, name)
    if found.declared:
        raise refuse_declared(f"analyst {name}")
    return found


def check_changeable_share(service: Service, analyst: str, dataset: str) -> Share | None:
    """Return the analyst's present share, if any; refuse one that the holder's file declares."""
    found = find_analyst(service, analyst)
    if dataset in found.fixed:
        raise refuse_declared(f"the share of {analyst} in {dataset}")
    if dataset not in service.catalog:
        raise NotFound("there is no such data set. Choose one of the list.")
    return found.shares.get(dataset)
