"""Fits on a cluster inside this process: the same releases as in memory, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest
from distributed import Client

from privlearn import (
    ClusterError,
    DataError,
    InvalidParameter,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
)
from privlearn.data import Resolution, census_schema, simulated_census
from privlearn.estimators.cluster import ClusterRows, FeaturesOnCluster, workers
from privlearn.estimators.cluster.partition import Partition
from privlearn.estimators.cluster.sources import FrameParts
from privlearn.estimators.cluster.workers import WorkerProperties
from tests.support.waiting import until

PEOPLE = simulated_census(3000, 5)
SCHEMA = census_schema()
CONFIGURATION = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        dask.config.set(CONFIGURATION),
        Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
    ):
        yield client


def frame(table: pa.Table, partitions: int = 3) -> dd.DataFrame:
    return dd.from_pandas(table.to_pandas(), npartitions=partitions, sort=False)


def schema_with(**changes: Any) -> Schema:
    return Schema.from_dict(SCHEMA.to_dict() | changes)


def check_alike(model: Any, table: pa.Table = PEOPLE, partitions: int = 3) -> None:
    """The same certificate, and coefficients that both lie within the certified distance of the minimiser."""
    here, there = type(model)(**model.get_params()), type(model)(**model.get_params())
    here.fit(table)
    there.fit(frame(table, partitions))
    assert there.certificate_ == here.certificate_
    mechanism = here.certificate_.mechanism
    distance = mechanism.task.tolerance / mechanism.task.regularization
    apart = float(np.linalg.norm(there.coefficients_ - here.coefficients_))
    assert apart <= 2 * distance + 1e-9 * float(np.linalg.norm(here.coefficients_))


PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "random_state": 7}


def test_two_classes(client: Client) -> None:
    check_alike(PrivateLogisticRegression(**PROMISE, schema=SCHEMA))


def test_class_weights_and_probabilities(client: Client) -> None:
    weights = {label: 1.0 + place for place, label in enumerate(SCHEMA.target.classes)}  # type: ignore[union-attr]
    check_alike(PrivateSVC(**PROMISE, schema=SCHEMA, class_weight=weights))
    check_alike(PrivateSVC(**PROMISE, schema=SCHEMA, probability=True))


def three_classes(loss: str) -> PrivateLogisticRegression:
    name = next(name for name, column in SCHEMA.columns.items() if getattr(column, "values", None))
    values = list(SCHEMA.columns[name].values)  # type: ignore[union-attr]
    kept = {other: column for other, column in SCHEMA.to_dict()["columns"].items() if other != name}
    schema = schema_with(columns=kept, target={"name": name, "classes": values})
    return PrivateLogisticRegression(**PROMISE, schema=schema, loss=loss)


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_several_classes(client: Client, loss: str) -> None:
    check_alike(three_classes(loss))


def numbers_schema(**changes: Any) -> Schema:
    number = {"type": "number", "lower": -1, "upper": 1, "encoding": "linear"}
    columns = {"a": number, "b": number}
    target = {"name": "y", "lower": -1, "upper": 1}
    return Schema.from_dict({"name": "numbers", "columns": columns, "target": target} | changes)


def numbers(rows: int) -> pa.Table:
    generator = np.random.default_rng(1)
    a, b = generator.uniform(-1, 1, (2, rows))
    return pa.table({"a": a, "b": b, "y": np.clip(a - b / 2, -1, 1), "who": generator.integers(0, 40, rows)})


@pytest.mark.parametrize("centre", ["auto", True, False])
def test_a_regression_and_its_centre(client: Client, centre: str | bool) -> None:
    check_alike(PrivateRegressor(**PROMISE, schema=numbers_schema(), centre=centre), numbers(2000))


def test_persons_with_rows_in_several_partitions(client: Client) -> None:
    check_alike(
        PrivateRegressor(**PROMISE, accept_weak_privacy=True, schema=numbers_schema(person="who")),
        numbers(900),
    )


def test_a_private_number_of_records(client: Client) -> None:
    promise = PROMISE | {"neighbours": "add_remove", "expected_records": 3000}
    check_alike(PrivateLogisticRegression(**promise, schema=SCHEMA))


def test_empty_partitions(client: Client) -> None:
    check_alike(PrivateRegressor(**PROMISE, schema=numbers_schema()), numbers(30), partitions=1)
    table = numbers(30).to_pandas()
    divided = dd.concat([dd.from_pandas(part, npartitions=1) for part in (table, table[:0], table[:1])])
    model = PrivateRegressor(**PROMISE, schema=numbers_schema()).fit(divided)
    assert model.certificate_.mechanism.task.total == 31


def test_rows_are_let_go_after_a_fit_and_after_its_failure(client: Client) -> None:
    def held() -> set[str]:
        return {key for keys in client.has_what().values() for key in keys}

    before = held()  # errors of other tests may hold some
    PrivateRegressor(**PROMISE, schema=numbers_schema()).fit(frame(numbers(100)))
    nobody = numbers(100).set_column(3, "who", pa.array([None] * 100, pa.string()))
    with pytest.raises(DataError, match="every row needs its person") as failed:
        PrivateRegressor(**PROMISE, schema=numbers_schema(person="who")).fit(frame(nobody))
    assert failed.traceback
    until(lambda: held() <= before, 60)


def test_what_does_not_fit_is_said_without_a_cell(client: Client) -> None:
    table = numbers(100).set_column(2, "y", pa.array([None, *[0.5] * 99]))
    with pytest.raises(DataError, match="missing cells"):
        PrivateRegressor(**PROMISE, schema=numbers_schema()).fit(frame(table))


def refusing(X: Any, model: Any, match: str) -> None:
    with pytest.raises(InvalidParameter, match=match):
        model.fit(X)


def test_what_needs_rows_here_is_refused(client: Client) -> None:
    people = frame(PEOPLE)
    refusing(people, PrivateSVC(**PROMISE, schema=SCHEMA, loss="hinge", mechanism="output"), "huber_hinge")
    refusing(people, PrivateSVC(**PROMISE, schema=SCHEMA, kernel="rbf"), "without a kernel")
    grid = {"regularization": [0.1, 1.0]}
    learner = PrivateLogisticRegression(schema=SCHEMA)
    search = PrivateGridSearch(learner, grid, epsilon=1.0, delta=1e-6, method="partition")
    refusing(people, search, "does not divide the rows")
    with pytest.raises(InvalidParameter, match="leave out y"):
        PrivateLogisticRegression(**PROMISE, schema=SCHEMA).fit(people, [1])
    with pytest.raises(InvalidParameter, match="Pass schema"):
        PrivateLogisticRegression(**PROMISE, norm_bound=1.0, classes=[0, 1]).fit(people)


def test_doubts_about_persons_are_refused(client: Client) -> None:
    table = numbers(100).rename_columns(["a", "b", "y", "patient_id"])
    with pytest.raises(ValueError, match="patient_id"):
        PrivateRegressor(**PROMISE, schema=numbers_schema()).fit(frame(table))


def test_another_version_is_refused_before_a_row_is_read(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_properties", lambda answer, worker: WorkerProperties("0.0", False))
    rows = ClusterRows(client, frame(PEOPLE))
    monkeypatch.setattr(rows, "_parts", None)
    with pytest.raises(ClusterError, match=r"has privlearn 0.0, the caller .*. Install the same everywhere"):
        PrivateLogisticRegression(**PROMISE, schema=SCHEMA).fit(rows)


def test_a_worker_in_the_clear_that_came_later_is_refused_before_rows_are_read_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ClusterRows(client, frame(PEOPLE)).training_rows(
        SCHEMA, True, lambda schema, persons: Resolution()
    )
    features = rows.features
    assert isinstance(features, FeaturesOnCluster)
    features.remote.release_rows()
    monkeypatch.setattr(workers, "alive", lambda client: {"tcp://10.0.0.1:1"})
    monkeypatch.setattr(FrameParts, "start", None)
    with pytest.raises(ClusterError, match="unencrypted"):
        features.remote.total(features.setting(rows.targets, rows.total), Partition.mass)


def test_workers_that_may_write_rows_to_disk_are_refused() -> None:
    with (
        dask.config.set(dict.fromkeys(CONFIGURATION, 0.6)),
        Client(
            processes=False,
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            memory_limit="1GB",
        ),
        pytest.raises(ClusterError, match="may write rows to its disk"),
    ):
        PrivateLogisticRegression(**PROMISE, schema=SCHEMA).fit(frame(PEOPLE))


def test_a_frame_without_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "distributed.default_client", lambda: int("no client")
    )  # a ValueError, as Dask raises
    with pytest.raises(ClusterError, match=r"distributed\.Client first"):
        PrivateLogisticRegression(**PROMISE, schema=SCHEMA).fit(frame(PEOPLE))
