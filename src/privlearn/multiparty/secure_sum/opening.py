"""Keys from shares, some of which may be false; and what can be said about who is to blame for those.

A false share has two possible authors: the party that revealed it, or the owner of the key, who dealt it out in a box
that nobody else can read. Both signed what they sent, so that they disagree is evidence that anybody can check; which
of the two lied is not, unless one of them disagrees with more parties than lie (docs/theory/secure-sum.md, "Blame").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from privlearn.errors import ProtocolError
from privlearn.multiparty.secure_sum.masks import SHARE_BYTES, recover, share_at
from privlearn.multiparty.secure_sum.session import public_half

MOST_TRIES = 2000
"""How many choices of shares are tried for one key: enough for one liar, or for two among up to 60 parties."""


@dataclass(frozen=True)
class Opened:
    """Private keys by owner; and pairs of a party and an owner whose key its share does not belong to."""

    secrets: dict[int, bytes]
    false: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Blame:
    """Who lied, and of which pairs one did."""

    liars: frozenset[int]
    pairs: frozenset[tuple[int, int]]


def open_secrets(answers: Mapping[int, bytes], publics: Mapping[int, bytes], threshold: int) -> Opened:
    """The private keys of ``publics``, each from ``threshold`` of the answers; false ones are worked around.

    Parameters
    ----------
    answers : mapping of party to bytes
        A share for each key of ``publics``, in that order.
    publics : mapping of party to bytes
        Which of each party's two keys is to be opened, by its public half.
    threshold : int
        How many shares open a secret.
    """
    order, secrets, chosen = list(answers), dict[int, bytes](), dict[int, list[int]]()
    shares = {owner: _shares(answers, place) for place, owner in enumerate(publics)}
    for owner, public in publics.items():
        chosen[owner], secrets[owner] = _open(shares[owner], public, threshold, order)
        order = [*chosen[owner], *(number for number in order if number not in chosen[owner])]
    false = {
        (number, owner)
        for owner, held in shares.items()
        for number in order
        if number not in chosen[owner]
        and held[number] != share_at({n + 1: held[n] for n in chosen[owner]}, number + 1)
    }
    return Opened(secrets, frozenset(false))


def blame(false: frozenset[tuple[int, int]], colluding: int) -> Blame:
    """Who lied, if no more than ``colluding`` parties do, and at least one may.

    A party that disagrees with more others than that lied: else all of them did. So did one whose share of its own key
    is false. Of any other pair, one of the two lied.
    """
    others: dict[int, set[int]] = {}
    for party, owner in false:
        others.setdefault(party, set()).add(owner)
        others.setdefault(owner, set()).add(party)
    liars = {
        party for party, against in others.items() if party in against or len(against) > max(colluding, 1)
    }
    pairs = {(min(pair), max(pair)) for pair in false if not liars & set(pair)}
    return Blame(frozenset(liars), frozenset(pairs))


def _shares(answers: Mapping[int, bytes], place: int) -> dict[int, bytes]:
    part = slice(place * SHARE_BYTES, (place + 1) * SHARE_BYTES)
    return {number: answer[part] for number, answer in answers.items()}


def _open(
    shares: Mapping[int, bytes], public: bytes, threshold: int, order: Sequence[int]
) -> tuple[list[int], bytes]:
    """Whose shares open the key, and the key."""
    for chosen in islice(_choices(order, threshold), MOST_TRIES):
        try:
            secret = recover({number + 1: shares[number] for number in chosen})
        except ProtocolError:
            continue
        if public_half(secret) == public:
            return chosen, secret
    raise ProtocolError(
        "the shares do not open the advertised keys: some party sent garbage, and too few shares are left to tell "
        "which; the round is lost"
    )


def _choices(order: Sequence[int], threshold: int) -> Iterator[list[int]]:
    """Each choice once: the first ones, then with one of them exchanged, with two, and so on."""
    first, rest = order[:threshold], order[threshold:]
    if len(first) < threshold:
        return
    for exchanged in range(min(len(first), len(rest)) + 1):
        for into in combinations(rest, exchanged):
            for out in combinations(first, exchanged):
                yield [*(number for number in first if number not in out), *into]
