"""Two real workers and a scheduler over TLS: the same release, nothing private on the wire, and processes that die."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from privlearn import (
    Cluster,
    ClusterError,
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateRegressor,
    Schema,
)
from privlearn.data.schema import FileFormat
from privlearn.estimators.cluster import RemoteRows
from privlearn.estimators.cluster.sources import _parts_of
from tests.support import dask_recording
from tests.support.dask_cluster import Authority, RunningCluster, kill, running_cluster

NUMBER = {"type": "number", "lower": 0, "upper": 1000, "encoding": "linear"}
SCHEMA = Schema.from_dict(
    {
        "name": "numbers",
        "columns": {"a": NUMBER, "b": NUMBER, "word": {"type": "category", "values": ["qwertz", "asdfgh"]}},
        "target": {"name": "y", "lower": 0, "upper": 1000},
    }
)
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "random_state": 7, "schema": SCHEMA}
PARTS, ROWS = 6, 500


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("recording")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECORDING", str(folder))
        patch.setattr("distributed.comm.tcp.to_frames", dask_recording.recorded)
        yield folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, recording: Path) -> Iterator[RunningCluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def connected(cluster: RunningCluster) -> Iterator[Cluster]:
    with cluster.connect() as connection:
        yield connection


def table(part: int) -> pa.Table:
    generator = np.random.default_rng(part)
    a, b = generator.uniform(0, 1000, (2, ROWS))
    words = np.where(a > 500, "qwertz", "asdfgh")
    return pa.table({"a": a, "b": b, "word": words, "y": np.clip(a - b / 2, 0, 1000)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = tmp_path / "rows"
    rows.mkdir()
    for part in range(PARTS):
        parquet.write_table(table(part), rows / f"{part}.parquet")
    return rows


def whole() -> pa.Table:
    return pa.concat_tables([table(part) for part in range(PARTS)])


def check_same(there: PrivateRegressor) -> None:
    """The same certificate, and both within the certified distance of one minimiser."""
    here = PrivateRegressor(**PROMISE).fit(whole())
    assert there.certificate_ == here.certificate_
    task = here.certificate_.mechanism.task
    apart = float(np.linalg.norm(there.coefficients_ - here.coefficients_))
    assert apart <= 2 * task.tolerance / task.regularization


def sent(recording: Path, phase: str) -> bytes:
    return b"".join(path.read_bytes() for path in recording.glob(f"{phase}-*"))


def cells_in(message: bytes) -> int:
    """Count the cells of the marked columns in it: as floats, scaled ones too, or as text."""
    rows = whole()
    a = rows.column("a").to_numpy()
    marked = [*a, *(a / 1000.0), *(2.0 * (a / 1000.0) - 1.0)]
    return sum(np.float64(cell).tobytes() in message for cell in marked[::7]) + message.count(b"qwertzasdfgh")


def test_the_same_release_and_no_row_on_the_wire(
    connected: Cluster, folder: Path, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = RemoteRows.load

    def marking(remote: RemoteRows) -> None:
        load(remote)
        (recording / "loaded").touch()

    monkeypatch.setattr(RemoteRows, "load", marking)
    model = PrivateRegressor(**PROMISE).fit(connected.open_records(folder))
    after = sent(recording, "after")
    assert len(list(recording.glob("after-*"))) == 4  # scheduler, two workers, caller
    assert b"PartitionRows.sums" in after
    assert cells_in(after) == 0
    assert cells_in(sent(recording, "before")) == 0  # workers read the files themselves
    check_same(model)
    (recording / "loaded").unlink()


def test_the_recording_would_have_seen_a_row(connected: Cluster, recording: Path) -> None:
    with connected.client.as_current():
        frame = dd.from_pandas(whole().to_pandas(), npartitions=PARTS, sort=False)  # rows of the caller
        model = PrivateRegressor(**PROMISE).fit(frame)
    assert cells_in(sent(recording, "before")) > 100
    check_same(model)


def test_a_frame_that_workers_read(connected: Cluster, folder: Path) -> None:
    with connected.client.as_current():
        check_same(PrivateRegressor(**PROMISE).fit(dd.read_parquet(str(folder))))


def test_a_killed_worker_is_replaced(cluster: RunningCluster, connected: Cluster, folder: Path) -> None:
    rows = connected.open_records(folder)
    expected = PrivateRegressor(**PROMISE).fit(rows).coefficients_
    victim = cluster.workers[0]

    def progress(problem: int, problems: int, iteration: int) -> None:
        if iteration == 1:
            kill(victim)

    there = PrivateRegressor(**PROMISE, progress=progress).fit(rows)
    assert victim.poll() is not None
    np.testing.assert_array_equal(there.coefficients_, expected)
    cluster.workers.remove(victim)
    cluster.add_worker()
    connected.client.wait_for_workers(2, timeout=60)


def test_rows_that_change_meanwhile_are_refused(
    cluster: RunningCluster, connected: Cluster, folder: Path
) -> None:
    victim = cluster.workers[0]

    def progress(problem: int, problems: int, iteration: int) -> None:
        if iteration == 1:
            for part in range(PARTS):
                parquet.write_table(table(part + 100), folder / f"{part}.parquet")
            kill(victim)

    with pytest.raises(ClusterError, match="have changed: rows must not change"):
        PrivateRegressor(**PROMISE, progress=progress).fit(connected.open_records(folder))
    cluster.workers.remove(victim)


def test_another_authority_s_certificate_is_refused(cluster: RunningCluster, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    certificate, key = other.issue("eve")
    for ca in (cluster.authority.ca, other.ca):
        with pytest.raises(ClusterError, match="Nothing was read"):
            Cluster(cluster.address, ca=ca, certificate=certificate, key=key)


def test_no_certificate_is_refused(cluster: RunningCluster) -> None:
    with pytest.raises(InvalidParameter, match="Give ca, certificate and key"):
        Cluster(cluster.address)
    with pytest.raises(ClusterError, match="Nothing was read"):
        Cluster(cluster.address.replace("tls://", "tcp://"))


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:8786", "10.0.0.1:8786", "ws://127.0.0.1:1", "tcp://scheduler:1"]
)
def test_rows_are_not_sent_in_the_clear(address: str) -> None:
    with pytest.raises(InvalidParameter, match="unencrypted"):
        Cluster(address)


def test_a_folder_that_workers_do_not_have(connected: Cluster, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a worker finds no .*shared file system"):
        PrivateRegressor(**PROMISE).fit(connected.open_records(tmp_path / "elsewhere"))


def test_logs_have_neither_rows_nor_coefficients(cluster: RunningCluster, connected: Cluster) -> None:
    wrong = whole().set_column(3, "y", pa.array([None] * (PARTS * ROWS), pa.float64()))
    with connected.client.as_current(), pytest.raises(DataError, match="missing cells"):
        PrivateRegressor(**PROMISE).fit(dd.from_pandas(wrong.to_pandas(), npartitions=2, sort=False))
    logs = cluster.logs()
    assert "Compute Failed" not in logs
    assert "qwertz" not in logs


def test_a_dead_scheduler_ends_the_fit_and_the_error_says_what_was_paid(tmp_path: Path, folder: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "numbers", Guarantee(2.0, 1e-5))
    promise = PROMISE | {"random_state": None}
    with running_cluster(tmp_path, workers=1) as doomed, doomed.connect() as connection:

        def progress(problem: int, problems: int, iteration: int) -> None:
            kill(doomed.scheduler)

        model = PrivateRegressor(**promise, ledger=ledger, progress=progress)
        with pytest.raises(ClusterError, match=r"no longer answers.*epsilon = 1.*stands in the ledger"):
            model.fit(connection.open_records(folder))
    assert ledger.statement().reserved.epsilon == 1.0


def test_a_large_file_is_divided_and_every_row_is_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privlearn.estimators.cluster.sources.MIN_ROWS", 70)
    parquet.write_table(table(0), tmp_path / "0.parquet", row_group_size=100)
    parts = _parts_of(str(tmp_path), SCHEMA)
    blocks = [block for part in parts for block in part.rows(SCHEMA).blocks()]
    assert len(parts) == 8
    np.testing.assert_array_equal(pa.concat_tables(blocks).column("a"), table(0).column("a"))


def test_codes_for_gaps_are_gaps_on_workers_too(tmp_path: Path) -> None:
    parquet.write_table(table(0), tmp_path / "0.parquet")
    code = str(table(0).column("a")[0].as_py())
    coded = SCHEMA.model_copy(update={"file": FileFormat(missing_in={"a": (code,)})})
    (part,) = _parts_of(str(tmp_path), coded)
    found = pa.concat_tables(part.rows(coded).blocks()).column("a")
    assert found[0].as_py() is None
    assert found.null_count < len(found)
