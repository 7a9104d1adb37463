"""A page for an ethics board: what is done, what is guaranteed and what is not, in plain language."""

from __future__ import annotations

from privlearn.export.report.properties import OPEN, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report


@register_report
class EthicsPage(Report):
    name = "ethics"
    title = "For the ethics board"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        return [
            Section("What this is about", _about(properties)),
            Section("What leaves the institution", _what_leaves(properties)),
            Section("What is guaranteed to each person", _guarantee(properties)),
            Section("What is not guaranteed", _limits(properties)),
            Section("What it is good for", _accuracy(properties), properties.accuracy),
            Section("What you may request", _questions(properties)),
        ]


def _about(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        f"From the data set {properties.dataset} ({properties.size}) a formula was learnt. It predicts "
        f"{properties.predicts}.",
        f"It uses {len(properties.columns)} columns: {', '.join(properties.columns)}."
        if properties.columns
        else f"It uses {OPEN}.",
        f"Purpose: {OPEN}",
    )


def _what_leaves(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        f"One file with {properties.release.model.coefficients.size:,} numbers, the formula's weights, and a "
        "statement of how they were made. No record leaves, neither whole nor in part.",
        "Random noise was added before the numbers left. They are therefore slightly wrong on purpose, and no one, "
        "including the institution, can remove the noise."
        if properties.certificate.is_private
        else "These numbers were made WITHOUT the protection of secret noise: treat the file like the data themselves.",
    )


def _guarantee(properties: ReleaseProperties) -> tuple[str, ...]:
    weak, change = properties.certificate.weakness, properties.guarantee.relation.change
    if not properties.certificate.is_private:
        return (properties.meaning,)
    return (
        f"Protected is {properties.unit}. What their record says, compared with one that is {change}, can change the "
        "chance of anything that is released only within a stated limit: this is called differential privacy.",
        properties.meaning,
        f"In symbols: {properties.stated_guarantee}.",
        *([f"This is a weak guarantee: {weak}."] if weak else []),
    )


def _limits(properties: ReleaseProperties) -> tuple[str, ...]:
    return (
        "It does not keep general findings secret. If the formula shows that a treatment helps, this may be said of "
        "people who did not take part as well.",
        "It does not protect the records where they are stored, nor against people who may read them there.",
        f"Costs add up: every further release about the same people weakens it. In total: {properties.total_cost}.",
        "The bounds and lists of values in the schema count as public: they must not be taken from the records.",
        "Small groups: the noise hides them first, so predictions for them may be worse.",
    )


def _accuracy(properties: ReleaseProperties) -> tuple[str, ...]:
    return (properties.measurement,)


def _questions(properties: ReleaseProperties) -> tuple[str, ...]:
    signed = "is" if properties.release.signature else "is not"
    return (
        "Anyone can recompute the guarantee from the file, without the data: privlearn verify FILE.",
        f"The file {signed} signed by the holder. Its SHA-256 is {properties.release.digest}.",
        f"Responsible person, legal basis, how people were informed, how to object: {OPEN}",
    )
