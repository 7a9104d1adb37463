"""The holder's console: pages of analysts, and the forms that change them and their shares."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from privlearn.server.access.keys import list_keys
from privlearn.server.changes import analysts as changes
from privlearn.server.changes import commands
from privlearn.server.holder.dataset_settings import Share
from privlearn.server.http.callers import Served
from privlearn.server.pages.change import (
    Question,
    Typed,
    carry_out,
    change_form,
    command_page,
    confirm,
    number_in,
)
from privlearn.server.pages.formatting import number
from privlearn.server.pages.page import Form, page_router, render
from privlearn.server.pages.signing import Holder
from privlearn.server.service import Service

router = page_router()


@router.get("/analysts")
def list_analysts(request: Request, service: Served, caller: Holder) -> Response:
    analysts = changes.all_analysts(service)
    may_change = service.owner.console.changes
    return render(request, caller, "analysts.html", analysts=analysts, may_change=may_change)


@router.get("/analysts/{name}")
def show_analyst(request: Request, service: Served, caller: Holder, name: str) -> Response:
    return render(
        request,
        caller,
        "analyst.html",
        one=changes.find_analyst(service, name),
        totals={dataset: settings.guarantee for dataset, settings in service.catalog.owner.datasets.items()},
        keys=[key for key in list_keys(service.store) if key.caller.analyst == name],
        may_change=service.owner.console.changes,
    )


@command_page(router, commands.ADD_ANALYST)
def add(request: Request, service: Served, caller: Holder, form: Form) -> Response:
    change = change_form(commands.ADD_ANALYST, ("/analysts", "Analysts"))

    def ask(typed: Typed) -> Question:
        changes.check_new_analyst(service, typed["name"])
        return Question.about(
            commands.ADD_ANALYST, (("Analyst", typed["name"]), ("Shown as", typed["title"]))
        )

    def do(typed: Typed) -> Response:
        changes.add_analyst(service, caller, typed["name"], typed["title"])
        return RedirectResponse(f"/analysts/{typed['name']}", 303)

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.RENAME_ANALYST)
def rename(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    before = changes.check_editable_analyst(service, name).title
    lead = f"How pages show {name}. The name in addresses, in the ledger and in the log stays."
    fields = (replace(commands.TITLE, value=before),)
    change = change_form(
        commands.RENAME_ANALYST, _back(name), f"Change the name shown for {name}", lead, fields
    )

    def ask(typed: Typed) -> Question:
        return Question.about(commands.RENAME_ANALYST, (("Shown as", typed["title"]), ("Until now", before)))

    def do(typed: Typed) -> None:
        changes.rename_analyst(service, caller, name, typed["title"])

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.DISABLE_ANALYST)
def disable(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.check_editable_analyst(service, name)
    change = change_form(commands.DISABLE_ANALYST, _back(name), f"Disable {name}")
    question = Question.about(commands.DISABLE_ANALYST, (("Analyst", name),))
    return confirm(
        request, caller, form, change, question, partial(changes.disable_analyst, service, caller, name)
    )


@command_page(router, commands.ENABLE_ANALYST)
def enable(request: Request, service: Served, caller: Holder, form: Form, name: str) -> Response:
    changes.check_editable_analyst(service, name)
    change = change_form(commands.ENABLE_ANALYST, _back(name), f"Enable {name}")
    question = Question.about(commands.ENABLE_ANALYST, (("Analyst", name),))
    return confirm(
        request, caller, form, change, question, partial(changes.enable_analyst, service, caller, name)
    )


@command_page(router, commands.GIVE_SHARE)
def share(request: Request, service: Served, caller: Holder, form: Form, name: str, dataset: str) -> Response:
    before = changes.check_changeable_share(service, name, dataset)
    total = service.catalog.find(dataset).settings
    epsilon, delta, reason = commands.GIVE_SHARE.fields
    if before:
        epsilon, delta = (
            replace(epsilon, value=number(before.epsilon)),
            replace(delta, value=number(before.delta)),
        )
    lead = (
        f"What {name} may spend of {dataset}, whose whole budget is epsilon {number(total.epsilon)} and delta "
        f"{number(total.delta)}. {commands.GIVE_SHARE.lead}"
    )
    title = f"{'Change' if before else 'Give'} a share of {dataset}"
    change = change_form(commands.GIVE_SHARE, _back(name), title, lead, (epsilon, delta, reason))

    def ask(typed: Typed) -> Question:
        requested = _share(typed)
        changes.check_new_share(service, name, dataset, requested, typed["reason"])
        summary = [("Analyst", name), ("Data set", dataset), ("Share", _describe(requested))]
        summary += [("Until now", _describe(before))] if before else []
        summary += [("Reason", typed["reason"])] if typed["reason"] else []
        return Question.about(
            commands.GIVE_SHARE, tuple(summary), _sum_of_shares(service, name, dataset, requested)
        )

    def do(typed: Typed) -> None:
        changes.give_share(service, caller, name, dataset, _share(typed), typed["reason"])

    return carry_out(request, caller, change, form, ask, do)


@command_page(router, commands.WITHDRAW_SHARE)
def withdraw(
    request: Request, service: Served, caller: Holder, form: Form, name: str, dataset: str
) -> Response:
    changes.check_changeable_share(service, name, dataset)
    change = change_form(commands.WITHDRAW_SHARE, _back(name), f"Withdraw the share of {dataset}")
    question = Question.about(commands.WITHDRAW_SHARE, (("Analyst", name), ("Data set", dataset)))
    return confirm(
        request,
        caller,
        form,
        change,
        question,
        partial(changes.withdraw_share, service, caller, name, dataset),
    )


def _share(typed: Typed) -> Share:
    return Share(epsilon=number_in(typed, "epsilon"), delta=number_in(typed, "delta"))


def _describe(share: Share) -> str:
    return f"epsilon {number(share.epsilon)}, delta {number(share.delta)}"


def _sum_of_shares(service: Service, name: str, dataset: str, requested: Share) -> str:
    """Return a sentence on the sum of all shares, which may exceed the total."""
    owner = service.catalog.owner
    others = [
        shares[dataset].epsilon
        for analyst, shares in owner.analysts.items()
        if analyst != name and dataset in shares
    ]
    total, together = owner.datasets[dataset].epsilon, sum(others) + requested.epsilon
    text = f"All shares of {dataset} then come to epsilon {number(together)} of {number(total)}."
    excess = "That is more than the total, which still holds: requests are served in order."
    return f"{text} {excess}" if together > total else text


def _back(name: str) -> tuple[str, str]:
    return f"/analysts/{name}", name
