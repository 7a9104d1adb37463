"""The secure sum's cost: masks against Paillier, time and bytes, and a round of many parties in one process.

    python benchmarks/secure_sum.py            # 1,000 coordinates, 10 parties; then 100 parties
    python benchmarks/secure_sum.py --quick    # 100 coordinates, 3 parties; then 10 parties

"Party" is one party's own time in a round, "coordinator" the coordinator's; bytes are what a party sends in a round, or
all messages of the set-up. Setting up (once a session) and drawing the noise are lines of their own. Times are of one
core's work, so that a busy machine does not spoil them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from privlearn.parties.secure_sum.noise_share import NoiseShare, Words
from privlearn.parties.secure_sum.session import Cohort
from privlearn.randomness import SecureRandomness
from tests.support.paillier import PaillierSum, generate_keys
from tests.support.secure_sum import SecureSum

T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def show(what: str, seconds: float, sent: int | None = None) -> None:
    traffic = "" if sent is None else f"{sent:>12,} bytes"
    print(f"{what:<52} {seconds * 1e3:>10.1f} ms {traffic}", flush=True)


def contributions(cohort: Cohort, dimension: int) -> dict[int, Words]:
    """Every party's encoded vector, with its share of the noise."""
    noise, source = NoiseShare(1.0, cohort), SecureRandomness()
    encoding, generator = noise.encoding(bound=1.0), np.random.default_rng(0)
    vectors = {
        number: encoding.encode(generator.uniform(-1, 1, dimension)) for number in range(cohort.parties)
    }
    seconds, shares = timed(lambda: [noise.draw(dimension, source) for _ in vectors])
    show("noise, a party", seconds / cohort.parties)
    return {number: vector + share for (number, vector), share in zip(vectors.items(), shares, strict=True)}


def masks(cohort: Cohort, words: dict[int, Words], dimension: int) -> Words:
    """One round step by step: what a party and the coordinator each spend."""
    traffic: list[bytes] = []
    set_up, summation = timed(lambda: SecureSum(cohort, dimension, observer=traffic.append))
    show("masks: set-up, all parties together", set_up, sum(map(len, traffic)))
    coordinator, parties = summation.coordinator, summation.parties
    masking, masked = timed(lambda: [parties[number].mask(0, vector) for number, vector in words.items()])
    accepting, _ = timed(lambda: [coordinator.accept(message) for message in masked])
    listing, survivors = timed(coordinator.survivors)
    revealing, revealed = timed(lambda: [party.reveal(survivors) for party in parties])
    opening, total = timed(
        lambda: ([coordinator.accept(message) for message in revealed], coordinator.total())[1]
    )
    show("masks: party", (masking + revealing) / len(parties), len(masked[0]) + len(revealed[0]))
    show("masks: coordinator", accepting + listing + opening)
    return total


def paillier(cohort: Cohort, words: dict[int, Words], dimension: int) -> Words:
    set_up, (public, private) = timed(generate_keys)
    show("Paillier: set-up, one key pair for all", set_up)
    scheme = PaillierSum(public, cohort.parties, dimension)
    encrypting, encrypted = timed(lambda: [scheme.encrypt(vector) for vector in words.values()])
    adding, added = timed(lambda: scheme.add(encrypted))
    decrypting, total = timed(lambda: scheme.decrypt(added, private))
    show(
        "Paillier: party, encrypting and decrypting", encrypting / len(words) + decrypting, len(encrypted[0])
    )
    show("Paillier: coordinator", adding)
    return total


def many(cohort: Cohort, dimension: int) -> None:
    """One round of all parties in this process, with all the dropouts that the plan allows."""
    words = contributions(cohort, dimension)
    set_up, summation = timed(lambda: SecureSum(cohort, dimension, rounds=2))
    show(f"{cohort.parties} parties in one process: set-up for 2 rounds", set_up)
    complete, _ = timed(lambda: summation.total(words))
    show(f"{cohort.parties} parties in one process: a round, all present", complete)
    present = {number: vector for number, vector in words.items() if number >= cohort.dropouts}
    with_dropouts, _ = timed(lambda: summation.total(present))
    show(f"{cohort.parties} parties in one process: a round, {cohort.dropouts} missing", with_dropouts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look")
    quick = parser.parse_args().quick
    dimension, parties, crowd = (100, 3, 10) if quick else (1000, 10, 100)
    cohort = Cohort(parties, dropouts=parties // 5)
    print(f"A sum of {dimension} coordinates over {parties} parties, up to {cohort.dropouts} missing")
    words = contributions(cohort, dimension)
    np.testing.assert_array_equal(masks(cohort, words, dimension), paillier(cohort, words, dimension))
    print("Both sums are equal in every bit.\n")
    many(Cohort(crowd, dropouts=8 * crowd // 100, colluding=crowd // 10), dimension)


if __name__ == "__main__":
    main()
