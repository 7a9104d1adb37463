"""Kinds of bodies: what a request says it sends and what it accepts."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv as arrow_csv
from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response

from privlearn.service.api.arrow_text import write_arrow
from privlearn.service.api.problems import NotOffered, UnknownKind

Kind = Literal["application/json", "text/csv", "application/vnd.apache.arrow.stream"]
JSON: Kind = "application/json"
CSV: Kind = "text/csv"
ARROW: Kind = "application/vnd.apache.arrow.stream"
KINDS: tuple[Kind, ...] = (JSON, CSV, ARROW)


def kind_sent(request: Request, allowed: Sequence[str] = KINDS) -> Any:
    """What the body is, by its Content-Type."""
    header = request.headers.get("content-type", "")
    kind, _, parameters = header.partition(";")
    kind = kind.strip().lower()
    if kind not in allowed:
        raise UnknownKind(f"send the body as {' or '.join(allowed)}, and say so in Content-Type")
    charset = _charset(parameters)
    if charset not in ("", "utf-8", "utf8", "us-ascii"):
        raise UnknownKind("send text in UTF-8")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnknownKind("send the body as it is, without Content-Encoding")
    return kind


def kind_accepted(request: Request, otherwise: Kind) -> Kind:
    """What the answer shall be, by Accept; of kinds accepted alike, that which comes first."""
    accepted = sorted(_accepted(request.headers.get("accept", "*/*")), key=lambda entry: -entry[1])
    for pattern, quality in accepted:
        if quality > 0.0 and pattern in ("*/*", ""):
            return otherwise
        for kind in (otherwise, *KINDS):
            if quality > 0.0 and (pattern == kind or pattern == f"{kind.split('/')[0]}/*"):
                return kind
    raise NotOffered(f"the answer can be {', '.join(KINDS)}: name one of them in Accept")


def table_answer(table: pa.Table, kind: Kind) -> Response:
    """A table as rows: objects in JSON, lines in CSV, or an Arrow stream."""
    if kind == JSON:
        return Response(to_json({"rows": table.to_pylist()}), media_type=JSON)
    return Response(table_bytes(table, kind), media_type=kind)


def table_bytes(table: pa.Table, kind: Kind) -> bytes:
    """A table in CSV or Arrow."""
    if kind == ARROW:
        return write_arrow(table)
    text = io.BytesIO()
    arrow_csv.write_csv(table, text)
    return text.getvalue()


def _accepted(header: str) -> list[tuple[str, float]]:
    entries = []
    for entry in header.split(","):
        pattern, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            entries.append((pattern, float(quality)))
        except ValueError:
            entries.append((pattern, 0.0))
    return entries


def _charset(parameters: str) -> str:
    for part in parameters.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""
