"""An entry for the Differential Privacy Deployments Registry: its fields, as far as a release can fill them.

Fields and their nesting follow the registry's own entries (opendp/deployments-registry-data; the schema is described in
arXiv 2509.13509). What a release does not say is left open, and what was inferred is listed under ``assumed``.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from privlearn.report.facts import OPEN, Facts
from privlearn.report.paper import Paper, Section, register_paper

_ASSUMED = {
    "deployment.model": "privlearn trains on a trusted machine of the holder and gives out one file",
    "deployment.privacy_loss.privacy_unit": "a person, if the schema says whose the rows are; else read: a row",
    "tier": "the registry's moderators decide on it",
}


@register_paper
class RegistryEntry(Paper):
    name = "registry"
    title = "Entry for the Differential Privacy Deployments Registry"

    def sections(self, facts: Facts) -> list[Section]:
        text = yaml.safe_dump(self.record(facts), sort_keys=False, allow_unicode=True, width=100).rstrip()
        return [
            Section(
                "Entry",
                (f"Fill in what says {OPEN}, look at what is listed under assumed, then remove that part.",),
                verbatim=text,
            )
        ]

    def record(self, facts: Facts) -> dict[str, Any]:
        guarantee, several = facts.guarantee, _several_holders(facts)
        return {
            "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{facts.dataset} {facts.target}".lower()).strip("-"),
            "status": "Draft",
            "tier": OPEN,
            "deployment": {
                "product": {
                    "name": f"Model of {facts.target} in {facts.dataset}",
                    "data_curators": [OPEN],
                    "intended_use": OPEN,
                    "data_product_type": "Machine learning model",
                    "data_product_region": OPEN,
                    "description": f"Predicts {facts.predicts}.",
                    "publication_date": OPEN,
                    "data_product_sector": OPEN,
                },
                "dp_flavor": {
                    "name": "Approximate DP" if guarantee.delta else "Pure DP",
                    "input_metric": f"{guarantee.neighbours}: in the other data set {facts.other}",
                    "bound_on_input_distance": "1",
                    "unprotected_quantities": _unprotected(facts),
                },
                "privacy_loss": {
                    "privacy_unit": "person-level",
                    "privacy_unit_description": facts.unit,
                    "privacy_parameters": facts.parameters,
                    "privacy_parameters_description": facts.meaning,
                },
                "model": {
                    "model_name": "Distributed" if several else "Central",
                    "release_type": "One release",
                    "data_source_type": "Static",
                    "access_type": "Non-interactive",
                },
                "accounting": {"composition": facts.spent, "post_processing": _post_processing(facts)},
                "implementation": {
                    "pre_processing_eda_hyperparameter_tuning": _beforehand(facts),
                    "mechanisms": facts.told["mechanism"],
                    "justification": OPEN,
                },
                "resources": {
                    "sources": "; ".join(f"{name}: {value}" for name, value in facts.digests().items()),
                    "registry_authors": [OPEN],
                },
            },
            "assumed": _ASSUMED,
        }


def _several_holders(facts: Facts) -> bool:
    from privlearn.mechanisms.summed.summed import SummedMechanism
    from privlearn.mechanisms.summed.summed_moments import MomentsRegression

    return isinstance(facts.certificate.mechanism, SummedMechanism | MomentsRegression)


def _unprotected(facts: Facts) -> str:
    counted = "the number of records, " if facts.guarantee.relation.count_is_public else ""
    return f"{counted}names, bounds and listed values of the columns, which the schema states from public knowledge"


def _beforehand(facts: Facts) -> str:
    bought = facts.certificate.bought
    if bought:
        return f"{len(bought)} purchase(s) of bounds or lists for the schema, within the stated epsilon and delta"
    if facts.told.get("chosen"):
        return f"private search among candidates, within the stated epsilon and delta: {facts.told['chosen']}"
    return "none that read the records, by the certificate; the holder knows whether anybody looked at them before"


def _post_processing(facts: Facts) -> str:
    if facts.release.evaluation is None:
        refined = facts.release.refinement
        return "none" if refined is None else f"{refined.told}, at no cost"
    cost = facts.release.evaluation.certificate.guarantee
    return f"a threshold or calibration from noisy counts of its scores, which cost {cost} beside it"
