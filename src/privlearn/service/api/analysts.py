"""Analysts, their shares and their keys, for the holder."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Response
from pydantic import Field

from privlearn.service.access.keys import KeyInfo, Role, list_keys
from privlearn.service.api import schemas
from privlearn.service.api.schemas import Answer, DataSetName, Delta, Epsilon, with_example
from privlearn.service.changes import analysts as changes
from privlearn.service.changes import keys as key_changes
from privlearn.service.changes.analysts import AnalystView
from privlearn.service.changes.change import one_line
from privlearn.service.changes.keys import IssuedRole, end_of_day
from privlearn.service.holder.settings import Share
from privlearn.service.http.callers import ID, Holder, Served, content_of, described, json_body
from privlearn.service.http.media_types import JSON
from privlearn.service.http.problems import refused

router = APIRouter(prefix="/v1", tags=["people"])

AnalystName = Annotated[str, Path(max_length=64, description="Name of an analyst.", examples=["alice"])]
KeyId = Annotated[
    str, Path(pattern=ID, description="Id of a key, as the list has it.", examples=["1f2e3d4c5b6a7988"])
]
Day = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d{2}-\d{2}$", description="Last day on which it is valid (UTC), such as 2027-01-31."
    ),
]
_BODY = (400, 403, 408, 413, 415, 422)


class NewAnalyst(schemas.Request):
    """Somebody who may be given shares and keys."""

    model_config = with_example({"name": "carol", "title": "Carol Ng, epidemiology"})

    name: str = Field(
        max_length=64, description="In addresses, in the ledger and in the log: letters, digits, - and _."
    )
    title: str = Field(default="", max_length=200, description="For people to read.")


class AnalystChange(schemas.Request):
    """What shall be otherwise; what is left out stays."""

    model_config = with_example({"disabled": True})

    title: str | None = Field(default=None, max_length=200, description="For people to read.")
    disabled: bool | None = Field(
        default=None, description="True revokes all keys and ends what waits; false lets them ask again."
    )


class ShareRequest(schemas.Request):
    """What an analyst may spend of a data set."""

    model_config = with_example(
        {"epsilon": 1.0, "delta": 1e-7, "reason": "a second study, approved 2026-11-02"}
    )

    epsilon: Epsilon
    delta: Delta = 0.0
    reason: str = Field(
        default="", max_length=200, description="For the audit log; needed when a share is raised."
    )


class ShareOfAnalyst(Answer):
    """A limit, and no reservation."""

    epsilon: float = Field(description="Its epsilon.")
    delta: float = Field(description="Its delta.")
    declared: bool = Field(description="In owner.toml, where alone it can be changed.")


class AnalystAnswer(Answer):
    """Somebody who may ask."""

    model_config = with_example(
        {
            "name": "carol",
            "title": "Carol Ng, epidemiology",
            "declared": False,
            "disabled": False,
            "shares": {"census": {"epsilon": 1.0, "delta": 1e-7, "declared": False}},
        }
    )

    name: str = Field(description="In addresses, in the ledger and in the log.")
    title: str = Field(description="For people to read.")
    declared: bool = Field(description="In owner.toml, where alone it can be changed.")
    disabled: bool = Field(description="Whether no key of theirs opens anything.")
    shares: dict[str, ShareOfAnalyst] = Field(description="What they may spend, by data set.")

    @classmethod
    def seen(cls, found: AnalystView) -> Self:
        shares = {
            name: {"epsilon": share.epsilon, "delta": share.delta, "declared": name in found.fixed}
            for name, share in found.shares.items()
        }
        told = {name: getattr(found, name) for name in ("name", "title", "declared")}
        return cls.of({**told, "disabled": bool(found.disabled), "shares": shares})


class NewKey(schemas.Request):
    """A key for an analyst, or for a program that watches the server."""

    model_config = with_example({"analyst": "carol", "expires": "2027-01-31"})

    role: IssuedRole = Field(
        default="analyst", description="The holder's own keys are made in the shell alone."
    )
    analyst: str = Field(default="", max_length=64, description="Whose it is; empty for a monitor's.")
    datasets: list[str] | None = Field(
        default=None, max_length=100, description="The only data sets it is good for; null: all with a share."
    )
    expires: Day


class Rotation(schemas.Request):
    """A new key in the place of an old one."""

    model_config = with_example({"expires": "2027-01-31", "overlap_hours": 24.0})

    expires: Day
    overlap_hours: float = Field(
        default=24.0,
        ge=0,
        le=key_changes.MOST_OVERLAP_HOURS,
        description="For so long the old one stays valid; 0: it ends at once.",
    )


class NewKeyAnswer(Answer):
    """A key, shown this once."""

    model_config = with_example(
        {"id": "1f2e3d4c5b6a7988", "key": "pl_1f2e3d4c5b6a7988_..."},
    )

    id: str = Field(description="As the list has it.")
    key: str = Field(description="The key itself: only its hash is stored.")

    @classmethod
    def shown(cls, key: str) -> Self:
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

    id: str = Field(description="Its name.")
    role: Role = Field(description="What it may do.")
    analyst: str = Field(description="Whose it is; empty for the holder and the monitor.")
    datasets: list[str] | None = Field(
        description="The only data sets it is good for; null: all with a share."
    )
    created: str = Field(description="When it was made (UTC).")
    expires: str = Field(description="When it ends (UTC); empty: never.")
    revoked: str = Field(description="When it was revoked (UTC); empty: it was not.")
    valid: bool = Field(description="Whether it opens anything now.")

    @classmethod
    def seen(cls, found: KeyInfo) -> Self:
        only = None if found.caller.datasets is None else sorted(found.caller.datasets)
        told = {name: getattr(found, name) for name in ("created", "expires", "revoked")}
        whose = {"id": found.caller.key_id, "role": found.caller.role, "analyst": found.caller.analyst}
        return cls.of({**whose, **told, "datasets": only, "valid": found.is_valid})


@router.get("/analysts", summary="List analysts", responses=refused(403))
def list_analysts(service: Served, _: Holder) -> list[AnalystAnswer]:
    """Those of owner.toml first. Needs a holder's key."""
    return [AnalystAnswer.seen(found) for found in changes.all_analysts(service)]


@router.post(
    "/analysts",
    status_code=201,
    summary="Add an analyst",
    openapi_extra=described({JSON: content_of(NewAnalyst)}),
    responses=refused(*_BODY, 409),
)
def add_analyst(
    service: Served, holder: Holder, asked: Annotated[NewAnalyst, Depends(json_body(NewAnalyst))]
) -> AnalystAnswer:
    """They see nothing until they have a share of a data set and a key. Needs a holder's key."""
    changes.add_analyst(service, holder, asked.name, asked.title)
    return AnalystAnswer.seen(changes.analyst_named(service, asked.name))


@router.patch(
    "/analysts/{name}",
    summary="Rename, disable or enable an analyst",
    openapi_extra=described({JSON: content_of(AnalystChange)}),
    responses=refused(*_BODY, 404, 409),
)
def change_analyst(
    service: Served,
    holder: Holder,
    name: AnalystName,
    asked: Annotated[AnalystChange, Depends(json_body(AnalystChange))],
) -> AnalystAnswer:
    """Only of one that was made in the console: owner.toml wins. Needs a holder's key."""
    title = None if asked.title is None else one_line(asked.title, "title")
    if asked.disabled is not None:  # first: it may be refused, and then nothing is changed
        act = changes.disable_analyst if asked.disabled else changes.enable_analyst
        act(service, holder, name)
    if title is not None:
        changes.rename_analyst(service, holder, name, title)
    return AnalystAnswer.seen(changes.analyst_named(service, name))


@router.put(
    "/analysts/{name}/shares/{dataset}",
    summary="Give a share",
    openapi_extra=described({JSON: content_of(ShareRequest)}),
    responses=refused(*_BODY, 404, 409),
)
def give_share(
    service: Served,
    holder: Holder,
    name: AnalystName,
    dataset: DataSetName,
    asked: Annotated[ShareRequest, Depends(json_body(ShareRequest))],
) -> AnalystAnswer:
    """What the analyst may spend of the data set from now on; its total holds anyway. Needs a holder's key."""
    share = Share(epsilon=asked.epsilon, delta=asked.delta)
    changes.give_share(service, holder, name, dataset, share, asked.reason)
    return AnalystAnswer.seen(changes.analyst_named(service, name))


@router.delete(
    "/analysts/{name}/shares/{dataset}",
    status_code=204,
    summary="Withdraw a share",
    response_class=Response,
    responses=refused(403, 404, 409, 422),
)
def withdraw_share(service: Served, holder: Holder, name: AnalystName, dataset: DataSetName) -> Response:
    """The data set does not exist for the analyst any more; what was spent stays spent. Needs a holder's key."""
    changes.withdraw_share(service, holder, name, dataset)
    return Response(status_code=204)


@router.get("/keys", summary="List keys", responses=refused(403))
def list_all_keys(service: Served, _: Holder) -> list[KeyAnswer]:
    """Every key that was ever made, without its secret, oldest first. Needs a holder's key."""
    return [KeyAnswer.seen(found) for found in list_keys(service.store)]


@router.post(
    "/keys",
    status_code=201,
    summary="Issue a key",
    openapi_extra=described({JSON: content_of(NewKey)}),
    responses=refused(*_BODY, 404, 409),
)
def issue_key(
    service: Served, holder: Holder, asked: Annotated[NewKey, Depends(json_body(NewKey))]
) -> NewKeyAnswer:
    """Shown this once. If the answer is lost, revoke the key and issue another. Needs a holder's key."""
    ends = end_of_day(asked.expires)
    key = key_changes.issue_key(service, holder, asked.role, asked.analyst, asked.datasets, ends)
    return NewKeyAnswer.shown(key)


@router.post(
    "/keys/{id}/rotation",
    status_code=201,
    summary="Rotate a key",
    openapi_extra=described({JSON: content_of(Rotation)}),
    responses=refused(*_BODY, 404, 409),
)
def rotate_key(
    service: Served, holder: Holder, id: KeyId, asked: Annotated[Rotation, Depends(json_body(Rotation))]
) -> NewKeyAnswer:
    """A new key for the same, shown this once; the old one ends after the overlap. Needs a holder's key."""
    ends = end_of_day(asked.expires)
    return NewKeyAnswer.shown(key_changes.rotate_key(service, holder, id, asked.overlap_hours, ends))


@router.delete(
    "/keys/{id}",
    status_code=204,
    summary="Revoke a key",
    response_class=Response,
    responses=refused(403, 404, 409, 422),
)
def revoke_key(service: Served, holder: Holder, id: KeyId) -> Response:
    """For good; what it asked for and still waits ends, unpaid. Needs another holder's key than this one."""
    key_changes.end(service, holder, id)
    return Response(status_code=204)
