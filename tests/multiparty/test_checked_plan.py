"""What a holder reads before it signs, and the words that people compare."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from privlearn.data.datasets import census_schema
from privlearn.errors import InvalidParameter
from privlearn.multiparty import MultipartyPlan
from privlearn.multiparty.run.checked_plan import checked
from privlearn.multiparty.run.fingerprint import in_words
from privlearn.multiparty.run.identity import Identity

PLAN: dict[str, Any] = {
    "schema": census_schema(),
    "parties": {"a": 500, "b": 700, "c": 900},
    "epsilon": 2.0,
    "delta": 1e-5,
}


def test_cost_questions_and_who_may_be_missing() -> None:
    told = checked(MultipartyPlan(**PLAN))
    assert "epsilon = 2" in told["cost"]
    assert "gradients" in told["questions"]
    assert told["missing"].startswith("0 may be")
    assert "none yet" in told["keys"]
    assert "weak" not in told


def test_keys_are_in_the_fingerprint() -> None:
    keys = {name: str(Identity.generate().public) for name in ("coordinator", "a", "b", "c")}
    with_keys = checked(MultipartyPlan(**PLAN, keys=keys))
    assert "all there" in with_keys["keys"]
    assert with_keys["fingerprint"] != checked(MultipartyPlan(**PLAN))["fingerprint"]


def test_a_plan_that_cannot_be_run_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="dealt out"):
        checked(MultipartyPlan(**PLAN | {"algorithm": "aggregation", "delta": 0.0}))


def test_128_bits_and_every_one_of_them_shows() -> None:
    digest = hashlib.sha256(b"plan").digest()
    words = in_words(digest.hex())
    assert len(words.split()) == 8
    for bit in range(128):
        changed = (int.from_bytes(digest) ^ 1 << 255 - bit).to_bytes(32)
        assert in_words(changed.hex()) != words


def test_a_short_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="128 bits"):
        in_words("7f00")


def test_different_numbers_are_different_words() -> None:
    words = {in_words(f"{number:04x}" + 28 * "0") for number in range(0, 65536, 7)}
    assert len(words) == len(range(0, 65536, 7))
