"""A page for an ethics board: what is done, what is promised and what is not, in plain language."""

from __future__ import annotations

from privlearn.report.facts import OPEN, Facts
from privlearn.report.paper import Paper, Section, register_paper


@register_paper
class EthicsPage(Paper):
    name = "ethics"
    title = "For the ethics board"

    def sections(self, facts: Facts) -> list[Section]:
        return [
            Section("What is it about", _about(facts)),
            Section("What leaves the institution", _what_leaves(facts)),
            Section("What is promised to each person", _promise(facts)),
            Section("What is not promised", _limits(facts)),
            Section("What it is good for", _accuracy(facts), facts.measured),
            Section("What you may ask for", _questions(facts)),
        ]


def _about(facts: Facts) -> tuple[str, ...]:
    return (
        f"From the data set {facts.dataset} ({facts.counted}) a formula was learnt that predicts {facts.predicts}.",
        f"It uses {len(facts.columns)} columns: {', '.join(facts.columns)}."
        if facts.columns
        else f"It uses {OPEN}.",
        f"Purpose: {OPEN}",
    )


def _what_leaves(facts: Facts) -> tuple[str, ...]:
    return (
        f"One file with {facts.release.model.coefficients.size:,} numbers, the formula's weights, and a statement of "
        "how they were made. No record leaves, neither whole nor in part.",
        "Random noise was added before the numbers left. They are therefore a little wrong on purpose, and nobody, the "
        "institution included, can take the noise out again."
        if facts.certificate.is_private
        else "These numbers were made WITHOUT the protection of secret noise: treat the file like the data themselves.",
    )


def _promise(facts: Facts) -> tuple[str, ...]:
    weak, otherwise = facts.certificate.weakness, facts.guarantee.relation.otherwise
    if not facts.certificate.is_private:
        return (facts.meaning,)
    return (
        f"Protected is {facts.unit}. What their record says, compared with one that is {otherwise}, can change the "
        "chance of anything that is released only within a stated limit: this is called differential privacy.",
        facts.meaning,
        f"In symbols: {facts.promise}.",
        *([f"This is a weak promise: {weak}."] if weak else []),
    )


def _limits(facts: Facts) -> tuple[str, ...]:
    return (
        "It does not keep general findings secret. If the formula shows that a treatment helps, this may be said of "
        "people who did not take part as well.",
        "It does not protect the records where they are kept, nor against somebody who may read them there.",
        f"Promises add up: every further release about the same people weakens them. All together: {facts.spent}.",
        "The bounds and lists of values in the schema count as public: nobody may have looked them up in the records.",
        "Small groups: the noise hides them first, so predictions for them may be worse.",
    )


def _accuracy(facts: Facts) -> tuple[str, ...]:
    return (facts.how_measured,)


def _questions(facts: Facts) -> tuple[str, ...]:
    signed = "is" if facts.release.signature else "is not"
    return (
        "Anybody can recompute the promise from the file, without the data: privlearn verify FILE.",
        f"The file {signed} signed by the holder. Its SHA-256 is {facts.release.digest}.",
        f"Responsible person, legal basis, how people were informed, how to object: {OPEN}",
    )
