"""The holder's console: forms that issue, rotate and revoke keys. A new key is shown on one page, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from fastapi.responses import Response

from privlearn.server.access.keys import KeyInfo
from privlearn.server.changes import commands
from privlearn.server.changes import keys as changes
from privlearn.server.changes.analysts import all_analysts
from privlearn.server.changes.keys import end_of_day
from privlearn.server.pages.change import Summary, Typed, add_pages, carry_out, command_page
from privlearn.server.pages.choices import number_in
from privlearn.server.pages.page import Form, PageId, check_id, page_router
from privlearn.server.pages.signing import Holder
from privlearn.server.service import Service
from privlearn.server.timing import as_text, now

router = page_router()

_KEYS = ("/keys", "Keys")
_DAYS = 90
_MONITOR = "a monitor, which may only read the server's metrics"


@command_page(router, commands.ISSUE_KEY)
def issue(visit: Holder, form: Form, analyst: str = "") -> Response:
    service = visit.service
    people = [(one.name, one.title or one.name) for one in all_analysts(service) if not one.disabled]
    owner_field, expires = commands.ISSUE_KEY.fields
    fields = (replace(owner_field, value=analyst, options=(*people, ("", _MONITOR))), _with_default(expires))

    def ask(typed: Typed) -> Summary:
        changes.check_new_key(service, _role(typed), typed["of"], None)
        end_of_day(typed["expires"])
        return ("For", typed["of"] or _MONITOR), ("Valid through", f"{typed['expires']} (UTC)")

    def do(typed: Typed) -> Response:
        ends = end_of_day(typed["expires"])
        key = changes.issue_key(
            service, visit.caller, _role(typed), typed["of"], expires=ends, key_id=typed["once"][:16]
        )
        whose = typed["of"] or "a monitor"
        return visit.render("new_key.html", key=key, whose=whose, expires=as_text(ends), old="")

    return carry_out(visit, form, commands.ISSUE_KEY, _KEYS, ask, do, fields=fields)


@command_page(router, commands.ROTATE_KEY)
def rotate(visit: Holder, form: Form, id: PageId) -> Response:
    service = visit.service
    old = changes.check_rotation(service, id, 0.0).caller
    whose = old.analyst or f"the {old.role}"
    overlap_field, expires = commands.ROTATE_KEY.fields

    def ask(typed: Typed) -> Summary:
        overlap = number_in(typed, "overlap")
        changes.check_rotation(service, id, overlap)
        end_of_day(typed["expires"])
        return (
            ("Old key", id),
            ("It ends", f"after {typed['overlap']} hours" if overlap else "at once"),
            ("New key valid through", f"{typed['expires']} (UTC)"),
        )

    def do(typed: Typed) -> Response:
        ends, overlap = end_of_day(typed["expires"]), number_in(typed, "overlap")
        key = changes.rotate_key(service, visit.caller, id, overlap, ends, typed["once"][:16])
        old_ends = as_text(now() + timedelta(hours=overlap))
        return visit.render(
            "new_key.html", key=key, whose=whose, expires=as_text(ends), old=id, old_ends=old_ends
        )

    title, fields = f"Rotate the key of {whose}", (overlap_field, _with_default(expires))
    return carry_out(visit, form, commands.ROTATE_KEY, _KEYS, ask, do, title=title, fields=fields)


def _find(service: Service, id: str) -> KeyInfo:
    return changes.find_key_info(service, check_id(id))


add_pages(router, commands.REVOKE_KEY, _KEYS, _find, changes.revoke_key)


def _role(typed: Typed) -> changes.IssuedRole:
    return "analyst" if typed["of"] else "monitor"


def _with_default(expires: commands.CommandField) -> commands.CommandField:
    return replace(expires, value=(now() + timedelta(days=_DAYS)).date().isoformat())
