"""The interactive face: durable state behind predict()."""

from privlearn.release.session_certificate import SessionCertificate
from privlearn.sessions.durable import Answers
from privlearn.sessions.interactive import InteractivePredictor
from privlearn.sessions.semi_interactive import AnsweredModel, learn_from_answers
from privlearn.sessions.shared import SharedStore

__all__ = [
    "AnsweredModel",
    "Answers",
    "InteractivePredictor",
    "SessionCertificate",
    "SharedStore",
    "learn_from_answers",
]
