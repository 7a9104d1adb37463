"""A privacy label: the guarantee on less than a page."""

from __future__ import annotations

from privlearn.export.report.properties import ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report


@register_report
class PrivacyLabel(Report):
    name = "privacy-label"
    title = "Privacy label"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        rows = {
            "guarantee": properties.stated_guarantee,
            **{name: f"{value:g}" for name, value in properties.parameters.items()},
            **properties.additional_guarantees,
            "protected": properties.unit,
            "compared with": f"the same data in which {properties.other}",
            "strength": properties.strength,
            "data": properties.dataset,
            "released": f"coefficients of a model that predicts {properties.predicts}",
            "noise": properties.statements["mechanism"],
            "random bits": properties.certificate.randomness,
            "checked by": "privlearn verify FILE, by anyone, without the data",
            "all releases together": properties.total_cost,
        }
        return [
            Section(f"Model of {properties.target} in {properties.dataset}", (properties.meaning,), rows),
            Section(
                "What it covers, and what not",
                (
                    properties.statements["covers"],
                    "What is true of the population, such as that smokers fall ill more often, can be learnt from it "
                    "and applied to people who were not in the data.",
                ),
            ),
            Section("Which file", table=properties.digests()),
        ]
