"""The holder's console: forms that add, refresh and retire data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from privlearn.errors import InvalidParameter
from privlearn.relation import RELATIONS
from privlearn.server.access.keys import Caller
from privlearn.server.changes import commands
from privlearn.server.changes import datasets as changes
from privlearn.server.http.callers import Served
from privlearn.server.http.limits import run_heavy
from privlearn.server.pages.change import Question, Typed, carry_out, change_form, command_page, number_in
from privlearn.server.pages.formatting import number
from privlearn.server.pages.page import Form, page_router
from privlearn.server.pages.signing import Holder
from privlearn.server.refusals import Conflict
from privlearn.server.service import Service

router = page_router()

_SAME_SCHEMA = ("", "as before")


@command_page(router, commands.ADD_DATASET)
async def add(request: Request, service: Served, caller: Holder, form: Form) -> Response:
    return await run_heavy(request, _add, request, service, caller, form)


def _add(request: Request, service: Service, caller: Caller, form: FormData) -> Response:
    if not service.owner.console.sources:
        raise Conflict(
            'owner.toml names no source for the console: write [console] and sources = { exports = "exports" } into '
            "it, or declare the data set there, and start the server again"
        )
    # Per request: files come and go, and extensions may have registered relations.
    options = {
        "table": [(file, file) for file in service.owner.console.tables()],
        "schema": [(file, file) for file in service.owner.console.schemas()],
        "neighbours": [(name, f"{relation.change} ({name})") for name, relation in RELATIONS.items()],
    }
    fields = tuple(_with_options(field, options.get(field.name)) for field in commands.ADD_DATASET.fields)
    notes = (commands.OTHER_PEOPLE,)
    change = change_form(commands.ADD_DATASET, ("/console", "Budgets"), fields=fields, notes=notes)

    def ask(typed: Typed) -> Question:
        settings, _ = changes.check_new_dataset(
            service, typed["name"], typed["table"], typed["schema"], _settings(typed)
        )
        summary = (
            ("Name", typed["name"]),
            ("Table", typed["table"]),
            ("Schema", typed["schema"]),
            ("Whole budget", f"epsilon {number(settings.epsilon)}, delta {number(settings.delta)}"),
            ("One person's record", f"{settings.guarantee.relation.change} ({settings.neighbours})"),
            ("How costs add up", settings.composition),
        )
        return Question.about(commands.ADD_DATASET, summary)

    def do(typed: Typed) -> Response:
        name = typed["name"]
        changes.add_dataset(service, caller, name, typed["table"], typed["schema"], _settings(typed))
        return RedirectResponse(f"/console/{name}", 303)

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.REFRESH_DATASET)
async def refresh(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    return await run_heavy(request, _refresh, request, service, caller, form, name)


def _refresh(request: Request, service: Service, caller: Caller, form: FormData, name: str) -> Response:
    sources, current = service.owner.console, changes.find_editable_dataset(service, name).version()
    lead = f"Version {current.number} is served now. The new version replaces it for all later requests."
    options = {
        "table": [(file, file) for file in sources.tables()],
        "schema": [_SAME_SCHEMA, *((file, file) for file in sources.schemas())],
    }
    fields = tuple(_with_options(field, options.get(field.name)) for field in commands.REFRESH_DATASET.fields)
    notes = (commands.SAME_PEOPLE,)
    change = change_form(commands.REFRESH_DATASET, _back(name), f"Refresh {name}", lead, fields, notes)

    def ask(typed: Typed) -> Question:
        changes.check_new_version(service, name, typed["table"], typed["schema"])
        summary = (
            ("Data set", name),
            ("New version", str(current.number + 1)),
            ("Table", typed["table"]),
            ("Schema", typed["schema"] or _SAME_SCHEMA[1]),
            ("Budget", "the same, with what is left of it"),
        )
        return Question.about(commands.REFRESH_DATASET, summary)

    def do(typed: Typed) -> None:
        changes.refresh_dataset(service, caller, name, typed["table"], typed["schema"], typed["reason"])

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.RETIRE_DATASET)
def retire(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.find_editable_dataset(service, name)
    change = change_form(commands.RETIRE_DATASET, _back(name), f"Retire {name}")

    def ask(typed: Typed) -> Question:
        return Question.about(commands.RETIRE_DATASET, (("Data set", name), ("Reason", typed["reason"])))

    def do(typed: Typed) -> None:
        changes.retire_dataset(service, caller, name, typed["reason"])

    return carry_out(request, caller, change, form, ask, do)


def _with_options(
    field: commands.CommandField, options: list[tuple[str, str]] | None
) -> commands.CommandField:
    """Return the field with options to select from; one of them is always selected."""
    return field if options is None else replace(field, required=True, options=tuple(options))


def _back(name: str) -> tuple[str, str]:
    return f"/console/{name}", name


def _settings(typed: Typed) -> dict[str, Any]:
    expected = typed["expected_records"]
    if expected and not (expected.isascii() and expected.isdigit()):
        raise InvalidParameter("expected_records: must be a whole number, or empty")
    return {
        "epsilon": number_in(typed, "epsilon"),
        "delta": number_in(typed, "delta"),
        "neighbours": typed["neighbours"],
        "composition": typed["composition"],
        "training_seconds": number_in(typed, "training_seconds") if typed["training_seconds"] else None,
        "expected_records": int(expected) if expected else None,
    }
