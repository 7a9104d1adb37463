"""What a holder reads before it signs, and the words that people compare."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from privlearn.data import census_schema
from privlearn.parties import JointTraining
from privlearn.parties.run import Identity
from privlearn.release.signatures import in_words

AGREEMENT: dict[str, Any] = {
    "schema": census_schema(),
    "parties": {"a": 500, "b": 700, "c": 900},
    "epsilon": 2.0,
    "delta": 1e-5,
}


def test_cost_questions_and_who_may_be_missing() -> None:
    told = JointTraining(**AGREEMENT).summary()
    assert "epsilon = 2" in told["cost"]
    assert "gradients" in told["questions"]
    assert told["missing"].startswith("up to 0")
    assert "none yet" in told["keys"]
    assert "weak" not in told


def test_keys_are_in_the_fingerprint() -> None:
    keys = {name: str(Identity.generate().public) for name in ("coordinator", "a", "b", "c")}
    with_keys = JointTraining(**AGREEMENT, keys=keys).summary()
    assert "complete" in with_keys["keys"]
    assert with_keys["fingerprint"] != JointTraining(**AGREEMENT).summary()["fingerprint"]


def test_whose_noise_protects_whom() -> None:
    assert "at least 2 parties' shares" in JointTraining(**AGREEMENT).summary()["noise"]
    pure = JointTraining(**AGREEMENT | {"algorithm": "aggregation", "delta": 0.0}).summary()
    assert "by every party" in pure["noise"]
    assert "whatever the coordinator and all other parties do" in pure["covers"]


def test_192_bits_and_every_one_of_them_shows() -> None:
    digest = hashlib.sha256(b"plan").digest()
    words = in_words(digest.hex())
    assert len(words.split()) == 12
    for bit in range(192):
        changed = (int.from_bytes(digest) ^ 1 << 255 - bit).to_bytes(32)
        assert in_words(changed.hex()) != words


def test_a_short_digest_is_refused() -> None:
    with pytest.raises(ValueError, match="192 bits"):
        in_words("7f00")


def test_different_numbers_are_different_words() -> None:
    words = {in_words(f"{number:04x}" + 44 * "0") for number in range(0, 65536, 7)}
    assert len(words) == len(range(0, 65536, 7))
