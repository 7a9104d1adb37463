"""Reports about a release for the people who decide about it, written from the release and never from rows.

`properties.py` collects what the files state, `report.py` writes reports as Markdown, HTML or JSON, and each other
module has one or two reports. Start with `model_card.py`. May import what `export` may import.
"""

from privlearn.export.report import checklist, edpb, ethics, model_card, registry, sacro
from privlearn.export.report.ethics import EstimatesPage
from privlearn.export.report.properties import OPEN, EstimatesProperties, ReleaseProperties
from privlearn.export.report.report import (
    FORMATS,
    REPORTS,
    Report,
    register_report,
    render_report,
    write_report,
)

__all__ = [
    "FORMATS", "OPEN", "REPORTS", "EstimatesPage", "EstimatesProperties", "ReleaseProperties", "Report", "checklist",
    "edpb", "ethics", "model_card", "register_report", "registry", "render_report", "sacro", "write_report",
]  # fmt: skip
