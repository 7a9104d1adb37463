"""What a worker keeps never leaves it, whatever Dask does with it."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from privlearn.data import Schema, SchemaEncoder
from privlearn.errors import ClusterError, DataError
from privlearn.estimators.cluster import partition
from privlearn.estimators.cluster.partition import (
    Gone,
    Partition,
    Query,
    Receipt,
    Refusal,
    Setting,
    add_answers,
    answer_query,
    count_persons,
    load,
    set_weights,
)
from privlearn.estimators.cluster.workers import WorkerProperties
from privlearn.estimators.reading import class_targets, target_of

MARK = 1234.56789
SCHEMA = Schema.from_dict(
    {
        "name": "visits",
        "columns": {"cost": {"type": "number", "lower": 0, "upper": 10_000}},
        "target": {"name": "ill", "classes": ["no", "yes"]},
        "person": "patient",
    }
)
VISITS = pa.table({"cost": [MARK, 2.0, 3.0], "ill": ["no", "yes", "no"], "patient": ["Ann", "Bo", "Ann"]})
SECRET = b"of this fit"


@pytest.fixture(autouse=True)
def _on_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_address", lambda: "tls://here:1")
    monkeypatch.setattr(WorkerProperties, "here", classmethod(lambda cls: cls("1", False)))


def loaded(table: pa.Table = VISITS, secret: bytes = SECRET) -> Partition:
    found = load(table, SCHEMA, secret, "1")
    assert isinstance(found, Partition)
    return found


def test_pickled_it_is_its_receipt() -> None:
    pickled = pickle.dumps(loaded())
    assert isinstance(pickle.loads(pickled), Receipt)
    assert np.float64(MARK).tobytes() not in pickled
    assert b"Ann" not in pickled
    assert len(pickled) < 300


def test_its_receipt_cannot_be_asked() -> None:
    query, partition = Query(Partition.here, ()), loaded()
    assert answer_query(partition, query, partition.receipt.token) == ()
    assert isinstance(answer_query(partition.receipt, query, partition.receipt.token), Gone)


def test_one_that_was_read_again_unasked_is_gone() -> None:
    """As Dask does when a worker starts again at its old address."""
    known, again = loaded().receipt, loaded()
    assert again.receipt.digest == known.digest
    assert isinstance(answer_query(again, Query(Partition.here, ()), known.token), Gone)
    assert isinstance(set_weights(again, np.ones(2), known.token), Gone)


def test_rows_of_persons_without_weights_are_not_equipped() -> None:
    setting = Setting(SchemaEncoder(SCHEMA), class_targets(target_of(SCHEMA), np.empty(0, dtype=np.int8)), 2)
    partition = loaded()
    assert isinstance(partition.prepare(setting), Gone)
    assert set_weights(partition, np.array([0.5, 1.0]), partition.receipt.token) == ()
    assert partition.prepare(setting) == ()
    assert partition.mass() == (2.0,)


def test_the_digest_follows_every_cell_and_the_secret() -> None:
    known = loaded().receipt.digest
    assert loaded().receipt.digest == known
    for name, cells in {
        "cost": [MARK, 2.0, 4.0],
        "ill": ["no", "yes", "yes"],
        "patient": ["Ann", "Bo", "Cy"],
    }.items():
        place = VISITS.column_names.index(name)
        assert loaded(VISITS.set_column(place, name, pa.array(cells))).receipt.digest != known
    assert loaded(secret=b"of another").receipt.digest != known


def test_what_does_not_fit_is_a_value_and_not_raised_on_the_worker() -> None:
    refused = load(VISITS.set_column(1, "ill", pa.array(["no", "maybe", "no"])), SCHEMA, SECRET, "1")
    assert isinstance(refused, Refusal)
    assert isinstance(refused.to_error(), DataError)
    assert "maybe" not in refused.message


def test_an_unexpected_error_loses_its_text() -> None:
    def fail(partition: Partition) -> tuple[str, ...]:
        raise RuntimeError(f"the cell {MARK}")

    partition = loaded()
    refused = answer_query(partition, Query(fail, ()), partition.receipt.token)
    assert isinstance(refused, Refusal)
    assert refused.kind is ClusterError
    assert str(MARK) not in refused.message


@pytest.mark.parametrize("facts", [WorkerProperties("2", False), WorkerProperties("1", True)])
def test_a_worker_that_must_not_reads_nothing(
    facts: WorkerProperties, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerProperties, "here", classmethod(lambda cls: facts))
    monkeypatch.setattr(partition, "read_columns", None)
    refused = load(VISITS, SCHEMA, SECRET, "1")
    assert isinstance(refused, Refusal)
    assert (
        "Install the same" in refused.message
        or "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL=False" in refused.message
    )


def test_a_worker_in_the_clear_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "_address", lambda: "tcp://10.0.0.1:1")
    monkeypatch.setattr(partition, "read_columns", None)
    refused = load(VISITS, SCHEMA, SECRET, "1")
    assert isinstance(refused, Refusal)
    assert "unencrypted" in refused.message


def test_reprs_say_nothing() -> None:
    partition = loaded()
    shown = repr(partition) + repr(partition.receipt) + repr(Query(Partition.here, [MARK]))
    assert str(MARK) not in shown
    assert "rows=3" not in shown


def test_persons_are_counted_across_partitions() -> None:
    other = VISITS.slice(0, 1)
    found = count_persons(loaded().persons(), loaded(other).persons())
    assert found.count == 2
    np.testing.assert_array_equal(found.shares[0], [1 / 3, 1.0])
    np.testing.assert_array_equal(found.shares[1], [1 / 3])


def test_a_person_s_key_follows_from_the_secret() -> None:
    keys, counts = loaded().persons()
    assert counts.tolist() == [2, 1]
    assert not np.isin(loaded(secret=b"of another").persons()[0], keys).any()


def test_sums_keep_what_is_no_answer() -> None:
    assert add_answers((np.ones(2), 1.0), (np.ones(2), 2.0))[0].tolist() == [2.0, 2.0]
    assert isinstance(add_answers((1.0,), Gone()), Gone)
