"""Pages of a change by the holder: a form, then a question that lists the consequences, then the change.

The second page repeats everything that was typed and is checked like the first: it may be old when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.server.changes.commands import Command, CommandField
from privlearn.server.pages.page import (
    Form,
    Visit,
    check_form_token,
    errors_by_field,
    new_form_token,
    text_of,
)
from privlearn.server.pages.signing import Holder
from privlearn.server.refusals import Conflict, Forbidden, NotFound

Typed = Mapping[str, str]
Summary = Sequence[tuple[str, str]]
_REFUSED = (Conflict, DataError, Forbidden, InvalidParameter, NotFound, SchemaError)

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def command_page(router: APIRouter, command: Command) -> Callable[[Endpoint], Endpoint]:
    """Return the decorator of the pages of a command: form, question and change at one address."""
    return router.api_route(command.page, methods=["GET", "POST"])


@dataclass(frozen=True)
class Change:
    """A command as its pages show it.

    ``back``: address and title of the page to return to. ``fields``: if empty, the change starts with the question.
    ``notes``: what to know before filling in the form.
    """

    command: Command
    back: tuple[str, str]
    title: str
    lead: str
    fields: tuple[CommandField, ...]
    notes: tuple[str, ...]


def carry_out(
    visit: Visit,
    form: FormData,
    command: Command,
    back: tuple[str, str],
    ask: Callable[[Typed], Summary],
    do: Callable[[Typed], Response | str | None],
    *,
    title: str = "",
    lead: str = "",
    fields: tuple[CommandField, ...] = (),
    notes: tuple[str, ...] = (),
) -> Response:
    """Return the form, then the question for a filled-in form, then the result of a confirmed question.

    Parameters
    ----------
    ask : callable
        Checks the typed values and returns what will be done; raises if the change is not possible.
    do : callable
        Makes the change. It may return a page, or the address of one; without, the browser is sent to ``back``.
    title, lead, fields, notes
        Texts and fields of the pages; title, lead and fields are those of the command if they are not given.
    """
    change = Change(
        command, back, title or command.title, lead or command.lead, fields or command.fields, notes
    )
    if visit.request.method == "GET" and change.fields:
        return _form(visit, change, {})
    typed = {one.name: text_of(form, one.name) for one in change.fields}
    try:
        summary = ask(typed)
        if visit.request.method == "GET" or text_of(form, "sure") != "yes":
            return visit.render(
                "confirm.html", change=change, typed=typed, summary=summary, once=new_form_token()
            )
        found = do({**typed, "once": check_form_token(text_of(form, "once"))})
        return found if isinstance(found, Response) else RedirectResponse(found or back[0], 303)
    except _REFUSED as error:
        if not change.fields:
            raise
        return _form(visit, change, typed, error)


_NOUNS = {"name": "Name", "dataset": "Data set", "id": "Key"}


def add_pages(
    router: APIRouter,
    command: Command,
    back: tuple[str, str],
    check: Callable[..., object],
    act: Callable[..., None],
) -> None:
    """Add the pages of a command that its address and its fields describe completely.

    Parameters
    ----------
    check, act : callable
        Called with the service and the names in the address, in its order; ``act`` also with the caller, and with
        the values of the fields. Where what ``check`` returns has an attribute of a field's name, the form begins with
        its value.
    """

    def page(visit: Holder, form: Form) -> Response:
        named = visit.request.path_params
        found = check(visit.service, *named.values())
        fields = tuple(replace(one, value=getattr(found, one.name, one.value)) for one in command.fields)

        def ask(typed: Typed) -> Summary:
            typed_in = [(one.label, typed[one.name]) for one in fields]
            return [*((_NOUNS[name], value) for name, value in named.items()), *typed_in]

        def do(typed: Typed) -> None:
            act(visit.service, visit.caller, *named.values(), *(typed[one.name] for one in fields))

        address, heading = (text.format(**named) for text in back)
        title = f"{command.title}: {', '.join(named.values())}"
        return carry_out(visit, form, command, (address, heading), ask, do, title=title, fields=fields)

    command_page(router, command)(page)


def _form(visit: Visit, change: Change, typed: Typed, error: Exception | None = None) -> Response:
    errors = {} if error is None else errors_by_field(error, [one.name for one in change.fields])
    return visit.render("change.html", 422 if errors else 200, change=change, typed=typed, errors=errors)
