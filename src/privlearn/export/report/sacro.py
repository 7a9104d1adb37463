"""A file for egress reviews of trusted research environments, in the form that SACRO-ML reads.

SACRO-ML's review reads one JSON object: properties of the model at its top, as in the files that describe a target,
and one entry per attack (AI-SDC/SACRO-ML, its ``attack_report_formatter`` module). The entry written here is not an
attack. It has bounds that hold for every attack with any knowledge, and therefore no ``attack_experiment_logger``:
the review would count that as an attack that was run and found nothing.
"""

from __future__ import annotations

import json
from typing import Any

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report
from privlearn.release.meaning import FALSE_POSITIVES


@register_report
class SacroReport(Report[ReleaseProperties]):
    name = "sacro"
    title = "Egress review, for SACRO-ML"
    default_format = "json"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        text = json.dumps(self.record(properties), indent=2, ensure_ascii=False)
        advice = (
            f"Fill in the fields with {OPEN}. Entries of attacks that you run can be added to this object."
        )
        return [Section("report.json", (advice,), verbatim=text)]

    def record(self, properties: ReleaseProperties) -> dict[str, Any]:
        task, release = properties.certificate.task, properties.release
        return {
            "dataset_name": properties.dataset,
            "features": {
                str(index): {"name": name, "encoding": description}
                for index, (name, description) in enumerate(properties.columns.items())
            },
            "model_type": "privlearn release",
            "model_name": f"linear model, {properties.statements.get('loss', 'public loss')}",
            "model_params": {
                "coefficients": int(release.model.coefficients.size),
                "regularization": task.regularization,
                "stores training rows": False,
            },
            "n_samples": task.total,
            "n_samples_counts": properties.certificate.count_noun,
            "safemodel": [{"researcher": OPEN, "details": properties.stated_guarantee}],
            f"proven_bounds_{release.digest[:16]}": {
                "log_id": release.digest,
                "metadata": {
                    "attack_name": "Bounds on every attack on one person, proven; no attack was run",
                    "attack_params": {
                        "attacker": properties.meaning,
                        "protected": properties.unit,
                        "neighbours": f"{properties.guarantee.neighbours}: {properties.other}",
                        "covers": properties.statements["covers"],
                        "other releases about these people": properties.total_cost,
                    },
                    "global_metrics": properties.parameters | _bounds(properties),
                    "target_model": "privlearn release",
                    "target_model_params": dict(release.certificate.to_dict()["constants"]),
                    "checked with": f"privlearn verify, privlearn {properties.certificate.versions['privlearn']}",
                },
            },
        }


def _bounds(properties: ReleaseProperties) -> dict[str, float]:
    """Return upper bounds on the metrics by which SACRO-ML measures membership attacks; empty without a guarantee."""
    meaning = properties.certificate.meaning
    if meaning is None:
        return {}
    rates = zip(FALSE_POSITIVES, meaning.true_positives, strict=True)
    return {
        "AUC_upper_bound": meaning.area,
        "Advantage_upper_bound": meaning.advantage,
        **{f"TPR@{false_positives:g}_upper_bound": true for false_positives, true in rates},
    }
