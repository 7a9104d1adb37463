"""A model card in Hugging Face's form (YAML front matter, then the sections of its template), and a privacy label.

The label states the guarantee on less than a page.
"""

from __future__ import annotations

from typing import Any

import yaml

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report


@register_report
class ModelCard(Report[ReleaseProperties]):
    name = "model-card"
    title = "Model card"

    def front_matter(self, properties: ReleaseProperties) -> str:
        return (
            f"---\n{yaml.safe_dump(self._metadata(properties), sort_keys=False, allow_unicode=True)}---\n\n"
        )

    def record(self, properties: ReleaseProperties) -> Any:
        return {"metadata": self._metadata(properties)} | super().record(properties)

    def _metadata(self, properties: ReleaseProperties) -> dict[str, Any]:
        task = "tabular-classification" if properties.is_classifier else "tabular-regression"
        metadata: dict[str, Any] = {
            "library_name": "privlearn",
            "pipeline_tag": task,
            "tags": ["differential-privacy", "tabular", task],
        }
        if properties.evaluation is None:
            return metadata
        known = {name: one for name, one in properties.numbers.items() if one.is_known}
        result = {
            "task": {"type": task},
            "dataset": {"name": properties.evaluation.about["dataset"], "type": "private"},
            "metrics": [
                {"type": name, "value": float(one.value), "name": name} for name, one in known.items()
            ],
        }
        return metadata | {
            "model-index": [{"name": f"{properties.dataset}: {properties.target}", "results": [result]}]
        }

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        return [
            Section(
                "Model details", (f"A model that predicts {properties.predicts}.",), _details(properties)
            ),
            Section(
                "Uses",
                (
                    f"Intended use: {OPEN}",
                    "Out of scope: deciding about people by this number alone; records unlike those of the data set; "
                    "finding out who was in the data.",
                ),
            ),
            Section("Bias, risks and limitations", _risks(properties)),
            Section("How to get started", verbatim=_START),
            Section(
                "Training data",
                (f"Data set {properties.dataset}; it is private.", *properties.persons_in_training),
                properties.columns,
            ),
            Section(
                "Training procedure and privacy",
                (properties.stated_guarantee, properties.meaning),
                properties.additional_guarantees | properties.statements,
            ),
            Section("Evaluation", (properties.measurement,), properties.accuracy),
            Section("Model card contact", (OPEN,)),
        ]


_START = """from privlearn import Release, verify
print(verify("model.privlearn").claimed)
model = Release.load("model.privlearn").model
model.predict(table)"""


def _details(properties: ReleaseProperties) -> dict[str, str]:
    return {
        "developed by": OPEN,
        "license": OPEN,
        "model type": properties.statements.get("loss", "linear"),
        **properties.digests(),
    }


def _risks(properties: ReleaseProperties) -> tuple[str, ...]:
    weak = properties.certificate.weakness
    return (
        "Its coefficients carry noise: small ones mean nothing, and groups with few records are predicted worse.",
        "General findings are not hidden, and can be applied to people who were not in the data.",
        *([f"The guarantee is weak: {weak}."] if weak else []),
    )


@register_report
class PrivacyLabel(Report[ReleaseProperties]):
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
