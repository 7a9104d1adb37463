"""The holder's console: keys, issued, rotated and revoked. A new key is on one page, once."""

from __future__ import annotations

from datetime import timedelta

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from privlearn.service.changes import keys as changes
from privlearn.service.changes.analysts import all_analysts
from privlearn.service.changes.keys import end_of_day
from privlearn.service.http.callers import Served
from privlearn.service.pages.change import (
    Change,
    FormField,
    Question,
    Typed,
    carry_out,
    number_in,
)
from privlearn.service.pages.page import Form, PageId, page_router, render
from privlearn.service.pages.signing import Holder
from privlearn.service.timing import as_text, now

router = page_router()

_BOTH = ["GET", "POST"]
_DAYS = 90
_MONITOR = "a monitor, who reads the server's figures alone"


@router.api_route("/issue-key", methods=_BOTH)
def issue(request: Request, service: Served, caller: Holder, form: Form, analyst: str = "") -> Response:
    people = [(one.name, one.title or one.name) for one in all_analysts(service) if not one.disabled]
    change = Change(
        "Issue a key",
        "A key opens what its analyst has a share of. It is shown once.",
        ("/keys", "Keys"),
        (
            FormField("of", "For", kind="select", value=analyst, options=(*people, ("", _MONITOR))),
            _last_day(),
        ),
    )

    def ask(typed: Typed) -> Question:
        changes.check_new_key(service, _role(typed), typed["of"], None)
        end_of_day(typed["expires"])
        facts = (("For", typed["of"] or _MONITOR), ("Valid through", f"{typed['expires']} (UTC)"))
        return Question("Issue the key", facts)

    def do(typed: Typed) -> Response:
        ends = end_of_day(typed["expires"])
        key = changes.issue_key(
            service, caller, _role(typed), typed["of"], expires=ends, key_id=typed["once"][:16]
        )
        whose = typed["of"] or "a monitor"
        return render(request, caller, "new_key.html", key=key, whose=whose, expires=as_text(ends), old="")

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/keys/{id}/rotate", methods=_BOTH)
def rotate(request: Request, service: Served, caller: Holder, form: Form, id: PageId) -> Response:
    old = changes.check_rotation(service, id, 0.0).caller
    whose = old.analyst or f"the {old.role}"
    change = Change(
        f"Rotate the key of {whose}",
        "A new key takes the old one's place. Both are valid for a while, so that nothing stands still.",
        ("/keys", "Keys"),
        (
            FormField(
                "overlap",
                "Hours for which the old key stays valid",
                "0: it ends at once. At most 30 days (720).",
                kind="numeric",
                value="24",
            ),
            _last_day(),
        ),
    )

    def ask(typed: Typed) -> Question:
        changes.check_rotation(service, id, number_in(typed, "overlap"))
        end_of_day(typed["expires"])
        return Question(
            "Rotate the key",
            (
                ("Old key", id),
                (
                    "It ends",
                    "at once" if not number_in(typed, "overlap") else f"after {typed['overlap']} hours",
                ),
                ("New key valid through", f"{typed['expires']} (UTC)"),
            ),
            ("What was asked for with the old key goes on.",),
        )

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


@router.api_route("/keys/{id}/revoke", methods=_BOTH)
def revoke(request: Request, service: Served, caller: Holder, form: Form, id: PageId) -> Response:
    found = changes.key_of(service, id).caller
    words = (
        "It opens nothing any more: here at once, in other server processes within five seconds. It cannot be undone.",
        "What it asked for and still waits ends, unpaid. What runs goes on: it is paid for.",
    )
    question = Question("Revoke the key", (("Key", id), ("Of", found.name)), words)

    def do(_: Typed) -> Response:
        changes.end(service, caller, id)
        return RedirectResponse("/keys", 303)

    return carry_out(
        request, caller, Change("Revoke a key", "", ("/keys", "Keys")), form, lambda _: question, do
    )


def _role(typed: Typed) -> changes.IssuedRole:
    return "analyst" if typed["of"] else "monitor"


def _last_day() -> FormField:
    usual = (now() + timedelta(days=_DAYS)).date().isoformat()
    return FormField("expires", "Last day on which it is valid", "in UTC", kind="date", value=usual)
