"""The evaluator's list: questions in the spirit of NIST SP 800-226, on evaluating such guarantees, in our words.

The order is that of its pyramid, from the guarantee down to how data are collected. Each answer names where it comes
from; what only the holder knows is left open.
"""

from __future__ import annotations

from privlearn.report.facts import OPEN, Facts
from privlearn.report.paper import Paper, Section, register_paper


@register_paper
class Checklist(Paper):
    name = "checklist"
    title = "Evaluator's list"

    def sections(self, facts: Facts) -> list[Section]:
        return [
            Section(
                "How to read it",
                (
                    "Answers come from the release's certificate, which anybody can recompute with privlearn verify. "
                    f"{OPEN} marks what no file says.",
                ),
            ),
            Section("Guarantee", table=_guarantee(facts)),
            Section("Algorithms and correctness", table=_algorithms(facts)),
            Section("Accuracy and bias", table=_utility(facts)),
            Section("Deployment, security and data collection", table=_deployment(facts)),
        ]


def _guarantee(facts: Facts) -> dict[str, str]:
    return {
        "What is promised?": facts.promise,
        **facts.beside,
        "What does it mean for one person?": facts.meaning,
        "What is the unit of privacy?": facts.unit,
        "What are neighbouring data sets?": f"{facts.guarantee.neighbours}: in the other one {facts.other}",
        "Is the promise strong enough?": f"{facts.strength}; whether that is enough: {OPEN}",
        "How many releases are there about these people, and what do they promise together?": facts.spent,
    }


def _algorithms(facts: Facts) -> dict[str, str]:
    told = facts.told
    return {
        "Which mechanism, and where is its proof?": f"{told['mechanism']}; docs/theory/{_page(facts)}.md",
        "What bounds the influence of one person?": "every row is scaled to norm at most 1 by public bounds",
        "Where do bounds and lists of values come from?": _bounds(facts),
        "Was anything chosen by looking at the records?": told.get(
            "chosen", "nothing that the certificate knows of"
        ),
        "Where do random bits come from?": told["randomness"],
        "What about floating-point numbers?": told["floating point"],
        "What does the promise cover, and what not?": told["covers"],
        "Who can check it?": "anybody: privlearn verify FILE recomputes it from the certificate's constants",
    }


def _page(facts: Facts) -> str:
    mechanism = facts.certificate.mechanism
    return str(getattr(mechanism, "page", getattr(getattr(mechanism, "search", None), "page", "index")))


def _bounds(facts: Facts) -> str:
    bought = facts.certificate.bought
    stated = "stated in the schema; only the holder can say that nobody looked them up in the records"
    return f"{stated}; {len(bought)} purchase(s) are within the promise" if bought else stated


def _utility(facts: Facts) -> dict[str, str]:
    groups = sorted({group.column for group in facts.evaluation.groups}) if facts.evaluation else []
    where = ", at another threshold" if facts.measured_at_another_threshold else ""
    return {
        "How accurate is it?": "; ".join(f"{name}: {value}" for name, value in facts.measured.items())
        or "no evaluation was given",
        "How was that measured?": facts.how_measured,
        "Are groups treated alike?": f"measured by {', '.join(groups)}{where}: see the evaluation"
        if groups
        else "not measured",
        "Is noise larger for small groups?": "yes: the same noise is added, whoever has few records is drowned first",
    }


def _deployment(facts: Facts) -> dict[str, str]:
    return {
        "Who is trusted with the records?": "the machine on which the model was trained, and whoever runs it",
        "Do running times or errors tell anything?": "they stay on that machine, unless the holder passes them on",
        "Is the release signed?": "yes" if facts.release.signature else "no",
        "Who may read the records, and how are they secured?": OPEN,
        "What were people told, and did they agree?": OPEN,
        "Are people in the data more than once, or related?": f"the schema says: {facts.unit}; {OPEN}",
    }
