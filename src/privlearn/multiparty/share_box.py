"""One party's shares for another, readable by that one only, though the coordinator carries them."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from privlearn.errors import ProtocolError
from privlearn.multiparty.agreement import agree, derive_key
from privlearn.multiparty.sum_session import SumSession

TAG_BYTES = 16
_NONCE = bytes(12)


class ShareBox:
    """The box in which one party sends shares to another: encrypted, and authentic.

    Its key is bound to session, sender and receiver, and locks one content: a nonce is never used twice.
    """

    def __init__(
        self, private: X25519PrivateKey, public: bytes, session: SumSession, sender: int, receiver: int
    ) -> None:
        self._sender = sender
        key = derive_key(agree(private, public), session, "share box", sender, receiver)
        self._cipher = ChaCha20Poly1305(key)

    def lock(self, content: bytes) -> bytes:
        return self._cipher.encrypt(_NONCE, content, None)

    def unlock(self, box: bytes) -> bytes:
        """What the sender locked in; refused if anyone touched it."""
        try:
            return self._cipher.decrypt(_NONCE, box, None)
        except InvalidTag:
            raise ProtocolError(
                f"the shares of party {self._sender} were changed on their way, or meant for another"
            ) from None
