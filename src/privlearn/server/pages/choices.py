"""The choices on the training form: form of release (its field is ``face``), learner, epsilon and delta."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from privlearn.budget.statement import Share
from privlearn.data.schema.cell_grammar import NUMBER
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.server.holder.datasets import OfferedDataSet
from privlearn.server.holder.recipes import SessionMechanism
from privlearn.server.job_kinds.training import GIVE_OUT_RELEASE, OPEN_SESSION, SessionFields
from privlearn.server.pages.formatting import number_below
from privlearn.server.pages.page import errors_by_field, is_form_token, new_form_token


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
    FormOfRelease("session", "Ask here", OPEN_SESSION.about, kind=OPEN_SESSION.name),
    FormOfRelease("release", "Take a model away", GIVE_OUT_RELEASE.about, kind=GIVE_OUT_RELEASE.name),
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
FIELDS_WITH_ERRORS = (*FIELDS, "note", "purpose", "legal_basis")
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
        unreadable = [name for name, text in typed.items() if not re.fullmatch(NUMBER, text)]
        errors = dict.fromkeys(unreadable, "This is not a number. Write it like 0.5 or 1e-6.")
        guarantee = None
        if not errors:
            try:
                guarantee = Guarantee(float(self.epsilon), float(self.delta), neighbours)
            except InvalidParameter as error:
                errors |= errors_by_field(error, FIELDS)
        if self.face not in FORMS_OF_RELEASE:
            errors["face"] = "Choose one of these."
        return FORMS_OF_RELEASE.get(self.face), guarantee, errors
