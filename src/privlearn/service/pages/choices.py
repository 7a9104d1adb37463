"""What an analyst chooses on a form: the form of release, a learner, a price."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from privlearn.errors import BudgetExceeded, InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.ledger.statement import Share
from privlearn.service.holder.datasets import OfferedDataSet
from privlearn.service.job_kinds.release import GIVE_OUT_RELEASE
from privlearn.service.job_kinds.session import OPEN_SESSION, SessionFields
from privlearn.service.jobs.recipes import SessionMechanism
from privlearn.service.pages.formatting import number_below


@dataclass(frozen=True)
class FormOfRelease:
    """One way; ``kind`` and ``mechanism`` are what a training is asked with."""

    name: str
    title: str
    text: str
    kind: str
    mechanism: SessionMechanism = "model"

    def fields(self, learner: str) -> dict[str, JsonValue]:
        """What its kind is asked with."""
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
_PLACES = (*FIELDS, "note", "purpose", "legal_basis")
_ONCE = re.compile("[0-9a-f]{32}")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
"""A price as people write it: `float` would take 1_0, and digits of other scripts, for another price."""
_USUAL_EPSILON = 0.5
_USUAL_DELTA = 1e-6


@dataclass(frozen=True)
class Choices:
    """What the form says, as it was typed.

    ``once`` is new for each form that is begun and stays with its address: whoever presses twice, reloads, or goes back
    and presses again gets the training that is paid already.
    """

    face: str
    learner: str
    epsilon: str
    delta: str
    once: str

    @classmethod
    def of(cls, typed: Mapping[str, str], offered: OfferedDataSet, share: Share) -> Choices:
        """With something sensible wherever nothing was typed."""
        left = share.left
        usual = {
            "face": next(iter(FORMS_OF_RELEASE)),
            "learner": next(iter(offered.learners)),
            "epsilon": number_below(min(left.epsilon, _USUAL_EPSILON) or _USUAL_EPSILON),
            "delta": number_below(min(left.delta, _USUAL_DELTA)),
        }
        chosen = {name: typed.get(name) or usual[name] for name in FIELDS}
        once = typed.get("once", "")
        return cls(**chosen, once=once if is_once(once) else fresh())

    def meaning(self, neighbours: str) -> tuple[FormOfRelease | None, Guarantee | None, dict[str, str]]:
        """Which face and promise they are, and what is wrong, by field."""
        typed = {name: getattr(self, name) for name in ("epsilon", "delta")}
        unreadable = [name for name, text in typed.items() if not NUMBER.fullmatch(text)]
        errors = dict.fromkeys(unreadable, "This is not a number. Write it like 0.5 or 1e-6.")
        guarantee = None
        if not errors:
            try:
                guarantee = Guarantee(float(self.epsilon), float(self.delta), neighbours)
            except InvalidParameter as error:
                errors |= placed(error)
        if self.face not in FORMS_OF_RELEASE:
            errors["face"] = "Choose one of these."
        return FORMS_OF_RELEASE.get(self.face), guarantee, errors


def fresh() -> str:
    """A new ``once``."""
    return secrets.token_hex(16)


def is_once(text: str) -> bool:
    """Whether it can have been made by `fresh`: it is stored with the job, and whoever fills in a form can send any."""
    return _ONCE.fullmatch(text) is not None


def placed(error: Exception) -> dict[str, str]:
    """An error's sentence under the field it belongs to, or under none."""
    text = str(error)
    field = "epsilon" if isinstance(error, BudgetExceeded) else text.partition(" ")[0]
    return {field if field in _PLACES else "": sentence(error)}


def sentence(error: Exception) -> str:
    text = str(error).replace("legal_basis", "legal basis")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
