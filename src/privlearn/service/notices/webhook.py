"""Notices by HTTP: a JSON object, signed with a secret that the receiver knows."""

from __future__ import annotations

import hmac
import json

import httpx

from privlearn.service.holder.notices import Webhook
from privlearn.service.notices.notice import Notice

SECONDS = 20.0
SIGNATURE = "Privlearn-Signature"


def send_webhook(settings: Webhook, notice: Notice) -> None:
    """Raises whatever goes wrong, and unless the receiver says that it has it; a redirection is not followed."""
    body = json.dumps(notice.to_dict(), sort_keys=True).encode()
    headers = {"Content-Type": "application/json", SIGNATURE: signature(settings.secret(), body)}
    secure = settings.url.startswith("https:")  # a proxy of the environment would see a plain request
    with httpx.Client(timeout=SECONDS, trust_env=secure) as client:
        answer = client.post(settings.url, content=body, headers=headers)
    if not answer.is_success:
        raise ConnectionError(f"it answers with status {answer.status_code}")


def signature(secret: str, body: bytes) -> str:
    """HMAC-SHA256 of the body, as it stands in the header."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
