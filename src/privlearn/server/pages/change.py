"""Pages of a change by the holder: a form, then a question that lists the consequences, then the change.

The second page repeats everything that was typed and is checked like the first: it may be old when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.server.access.keys import Caller
from privlearn.server.changes.commands import Command, CommandField
from privlearn.server.pages.choices import NUMBER, as_sentence, is_form_token, new_form_token
from privlearn.server.pages.page import render, text_of
from privlearn.server.refusals import Conflict, Forbidden, NotFound

Typed = Mapping[str, str]
_REFUSED = (Conflict, DataError, Forbidden, InvalidParameter, NotFound, SchemaError)


@dataclass(frozen=True)
class Change:
    """The form of a change.

    Attributes
    ----------
    title, lead : str
    back : tuple of str
        Address and title of the page to return to.
    fields : tuple of CommandField
        If empty, the change starts with the question.
    notes : tuple of str
        What to know before filling in the form.
    """

    title: str
    lead: str
    back: tuple[str, str]
    fields: tuple[CommandField, ...] = ()
    notes: tuple[str, ...] = ()


def change_form(
    command: Command,
    back: tuple[str, str],
    title: str = "",
    lead: str = "",
    fields: tuple[CommandField, ...] = (),
    notes: tuple[str, ...] = (),
) -> Change:
    """Return the form of a command; title, lead and fields replace those of the command if they are given."""
    return Change(title or command.title, lead or command.lead, back, fields or command.fields, notes)


Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def command_page(router: APIRouter, command: Command) -> Callable[[Endpoint], Endpoint]:
    """Return the decorator of the pages of a command: form, question and change at one address."""
    return router.api_route(command.page, methods=["GET", "POST"])


def confirm(
    request: Request,
    caller: Caller,
    form: FormData,
    change: Change,
    question: Question,
    do: Callable[[], None],
) -> Response:
    """Ask the question of a command without fields, and carry it out once it is confirmed."""
    return carry_out(request, caller, change, form, lambda _: question, lambda _: do())


@dataclass(frozen=True)
class Question:
    """The question before a change: what will be done, its consequences, and the button that confirms."""

    button: str
    summary: tuple[tuple[str, str], ...] = ()
    consequences: tuple[str, ...] = ()

    @classmethod
    def about(cls, command: Command, summary: tuple[tuple[str, str], ...], *consequences: str) -> Question:
        """Return the question before a command; ``consequences`` come in addition to the command's own."""
        return cls(command.button, summary, (*consequences, *command.consequences))


Ask = Callable[[Typed], Question]
"""Checks the typed values and returns the question; raises if the change is not possible."""


def carry_out(
    request: Request,
    caller: Caller,
    change: Change,
    form: FormData,
    ask: Ask,
    do: Callable[[Typed], Response | None],
) -> Response:
    """Return the form, then the question for a filled-in form, then the result of a confirmed question.

    ``do`` may return a page; without one, the browser is sent to ``change.back``.
    """
    if request.method == "GET" and change.fields:
        return _form(request, caller, change, {})
    typed = {one.name: text_of(form, one.name) for one in change.fields}
    try:
        question = ask(typed)
        if request.method == "GET" or text_of(form, "sure") != "yes":
            return _question(request, caller, change, typed, question)
        once = text_of(form, "once")
        if not is_form_token(once):
            raise InvalidParameter(
                "this form is not from this server. Open the page again, check it, then press the button."
            )
        return do({**typed, "once": once}) or RedirectResponse(change.back[0], 303)
    except _REFUSED as error:
        if not change.fields:
            raise
        return _form(request, caller, change, typed, error)


def _form(
    request: Request, caller: Caller, change: Change, typed: Typed, error: Exception | None = None
) -> Response:
    errors = {} if error is None else _errors_by_field(error, change)
    return render(
        request, caller, "change.html", 422 if errors else 200, change=change, typed=typed, errors=errors
    )


def _question(request: Request, caller: Caller, change: Change, typed: Typed, question: Question) -> Response:
    return render(
        request, caller, "confirm.html", change=change, typed=typed, question=question, once=new_form_token()
    )


def _errors_by_field(error: Exception, change: Change) -> dict[str, str]:
    """Return the error's sentence under the field that it begins with, or under "" for the whole form."""
    text = str(error)
    known = [one.name for one in change.fields]
    first = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    if first not in known:
        return {"": as_sentence(error)}
    named = InvalidParameter(text.removeprefix(f"{first}: "))
    return {first: as_sentence(named)}


def number_in(typed: Typed, name: str) -> float:
    if not NUMBER.fullmatch(typed[name]):
        raise InvalidParameter(f"{name}: this is not a number. Write it like 0.5 or 1e-6")
    return float(typed[name])
