"""The ways to get answers, as an analyst chooses among them."""

from __future__ import annotations

from dataclasses import dataclass

from privlearn.service.requests import Kind, Mechanism


@dataclass(frozen=True)
class Face:
    """One way; ``kind`` and ``mechanism`` are what a training is asked with."""

    name: str
    title: str
    text: str
    kind: Kind
    mechanism: Mechanism = "model"


_ALL = (
    Face(
        "session",
        "Ask here",
        "A session: the model stays on this server and answers any number of points.",
        kind="session",
    ),
    Face(
        "release",
        "Take a model away",
        "A release: a model file with a certificate, to use anywhere.",
        kind="release",
    ),
    Face(
        "points",
        "Take a model away that is made for points of mine",
        "You send public points, and the model is built on them; for kernel machines, any kernel.",
        kind="release",
    ),
    Face(
        "machine",
        "Ask an exact kernel machine here",
        "A session that answers each new point with noise; any kernel.",
        kind="session",
        mechanism="function_release",
    ),
)
FACES = {face.name: face for face in _ALL}
