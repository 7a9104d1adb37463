"""A checklist for evaluators: questions in the spirit of NIST SP 800-226, in our words.

The order is that of its pyramid, from the guarantee down to the collection of data. Each answer names its source; what
only the holder knows is marked.
"""

from __future__ import annotations

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report


@register_report
class Checklist(Report[ReleaseProperties]):
    name = "checklist"
    title = "Evaluator's checklist"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        return [
            Section(
                "How to read it",
                (
                    "Answers come from the release's certificate, which anyone can recompute with privlearn verify. "
                    f"{OPEN} marks information that no file contains.",
                ),
            ),
            Section("Guarantee", table=_guarantee(properties)),
            Section("Algorithms and correctness", table=_algorithms(properties)),
            Section("Accuracy and bias", table=_utility(properties)),
            Section("Deployment, security and data collection", table=_deployment(properties)),
        ]


def _guarantee(properties: ReleaseProperties) -> dict[str, str]:
    return {
        "What is guaranteed?": properties.stated_guarantee,
        **properties.additional_guarantees,
        "What does it mean for one person?": properties.meaning,
        "What is the unit of privacy?": properties.unit,
        "What are neighbouring data sets?": f"{properties.guarantee.neighbours}: in the other one {properties.other}",
        "Is the guarantee strong enough?": f"{properties.strength}; whether that is enough: {OPEN}",
        "How many releases are there about these people, and what do they guarantee together?": properties.total_cost,
    }


def _algorithms(properties: ReleaseProperties) -> dict[str, str]:
    stated = properties.statements
    return {
        "Which mechanism, and where is its proof?": f"{stated['mechanism']}; docs/theory/{_page(properties)}.md",
        "What bounds the influence of one person?": "every row is scaled to norm at most 1 by public bounds",
        "Where do bounds and lists of values come from?": _bounds(properties),
        "Was anything chosen by looking at the records?": stated.get(
            "chosen", "nothing, according to the certificate"
        ),
        "Where do random bits come from?": stated["randomness"],
        "What about floating-point numbers?": stated["floating point"],
        "What does the guarantee cover, and what not?": stated["covers"],
        "Who can check it?": "anyone: privlearn verify FILE recomputes it from the certificate's constants",
    }


def _page(properties: ReleaseProperties) -> str:
    mechanism = properties.certificate.mechanism
    return str(getattr(mechanism, "page", getattr(getattr(mechanism, "search", None), "page", "index")))


def _bounds(properties: ReleaseProperties) -> str:
    private = properties.certificate.private_bounds
    source = "stated in the schema; only the holder knows that they were not taken from the records"
    return f"{source}; the guarantee includes {len(private)} private estimate(s)" if private else source


def _utility(properties: ReleaseProperties) -> dict[str, str]:
    groups = sorted({group.column for group in properties.evaluation.groups}) if properties.evaluation else []
    where = ", at another threshold" if properties.has_other_threshold else ""
    return {
        "How accurate is it?": "; ".join(f"{name}: {value}" for name, value in properties.accuracy.items())
        or "no evaluation was given",
        "How was that measured?": properties.measurement,
        "Are groups treated alike?": f"measured by {', '.join(groups)}{where}: see the evaluation"
        if groups
        else "not measured",
        "Is noise larger for small groups?": "yes: the same noise is added, so it hides small groups first",
    }


def _deployment(properties: ReleaseProperties) -> dict[str, str]:
    return {
        "Who is trusted with the records?": "the machine on which the model was trained, and its operator",
        "Do running times or errors reveal anything?": "they stay on that machine, unless the holder shares them",
        "Is the release signed?": "yes" if properties.release.signature else "no",
        "Who may read the records, and how are they secured?": OPEN,
        "How were people informed, and did they consent?": OPEN,
        "Are people in the data more than once, or related?": f"according to the schema: {properties.unit}; {OPEN}",
    }
