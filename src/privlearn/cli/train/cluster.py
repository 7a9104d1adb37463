"""Options of `privlearn train` for an existing Dask cluster, and the rows that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.errors import InvalidParameter

if TYPE_CHECKING:
    from privlearn.data.parts import Part

ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="tls://HOST:PORT of a Dask scheduler whose workers keep the rows and return sums (how-to/cluster.md).",
    ),
]


def _pem(name: str, what: str) -> Any:
    return Annotated[Path | None, typer.Option(f"--cluster-{name}", metavar="PEM", help=what)]


ClusterCa = _pem("ca", "The authority that signed the cluster's certificates.")
ClusterCertificate = _pem("cert", "Your certificate for the cluster.")
ClusterKey = _pem("key", "Its key.")


PemFiles = tuple[Path | None, Path | None, Path | None]


def check_cluster(address: str | None, files: PemFiles, *, only_trained: bool) -> None:
    """Refuse certificates without a cluster, and searches or unfinished schemas on a cluster."""
    if address is None and any(files):
        raise InvalidParameter(
            "--cluster-ca, --cluster-cert and --cluster-key need a cluster. Add --cluster tls://HOST:PORT."
        )
    if address is not None and not only_trained:
        raise InvalidParameter(
            "--cluster trains one model. Omit --search, and complete the schema first (privlearn discover)."
        )


@contextmanager
def rows_on(address: str, files: PemFiles, table: str, part: Part | None) -> Iterator[Any]:
    """Open the table on the cluster's workers, as a part of a split."""
    from privlearn.estimators.cluster.rows import Cluster

    ca, certificate, key = files
    with Cluster(address, ca=ca, certificate=certificate, key=key) as cluster:
        rows = cluster.open_records(table)
        rows.part = part
        yield rows
