"""A change by the holder as pages: a form, then what it will do in words and one more press; nothing is done before.

The second page bears everything that was typed, and is checked as the first was: it may be old by the time it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from privlearn.errors import DataError, InvalidParameter, SchemaError
from privlearn.service.access.keys import Caller
from privlearn.service.pages.choices import NUMBER, fresh, is_once, sentence
from privlearn.service.pages.page import render, text_of
from privlearn.service.refusals import Conflict, Forbidden, NotFound

Typed = Mapping[str, str]
_REFUSED = (Conflict, DataError, Forbidden, InvalidParameter, NotFound, SchemaError)


@dataclass(frozen=True)
class FormField:
    """One field; ``options`` are values with their words."""

    name: str
    label: str
    hint: str = ""
    kind: Literal["text", "date", "decimal", "numeric", "select"] = "text"
    value: str = ""
    required: bool = True
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Change:
    """What somebody is about to do.

    Attributes
    ----------
    title, lead : str
    back : tuple of str
        Address and name of the page it began on.
    fields : tuple of FormField
        Without any there is nothing to fill in: it begins with the question.
    notes : tuple of str
        What to know before.
    """

    title: str
    lead: str
    back: tuple[str, str]
    fields: tuple[FormField, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """What will be done, to be answered by a press."""

    button: str
    facts: tuple[tuple[str, str], ...] = ()
    consequences: tuple[str, ...] = field(default=())


Ask = Callable[[Typed], Question]
"""Checks what was typed and says what it will do; raises if it cannot be done."""


def carry_out(
    request: Request,
    caller: Caller,
    change: Change,
    form: FormData,
    ask: Ask,
    do: Callable[[Typed], Response],
) -> Response:
    """The form; once it was filled in, the question; and what was asked about, once that was answered."""
    if request.method == "GET" and change.fields:
        return _form(request, caller, change, {})
    typed = {one.name: text_of(form, one.name) for one in change.fields}
    try:
        question = ask(typed)
        if request.method == "GET" or text_of(form, "sure") != "yes":
            return _question(request, caller, change, typed, question)
        once = text_of(form, "once")
        if not is_once(once):
            raise InvalidParameter("this form was not made here: look at it again, then press")
        return do({**typed, "once": once})
    except _REFUSED as error:
        if not change.fields:
            raise
        return _form(request, caller, change, typed, error)


def _form(
    request: Request, caller: Caller, change: Change, typed: Typed, error: Exception | None = None
) -> Response:
    errors = {} if error is None else _placed(error, change)
    return render(
        request, caller, "change.html", 422 if errors else 200, change=change, typed=typed, errors=errors
    )


def _question(request: Request, caller: Caller, change: Change, typed: Typed, question: Question) -> Response:
    return render(
        request, caller, "confirm.html", change=change, typed=typed, question=question, once=fresh()
    )


def _placed(error: Exception, change: Change) -> dict[str, str]:
    """Its sentence under the field that it begins with, or above all."""
    text = str(error)
    known = [one.name for one in change.fields]
    first = text.split(maxsplit=1)[0].rstrip(":") if text else ""
    if first not in known:
        return {"": sentence(error)}
    named = InvalidParameter(text.removeprefix(f"{first}: "))
    return {first: sentence(named)}


def number_in(typed: Typed, name: str) -> float:
    if not NUMBER.fullmatch(typed[name]):
        raise InvalidParameter(f"{name}: this is not a number. Write it like 0.5 or 1e-6")
    return float(typed[name])
