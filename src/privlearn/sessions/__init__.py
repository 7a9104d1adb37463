"""The interactive face: durable state behind predict()."""

from privlearn.release import SessionCertificate
from privlearn.sessions.answers import Answers
from privlearn.sessions.interactive import InteractivePredictor

__all__ = ["Answers", "InteractivePredictor", "SessionCertificate"]
