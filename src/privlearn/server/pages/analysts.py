"""The holder's console: analysts, their shares and keys, and the forms that change them.

A new key is shown on one page, once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from fastapi.responses import Response

from privlearn.server.access.keys import KeyInfo, list_keys
from privlearn.server.changes import analysts as changes
from privlearn.server.changes import commands
from privlearn.server.changes import keys as key_changes
from privlearn.server.changes.keys import end_of_day
from privlearn.server.holder.dataset_settings import Share
from privlearn.server.pages.change import Summary, Typed, add_pages, carry_out, command_page
from privlearn.server.pages.formatting import number, number_in
from privlearn.server.pages.page import Form, PageId, check_id, page_router
from privlearn.server.pages.signing import Holder
from privlearn.server.service import Service
from privlearn.server.timing import as_text, now

router = page_router()


@router.get("/analysts")
def list_analysts(visit: Holder) -> Response:
    analysts, may_change = changes.all_analysts(visit.service), visit.service.owner.console.changes
    return visit.render("analysts.html", analysts=analysts, may_change=may_change)


@router.get("/analysts/{name}")
def show_analyst(visit: Holder, name: str) -> Response:
    service = visit.service
    return visit.render(
        "analyst.html",
        one=changes.find_analyst(service, name),
        totals={dataset: settings.guarantee for dataset, settings in service.catalog.owner.datasets.items()},
        keys=[key for key in list_keys(service.store) if key.caller.analyst == name],
        may_change=service.owner.console.changes,
    )


@command_page(router, commands.ADD_ANALYST)
def add(visit: Holder, form: Form) -> Response:
    def ask(typed: Typed) -> Summary:
        changes.check_new_analyst(visit.service, typed["name"])
        return ("Analyst", typed["name"]), ("Shown as", typed["title"])

    def do(typed: Typed) -> str:
        changes.add_analyst(visit.service, visit.caller, typed["name"], typed["title"])
        return f"/analysts/{typed['name']}"

    return carry_out(visit, form, commands.ADD_ANALYST, ("/analysts", "Analysts"), ask, do)


_BACK = ("/analysts/{name}", "{name}")
for _command, _act in (
    (commands.RENAME_ANALYST, changes.rename_analyst),
    (commands.DISABLE_ANALYST, changes.disable_analyst),
    (commands.ENABLE_ANALYST, changes.enable_analyst),
):
    add_pages(router, _command, _BACK, changes.check_editable_analyst, _act)
add_pages(router, commands.WITHDRAW_SHARE, _BACK, changes.check_changeable_share, changes.withdraw_share)


@command_page(router, commands.GIVE_SHARE)
def share(visit: Holder, form: Form, name: str, dataset: str) -> Response:
    service = visit.service
    before = changes.check_changeable_share(service, name, dataset)
    total = service.catalog.find(dataset).settings
    epsilon, delta, reason = commands.GIVE_SHARE.fields
    if before:
        epsilon = replace(epsilon, value=number(before.epsilon))
        delta = replace(delta, value=number(before.delta))

    def ask(typed: Typed) -> Summary:
        requested = _share(typed)
        changes.check_new_share(service, name, dataset, requested, typed["reason"])
        summary = [("Analyst", name), ("Data set", dataset), ("Share", _describe(requested))]
        summary += [("Until now", _describe(before))] if before else []
        summary += [("Reason", typed["reason"])] if typed["reason"] else []
        return [*summary, ("All shares", _sum_of_shares(service, name, dataset, requested))]

    return carry_out(
        visit,
        form,
        commands.GIVE_SHARE,
        (f"/analysts/{name}", name),
        ask,
        lambda typed: changes.give_share(
            service, visit.caller, name, dataset, _share(typed), typed["reason"]
        ),
        title=f"{'Change' if before else 'Give'} a share of {dataset}",
        lead=f"What {name} may spend of {dataset}, whose whole budget is epsilon {number(total.epsilon)} and delta "
        f"{number(total.delta)}. {commands.GIVE_SHARE.lead}",
        fields=(epsilon, delta, reason),
    )


def _share(typed: Typed) -> Share:
    return Share(epsilon=number_in(typed, "epsilon"), delta=number_in(typed, "delta"))


def _describe(share: Share) -> str:
    return f"epsilon {number(share.epsilon)}, delta {number(share.delta)}"


def _sum_of_shares(service: Service, name: str, dataset: str, requested: Share) -> str:
    """Return a sentence on the sum of all shares, which may exceed the total."""
    owner = service.catalog.owner
    others = [
        shares[dataset].epsilon
        for analyst, shares in owner.analysts.items()
        if analyst != name and dataset in shares
    ]
    total, together = owner.datasets[dataset].epsilon, sum(others) + requested.epsilon
    text = f"All shares of {dataset} then come to epsilon {number(together)} of {number(total)}."
    excess = "That is more than the total, which still holds: requests are served in order."
    return f"{text} {excess}" if together > total else text


_KEYS = ("/keys", "Keys")
_DAYS = 90
_COMMANDS = """\
privlearn keys create owner.toml --analyst NAME
privlearn keys list owner.toml
privlearn keys revoke owner.toml KEY"""
_MONITOR = "a monitor, which may only read the server's metrics"


@router.get("/keys")
def keys(visit: Holder) -> Response:
    found, may_change = list_keys(visit.service.store), visit.service.owner.console.changes
    return visit.render("keys.html", keys=found, commands=_COMMANDS, may_change=may_change)


@command_page(router, commands.ISSUE_KEY)
def issue(visit: Holder, form: Form, analyst: str = "") -> Response:
    service = visit.service
    people = [(one.name, one.title or one.name) for one in changes.all_analysts(service) if not one.disabled]
    owner_field, expires = commands.ISSUE_KEY.fields
    fields = (replace(owner_field, value=analyst, options=(*people, ("", _MONITOR))), _with_default(expires))

    def ask(typed: Typed) -> Summary:
        key_changes.check_new_key(service, _role(typed), typed["of"], None)
        end_of_day(typed["expires"])
        return ("For", typed["of"] or _MONITOR), ("Valid through", f"{typed['expires']} (UTC)")

    def do(typed: Typed) -> Response:
        ends = end_of_day(typed["expires"])
        key = key_changes.issue_key(
            service, visit.caller, _role(typed), typed["of"], expires=ends, key_id=typed["once"][:16]
        )
        whose = typed["of"] or "a monitor"
        return visit.render("new_key.html", key=key, whose=whose, expires=as_text(ends), old="")

    return carry_out(visit, form, commands.ISSUE_KEY, _KEYS, ask, do, fields=fields)


@command_page(router, commands.ROTATE_KEY)
def rotate(visit: Holder, form: Form, id: PageId) -> Response:
    service = visit.service
    old = key_changes.check_rotation(service, id, 0.0).caller
    whose = old.analyst or f"the {old.role}"
    overlap_field, expires = commands.ROTATE_KEY.fields

    def ask(typed: Typed) -> Summary:
        overlap = number_in(typed, "overlap")
        key_changes.check_rotation(service, id, overlap)
        end_of_day(typed["expires"])
        return (
            ("Old key", id),
            ("It ends", f"after {typed['overlap']} hours" if overlap else "at once"),
            ("New key valid through", f"{typed['expires']} (UTC)"),
        )

    def do(typed: Typed) -> Response:
        ends, overlap = end_of_day(typed["expires"]), number_in(typed, "overlap")
        key = key_changes.rotate_key(service, visit.caller, id, overlap, ends, typed["once"][:16])
        old_ends = as_text(now() + timedelta(hours=overlap))
        return visit.render(
            "new_key.html", key=key, whose=whose, expires=as_text(ends), old=id, old_ends=old_ends
        )

    title, fields = f"Rotate the key of {whose}", (overlap_field, _with_default(expires))
    return carry_out(visit, form, commands.ROTATE_KEY, _KEYS, ask, do, title=title, fields=fields)


def _find(service: Service, id: str) -> KeyInfo:
    return key_changes.find_key_info(service, check_id(id))


add_pages(router, commands.REVOKE_KEY, _KEYS, _find, key_changes.revoke_key)


def _role(typed: Typed) -> key_changes.IssuedRole:
    return "analyst" if typed["of"] else "monitor"


def _with_default(expires: commands.CommandField) -> commands.CommandField:
    return replace(expires, value=(now() + timedelta(days=_DAYS)).date().isoformat())
