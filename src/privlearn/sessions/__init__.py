"""Interactive sessions: predictions for adaptively chosen points under one guarantee, from a durable state.

`interactive.py` has the session, `machines.py` the mechanisms that answer, `opening.py` the charge and the header,
`records.py` the records of answers, `state.py` the two stores of a session's state.
May import mechanisms, release, budget and estimators. Start reading at `InteractivePredictor.decide`.
"""

from privlearn.release.session_certificate import SessionCertificate
from privlearn.sessions.interactive import InteractivePredictor
from privlearn.sessions.records import Answers
from privlearn.sessions.semi_interactive import AnsweredModel, learn_from_answers
from privlearn.sessions.state import LockedSharedState, SharedStore

__all__ = [
    "AnsweredModel", "Answers", "InteractivePredictor", "LockedSharedState", "SessionCertificate", "SharedStore",
    "learn_from_answers",
]  # fmt: skip
