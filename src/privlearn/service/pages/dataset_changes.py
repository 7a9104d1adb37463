"""The holder's console: data sets, added, refreshed and retired."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from privlearn.errors import InvalidParameter
from privlearn.relation import RELATIONS
from privlearn.service.access.keys import Caller
from privlearn.service.changes import datasets as changes
from privlearn.service.http.callers import Served
from privlearn.service.http.limits import aside
from privlearn.service.pages.change import Change, FormField, Question, Typed, carry_out, number_in
from privlearn.service.pages.formatting import number
from privlearn.service.pages.page import Form, page_router
from privlearn.service.pages.signing import Holder
from privlearn.service.refusals import Conflict
from privlearn.service.service import Service

router = page_router()

_BOTH = ["GET", "POST"]
_CONSOLE = ("/console", "Budgets")
_REASON = FormField("reason", "Reason", "One line for the audit log.", required=False)
_AS_BEFORE = ("", "as before")
_READ_ONCE = (
    "All rows are read once now, and must fit the schema: with millions of them this takes a minute or more."
)
SAME_PEOPLE = (
    "A new version is about the same people, and all versions are paid from one budget. Whoever is in several is "
    "protected by the total: everything that is answered about them, from any version, adds up to no more. Whoever "
    "is in one version only is protected at least as well: what others cost is not about them, and counts all the same."
)
OTHER_PEOPLE = (
    "One person has one budget. If these people are served here already, under another name or from an older table, "
    "refresh that data set instead: with two budgets both could be spent on them."
)


@router.api_route("/add-dataset", methods=_BOTH)
async def add(request: Request, service: Served, caller: Holder, form: Form) -> Response:
    return await aside(request, _add, request, service, caller, form)


def _add(request: Request, service: Service, caller: Caller, form: FormData) -> Response:
    sources = service.owner.console
    if not sources.sources:
        raise Conflict(
            'owner.toml names no source for the console: write [console] and sources = { exports = "exports" } into '
            "it, or declare the data set there, and start the server again"
        )
    change = Change(
        "Add a data set",
        "A table, what is public about it, and a budget that nobody can change afterwards.",
        _CONSOLE,
        (
            FormField(
                "name",
                "Name",
                "Up to 64 letters, digits, - and _: in addresses, in the ledger, for analysts.",
            ),
            _chosen("table", "Table", sources.tables()),
            _chosen("schema", "Schema", sources.schemas()),
            FormField(
                "epsilon", "Epsilon", "What all releases and sessions together may cost.", kind="decimal"
            ),
            FormField(
                "delta", "Delta", "Such as 1e-6, far below one over the number of people; or 0.", value="1e-6"
            ),
            FormField(
                "neighbours",
                "What nobody can tell apart",
                "The table as it is, and with one person's record ...",
                kind="select",
                options=tuple((name, f"{one.otherwise} ({name})") for name, one in RELATIONS.items()),
            ),
            FormField(
                "expected_records",
                "Expected number of records",
                "Only where their number is private: what is said in its place.",
                kind="numeric",
                required=False,
            ),
            FormField("composition", "How costs add up", kind="select", options=_COMPOSITIONS),
            FormField(
                "training_seconds",
                "Seconds",
                "A training's end is seen so long after its start, or 2, 4, 8 ... times so long. Choose more than any "
                "training of this table takes.",
                kind="decimal",
                value="1",
            ),
        ),
        (OTHER_PEOPLE,),
    )

    def ask(typed: Typed) -> Question:
        found, _ = changes.check_new_dataset(
            service, typed["name"], typed["table"], typed["schema"], _settings(typed)
        )
        facts = (
            ("Name", typed["name"]),
            ("Table", typed["table"]),
            ("Schema", typed["schema"]),
            ("Whole budget", f"epsilon {number(found.epsilon)}, delta {number(found.delta)}"),
            ("One person's record", f"{found.guarantee.relation.otherwise} ({found.neighbours})"),
            ("How costs add up", found.composition),
        )
        words = ("The budget can neither be raised nor set back, here or anywhere.", OTHER_PEOPLE, _READ_ONCE)
        return Question("Add the data set", facts, words)

    def do(typed: Typed) -> Response:
        name = typed["name"]
        changes.add_dataset(service, caller, name, typed["table"], typed["schema"], _settings(typed))
        return RedirectResponse(f"/console/{name}", 303)

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/console/{name}/refresh", methods=_BOTH)
async def refresh(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    return await aside(request, _refresh, request, service, caller, form, name)


def _refresh(request: Request, service: Service, caller: Caller, form: FormData, name: str) -> Response:
    sources, current = service.owner.console, changes.made_named(service, name).version()
    change = Change(
        f"Refresh {name}",
        f"Version {current.number} is served now. The new one takes its place for whatever is asked for from then on.",
        (f"/console/{name}", name),
        (
            _chosen("table", "Table", sources.tables()),
            _chosen(
                "schema",
                "Schema",
                sources.schemas(),
                _AS_BEFORE,
                "Another one must mean the same; it may describe another layout of the file.",
            ),
            _REASON,
        ),
        (SAME_PEOPLE,),
    )

    def ask(typed: Typed) -> Question:
        changes.check_new_version(service, name, typed["table"], typed["schema"])
        facts = (
            ("Data set", name),
            ("New version", str(current.number + 1)),
            ("Table", typed["table"]),
            ("Schema", typed["schema"] or "as before"),
            ("Budget", "the same, with what is left of it"),
        )
        words = (
            SAME_PEOPLE,
            "Releases and sessions stay. A session on an exact kernel machine reads the version that it was opened on: "
            "leave that table where it is for as long as such sessions shall answer.",
            _READ_ONCE,
        )
        return Question("Refresh the data set", facts, words)

    def do(typed: Typed) -> Response:
        changes.refresh_dataset(service, caller, name, typed["table"], typed["schema"], typed["reason"])
        return RedirectResponse(f"/console/{name}", 303)

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/console/{name}/retire", methods=_BOTH)
def retire(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.made_named(service, name)
    lead = "Nothing new is done with a retired data set. What was made of it stays."
    change = Change(f"Retire {name}", lead, (f"/console/{name}", name), (_REASON,))

    def ask(typed: Typed) -> Question:
        words = (
            "New requests are refused, from now on and for good. What waits for approval ends, unpaid; what else was "
            "asked for is still done.",
            "Releases can be fetched, and sessions go on answering: they are paid for. Leave the table where it is.",
        )
        return Question("Retire the data set", (("Data set", name), ("Reason", typed["reason"])), words)

    def do(typed: Typed) -> Response:
        changes.retire_dataset(service, caller, name, typed["reason"])
        return RedirectResponse(f"/console/{name}", 303)

    return carry_out(request, caller, change, form, ask, do)


def _chosen(
    name: str, label: str, files: list[str], first: tuple[str, str] | None = None, hint: str = ""
) -> FormField:
    options = tuple((file, file) for file in files)
    return FormField(
        name, label, hint, kind="select", options=options if first is None else (first, *options)
    )


def _settings(typed: Typed) -> dict[str, Any]:
    expected = typed["expected_records"]
    if expected and not (expected.isascii() and expected.isdigit()):
        raise InvalidParameter("expected_records: must be a whole number, or empty")
    return {
        "epsilon": number_in(typed, "epsilon"),
        "delta": number_in(typed, "delta"),
        "neighbours": typed["neighbours"],
        "composition": typed["composition"],
        "training_seconds": number_in(typed, "training_seconds"),
        "expected_records": int(expected) if expected else None,
    }


_COMPOSITIONS = (
    ("basic", "epsilons and deltas are added (basic)"),
    ("renyi", "tighter for many Gaussian releases; needs a delta (renyi)"),
)
