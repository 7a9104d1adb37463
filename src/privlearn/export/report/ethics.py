"""A page for an ethics board: what is done, what is guaranteed and what is not, in plain language.

There is one for a release, and one for a table of estimates, with the table and its forest plot.
"""

from __future__ import annotations

import numpy as np

from privlearn.export.report.properties import OPEN, EstimatesProperties, FileProperties, ReleaseProperties
from privlearn.export.report.report import Report, Section, register_report
from privlearn.statistics.regression.page import forest_plot


@register_report
class EthicsPage(Report[ReleaseProperties]):
    name = "ethics"
    title = "For the ethics board"

    def sections(self, properties: ReleaseProperties) -> list[Section]:
        count = f"{properties.release.model.coefficients.size:,} numbers, the formula's weights"
        return [
            Section("What this is about", _about(properties)),
            *_guarantees(properties, count),
            Section("What it is good for", (properties.measurement,), properties.accuracy),
            Section("What you may request", _questions(properties)),
        ]


class EstimatesPage(Report[EstimatesProperties]):
    name = "ethics"
    title = "A regression table, for the ethics board"

    def sections(self, properties: EstimatesProperties) -> list[Section]:
        estimates = properties.estimates
        count = f"{sum(map(np.size, estimates.tables)):,} numbers, sums over all records"
        return [
            Section(
                "What this is about",
                (
                    f"From the data set {properties.dataset} ({properties.size}) it was estimated how "
                    f"{estimates.about['outcome']['name']} depends on other columns: {estimates.formula}.",
                    f"Purpose: {OPEN}",
                ),
            ),
            Section("Result", verbatim=estimates.summary(), figure=forest_plot(estimates)),
            *_guarantees(properties, count),
            Section("What you may request", _questions(properties)),
        ]


def _guarantees(properties: FileProperties, count: str) -> list[Section]:
    return [
        Section("What leaves the institution", _what_leaves(properties, count)),
        Section("What is guaranteed to each person", _guarantee(properties)),
        Section("What is not guaranteed", _limits(properties)),
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


def _what_leaves(properties: FileProperties, count: str) -> tuple[str, ...]:
    return (
        f"One file with {count}, and a statement of how they were made. No record leaves, neither whole nor in part.",
        "Random noise was added before the numbers left. They are therefore slightly wrong on purpose, and no one, "
        "including the institution, can remove the noise."
        if properties.certificate.is_private
        else "These numbers were made WITHOUT the protection of secret noise: treat the file like the data themselves.",
    )


def _guarantee(properties: FileProperties) -> tuple[str, ...]:
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


def _limits(properties: FileProperties) -> tuple[str, ...]:
    return (
        "It does not keep general findings secret. If it turns out that a treatment helps, this may be said of "
        "people who did not take part as well.",
        "It does not protect the records where they are stored, nor against people who may read them there.",
        f"Costs add up: every further release about the same people weakens it. In total: {properties.total_cost}.",
        "The bounds and lists of values in the schema count as public: they must not be taken from the records.",
        "Small groups: the noise hides them first, so results for them may be worse.",
    )


def _questions(properties: FileProperties) -> tuple[str, ...]:
    signed = "is" if properties.file.signature else "is not"
    return (
        "Anyone can recompute the guarantee from the file, without the data: privlearn verify FILE.",
        f"The file {signed} signed by the holder. Its SHA-256 is {properties.file.digest}.",
        f"Responsible person, legal basis, how people were informed, how to object: {OPEN}",
    )
