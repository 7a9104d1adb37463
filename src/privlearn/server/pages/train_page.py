"""The training page: a form, its cost and expected accuracy, and the button that charges the budget."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from privlearn.budget.composition import difference
from privlearn.budget.statement import Share
from privlearn.data.sources.csv_files import upload_format
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter, PrivlearnError
from privlearn.guarantee import Guarantee
from privlearn.server.access.keys import Caller
from privlearn.server.holder.datasets import OfferedDataSet, check_budget_left
from privlearn.server.holder.recipes import Recipe
from privlearn.server.http.bodies import content_of
from privlearn.server.http.media_types import CSV, read_rows, reading
from privlearn.server.jobs.admission import MAX_TEXT_LENGTHS
from privlearn.server.jobs.requests import JobRequest
from privlearn.server.pages.choices import (
    FIELDS,
    FIELDS_WITH_ERRORS,
    FORMS_OF_RELEASE,
    Choices,
    FormOfRelease,
)
from privlearn.server.pages.estimate_view import EstimateView, estimate_view
from privlearn.server.pages.formatting import as_sentence, number, number_below
from privlearn.server.pages.page import (
    Visit,
    check_form_token,
    errors_by_field,
    new_form_token,
    page_router,
    text_of,
)
from privlearn.server.pages.signing import Analyst, RowsForm
from privlearn.server.refusals import Conflict, NotFound, TooLarge, TooMany
from privlearn.server.service import Service

router = page_router()

_MODELS = {"logistic": "logistic regression", "svm": "support vector machine", "regression": "regression"}
_SENT_BEFORE = "This form was already sent with other values. To request these too, press the button again."


@router.get("/desk/{name}/train")
async def plan(visit: Analyst, name: str) -> Response:
    """Show the form; if it is filled in, with an estimate."""
    return await visit.run_heavy(_page, name, visit.request.query_params)


@router.post("/desk/{name}/train")
async def train(visit: Analyst, name: str, form: RowsForm) -> Response:
    """Request a training or a free trial; if it is refused, show the form again with the typed values."""
    content = await run_in_threadpool(content_of, form, "points")
    async with reading(visit.request, content, CSV):
        return await visit.run_heavy(_train, name, form, content)


def _train(visit: Visit, name: str, form: FormData, content: bytes) -> Response:
    service, caller = visit.service, visit.caller
    typed = {field: text_of(form, field) for field in (*FIELDS, "once", *MAX_TEXT_LENGTHS)}
    act = "pay" if text_of(form, "act") == "pay" else "try"
    try:
        check_form_token(typed["once"])
        job_request = _request(service, service.dataset(caller, name), typed, content, act == "try")
        if job_request is not None:
            job = service.ask(caller, job_request, f"{typed['once']} {act}")
            return RedirectResponse(f"/jobs/{job.id}", 303)
        errors = {}
    except Conflict:
        typed["once"] = new_form_token()
        errors = {"": _SENT_BEFORE}
    except (DataError, TooLarge) as error:
        errors = {"points": as_sentence(error)}
    except (BudgetExceeded, InvalidParameter, NotFound, TooMany) as error:
        errors = errors_by_field(error, FIELDS_WITH_ERRORS)
    return _page(visit, name, typed, errors)


def _request(
    service: Service, offered: OfferedDataSet, typed: Mapping[str, str], content: bytes, trial: bool
) -> JobRequest | None:
    """Return the request of the form, or None if it is invalid: the form then shows its errors."""
    choices = Choices(**{name: typed[name] for name in (*FIELDS, "once")})
    face, guarantee, errors = choices.meaning(offered.settings.neighbours)
    if face is None or guarantee is None or errors:
        return None
    points: pa.Table | None = None
    if face.name == "points":
        form = upload_format(content, offered.schema)
        points = read_rows(content, CSV, offered.schema, service.owner.limits.batch_rows, form)
    return JobRequest(
        dataset=offered.name,
        kind=face.kind,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        trial=trial,
        **{name: typed[name] for name in MAX_TEXT_LENGTHS},
        fields=face.fields(choices.learner),
        points=points,
    )


def _page(
    visit: Visit, name: str, typed: Mapping[str, str], errors: Mapping[str, str] | None = None
) -> Response:
    service, caller = visit.service, visit.caller
    offered, share = service.dataset(caller, name), service.budget(caller, name).share
    assert share is not None  # without one an analyst does not see the data set
    form = Choices.of(typed, offered, share)
    face, guarantee, wrong = form.meaning(offered.settings.neighbours)
    estimate: EstimateView | None = None
    if typed and face is not None and guarantee is not None:
        try:
            estimate = estimate_view(service, caller, offered, form.learner, face, guarantee)
        except (InvalidParameter, NotFound, TooMany) as error:
            wrong |= errors_by_field(error, FIELDS_WITH_ERRORS)
    wrong |= errors or {}
    affordable = guarantee is not None and _fits_budget(offered, caller, guarantee)
    return visit.render(
        "train.html",
        422 if wrong else 200,
        offered=offered,
        part=share,
        faces=FORMS_OF_RELEASE.values(),
        learners=[(key, _describe(key, recipe)) for key, recipe in offered.learners.items()],
        columns=list(offered.schema.columns),
        form=form,
        words={name: typed.get(name, "") for name in MAX_TEXT_LENGTHS},
        new_form_token=new_form_token(),
        errors=wrong,
        estimate=estimate,
        affordable=affordable,
        decision=_decision(share, guarantee, affordable),
        approval=_approval(offered, face, guarantee),
    )


def _approval(offered: OfferedDataSet, face: FormOfRelease | None, guarantee: Guarantee | None) -> str:
    """Return what an approval requires; empty if the request needs none."""
    approval = offered.settings.approval
    if approval is None or face is None or guarantee is None:
        return ""
    if not approval.is_needed(face.kind, guarantee.epsilon):
        return ""
    limit = approval.limit(face.kind)
    return (
        f"Above epsilon {number(limit or 0.0)} a second person must approve it, within {number(approval.days)} days: "
        "give its purpose and legal basis. Nothing is spent or reserved before it begins."
    )


def _fits_budget(offered: OfferedDataSet, caller: Caller, guarantee: Guarantee) -> bool:
    try:
        check_budget_left(offered, caller.account, guarantee)
    except PrivlearnError:
        return False
    return True


def _decision(share: Share, guarantee: Guarantee | None, affordable: bool) -> str:
    """Return what pressing the button does."""
    if guarantee is None:
        return ""
    if not affordable:
        return (
            f"This is more than is left: you have epsilon {number_below(share.left.epsilon)} and delta "
            f"{number_below(share.left.delta)}. Ask for less, or try it on made-up rows."
        )
    rest = number_below(difference(share.left.epsilon, [guarantee.epsilon]))
    delta = f" and delta {number(guarantee.delta)}" if guarantee.delta else ""
    return (
        f"Training spends epsilon {number(guarantee.epsilon)}{delta} of your share, once and for all; epsilon {rest} "
        f"will be left. {guarantee.in_words()}"
    )


def _describe(name: str, recipe: Recipe) -> str:
    model = _MODELS[recipe.model]
    kernel = "" if recipe.kernel == "linear" else f", {recipe.kernel} kernel"
    return model if name == recipe.model and not kernel else f"{name}: {model}{kernel}"
