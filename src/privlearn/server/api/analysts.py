"""Analysts, their shares and their keys, for the holder."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Response
from pydantic import Field

from privlearn.server.access.keys import KeyInfo, Role, list_keys
from privlearn.server.api import schemas
from privlearn.server.api.schemas import Answer, DataSetName, Delta, Epsilon, with_example
from privlearn.server.changes import analysts as changes
from privlearn.server.changes import commands
from privlearn.server.changes import keys as key_changes
from privlearn.server.changes.analysts import AnalystView
from privlearn.server.changes.change import one_line
from privlearn.server.changes.keys import IssuedRole, end_of_day
from privlearn.server.holder.dataset_settings import Share
from privlearn.server.http.callers import ID, Holder, Served, command_route, json_body
from privlearn.server.http.problems import problem_responses

router = APIRouter(prefix="/v1", tags=["people"])

AnalystName = Annotated[str, Path(max_length=64, description="Name of an analyst.", examples=["alice"])]
KeyId = Annotated[
    str, Path(pattern=ID, description="Id of a key, from the list of keys.", examples=["1f2e3d4c5b6a7988"])
]
Day = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description=f"{commands.EXPIRES.label}. {commands.EXPIRES.hint}"),
]


class NewAnalyst(schemas.Body):
    """A person who may be given shares and keys."""

    model_config = with_example({"name": "carol", "title": "Carol Ng, epidemiology"})

    name: str = commands.NAME.in_body(max_length=64)
    title: str = commands.TITLE.in_body()


class AnalystChange(schemas.Body):
    """Fields to change; omitted fields keep their value."""

    model_config = with_example({"disabled": True})

    title: str | None = commands.TITLE.in_body(default=None)
    disabled: bool | None = Field(
        default=None, description="True revokes all keys and ends waiting jobs; false permits requests again."
    )


class ShareRequest(schemas.Body):
    """The part of a data set's budget that an analyst may spend."""

    model_config = with_example(
        {"epsilon": 1.0, "delta": 1e-7, "reason": "a second study, approved 2026-11-02"}
    )

    epsilon: Epsilon
    delta: Delta = 0.0
    reason: str = commands.SHARE_REASON.in_body()


class ShareOfAnalyst(Answer):
    """An analyst's limit within a budget; nothing is reserved for it."""

    epsilon: float = Field(description="Epsilon.")
    delta: float = Field(description="Delta.")
    declared: bool = Field(description="Whether it is declared in owner.toml, and can be changed only there.")


class AnalystAnswer(Answer):
    """An analyst."""

    model_config = with_example(
        {
            "name": "carol",
            "title": "Carol Ng, epidemiology",
            "declared": False,
            "disabled": False,
            "shares": {"census": {"epsilon": 1.0, "delta": 1e-7, "declared": False}},
        }
    )

    name: str = Field(description="Name in paths, ledger and log.")
    title: str = Field(description="Display name.")
    declared: bool = Field(description="Whether it is declared in owner.toml, and can be changed only there.")
    disabled: bool = Field(description="Whether all of their keys are refused.")
    shares: dict[str, ShareOfAnalyst] = Field(description="Their shares, by data set.")

    @classmethod
    def from_view(cls, view: AnalystView) -> Self:
        shares = {
            name: {"epsilon": share.epsilon, "delta": share.delta, "declared": name in view.fixed}
            for name, share in view.shares.items()
        }
        values = {name: getattr(view, name) for name in ("name", "title", "declared")}
        return cls.of({**values, "disabled": bool(view.disabled), "shares": shares})


class NewKey(schemas.Body):
    """A key for an analyst, or for a program that monitors the server."""

    model_config = with_example({"analyst": "carol", "expires": "2027-01-31"})

    role: IssuedRole = Field(
        default="analyst", description="The holder's own keys are created only in the shell."
    )
    analyst: str = Field(default="", max_length=64, description="The analyst; empty for a monitor.")
    datasets: list[str] | None = Field(
        default=None, max_length=100, description="Restrict it to these data sets; null: all with a share."
    )
    expires: Day


class Rotation(schemas.Body):
    """A new key that replaces an old one."""

    model_config = with_example({"expires": "2027-01-31", "overlap_hours": 24.0})

    expires: Day
    overlap_hours: float = Field(
        default=24.0,
        ge=0,
        le=key_changes.MAX_OVERLAP_HOURS,
        description=f"{commands.OVERLAP.label}. {commands.OVERLAP.hint}",
    )


class NewKeyAnswer(Answer):
    """A new key, shown only once."""

    model_config = with_example({"id": "1f2e3d4c5b6a7988", "key": "pl_1f2e3d4c5b6a7988_..."})

    id: str = Field(description="Id in the list of keys.")
    key: str = Field(description="The key; the server stores only its hash.")

    @classmethod
    def from_key(cls, key: str) -> Self:
        return cls(id=key.split("_")[1], key=key)


class KeyAnswer(Answer):
    """A key without its secret."""

    model_config = with_example(
        {
            "id": "1f2e3d4c5b6a7988",
            "role": "analyst",
            "analyst": "carol",
            "datasets": None,
            "created": "2026-11-16T09:00:00.000000+00:00",
            "expires": "2027-02-01T00:00:00.000000+00:00",
            "revoked": "",
            "valid": True,
        }
    )

    id: str = Field(description="Id of the key.")
    role: Role = Field(description="Its role.")
    analyst: str = Field(description="The analyst; empty for the holder and a monitor.")
    datasets: list[str] | None = Field(
        description="The data sets that it is restricted to; null: all with a share."
    )
    created: str = Field(description="Time of creation (UTC).")
    expires: str = Field(description="Time of expiry (UTC); empty: never.")
    revoked: str = Field(description="Time of revocation (UTC); empty: not revoked.")
    valid: bool = Field(description="Whether it is valid now.")

    @classmethod
    def from_view(cls, view: KeyInfo) -> Self:
        only = None if view.caller.datasets is None else sorted(view.caller.datasets)
        values = {name: getattr(view, name) for name in ("created", "expires", "revoked")}
        whose = {"id": view.caller.key_id, "role": view.caller.role, "analyst": view.caller.analyst}
        return cls.of({**whose, **values, "datasets": only, "valid": view.is_valid})


@router.get("/analysts", summary="List analysts", responses=problem_responses(403))
def list_analysts(service: Served, _: Holder) -> list[AnalystAnswer]:
    """List all analysts; those declared in owner.toml come first. Needs a holder's key."""
    return [AnalystAnswer.from_view(view) for view in changes.all_analysts(service)]


@command_route(router, commands.ADD_ANALYST, NewAnalyst, status_code=201)
def add_analyst(
    service: Served, holder: Holder, body: Annotated[NewAnalyst, Depends(json_body(NewAnalyst))]
) -> AnalystAnswer:
    """Add an analyst, who sees nothing without a share of a data set and a key. Needs a holder's key."""
    changes.add_analyst(service, holder, body.name, body.title)
    return AnalystAnswer.from_view(changes.find_analyst(service, body.name))


@command_route(router, commands.RENAME_ANALYST, AnalystChange, summary="Rename, disable or enable an analyst")
def change_analyst(
    service: Served,
    holder: Holder,
    name: AnalystName,
    body: Annotated[AnalystChange, Depends(json_body(AnalystChange))],
) -> AnalystAnswer:
    """Only analysts added in the console can be changed; owner.toml takes precedence. Needs a holder's key."""
    title = None if body.title is None else one_line(body.title, "title")
    if body.disabled is not None:  # first, because it may be refused
        act = changes.disable_analyst if body.disabled else changes.enable_analyst
        act(service, holder, name)
    if title is not None:
        changes.rename_analyst(service, holder, name, title)
    return AnalystAnswer.from_view(changes.find_analyst(service, name))


@command_route(router, commands.GIVE_SHARE, ShareRequest)
def give_share(
    service: Served,
    holder: Holder,
    name: AnalystName,
    dataset: DataSetName,
    body: Annotated[ShareRequest, Depends(json_body(ShareRequest))],
) -> AnalystAnswer:
    """Set what the analyst may spend of the data set from now on, within its total. Needs a holder's key."""
    share = Share(epsilon=body.epsilon, delta=body.delta)
    changes.give_share(service, holder, name, dataset, share, body.reason)
    return AnalystAnswer.from_view(changes.find_analyst(service, name))


@command_route(router, commands.WITHDRAW_SHARE)
def withdraw_share(service: Served, holder: Holder, name: AnalystName, dataset: DataSetName) -> Response:
    """Hide the data set from the analyst; what was spent stays spent. Needs a holder's key."""
    changes.withdraw_share(service, holder, name, dataset)
    return Response(status_code=204)


@router.get("/keys", summary="List keys", responses=problem_responses(403))
def list_all_keys(service: Served, _: Holder) -> list[KeyAnswer]:
    """List every key that was ever issued, without its secret, oldest first. Needs a holder's key."""
    return [KeyAnswer.from_view(view) for view in list_keys(service.store)]


@command_route(router, commands.ISSUE_KEY, NewKey, status_code=201)
def issue_key(
    service: Served, holder: Holder, body: Annotated[NewKey, Depends(json_body(NewKey))]
) -> NewKeyAnswer:
    """Issue a key, shown only once. If the answer is lost, revoke the key and issue another. Needs a holder's key."""
    ends = end_of_day(body.expires)
    key = key_changes.issue_key(service, holder, body.role, body.analyst, body.datasets, ends)
    return NewKeyAnswer.from_key(key)


@command_route(router, commands.ROTATE_KEY, Rotation, status_code=201)
def rotate_key(
    service: Served, holder: Holder, id: KeyId, body: Annotated[Rotation, Depends(json_body(Rotation))]
) -> NewKeyAnswer:
    """Issue a key with the same rights, shown only once; the old key ends after the overlap. Needs a holder's key."""
    ends = end_of_day(body.expires)
    return NewKeyAnswer.from_key(key_changes.rotate_key(service, holder, id, body.overlap_hours, ends))


@command_route(router, commands.REVOKE_KEY)
def revoke_key(service: Served, holder: Holder, id: KeyId) -> Response:
    """Revoke a key permanently. Waiting jobs that it requested end, free of charge. Needs a different holder's key."""
    key_changes.revoke_key(service, holder, id)
    return Response(status_code=204)
