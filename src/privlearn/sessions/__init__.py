"""The interactive face: durable state behind predict()."""

from privlearn.sessions.answers import Answers
from privlearn.sessions.certificate import SessionCertificate
from privlearn.sessions.interactive import InteractivePredictor

__all__ = ["Answers", "InteractivePredictor", "SessionCertificate"]
