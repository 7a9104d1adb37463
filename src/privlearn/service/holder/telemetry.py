"""The part of owner.toml about traces: whether there are any, and who gets them."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import StrictStr, field_validator

from privlearn.data.schema.public import PublicModel
from privlearn.listening import is_loopback


class Telemetry(PublicModel):
    """Where traces of the server go; by default there are none.

    Parameters
    ----------
    endpoint : str, optional
        Of a collector that takes OTLP over HTTP, ``https://collector.example/v1/traces``. What it asks for besides is
        told in the variables of OpenTelemetry: ``OTEL_EXPORTER_OTLP_HEADERS`` and ``OTEL_EXPORTER_OTLP_CERTIFICATE``.
    """

    endpoint: StrictStr | None = None

    @field_validator("endpoint")
    @classmethod
    def _is_encrypted(cls, endpoint: str | None) -> str | None:
        parts = urlsplit(endpoint or "https://none")
        encrypted = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not encrypted or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(
                "must be https://HOST/v1/traces without a password: traces would be sent in the clear otherwise"
            )
        return endpoint
