"""The holder's console: forms that issue, rotate and revoke keys. A new key is shown on one page, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from fastapi import Request
from fastapi.responses import Response

from privlearn.server.changes import commands
from privlearn.server.changes import keys as changes
from privlearn.server.changes.analysts import all_analysts
from privlearn.server.changes.keys import end_of_day
from privlearn.server.http.callers import Served
from privlearn.server.pages.change import (
    Question,
    Typed,
    carry_out,
    change_form,
    command_page,
    confirm,
    number_in,
)
from privlearn.server.pages.page import Form, PageId, page_router, render
from privlearn.server.pages.signing import Holder
from privlearn.server.timing import as_text, now

router = page_router()

_KEYS = ("/keys", "Keys")
_DAYS = 90
_MONITOR = "a monitor, which may only read the server's metrics"


@command_page(router, commands.ISSUE_KEY)
def issue(request: Request, service: Served, caller: Holder, form: Form, analyst: str = "") -> Response:
    people = [(one.name, one.title or one.name) for one in all_analysts(service) if not one.disabled]
    owner_field, expires = commands.ISSUE_KEY.fields
    fields = (replace(owner_field, value=analyst, options=(*people, ("", _MONITOR))), _with_default(expires))
    change = change_form(commands.ISSUE_KEY, _KEYS, fields=fields)

    def ask(typed: Typed) -> Question:
        changes.check_new_key(service, _role(typed), typed["of"], None)
        end_of_day(typed["expires"])
        summary = (("For", typed["of"] or _MONITOR), ("Valid through", f"{typed['expires']} (UTC)"))
        return Question.about(commands.ISSUE_KEY, summary)

    def do(typed: Typed) -> Response:
        ends = end_of_day(typed["expires"])
        key = changes.issue_key(
            service, caller, _role(typed), typed["of"], expires=ends, key_id=typed["once"][:16]
        )
        whose = typed["of"] or "a monitor"
        return render(request, caller, "new_key.html", key=key, whose=whose, expires=as_text(ends), old="")

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.ROTATE_KEY)
def rotate(request: Request, service: Served, caller: Holder, form: Form, id: PageId) -> Response:
    old = changes.check_rotation(service, id, 0.0).caller
    whose = old.analyst or f"the {old.role}"
    overlap_field, expires = commands.ROTATE_KEY.fields
    fields = (overlap_field, _with_default(expires))
    change = change_form(commands.ROTATE_KEY, _KEYS, f"Rotate the key of {whose}", fields=fields)

    def ask(typed: Typed) -> Question:
        overlap = number_in(typed, "overlap")
        changes.check_rotation(service, id, overlap)
        end_of_day(typed["expires"])
        summary = (
            ("Old key", id),
            ("It ends", f"after {typed['overlap']} hours" if overlap else "at once"),
            ("New key valid through", f"{typed['expires']} (UTC)"),
        )
        return Question.about(commands.ROTATE_KEY, summary)

    def do(typed: Typed) -> Response:
        ends, overlap = end_of_day(typed["expires"]), number_in(typed, "overlap")
        key = changes.rotate_key(service, caller, id, overlap, ends, typed["once"][:16])
        return render(
            request,
            caller,
            "new_key.html",
            key=key,
            whose=whose,
            expires=as_text(ends),
            old=id,
            old_ends=as_text(now() + timedelta(hours=overlap)),
        )

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.REVOKE_KEY)
def revoke(request: Request, service: Served, caller: Holder, form: Form, id: PageId) -> Response:
    owner = changes.find_key_info(service, id).caller
    question = Question.about(commands.REVOKE_KEY, (("Key", id), ("Of", owner.name)))
    change = change_form(commands.REVOKE_KEY, _KEYS)
    return confirm(request, caller, form, change, question, partial(changes.revoke_key, service, caller, id))


def _role(typed: Typed) -> changes.IssuedRole:
    return "analyst" if typed["of"] else "monitor"


def _with_default(expires: commands.CommandField) -> commands.CommandField:
    return replace(expires, value=(now() + timedelta(days=_DAYS)).date().isoformat())
