"""The layout of noisy counts that evaluations and descriptions share, and the charge for them.

A layout is public: it is computed from the schema, the guarantee and the number of records, before any row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget, Charge
from privlearn.budget.composition import Cost
from privlearn.data.parts import Part
from privlearn.data.schema.schema import Schema
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import Randomness
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate


@dataclass(frozen=True, eq=False)
class CountsLayout:
    """Public: the tables to count, with the mechanism that is calibrated for them.

    ``about``: plain JSON values that are stored in the file of counts: the data set, the bins, and the ``shapes`` of
    the tables. ``mechanism``: its ``cells`` are the sizes of the flattened tables, in the same order.
    """

    about: dict[str, Any]
    mechanism: NoisyCounts

    @property
    def edges(self) -> Array:
        """Return the edges of the bins of scores or residuals, of shape (bins + 1,); evaluations only."""
        return np.array(self.about["edges"])

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each table."""
        return [tuple(shape) for shape in self.about["shapes"]]

    def add_noise(self, exact: Sequence[Array], randomness: Randomness) -> list[Array]:
        """Touch the data: return the tables with noise, in their shapes."""
        noisy = self.mechanism.run(exact, randomness)
        return [table.reshape(shape) for table, shape in zip(noisy, self.shapes, strict=True)]

    def certify(self, schema: Schema, randomness: Randomness, **subject: Any) -> CountsCertificate:
        """Return the certificate of the counts; ``subject`` states what was counted and what is not covered."""
        estimated = {"private_bounds": schema.to_dict()["private_bounds"]} if schema.private_bounds else {}
        stated = {
            "dataset": schema.name,
            "schema_sha256": schema.digest,
            **estimated,
            "about_sha256": digest_of(json_bytes(self.about)),
            "persons": schema.person is not None,
            **weight_of(schema),
        }
        not_covered = {"not_covered": subject.pop("not_covered")} if "not_covered" in subject else {}
        return CountsCertificate.issue(self.mechanism, randomness, subject | stated | not_covered)


@dataclass(frozen=True)
class CountsRequest:
    """The guarantee of some counts and the budget to charge: the parameters that all statistics have in common.

    ``expected_records``: public number of records or persons, where the relation hides the exact one.
    """

    guarantee: Guarantee
    expected_records: int | None
    ledger: Budget | None
    accept_weak_privacy: bool
    randomness: Randomness

    def __post_init__(self) -> None:
        self.guarantee.relation.check_expected(self.expected_records)

    def total(self, counted: int) -> int:
        """Return the public number of records or persons: the expected one where the counted one is private."""
        return self.guarantee.relation.total(counted, self.expected_records)

    def charge(
        self,
        cost: Cost,
        records: int,
        schema: Schema,
        part: Part | None,
        purpose: str,
        schema_digest: str | None = None,
    ) -> Charge:
        """Return the charge; call its ``pay_for`` with the computation that touches the rows."""
        return Charge(
            ledger=self.ledger,
            cost=cost,
            schema=schema,
            part=part,
            records=records,
            purpose=purpose,
            schema_digest=schema_digest,
            secure=self.randomness.secure,
            accept_weak_privacy=self.accept_weak_privacy,
        )


def weight_of(schema: Schema) -> dict[str, Any]:
    """Public: return the schema's weights as files of counts state them; counts are in units of their cap."""
    return {} if schema.weight is None else {"weight": schema.weight.model_dump(mode="json")}


def counted_records(schema: Schema, records: int) -> float:
    """Public: return the approximate sum of the counts of all records, in units of the cap of their weights."""
    return records / max(schema.row_weight_bound, 1.0)
