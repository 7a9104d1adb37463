"""Receipts of bought schemas, checked as a stranger would: the price follows from their constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privlearn.data import Purchase
from privlearn.errors import VerificationError
from privlearn.mechanisms.discovery import Discovery
from privlearn.randomness import SecureRandomness


def read_receipts(subject: Mapping[str, Any]) -> tuple[Purchase, ...]:
    """What the description of an encoding, or of a learner that has one, says was bought."""
    encoding = subject.get("encoding", subject)
    return tuple(Purchase(**record) for record in encoding.get("bought", ()))


def check_receipt(receipt: Purchase) -> None:
    """Refuse a receipt whose constants do not support its price."""
    plan = Discovery(
        guarantee=receipt.guarantee,
        records=receipt.records,
        rows_per_person=receipt.rows_per_person,
        bounds=len(receipt.bounds),
        anchors=receipt.anchors,
        lists=len(receipt.lists),
        quantile_epsilon=receipt.quantile_epsilon or 0.0,
        noise_scale=receipt.noise_scale or 0.0,
        threshold=receipt.threshold or 0.0,
    )
    if not plan.spends() <= receipt.guarantee:
        raise VerificationError(
            f"what was bought of the schema cost more than its receipt says: {plan.spends()}"
        )
    if receipt.secure is not (receipt.randomness == SecureRandomness.description):
        raise VerificationError("the schema's receipt says of its source of randomness what it is not")
