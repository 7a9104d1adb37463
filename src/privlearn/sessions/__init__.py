"""The interactive face: durable state behind predict()."""

from privlearn.release.session_certificate import SessionCertificate
from privlearn.sessions.durable import Answers
from privlearn.sessions.interactive import InteractivePredictor
from privlearn.sessions.shared import SharedStore

__all__ = ["Answers", "InteractivePredictor", "SessionCertificate", "SharedStore"]
