"""The holder's console: forms that add, refresh and retire data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi.responses import Response
from starlette.datastructures import FormData

from privlearn.errors import InvalidParameter
from privlearn.guarantee import RELATIONS
from privlearn.server.changes import commands
from privlearn.server.changes import datasets as changes
from privlearn.server.pages.change import Summary, Typed, add_pages, carry_out, command_page
from privlearn.server.pages.formatting import number, number_in
from privlearn.server.pages.page import Form, Visit, page_router
from privlearn.server.pages.signing import Holder
from privlearn.server.refusals import Conflict

router = page_router()

_SAME_SCHEMA = ("", "as before")


@command_page(router, commands.ADD_DATASET)
async def add(visit: Holder, form: Form) -> Response:
    return await visit.run_heavy(_add, form)


def _add(visit: Visit, form: FormData) -> Response:
    service, sources = visit.service, visit.service.owner.console
    if not sources.sources:
        raise Conflict(
            'owner.toml names no source for the console. Write [console] and sources = { exports = "exports" } into '
            "it, or declare the data set there, and start the server again"
        )
    # Per request: files come and go, and extensions may have registered relations.
    fields = _with_options(
        commands.ADD_DATASET,
        table=_same(sources.tables()),
        schema=_same(sources.schemas()),
        neighbours=[(name, f"{relation.change} ({name})") for name, relation in RELATIONS.items()],
    )

    def ask(typed: Typed) -> Summary:
        settings, _ = changes.check_new_dataset(
            service, typed["name"], typed["table"], typed["schema"], _settings(typed)
        )
        return (
            ("Name", typed["name"]),
            ("Table", typed["table"]),
            ("Schema", typed["schema"]),
            ("Whole budget", f"epsilon {number(settings.epsilon)}, delta {number(settings.delta)}"),
            ("One person's record", f"{settings.guarantee.relation.change} ({settings.neighbours})"),
            ("How costs add up", settings.composition),
        )

    def do(typed: Typed) -> str:
        name = typed["name"]
        changes.add_dataset(service, visit.caller, name, typed["table"], typed["schema"], _settings(typed))
        return f"/console/{name}"

    back, notes = ("/console", "Budgets"), (commands.OTHER_PEOPLE,)
    return carry_out(visit, form, commands.ADD_DATASET, back, ask, do, fields=fields, notes=notes)


@command_page(router, commands.REFRESH_DATASET)
async def refresh(visit: Holder, form: Form, name: str) -> Response:
    return await visit.run_heavy(_refresh, form, name)


def _refresh(visit: Visit, form: FormData, name: str) -> Response:
    service, sources = visit.service, visit.service.owner.console
    current = changes.find_editable_dataset(service, name).version()

    def ask(typed: Typed) -> Summary:
        changes.check_new_version(service, name, typed["table"], typed["schema"])
        return (
            ("Data set", name),
            ("New version", str(current.number + 1)),
            ("Table", typed["table"]),
            ("Schema", typed["schema"] or _SAME_SCHEMA[1]),
            ("Budget", "the same, with what is left of it"),
        )

    def do(typed: Typed) -> None:
        changes.refresh_dataset(service, visit.caller, name, typed["table"], typed["schema"], typed["reason"])

    schemas = [_SAME_SCHEMA, *_same(sources.schemas())]
    return carry_out(
        visit,
        form,
        commands.REFRESH_DATASET,
        (f"/console/{name}", name),
        ask,
        do,
        title=f"Refresh {name}",
        lead=f"Version {current.number} is served now. The new version replaces it for all later requests.",
        fields=_with_options(commands.REFRESH_DATASET, table=_same(sources.tables()), schema=schemas),
        notes=(commands.SAME_PEOPLE,),
    )


_BACK = ("/console/{name}", "{name}")
add_pages(router, commands.RETIRE_DATASET, _BACK, changes.find_editable_dataset, changes.retire_dataset)


def _with_options(
    command: commands.Command, **options: Sequence[tuple[str, str]]
) -> tuple[commands.CommandField, ...]:
    """Return the command's fields with options to select from; one of them is always selected."""
    return tuple(
        replace(field, required=True, options=tuple(options[field.name])) if field.name in options else field
        for field in command.fields
    )


def _same(names: list[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


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
