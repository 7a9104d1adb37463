"""`Cluster` and `ClusterRows`: a table on a cluster, as estimators take it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.parts import Part
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.addresses import StoredPath, TablePath, table_path
from privlearn.data.sources.row_source import EncodedRows, Matrix, RowIndices
from privlearn.data.sources.schema_columns import refuse_unclear_persons, schema_columns
from privlearn.errors import ClusterError, InvalidParameter
from privlearn.estimators.cluster.partition import Refusal, Setting
from privlearn.estimators.cluster.remote_rows import PartSource, RemoteRows
from privlearn.estimators.cluster.sources import FileParts, FrameParts, parts_of
from privlearn.estimators.cluster.workers import (
    ANSWER_TIME,
    FIRST_ANSWER_TIME,
    check_address,
    check_client,
    lost_scheduler,
)
from privlearn.estimators.reading import Resolve, class_targets, target_of
from privlearn.estimators.training_rows import NumberTargets, Targets, TrainingRows

if TYPE_CHECKING:
    from distributed import Client

_NEEDS_DASK = "this needs Dask: pip install 'privlearn[dask]'"


class Cluster:
    """An existing Dask cluster that may hold rows.

    Parameters
    ----------
    address : str
        ``tls://HOST:PORT`` of its scheduler; ``tcp://127.0.0.1:PORT`` for one on this machine.
    ca, certificate, key : path, optional
        In PEM format: the authority that signed the cluster's certificates, and your own certificate with its key.

    Examples
    --------
    ``with Cluster("tls://scheduler:8786", ca="ca.pem", certificate="me.pem", key="me.key") as cluster:``
    ``    model.fit(cluster.open_records("/data/visits"))``
    """

    def __init__(
        self,
        address: str,
        *,
        ca: str | Path | None = None,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
    ) -> None:
        check_address(address)
        files = {"ca": ca, "certificate": certificate, "key": key}
        if address.startswith("tls://") and None in files.values():
            raise InvalidParameter(
                f"a cluster at {address} requires a certificate. Give ca, certificate and key, three PEM files"
            )
        for name, file in files.items():
            if file is not None and not Path(file).is_file():
                raise InvalidParameter(f"{name}: {file} is not a file: check the path")
        self.client = _connect(address, ca, certificate, key)

    def open_records(self, path: str | TablePath) -> ClusterRows:
        """Return a file or directory that every worker can read under this name; nothing is read before `fit`."""
        location = table_path(path)
        return ClusterRows(self.client, location.absolute() if isinstance(location, Path) else location)

    def close(self) -> None:
        """Close the connection."""
        self.client.close(timeout=ANSWER_TIME)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _connect(address: str, ca: Any, certificate: Any, key: Any) -> Client:
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError:
        raise ClusterError(_NEEDS_DASK) from None
    security = None
    if address.startswith("tls://"):
        security = Security(
            require_encryption=True,
            tls_ca_file=str(ca),
            tls_client_cert=str(certificate),
            tls_client_key=str(key),
        )
    try:
        return Client(address, security=security, timeout=ANSWER_TIME, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        pass
    raise ClusterError(
        f"no connection to {address}: is a scheduler there, and are ca, certificate and key of the same cluster? "
        "Nothing was read"
    )


class ClusterRows:
    """A table that only the workers read: a path on their file system, or a Dask data frame.

    Parameters
    ----------
    client : distributed.Client
    source : Path, StoredPath or dask.dataframe.DataFrame
    """

    on_cluster = True

    def __init__(self, client: Client, source: Any) -> None:
        self._client, self._source = client, source
        self.part: Part | None = None
        """Public: the part of a split that the table is, if declared."""

    def training_rows(self, schema: Schema, fit_intercept: bool, resolve: Resolve) -> TrainingRows:
        """Touch the data: have the workers read and check it; refuse unsafe workers before."""
        target = target_of(schema)
        check_client(self._client)
        remote = RemoteRows(self._client, self._parts(schema), schema, secrets.token_bytes(32))
        remote.load()
        total = len(remote) if schema.person is None else remote.persons
        encoder = SchemaEncoder(schema, fit_intercept=fit_intercept, resolution=resolve(schema, total))
        features = FeaturesOnCluster(remote, encoder)
        averaged = None if schema.person is None else np.empty(0)
        return TrainingRows(
            features,
            encoder,
            _public_targets(target),
            total,
            averaged,
            schema.rows_per_person,
            row_weight_bound=schema.row_weight_bound,
        )

    def _parts(self, schema: Schema) -> PartSource:
        if not isinstance(self._source, Path | StoredPath):
            refuse_unclear_persons(schema, list(self._source.columns))
            return FrameParts(
                self._source[[name for name in schema_columns(schema) if name in self._source.columns]]
            )
        try:
            future = self._client.submit(parts_of, self._source, schema, pure=False)
            parts = future.result(timeout=FIRST_ANSWER_TIME)
        except Exception:
            raise lost_scheduler(self._client) from None
        if isinstance(parts, Refusal):
            raise parts.to_error()
        return FileParts(parts)


def rows_on_cluster(X: Any) -> ClusterRows:
    """Return a table that `is_on_cluster` as one; a Dask data frame is on its default cluster."""
    if isinstance(X, ClusterRows):
        return X
    try:
        from distributed import default_client
    except ImportError:
        raise ClusterError(_NEEDS_DASK) from None
    try:
        return ClusterRows(default_client(), X)
    except ValueError:
        raise ClusterError("a Dask data frame needs a cluster. Create a distributed.Client first") from None


def _public_targets(target: Target) -> Targets:
    """Return the declared target, without any row's answer."""
    if target.classes:
        return class_targets(target, np.empty(0, dtype=np.int8))
    assert target.bounds is not None
    return NumberTargets(np.empty(0), target.bounds)


class FeaturesOnCluster(EncodedRows):
    """Vectors that only the workers see.

    Parameters
    ----------
    remote : RemoteRows
    encoder : SchemaEncoder
    lift : callable, optional
        A further map, to ``dimension`` features.
    """

    on_cluster = True

    def __init__(
        self,
        remote: RemoteRows,
        encoder: SchemaEncoder,
        lift: Callable[[Matrix], Matrix] | None = None,
        dimension: int | None = None,
    ) -> None:
        self.remote, self.encoder, self.lift = remote, encoder, lift
        self._dimension = encoder.dimension if dimension is None else dimension
        self.is_sparse = encoder.is_sparse and lift is None

    def __len__(self) -> int:
        return len(self.remote)

    def setting(self, targets: Targets, total: int) -> Setting:
        return Setting(self.encoder, targets, total, self.lift, self._dimension)

    def apply(self, transform: Callable[[Matrix], Matrix], dimension: int) -> FeaturesOnCluster:
        return FeaturesOnCluster(self.remote, self.encoder, transform, dimension)

    def blocks(self) -> Iterator[Matrix]:
        _refuse()

    def take(self, indices: RowIndices) -> EncodedRows:
        _refuse()

    def in_memory(self) -> Matrix:
        _refuse()


def check_loss(smoothness: float) -> None:
    """Raise InvalidParameter for a loss that cannot be solved by sums over partitions."""
    if math.isinf(smoothness):
        raise InvalidParameter("loss='hinge' needs all rows in memory. Use loss='huber_hinge' on a cluster")


def _refuse() -> NoReturn:
    raise InvalidParameter(
        "this needs rows in memory, and they stay on the cluster. Fit PrivateLogisticRegression, PrivateSVC or "
        "PrivateRegressor there, without a kernel, and search with a method that does not divide the rows"
    )
