"""The holder's console: analysts, and what each may spend."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from privlearn.service.access.keys import list_keys
from privlearn.service.changes import analysts as changes
from privlearn.service.holder.settings import Share
from privlearn.service.http.callers import Served
from privlearn.service.pages.change import Change, FormField, Question, Typed, carry_out, number_in
from privlearn.service.pages.formatting import number
from privlearn.service.pages.page import Form, page_router, render
from privlearn.service.pages.signing import Holder
from privlearn.service.service import Service

router = page_router()

_BOTH = ["GET", "POST"]
_TITLE = FormField(
    "title", "Name to show", "For people: a full name, a department. Nothing depends on it.", required=False
)


@router.get("/analysts")
def all_of_them(request: Request, service: Served, caller: Holder) -> Response:
    found = changes.all_analysts(service)
    may_change = service.owner.console.changes
    return render(request, caller, "analysts.html", analysts=found, may_change=may_change)


@router.get("/analysts/{name}")
def one_of_them(request: Request, service: Served, caller: Holder, name: str) -> Response:
    return render(
        request,
        caller,
        "analyst.html",
        one=changes.analyst_named(service, name),
        totals={dataset: settings.guarantee for dataset, settings in service.catalog.owner.datasets.items()},
        keys=[key for key in list_keys(service.store) if key.caller.analyst == name],
        may_change=service.owner.console.changes,
    )


@router.api_route("/add-analyst", methods=_BOTH)
def add(request: Request, service: Served, caller: Holder, form: Form) -> Response:
    change = Change(
        "Add an analyst",
        "Somebody who may ask. They see nothing until they have a share of a data set and a key.",
        ("/analysts", "Analysts"),
        (
            FormField(
                "name",
                "Name",
                "Up to 64 letters, digits, - and _. It stands in the ledger and in the log for ever. Whoever signs in "
                "at a provider has the name that the provider sends.",
            ),
            _TITLE,
        ),
    )

    def ask(typed: Typed) -> Question:
        changes.check_new_analyst(service, typed["name"])
        return Question("Add the analyst", (("Analyst", typed["name"]), ("Shown as", typed["title"])))

    def do(typed: Typed) -> Response:
        changes.add_analyst(service, caller, typed["name"], typed["title"])
        return _to(typed["name"])

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/analysts/{name}/rename", methods=_BOTH)
def rename(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    before = changes.check_made(service, name).title
    field = FormField(_TITLE.name, _TITLE.label, _TITLE.hint, value=before, required=False)
    lead = f"How pages show {name}. The name in addresses, in the ledger and in the log stays."
    change = Change(f"Change the name shown for {name}", lead, _back(name), (field,))

    def ask(typed: Typed) -> Question:
        return Question("Change it", (("Shown as", typed["title"]), ("Until now", before)))

    def do(typed: Typed) -> Response:
        changes.rename_analyst(service, caller, name, typed["title"])
        return _to(name)

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/analysts/{name}/disable", methods=_BOTH)
def disable(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.check_made(service, name)
    question = Question(
        "Disable the analyst",
        (("Analyst", name),),
        (
            "All their keys are revoked and they are signed out: here at once, in other server processes within five "
            "seconds.",
            "What they have asked for and still waits ends, unpaid. What runs goes on: it is paid for.",
            "Shares, results and what was spent are kept. You can enable them again; then they need new keys.",
        ),
    )

    def do(_: Typed) -> Response:
        changes.disable_analyst(service, caller, name)
        return _to(name)

    return carry_out(
        request, caller, Change(f"Disable {name}", "", _back(name)), form, lambda _: question, do
    )


@router.api_route("/analysts/{name}/enable", methods=_BOTH)
def enable(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.check_made(service, name)
    words = ("They have the shares of before, and need a new key, or sign in at the provider.",)
    question = Question("Enable the analyst", (("Analyst", name),), words)

    def do(_: Typed) -> Response:
        changes.enable_analyst(service, caller, name)
        return _to(name)

    return carry_out(request, caller, Change(f"Enable {name}", "", _back(name)), form, lambda _: question, do)


@router.api_route("/analysts/{name}/shares/{dataset}", methods=_BOTH)
def share(request: Request, service: Served, caller: Holder, form: Form, name: str, dataset: str) -> Response:
    has = changes.check_changeable_share(service, name, dataset)
    total = service.catalog.named(dataset).settings
    change = Change(
        f"{'Change' if has else 'Give'} a share of {dataset}",
        f"What {name} may spend of {dataset}, whose whole budget is epsilon {number(total.epsilon)} and delta "
        f"{number(total.delta)}. A share is a limit, not a reservation.",
        _back(name),
        (
            FormField("epsilon", "Epsilon", kind="decimal", value=number(has.epsilon) if has else ""),
            FormField("delta", "Delta", "such as 1e-6, or 0", value=number(has.delta) if has else "0"),
            FormField(
                "reason",
                "Reason",
                "One line for the audit log; needed when a share is raised.",
                required=False,
            ),
        ),
    )

    def ask(typed: Typed) -> Question:
        wanted = _share(typed)
        changes.check_new_share(service, name, dataset, wanted, typed["reason"])
        before = (("Until now", _told(has)),) if has else ()
        reason = (("Reason", typed["reason"]),) if typed["reason"] else ()
        facts = (("Analyst", name), ("Data set", dataset), ("Share", _told(wanted)), *before, *reason)
        return Question("Give this share", facts, (_together(service, name, dataset, wanted),))

    def do(typed: Typed) -> Response:
        changes.give_share(service, caller, name, dataset, _share(typed), typed["reason"])
        return _to(name)

    return carry_out(request, caller, change, form, ask, do)


@router.api_route("/analysts/{name}/shares/{dataset}/withdraw", methods=_BOTH)
def withdraw(
    request: Request, service: Served, caller: Holder, form: Form, name: str, dataset: str
) -> Response:
    changes.check_changeable_share(service, name, dataset)
    change = Change(f"Withdraw the share of {dataset}", "", _back(name))
    question = Question(
        "Withdraw the share",
        (("Analyst", name), ("Data set", dataset)),
        (
            f"{dataset} does not exist for {name} any more, and neither do the results that they have of it here.",
            "What waits ends, unpaid. What they have spent stays spent. A share that is given again brings all back.",
        ),
    )

    def do(_: Typed) -> Response:
        changes.withdraw_share(service, caller, name, dataset)
        return _to(name)

    return carry_out(request, caller, change, form, lambda _: question, do)


def _share(typed: Typed) -> Share:
    return Share(epsilon=number_in(typed, "epsilon"), delta=number_in(typed, "delta"))


def _told(share: Share) -> str:
    return f"epsilon {number(share.epsilon)}, delta {number(share.delta)}"


def _together(service: Service, name: str, dataset: str, wanted: Share) -> str:
    """What all shares come to, which may be more than there is."""
    owner = service.catalog.owner
    others = [
        shares[dataset].epsilon
        for analyst, shares in owner.analysts.items()
        if analyst != name and dataset in shares
    ]
    whole, together = owner.datasets[dataset].epsilon, sum(others) + wanted.epsilon
    said = f"All shares of {dataset} then come to epsilon {number(together)} of {number(whole)}."
    beyond = "That is more than the total, which holds anyway: whoever asks first is served first."
    return f"{said} {beyond}" if together > whole else said


def _back(name: str) -> tuple[str, str]:
    return f"/analysts/{name}", name


def _to(name: str) -> Response:
    return RedirectResponse(f"/analysts/{name}", 303)
