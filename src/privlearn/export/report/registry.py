"""An entry for the Differential Privacy Deployments Registry: its fields, as far as a release can fill them.

Fields and their nesting follow the registry's own entries (opendp/deployments-registry-data; the schema is described in
arXiv 2509.13509). Missing information is marked, and inferred values are listed under ``assumed``.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report

_ASSUMED = {
    "deployment.model": "privlearn trains on a trusted machine of the holder and releases one file",
    "deployment.privacy_loss.privacy_unit": "a person, if the schema names the owner of rows; otherwise a row",
    "tier": "the registry's moderators decide on it",
}


@register_report
class RegistryEntry(Report[ReleaseProperties]):
    name = "registry"
    title = "Entry for the Differential Privacy Deployments Registry"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        text = yaml.safe_dump(
            self.record(properties), sort_keys=False, allow_unicode=True, width=100
        ).rstrip()
        advice = f"Fill in the fields with {OPEN}, check the fields under assumed, then remove that part."
        return [Section("Entry", (advice,), verbatim=text)]

    def record(self, properties: ReleaseProperties) -> dict[str, Any]:
        guarantee, several = properties.guarantee, _several_holders(properties)
        return {
            "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{properties.dataset} {properties.target}".lower()).strip(
                "-"
            ),
            "status": "Draft",
            "tier": OPEN,
            "deployment": {
                "product": {
                    "name": f"Model of {properties.target} in {properties.dataset}",
                    "data_curators": [OPEN],
                    "intended_use": OPEN,
                    "data_product_type": "Machine learning model",
                    "data_product_region": OPEN,
                    "description": f"Predicts {properties.predicts}.",
                    "publication_date": OPEN,
                    "data_product_sector": OPEN,
                },
                "dp_flavor": {
                    "name": "Approximate DP" if guarantee.delta else "Pure DP",
                    "input_metric": f"{guarantee.neighbours}: in the other data set {properties.other}",
                    "bound_on_input_distance": "1",
                    "unprotected_quantities": _unprotected_quantities(properties),
                },
                "privacy_loss": {
                    "privacy_unit": "person-level",
                    "privacy_unit_description": properties.unit,
                    "privacy_parameters": properties.parameters,
                    "privacy_parameters_description": properties.meaning,
                },
                "model": {
                    "model_name": "Distributed" if several else "Central",
                    "release_type": "One release",
                    "data_source_type": "Static",
                    "access_type": "Non-interactive",
                },
                "accounting": {
                    "composition": properties.total_cost,
                    "post_processing": _post_processing(properties),
                },
                "implementation": {
                    "pre_processing_eda_hyperparameter_tuning": _beforehand(properties),
                    "mechanisms": properties.statements["mechanism"],
                    "justification": OPEN,
                },
                "resources": {
                    "sources": "; ".join(f"{name}: {value}" for name, value in properties.digests().items()),
                    "registry_authors": [OPEN],
                },
            },
            "assumed": _ASSUMED,
        }


def _several_holders(properties: ReleaseProperties) -> bool:
    from privlearn.mechanisms.summed.summed import SummedMechanism
    from privlearn.mechanisms.summed.summed_moments import MomentsRegression

    return isinstance(properties.certificate.mechanism, SummedMechanism | MomentsRegression)


def _unprotected_quantities(properties: ReleaseProperties) -> str:
    is_public = properties.guarantee.relation.count_is_public
    count = f"the number of {properties.certificate.count_noun}, " if is_public else ""
    return f"{count}names, bounds and listed values of the columns, from public knowledge"


def _beforehand(properties: ReleaseProperties) -> str:
    private = properties.certificate.private_bounds
    if private:
        return f"{len(private)} private estimate(s) of bounds or lists, within the stated epsilon and delta"
    if properties.statements.get("chosen"):
        return f"private search, within the stated epsilon and delta: {properties.statements['chosen']}"
    return "none on the records, according to the certificate; only the holder knows whether they were read before"


def _post_processing(properties: ReleaseProperties) -> str:
    if properties.release.evaluation is None:
        refined = properties.release.refinement
        return "none" if refined is None else f"{refined.description}, at no cost"
    cost = properties.release.evaluation.certificate.guarantee
    return f"a threshold or calibration from noisy counts of its scores, which cost {cost} in addition"
