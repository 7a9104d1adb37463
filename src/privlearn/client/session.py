"""A session on a server, and the rows that are sent to it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from privlearn.client.connection import Connection
from privlearn.errors import DataError
from privlearn.guarantee import Guarantee
from privlearn.server.refusals import Conflict, TooLarge

if TYPE_CHECKING:
    from privlearn.release.certificate import Certificate
    from privlearn.release.session_certificate import SessionCertificate


ARROW = "application/vnd.apache.arrow.stream"


def rows_of(data: Any) -> tuple[pa.Table, bool]:
    """Return an Arrow table of the rows, and whether it was one point: a mapping from columns to single values."""
    from privlearn.data.sources.table import as_table  # late: it takes seconds

    if isinstance(data, Mapping) and not any(_is_column(value) for value in data.values()):
        return as_table({name: [value] for name, value in data.items()}), True
    if isinstance(data, list):
        if not all(isinstance(row, Mapping) for row in data):
            raise DataError("a list must hold one mapping per row, from columns to values")
        names = dict.fromkeys(name for row in data for name in row)
        return as_table({name: [row.get(name) for row in data] for name in names}), False
    return as_table(data), False


def to_arrow(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as stream:
        stream.write_table(table)
    return buffer.getvalue()


def from_arrow(raw: bytes) -> pa.Table:
    """Read an Arrow stream of the server."""
    try:
        return pa.ipc.open_stream(raw).read_all()
    except pa.ArrowException:
        raise DataError("the answer is not an Arrow stream. Check that this is a privlearn server.") from None


def _is_column(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray | pa.Array | pa.ChunkedArray) or hasattr(
        value, "to_numpy"
    )


_MAX_ROWS = 10_000


class RemoteSession:
    """A session on a server; it outlives this object, the process and restarts of the server.

    Leaving a ``with`` block closes it permanently: its cost stays spent, and it answers no more. Without one it stays
    open, and `Client.session` finds it again by its id.

    Attributes
    ----------
    id : str
    record : dict
        The server's description: data set, fields, state, whether it is a trial.
    certificate : Certificate or SessionCertificate
        The guarantee of all answers together, recomputed from its constants.
    """

    def __init__(self, connection: Connection, record: dict[str, Any]) -> None:
        self._connection = connection
        self.id: str = record["id"]
        self.record = record
        self.certificate = _read(record["certificate"])

    @property
    def guarantee(self) -> Guarantee:
        return self.certificate.guarantee

    def predict(self, rows: Any) -> Any:
        """Return the label or number of one point, or an array for several points.

        Parameters
        ----------
        rows : pandas, polars or pyarrow table, mapping from columns to arrays, or list of mappings
            The points. A mapping from columns to single values is one point.
        """
        table, single = rows_of(rows)
        predictions = np.array(self._ask(table)["prediction"].to_pylist())
        return predictions[0] if single else predictions

    def decide(self, rows: Any) -> pa.Table:
        """Return prediction, scores, probabilities and source of each row."""
        return self._ask(rows_of(rows)[0])

    def close(self) -> None:
        """Close the session permanently; do nothing if it is closed."""
        with suppress(Conflict):  # it is closed already, perhaps by a first attempt whose answer was lost
            self._connection.send("DELETE", f"/sessions/{self.id}")

    def __enter__(self) -> RemoteSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteSession {self.id} at {self._connection.url}: {self.guarantee}>"

    def _ask(self, table: pa.Table) -> pa.Table:
        answers: list[pa.Table] = []
        size, start = _MAX_ROWS, 0
        while start < table.num_rows or not answers:
            try:
                answers.append(self._ask_batch(table.slice(start, size)))
            except TooLarge:
                if size == 1:
                    raise
                size = (size + 1) // 2  # the holder's limit is lower
            else:
                start += size
        return pa.concat_tables(answers)

    def _ask_batch(self, batch: pa.Table) -> pa.Table:
        kinds = {"Content-Type": ARROW, "Accept": ARROW}
        path = f"/sessions/{self.id}/predictions"
        return from_arrow(self._connection.send("POST", path, headers=kinds, content=to_arrow(batch)).content)


def _read(record: dict[str, Any]) -> Certificate | SessionCertificate:
    """Return the certificate, recomputed from its constants; refuse one whose constants do not support its claim."""
    from privlearn.release.artifact import read_certificate
    from privlearn.release.session_certificate import FORMAT, SessionCertificate

    if record.get("format") == FORMAT:
        return SessionCertificate.from_dict(record)
    return read_certificate(record)
