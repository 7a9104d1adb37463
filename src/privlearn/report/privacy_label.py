"""A privacy label: what is promised to whom, on less than a page."""

from __future__ import annotations

from privlearn.report.facts import Facts
from privlearn.report.paper import Paper, Section, register_paper


@register_paper
class PrivacyLabel(Paper):
    name = "privacy-label"
    title = "Privacy label"

    def sections(self, facts: Facts) -> list[Section]:
        rows = {
            "promise": facts.promise,
            **{name: f"{value:g}" for name, value in facts.parameters.items()},
            **facts.beside,
            "protected": facts.unit,
            "compared with": f"the same data in which {facts.other}",
            "strength": facts.strength,
            "data": facts.dataset,
            "released": f"coefficients of a model that predicts {facts.predicts}",
            "noise": facts.told["mechanism"],
            "random bits": facts.certificate.randomness,
            "checked by": "privlearn verify FILE, by anybody, without the data",
            "all releases together": facts.spent,
        }
        return [
            Section(f"Model of {facts.target} in {facts.dataset}", (facts.meaning,), rows),
            Section(
                "What it covers, and what not",
                (
                    facts.told["covers"],
                    "What is true of the population, such as that smokers fall ill more often, can be learnt from it, "
                    "and so applied to somebody who was not in the data.",
                ),
            ),
            Section("Which file", table=facts.digests()),
        ]
