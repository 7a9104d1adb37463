"""The coordinator opens a round's secrets from the parties' shares, and knows a wrong share when it meets one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from privlearn.errors import ProtocolError
from privlearn.multiparty.agreement import public_half
from privlearn.multiparty.shamir import SHARE_BYTES, recover


def open_secrets(
    answers: Mapping[int, bytes], publics: Mapping[int, bytes], threshold: int
) -> dict[int, bytes]:
    """The private keys of ``publics``, each from ``threshold`` of the answers; one party's garbage is worked around.

    Parameters
    ----------
    answers : mapping of party to bytes
        A share for each key of ``publics``, in that order.
    publics : mapping of party to bytes
        Which of each party's two keys is to be opened, by its public half.
    threshold : int
        How many shares open a secret.
    """
    for suspect in (None, *answers):
        others = (number for number in answers if number != suspect)
        chosen = {number: answers[number] for number in islice(others, threshold)}
        if len(chosen) == threshold and (secrets := _try_to_open(chosen, publics)):
            return secrets
    raise ProtocolError(
        "the shares do not open the advertised keys: some party sent garbage, the round is lost"
    )


def _try_to_open(chosen: Mapping[int, bytes], publics: Mapping[int, bytes]) -> dict[int, bytes] | None:
    secrets: dict[int, bytes] = {}
    for place, (owner, public) in enumerate(publics.items()):
        part = slice(place * SHARE_BYTES, (place + 1) * SHARE_BYTES)
        try:
            secrets[owner] = recover({number + 1: answer[part] for number, answer in chosen.items()})
        except ProtocolError:
            return None
        if public_half(secrets[owner]) != public:
            return None
    return secrets
