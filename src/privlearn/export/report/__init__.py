"""Reports about a release for the people who decide about it, written from the release and never from rows.

`properties.py` collects what the files state, `report.py` writes reports as Markdown, HTML or JSON, and each other
module is one report. Start with `privacy_label.py`, the shortest.
"""

from privlearn.export.report import checklist, ethics, model_card, privacy_label, registry
from privlearn.export.report.properties import ReleaseProperties
from privlearn.export.report.report import FORMATS, REPORTS, Report, register_report, write_report

__all__ = [
    "FORMATS",
    "REPORTS",
    "ReleaseProperties",
    "Report",
    "checklist",
    "ethics",
    "model_card",
    "privacy_label",
    "register_report",
    "registry",
    "write_report",
]
