"""What an analyst chooses on the training form: the form of release (its field is ``face``), learner, epsilon, delta.

Also the checks that other forms share: numbers, the form's token, and errors under the field that they are about.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from privlearn.budget.statement import Share
from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import SessionMechanism
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE, OPEN_SESSION, SessionFields
from privlearn.server.pages.formatting import number_below


@dataclass(frozen=True)
class FormOfRelease:
    """A way to get a model; ``kind`` and ``mechanism`` belong to the request for training."""

    name: str
    title: str
    text: str
    kind: str
    mechanism: SessionMechanism = "model"

    def fields(self, learner: str) -> dict[str, JsonValue]:
        """Return the fields of the request for this learner."""
        return {"learner": learner, "mechanism": self.mechanism}


_ALL = (
    FormOfRelease(
        "session",
        "Ask here",
        OPEN_SESSION.about,
        kind=OPEN_SESSION.name,
    ),
    FormOfRelease(
        "release",
        "Take a model away",
        GIVE_OUT_RELEASE.about,
        kind=GIVE_OUT_RELEASE.name,
    ),
    FormOfRelease(
        "points",
        "Take a model away that is made for points of mine",
        "You send public points, and the model is built on them; for kernel machines, any kernel.",
        kind=GIVE_OUT_RELEASE.name,
    ),
    FormOfRelease(
        "machine",
        "Ask an exact kernel machine here",
        OPEN_SESSION.describe(SessionFields(mechanism="function_release")),
        kind=OPEN_SESSION.name,
        mechanism="function_release",
    ),
)
FORMS_OF_RELEASE = {face.name: face for face in _ALL}


FIELDS = ("face", "learner", "epsilon", "delta")
_FIELDS_WITH_ERRORS = (*FIELDS, "note", "purpose", "legal_basis")
_ONCE = re.compile("[0-9a-f]{32}")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A number as people write it: `float` would also accept 1_0 (as 10) and digits of other scripts."""
_USUAL_EPSILON = 0.5
_USUAL_DELTA = 1e-6


@dataclass(frozen=True)
class Choices:
    """The values of the form as they were typed.

    ``face`` is a key of `FORMS_OF_RELEASE`. ``once`` is a token of the form that stays in its address: pressing
    twice, reloading, or going back and pressing again returns the training that was charged already.
    """

    face: str
    learner: str
    epsilon: str
    delta: str
    once: str

    @classmethod
    def of(cls, typed: Mapping[str, str], offered: OfferedDataSet, share: Share) -> Choices:
        """Return the typed values, with defaults for empty fields."""
        left = share.left
        usual = {
            "face": next(iter(FORMS_OF_RELEASE)),
            "learner": next(iter(offered.learners)),
            "epsilon": number_below(min(left.epsilon, _USUAL_EPSILON) or _USUAL_EPSILON),
            "delta": number_below(min(left.delta, _USUAL_DELTA)),
        }
        chosen = {name: typed.get(name) or usual[name] for name in FIELDS}
        once = typed.get("once", "")
        return cls(**chosen, once=once if is_form_token(once) else new_form_token())

    def meaning(self, neighbours: str) -> tuple[FormOfRelease | None, Guarantee | None, dict[str, str]]:
        """Return the form of release, the guarantee, and errors by field."""
        typed = {name: getattr(self, name) for name in ("epsilon", "delta")}
        unreadable = [name for name, text in typed.items() if not NUMBER.fullmatch(text)]
        errors = dict.fromkeys(unreadable, "This is not a number. Write it like 0.5 or 1e-6.")
        guarantee = None
        if not errors:
            try:
                guarantee = Guarantee(float(self.epsilon), float(self.delta), neighbours)
            except InvalidParameter as error:
                errors |= errors_by_field(error)
        if self.face not in FORMS_OF_RELEASE:
            errors["face"] = "Choose one of these."
        return FORMS_OF_RELEASE.get(self.face), guarantee, errors


def new_form_token() -> str:
    """Return a new value for ``once``."""
    return secrets.token_hex(16)


def is_form_token(text: str) -> bool:
    """Return whether the text has the form of a token: it is stored with the job, and browsers can send anything."""
    return _ONCE.fullmatch(text) is not None


def check_form_token(text: str) -> str:
    """Return the token of a form that was sent; refuse a form that is not from this server."""
    if not is_form_token(text):
        raise InvalidParameter(
            "this form is not from this server. Open the page again, check it, then press the button."
        )
    return text


def number_in(typed: Mapping[str, str], name: str) -> float:
    """Return the number that was typed into a field."""
    if not NUMBER.fullmatch(typed[name]):
        raise InvalidParameter(f"{name}: this is not a number. Write it like 0.5 or 1e-6")
    return float(typed[name])


def errors_by_field(error: Exception, fields: Collection[str] = _FIELDS_WITH_ERRORS) -> dict[str, str]:
    """Return the error's sentence under the field that it begins with, or under "" for the whole form."""
    first = str(error).partition(" ")[0]
    field = "epsilon" if isinstance(error, BudgetExceeded) else first.rstrip(":")
    if field not in fields:
        return {"": as_sentence(error)}
    return {field: as_sentence(str(error).removeprefix(f"{field}: "))}


def as_sentence(error: Exception | str) -> str:
    text = str(error).replace("legal_basis", "legal basis")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
