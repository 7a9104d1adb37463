"""A model card in Hugging Face's form: YAML front matter, then the sections of its template."""

from __future__ import annotations

from typing import Any

import yaml

from privlearn.report.facts import OPEN, Facts
from privlearn.report.paper import Paper, Section, register_paper


@register_paper
class ModelCard(Paper):
    name = "model-card"
    title = "Model card"

    def front_matter(self, facts: Facts) -> str:
        return f"---\n{yaml.safe_dump(self._metadata(facts), sort_keys=False, allow_unicode=True)}---\n\n"

    def record(self, facts: Facts) -> Any:
        return {"metadata": self._metadata(facts)} | super().record(facts)

    def _metadata(self, facts: Facts) -> dict[str, Any]:
        task = "tabular-classification" if facts.is_classifier else "tabular-regression"
        found: dict[str, Any] = {
            "library_name": "privlearn",
            "pipeline_tag": task,
            "tags": ["differential-privacy", "tabular", task],
        }
        if facts.evaluation is None:
            return found
        known = {name: one for name, one in facts.numbers.items() if one.is_known}
        result = {
            "task": {"type": task},
            "dataset": {"name": facts.evaluation.about["dataset"], "type": "private"},
            "metrics": [
                {"type": name, "value": float(one.value), "name": str(one)} for name, one in known.items()
            ],
        }
        return found | {"model-index": [{"name": f"{facts.dataset}: {facts.target}", "results": [result]}]}

    def sections(self, facts: Facts) -> list[Section]:
        return [
            Section("Model details", (f"A model that predicts {facts.predicts}.",), _details(facts)),
            Section(
                "Uses",
                (
                    f"Intended use: {OPEN}",
                    "Out of scope: deciding about people by this number alone; records unlike those of the data set; "
                    "finding out who was in the data.",
                ),
            ),
            Section("Bias, risks and limitations", _risks(facts)),
            Section("How to get started", verbatim=_START),
            Section("Training data", (f"Data set {facts.dataset}; it is private.",), facts.columns),
            Section(
                "Training procedure and privacy", (facts.promise, facts.meaning), facts.beside | facts.told
            ),
            Section("Evaluation", (facts.how_measured,), facts.measured),
            Section("Model card contact", (OPEN,)),
        ]


_START = """from privlearn import Release, verify
print(verify("model.privlearn").claimed)
model = Release.load("model.privlearn").model
model.predict(table)"""


def _details(facts: Facts) -> dict[str, str]:
    return {
        "developed by": OPEN,
        "license": OPEN,
        "model type": facts.told.get("loss", "linear"),
        **facts.digests(),
    }


def _risks(facts: Facts) -> tuple[str, ...]:
    weak = facts.certificate.weakness
    return (
        "Its coefficients carry noise: small ones mean nothing, and groups with few records are predicted worse.",
        "General findings are not hidden, and can be applied to people who were not in the data.",
        *([f"The promise is weak: {weak}."] if weak else []),
    )
