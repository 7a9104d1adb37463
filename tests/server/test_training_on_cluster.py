"""[training] cluster: workers count the records and train linear releases; the rest is the server's."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn import Ledger, SchemaError
from privlearn.estimators.cluster import ClusterRows
from privlearn.server import Service
from privlearn.server.access import Caller
from privlearn.server.holder import OfferedDataSet
from privlearn.server.jobs import queue
from privlearn.server.jobs import running as training
from tests.support.dask_cluster import cluster_here
from tests.support.service_support import load_clinic, model_request

ALICE = Caller("k1", "analyst", "alice")


def test_releases_are_trained_on_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(OfferedDataSet, "_read_and_check_here", lambda offered, rows: read.append("here"))
    training_rows = ClusterRows.training_rows

    def remembered(*arguments: object) -> object:
        read.append("there")
        return training_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ClusterRows, "training_rows", remembered)
    with cluster_here() as address:
        service = Service(load_clinic(tmp_path, server=f'[training]\ncluster = "{address}"\n'))
        assert service.catalog.check() == {"clinic": 300}
        service.ask(ALICE, model_request("clinic", "release", "logistic", 1.0, 1e-6))
        claimed = queue.claim(service.store)
        assert claimed is not None
        assert training.run_job(service.store, service.catalog, claimed) == ""
    assert read == ["there", "there"]
    assert Ledger.open(service.store, "clinic").statement().spent.epsilon == 1.0
    assert service._lock is not None
    service._lock.close()


def test_a_kernel_is_trained_by_the_server(tmp_path: Path) -> None:
    with cluster_here() as address:
        service = Service(load_clinic(tmp_path, server=f'[training]\ncluster = "{address}"\n'))
        service.ask(ALICE, model_request("clinic", "release", "kernel", 1.0, 1e-6))
        claimed = queue.claim(service.store)
        assert claimed is not None
        assert training.run_job(service.store, service.catalog, claimed) == ""
    assert service._lock is not None
    service._lock.close()


@pytest.mark.parametrize(
    ("address", "reason"),
    [("tcp://10.0.0.1:8786", "unencrypted"), ("tls://10.0.0.1:8786", "three PEM files")],
)
def test_a_cluster_without_certificates_is_refused(tmp_path: Path, address: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        load_clinic(tmp_path, server=f'[training]\ncluster = "{address}"\n')
