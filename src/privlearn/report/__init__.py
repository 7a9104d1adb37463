"""Papers to go with a release, for people who decide about it: from what the release says, never from rows."""

from privlearn.report import checklist, ethics, model_card, privacy_label, registry
from privlearn.report.facts import Facts
from privlearn.report.paper import FORMATS, PAPERS, Paper, register_paper, write_paper

__all__ = [
    "FORMATS",
    "PAPERS",
    "Facts",
    "Paper",
    "checklist",
    "ethics",
    "model_card",
    "privacy_label",
    "register_paper",
    "registry",
    "write_paper",
]
