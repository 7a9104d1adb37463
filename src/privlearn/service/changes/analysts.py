"""Analysts: added, given another name to be shown, disabled, and what each may spend of a data set."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from privlearn.errors import InvalidParameter
from privlearn.service.access.keys import Caller, end_key, forget_keys
from privlearn.service.access.logins import forget_logins
from privlearn.service.changes.change import changing, one_line, refuse_declared
from privlearn.service.holder.settings import Share, check_analyst, check_share, servable
from privlearn.service.jobs import queue
from privlearn.service.jobs.approvals import alike
from privlearn.service.refusals import Conflict, NotFound
from privlearn.service.service import Service
from privlearn.service.store.tables import analysts, jobs, keys, logins, shares
from privlearn.service.timing import as_text, now


@dataclass(frozen=True)
class AnalystView:
    """Somebody who may ask, or might: of the holder's file or of the console.

    Attributes
    ----------
    name, title : str
    declared : bool
        In owner.toml: the console cannot change it.
    disabled : str
        Empty, or since when.
    shares : dict of str to Share
        By data set.
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
    """Those of the file first."""
    names = [
        *service.owner.analysts,
        *sorted(set(service.catalogs.made.analysts) - set(service.owner.analysts)),
    ]
    return [analyst_named(service, name) for name in names]


def analyst_named(service: Service, name: str) -> AnalystView:
    declared, made = name in service.owner.analysts, service.catalogs.made.analysts.get(name)
    if not declared and made is None:
        raise NotFound("there is no such analyst: list them")
    now_served = service.catalog.owner.analysts.get(name)
    of_console = {
        dataset: share for (whose, dataset), share in service.catalogs.made.shares.items() if whose == name
    }
    return AnalystView(
        name=name,
        title=made.title if made else "",
        declared=declared,
        disabled=made.disabled if made and not declared else "",
        shares=of_console if now_served is None else now_served,
        fixed=frozenset(service.owner.analysts.get(name, {})),
    )


def check_new_analyst(service: Service, name: str) -> None:
    """Refuse a name that is taken, or cannot be one."""
    try:
        servable(name)
        check_analyst(name)
    except ValueError as error:
        raise InvalidParameter(f"name: {error}") from None
    if name in service.owner.analysts:
        raise refuse_declared(f"analyst {name}")
    if name in service.catalogs.made.analysts:
        raise Conflict(f"there is an analyst {name} already: choose another name, or enable that one")
    for other in (*service.owner.analysts, *service.catalogs.made.analysts):
        if alike(other) == alike(name):
            raise Conflict(
                f"there is an analyst {other} already, whom approval takes for the same: choose another name"
            )


def add_analyst(service: Service, caller: Caller, name: str, title: str = "") -> None:
    """Somebody without a share and without a key as yet."""
    title = one_line(title, "title")
    with changing(service, caller, "added an analyst", analyst=name, title=title) as connection:
        check_new_analyst(service, name)
        connection.execute(insert(analysts).values(name=name, title=title, created=as_text(now())))


def rename_analyst(service: Service, caller: Caller, name: str, title: str) -> None:
    """How people read it; the name in the ledger and in the log stays."""
    title = one_line(title, "title")
    with changing(service, caller, "renamed an analyst", analyst=name, title=title) as connection:
        check_made(service, name)
        connection.execute(update(analysts).where(analysts.c.name == name).values(title=title))


def disable_analyst(service: Service, caller: Caller, name: str) -> None:
    """Revoke every key and sign out every browser; what waits ends unpaid. Shares and results are kept."""
    with changing(service, caller, "disabled an analyst", analyst=name) as connection:
        if check_made(service, name).disabled:
            raise Conflict(f"analyst {name} is disabled already")
        theirs = select(keys.c.id).where(
            keys.c.role == "analyst", keys.c.analyst == name, keys.c.revoked == ""
        )
        for key_id in connection.scalars(theirs).all():
            end_key(connection, key_id)
        connection.execute(delete(logins).where(logins.c.role == "analyst", logins.c.person == name))
        connection.execute(update(analysts).where(analysts.c.name == name).values(disabled=as_text(now())))
        waiting = (jobs.c.analyst == name) & jobs.c.state.in_(queue.NOT_BEGUN)
        queue.end_with(connection, service.store, waiting, "the analyst was disabled")
    forget_keys()
    forget_logins()


def enable_analyst(service: Service, caller: Caller, name: str) -> None:
    """With the shares of before; keys are made anew."""
    with changing(service, caller, "enabled an analyst", analyst=name) as connection:
        if not check_made(service, name).disabled:
            raise Conflict(f"analyst {name} is not disabled")
        connection.execute(update(analysts).where(analysts.c.name == name).values(disabled=""))


def check_new_share(service: Service, analyst: str, dataset: str, share: Share, reason: str) -> Share | None:
    """Refuse one that may not be; what the analyst has now, if anything."""
    before = check_changeable_share(service, analyst, dataset)
    try:
        check_share("epsilon", share, service.catalog.owner.datasets.get(dataset))
    except ValueError as error:
        raise InvalidParameter(str(error)) from None
    if before is not None and (share.epsilon > before.epsilon or share.delta > before.delta) and not reason:
        raise InvalidParameter("reason: say why the share is raised: it stands in the audit log")
    return before


def give_share(
    service: Service, caller: Caller, analyst: str, dataset: str, share: Share, reason: str = ""
) -> None:
    """What an analyst may spend of a data set from now on: a limit, and no reservation; the total holds anyway."""
    reason = one_line(reason, "reason")
    before = check_new_share(service, analyst, dataset, share, reason)
    told = {"analyst": analyst, "epsilon": share.epsilon, "delta": share.delta}
    told |= {"epsilon_before": before.epsilon, "delta_before": before.delta} if before else {}
    with changing(service, caller, "gave a share", dataset, **told, reason=reason) as connection:
        if check_new_share(service, analyst, dataset, share, reason) != before:
            raise Conflict("somebody else has changed this share meanwhile: look at it again")
        this = (shares.c.analyst == analyst) & (shares.c.dataset == dataset)
        connection.execute(delete(shares).where(this))
        connection.execute(insert(shares).values(analyst=analyst, dataset=dataset, **share.model_dump()))


def withdraw_share(service: Service, caller: Caller, analyst: str, dataset: str) -> None:
    """The data set does not exist for them any more; what they have spent stays spent."""
    with changing(service, caller, "withdrew a share", dataset, analyst=analyst) as connection:
        if check_changeable_share(service, analyst, dataset) is None:
            raise NotFound(f"analyst {analyst} has no share of {dataset}")
        connection.execute(delete(shares).where(shares.c.analyst == analyst, shares.c.dataset == dataset))


def check_made(service: Service, name: str) -> AnalystView:
    """Refuse an analyst whom the holder's file declares."""
    found = analyst_named(service, name)
    if found.declared:
        raise refuse_declared(f"analyst {name}")
    return found


def check_changeable_share(service: Service, analyst: str, dataset: str) -> Share | None:
    """Refuse one that the holder's file declares; what the analyst has now, if anything."""
    found = analyst_named(service, analyst)
    if dataset in found.fixed:
        raise refuse_declared(f"the share of {analyst} in {dataset}")
    if dataset not in service.catalog:
        raise NotFound("there is no such data set: list them")
    return found.shares.get(dataset)
