"""What all pages share: templates, forms with their checks, pages of long lists, and error pages."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from privlearn._version import __version__
from privlearn.errors import BudgetExceeded, InvalidParameter, PrivlearnError
from privlearn.guarantee import Guarantee
from privlearn.server.access.keys import Caller
from privlearn.server.http.bodies import small_form
from privlearn.server.http.callers import ID, service_of
from privlearn.server.http.capacity import run_heavy
from privlearn.server.http.problems import defect
from privlearn.server.job_kinds.job_kind import JOB_KINDS
from privlearn.server.pages import formatting
from privlearn.server.pages.figures import meter
from privlearn.server.refusals import Forbidden, NotFound
from privlearn.server.service import Service

Item = TypeVar("Item")

SIZE = 25


def check_id(id: str) -> str:
    if not re.fullmatch(ID, id):
        raise NotFound("there is nothing under this id. List yours")
    return id


PageId = Annotated[str, Depends(check_id)]
"""The id of a job, which is also the id of its result."""


def _last_seen(before: Annotated[str | None, Query(max_length=36)] = None) -> str | None:
    """Return the id of the last item on the previous page; None, the first page, if it cannot be an id."""
    return before if before is not None and before.isascii() and before.isprintable() else None


Before = Annotated[str | None, Depends(_last_seen)]


@dataclass(frozen=True)
class ListPage(Generic[Item]):
    """One page of a list, newest first; ``older`` is the id of its last item if there are more."""

    items: Sequence[Item]
    before: str | None
    older: str | None


def list_page(
    look_up: Callable[[int], Sequence[Item]],
    before: str | None,
    name: Callable[[Item], str] = attrgetter("id"),
) -> ListPage[Item]:
    """Return the items that fit on a page; ``look_up`` gets the number of items to find."""
    found = look_up(SIZE + 1)
    items = found[:SIZE]
    return ListPage(items, before, name(items[-1]) if len(found) > SIZE else None)


STATIC = Path(__file__).parent / "static"
MENUS: dict[str, tuple[tuple[str, str], ...]] = {
    "analyst": (
        ("/desk", "Desk"),
        ("/sessions", "Sessions"),
        ("/releases", "Releases"),
        ("/verify", "Verify"),
    ),
    "holder": (
        ("/console", "Budgets"),
        ("/analysts", "Analysts"),
        ("/sessions", "Sessions"),
        ("/releases", "Releases"),
        ("/requests", "Requests"),
        ("/approvals", "Approvals"),
        ("/keys", "Keys"),
        ("/log", "Log"),
    ),
    "approver": (("/approvals", "Approvals"), ("/requests", "Requests")),
    "auditor": (
        ("/requests", "Requests"),
        ("/approvals", "Approvals"),
        ("/console", "Budgets"),
        ("/log", "Log"),
    ),
}
"""Addresses and names of each role's pages; the first is where the role begins."""


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("privlearn.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty text
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        name: getattr(formatting, name)
        for name in ("format_detail", "number", "number_below", "moment", "size")
    }
    made.filters["kind_title"] = lambda name: JOB_KINDS[name].title if name in JOB_KINDS else name
    made.globals |= {
        "meter": meter,
        "meter_text": formatting.meter_text,
        "version": __version__,
        "digest": _digest(),
    }
    return made


def _digest() -> str:
    """Return a digest of the static files, so that browsers fetch a new version in spite of their cache."""
    content = b"".join(path.read_bytes() for path in sorted(STATIC.iterdir()))
    return sha256(content).hexdigest()[:12]


_TEMPLATES = _environment()


def render(
    request: Request, caller: Caller | None, template: str, status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a page made from a template."""
    menu = MENUS[caller.role] if caller else ()
    always: dict[str, Any] = {"caller": caller, "menu": menu, "here": request.url.path, "errors": {}}
    always["weakness_of"] = partial(_weakness, request)
    content = _TEMPLATES.get_template(template).render(always | values)
    return HTMLResponse(content, status)


def _weakness(request: Request, dataset: str, epsilon: float, delta: float) -> str | None:
    """Return why a guarantee is weak for a data set; None if it is not, or the data set is not offered any more."""
    catalog = service_of(request).catalog
    if dataset not in catalog:
        return None
    offered = catalog.find(dataset)
    return offered.weakness(Guarantee(epsilon, delta, offered.settings.neighbours))


@dataclass(frozen=True)
class Visit:
    """A request for a page by a caller who is signed in."""

    request: Request
    service: Service
    caller: Caller

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page made from a template."""
        return render(self.request, self.caller, template, status, **values)

    async def run_heavy(self, page: Callable[..., Response], *args: Any) -> Response:
        """Return a page whose making takes long, from one of few threads."""
        return await run_heavy(self.request, page, self, *args)


_HEADINGS = {404: "Not found", 409: "Not possible", 413: "Too large", 422: "This cannot be used"}
_OWN = ("same-origin", "none")  # none: typed or chosen by the visitor


def check_origin(request: Request) -> None:
    """Refuse a form sent from another site: the browser adds the cookie there too, but names the origin."""
    if request.method == "GET":
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin", "")
    own = site in _OWN if site else origin.partition("://")[2] == request.headers.get("host")
    if not own:
        raise Forbidden("this form was sent from another site. Open the page here and send it again")


class Page(APIRoute):
    """A route that answers unexpected errors with a page too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_page(request: Request) -> Response:
            try:
                return await handle(request)
            except (PrivlearnError, HTTPException, RequestValidationError):
                raise  # expected: the application has handlers for them
            except Exception as error:
                return problem_page(request, None, defect(request, error))

        return handle_page


def page_router() -> APIRouter:
    return APIRouter(dependencies=[Depends(check_origin)], include_in_schema=False, route_class=Page)


def problem_page(request: Request, caller: Caller | None, answer: Response) -> Response:
    """Return the HTTP interface's answer to an error as a page."""
    problem = json.loads(bytes(answer.body))
    heading = _HEADINGS.get(answer.status_code, problem["title"])
    message = problem["detail"][:1].upper() + problem["detail"][1:] + "."
    number = problem.get("instance", "")
    return render(
        request, caller, "problem.html", answer.status_code, heading=heading, message=message, number=number
    )


async def _form(request: Request) -> AsyncIterator[FormData]:
    form = await small_form(request)
    try:
        yield form
    finally:
        await form.close()


Form = Annotated[FormData, Depends(_form)]


def text_of(form: FormData, name: str) -> str:
    """Return the typed or selected text of a field, or an empty text."""
    found = form.get(name, "")
    return found.strip() if isinstance(found, str) else ""


def download(content: bytes, kind: str, name: str) -> Response:
    """Return a file to save; its name is chosen by the server and needs no quoting."""
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


_ONCE = re.compile("[0-9a-f]{32}")


def new_form_token() -> str:
    """Return a new value for ``once``."""
    return secrets.token_hex(16)


def is_form_token(text: str) -> bool:
    """Return whether the text has the form of a token: it is stored with the job, and browsers can send anything."""
    return _ONCE.fullmatch(text) is not None


def check_form_token(text: str) -> str:
    """Return the token of a form that was sent; refuse a form that is not from this server."""
    if not is_form_token(text):
        raise InvalidParameter("this form is not from this server. Open the page again and check it.")
    return text


def errors_by_field(error: Exception, fields: Collection[str]) -> dict[str, str]:
    """Return the error's sentence under the field that it begins with, or under "" for the whole form."""
    first = str(error).partition(" ")[0]
    field = "epsilon" if isinstance(error, BudgetExceeded) else first.rstrip(":")
    if field not in fields:
        return {"": formatting.as_sentence(error)}
    return {field: formatting.as_sentence(str(error).removeprefix(f"{field}: "))}
