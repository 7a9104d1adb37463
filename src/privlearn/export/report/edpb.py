"""A page for data protection officers, along Opinion 28/2024 of the European Data Protection Board on AI models.

The Opinion (17 December 2024) asks under which circumstances a model trained on personal data is anonymous. Headings
follow the evidence that it lists; the words are ours, and the conclusion is left to the controller.
"""

from __future__ import annotations

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report


@register_report
class OpinionPage(Report[ReleaseProperties]):
    name = "edpb"
    title = "Is the model anonymous? Evidence for EDPB Opinion 28/2024"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        return [
            Section("The question", _question(properties)),
            Section("Extraction from the model itself", _extraction(properties)),
            Section("Personal data from queries", _queries(properties)),
            Section("Design of the model", table=_design(properties)),
            Section("Analysis and tests", table=_tests(properties)),
            Section("Documentation", table=_documentation(properties)),
            Section("What no guarantee decides", _limits(properties)),
        ]


def _question(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        "The Opinion calls a model anonymous if two likelihoods are insignificant for each person in the training "
        "data, with all means that are reasonably likely to be used: that their data are extracted from the model, "
        "and that they are obtained from it by queries. Authorities decide case by case.",
        f"Differential privacy bounds both, for {properties.unit}, whatever the attacker knows and computes. Whether "
        f"the bound is small enough to be insignificant here: {OPEN}",
    )


def _extraction(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        f"The file has {properties.release.model.coefficients.size:,} numbers and stores no row. It was computed with "
        "random noise that is not stored.",
        properties.meaning,
        f"In symbols: {properties.stated_guarantee}. {properties.strength.capitalize()}.",
    )


def _queries(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        "Predictions are computed from the file alone, so the same bound holds for every number of queries and for "
        "everything that is derived from their answers.",
    )


def _design(properties: ReleaseProperties) -> dict[str, str]:
    stated = properties.statements
    return {
        "selection of sources": f"data set {properties.dataset}, {properties.size}; why these sources: {OPEN}",
        "data minimisation": f"{len(properties.columns)} columns are read: {', '.join(properties.columns) or OPEN}. "
        "Others are not read",
        "method of training": f"{stated['mechanism']}; loss {stated.get('loss', OPEN)}",
        "limit of one person's influence": "every row is scaled to norm at most 1 by public bounds; "
        f"{properties.unit} counts as one unit",
        "generalisation": f"regularised with Lambda = {properties.certificate.task.regularization:.3g}",
        "outputs": f"predictions of {properties.predicts}; no text and no row is generated",
    }


def _tests(properties: ReleaseProperties) -> dict[str, str]:
    meaning = properties.certificate.meaning
    bounds = {}
    if meaning is not None:
        best = max(meaning.area, 0.5)
        bounds["membership and attribute inference"] = (
            f"bound on every attack, also on those that are not known yet: area under the curve at most {best:.3f} "
            f"(guessing: 0.5), advantage at most {meaning.advantage:.3f}"
        )
    return bounds | {
        "reconstruction, inversion, exfiltration": "follow the same bound: an attack that succeeds on one person's "
        "data would tell neighbouring data sets apart",
        "check of the claim": "privlearn verify recomputes it from the certificate; privlearn audit attacks the code",
        "accuracy": "; ".join(f"{name} {text}" for name, text in properties.accuracy.items())
        or properties.measurement,
        "attacks that were run": OPEN,
    }


def _documentation(properties: ReleaseProperties) -> dict[str, str]:
    return {
        "data protection impact assessment, advice of the data protection officer": OPEN,
        "roles of controller and processors, legal basis of the training": OPEN,
        "technical measures": f"the certificate inside the file; {properties.statements['randomness']}",
        "all releases about these people together": properties.total_cost,
        **properties.additional_guarantees,
        **properties.digests(),
    }


def _limits(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        "The training itself is processing of personal data and needs a legal basis. What follows from an unlawful "
        "training for later use depends, in the Opinion, on whether the model is anonymous.",
        "General findings, such as that smokers fall ill more often, can be applied to people who did not take part.",
        f"Covered: {properties.statements['covers']}",
    )
