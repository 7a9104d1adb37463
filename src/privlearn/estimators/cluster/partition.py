"""The worker's side: read a part of the rows, keep its cells in memory, answer queries with sums.

Two things are called shares: a `Share` is a problem on a part of the rows, and the shares of persons are the weights
of their rows.

Nothing here raises on a worker: Dask writes the arguments of a failing task, which may be rows of a data frame, into
the worker's log. A refusal is a value that the caller raises.
"""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privlearn.arrays import Array, product
from privlearn.data.encoding.column_cells import people
from privlearn.data.encoding.encoder import Bounds, SchemaEncoder
from privlearn.data.encoding.packed_cells import PackedCells
from privlearn.data.encoding.row_weights import has_cap, row_shares
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import EncodedRows, Matrix, RowSource
from privlearn.errors import ClusterError, PrivlearnError
from privlearn.estimators.cluster.workers import WorkerProperties, check_address
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.estimators.reading import class_targets, read_columns, target_of
from privlearn.estimators.training_rows import ClassTargets, NumberTargets, Targets, TrainingRows
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import Encoder
from privlearn.solvers.losses import Loss
from privlearn.solvers.multinomial import Softmax
from privlearn.solvers.objective import Objective
from privlearn.solvers.problem import Problem, Rows, sample_rows
from privlearn.solvers.summed import Answer, PartitionRows, sums_in_order


@dataclass(frozen=True, repr=False)
class Receipt:
    """PRIVATE: properties of a partition for the caller; also what a partition becomes when it is pickled.

    Attributes
    ----------
    rows : int
    digest : bytes
        Digest of all its cells, under a key of this fit: a partition that is read again must be equal.
    worker : str
        Address of the only worker that has its cells.
    token : str
        Random, for each reading. When a worker restarts at its old address, Dask reads the rows again without
        being asked to: that partition has no weights and an unchecked digest.
    """

    rows: int
    digest: bytes
    worker: str
    token: str


@dataclass(frozen=True, repr=False)
class Refusal:
    """An error for the caller to raise, with a message that quotes no cell."""

    kind: type[PrivlearnError]
    message: str

    def to_error(self) -> PrivlearnError:
        """Return the error, to be raised by the caller."""
        return self.kind(self.message)


@dataclass(frozen=True)
class Gone:
    """A worker's answer if it does not have a partition's cells, or has them from another reading."""


def or_refusal(work: Callable[[], Any]) -> Any:
    """Return the result of the work, or the error as a `Refusal`."""
    try:
        return work()
    except PrivlearnError as error:
        return Refusal(type(error), str(error))
    except Exception as error:  # whose text may quote a cell
        return Refusal(
            ClusterError, f"a worker failed with {type(error).__name__}: its memory may be too small"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Setting:
    """Public: how cells become rows.

    Parameters
    ----------
    encoder : SchemaEncoder
    targets : Targets
        Without any row's answer.
    total : int
        Public number of records or persons.
    lift, dimension : callable and int, optional
        A further map of the encoder's vectors, such as centring, and its number of features.
    """

    encoder: SchemaEncoder
    targets: Targets
    total: int
    lift: Callable[[Matrix], Matrix] | None = None
    dimension: int = 0

    def features(self, cells: PackedCells) -> EncodedRows:
        rows = self.encoder.expand_lazily(cells)
        return rows if self.lift is None else rows.apply(self.lift, self.dimension)

    def with_public_parts(self, targets: Targets) -> Targets:
        """Return a partition's targets with the class weights and offsets, which are public or released."""
        targets = replace(targets, score_map=self.targets.score_map)
        if isinstance(targets, ClassTargets):
            return replace(targets, class_weights=cast(ClassTargets, self.targets).class_weights)
        return targets


@dataclass(frozen=True)
class Share:
    """Public: one problem over every ``stride``-th row, as a share of ``total`` records."""

    number: int
    loss: Loss
    total: int
    stride: int = 1


class Partition:
    """PRIVATE: some rows' cells, on the worker that read them.

    It is pickled as its receipt: if Dask moves, copies, gathers or spills it, no row leaves the worker.
    """

    def __init__(
        self,
        receipt: Receipt,
        cells: PackedCells,
        targets: Targets,
        owners: Owners | None,
        *,
        within_person: Array | None = None,
        relative_weights: Array | None = None,
        row_weight_bound: float = 1.0,
    ) -> None:
        self.receipt = receipt
        self._cells, self._targets, self._owners = cells, targets, owners
        self._within_person = within_person
        self._capped: dict[str, Any] = {
            "relative_weights": relative_weights,
            "row_weight_bound": row_weight_bound,
        }
        self._weights: Array | None = None
        self._rows: TrainingRows | None = None
        self._shares: dict[Share, PartitionRows] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self.receipt.rows, self.receipt.digest, self.receipt.worker, self.receipt.token)

    def here(self) -> Answer:
        """Return an empty answer: it shows the caller that the worker has the cells."""
        return ()

    def persons(self) -> Answer:
        """Return the keys of the persons, their numbers of rows in this partition, and sums of weights within them."""
        owners = cast(Owners, self._owners)
        rows, within = np.bincount(owners.of_row, minlength=len(owners.keys)), self._within_person
        masses = () if within is None else (np.bincount(owners.of_row, weights=within, minlength=len(rows)),)
        return owners.keys, rows, *masses

    def set_person_weights(self, shares: Array) -> Answer:
        """Store what a row of each person counts per unit of its weight, in the order of `persons`."""
        self._weights = product(self._within_person, shares[cast(Owners, self._owners).of_row])
        return ()

    def prepare(self, setting: Setting) -> Answer | Gone:
        """Encode the cells in this setting; refuse while the weights of persons are missing."""
        if self._owners is not None and self._weights is None:
            return Gone()
        self._shares = {}
        self._rows = TrainingRows(
            setting.features(self._cells),
            cast(Encoder, setting.encoder),
            setting.with_public_parts(self._targets),
            setting.total,
            self._weights,
            **self._capped,
        )
        return ()

    def mass(self) -> Answer:
        """PRIVATE: return the sum of the rows' weights."""
        weights = self.rows.weights
        return (float(len(self._cells) if weights is None else weights.sum()),)

    def ask_oracle(self, task: Task, answer: Callable[..., Any], *arguments: Any) -> Answer:
        """PRIVATE: return one of the oracle's sums."""
        return (answer(MemoryOracle(self.rows, task), *arguments),)

    def ask_share(self, share: Share, answer: Callable[..., Answer], *arguments: Any) -> Answer:
        """PRIVATE: return one of a problem's sums."""
        if share not in self._shares:
            self._shares[share] = PartitionRows(self._objective(share))
        return answer(self._shares[share], *arguments)

    @property
    def rows(self) -> TrainingRows:
        return cast(TrainingRows, self._rows)

    def _objective(self, share: Share) -> Objective | Softmax:
        """Return a problem's objective, without the regularization and the linear term, which the caller adds."""
        rows, targets, some = self.rows, self.rows.targets, slice(None, None, share.stride)
        features = rows.features if share.stride == 1 else sample_rows(rows.features, share.stride)
        weights = None if rows.weights is None else rows.weights[some]
        if share.loss.argument == "classes":
            return _softmax(features, cast(ClassTargets, targets), some, weights, share)
        offsets = targets.offsets[share.number]
        return Objective(
            Problem(
                features,
                targets.signs[share.number][some],
                share.loss,
                1.0,
                share.total,
                weights,
                offsets=None if offsets is None else offsets[some],
            )
        )


def _softmax(
    features: Any, targets: ClassTargets, some: slice, weights: Array | None, share: Share
) -> Softmax:
    rows, classes = Rows(features, 1.0), len(targets.classes)
    scales = (np.ones(rows.count) if weights is None else weights) / share.total
    linear = np.zeros(classes * rows.dimension)
    return Softmax(rows, targets.labels[some], classes, 1.0, scales, 1.0, linear, targets.base)


@dataclass(frozen=True, repr=False, eq=False)
class Owners:
    """PRIVATE: the person of each row; a person's key is a keyed digest of the identifier."""

    of_row: NDArray[np.int64]
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, column: Any, label: str, secret: bytes) -> Owners:
        of_row, names = people(column, label)
        digests = (hashlib.blake2b(name.encode(), digest_size=16, key=secret).digest() for name in names)
        return cls(of_row, np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2))


def load(part: Any, schema: Schema, secret: bytes, version: str) -> Partition | Refusal:
    """Touch the data: return a part of it as packed cells; refuse cells that do not fit the schema.

    ``part`` is `Readable`, or a table in memory. The worker is checked here too: it may be newer than the caller's
    check.
    """
    return cast(Partition | Refusal, or_refusal(lambda: _load(part, schema, secret, version)))


def _load(part: Any, schema: Schema, secret: bytes, version: str) -> Partition:
    address = _address()
    check_address(address)
    WorkerProperties.here().check(version, address)
    source = part.rows(schema) if isinstance(part, Readable) else part
    encoder, target = SchemaEncoder(schema), target_of(schema)
    read_answers = encoder.encode_labels if target.classes else encoder.encode_targets
    answers, read = read_columns(encoder, source, None, read_answers)
    targets: Targets = NumberTargets(answers, cast(Bounds, target.bounds))
    if target.classes:
        targets = class_targets(target, answers.astype(np.min_scalar_type(-len(target.classes))))
    owners, weights = None, read.weighing.weights
    if schema.person is not None:
        owners = Owners.of(read.weighing.person_column, f"column {schema.person!r}", secret)
    digest = _digest(read.cells, [answers, weights], owners, secret)
    receipt = Receipt(len(read.cells), digest, address, secrets.token_hex(16))
    is_capped = has_cap(schema.weight)
    return Partition(
        receipt,
        read.cells,
        targets,
        owners,
        within_person=None if is_capped else weights,
        relative_weights=weights if is_capped else None,
        row_weight_bound=schema.row_weight_bound,
    )


class Readable(ABC):
    """A part of the rows that a worker reads itself."""

    @abstractmethod
    def rows(self, schema: Schema) -> RowSource[Any]:
        """Touch the data, on the worker: return its rows."""


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _digest(
    cells: PackedCells, columns_of_numbers: Sequence[Any], owners: Owners | None, secret: bytes
) -> bytes:
    digest = hashlib.blake2b(key=secret)
    arrays = [column for column in columns_of_numbers if column is not None]
    arrays += [] if owners is None else [owners.of_row, owners.keys]
    columns: Iterable[Any] = (column for block in cells.blocks() for column in block.values())
    for array in chain(arrays, columns):
        is_sparse = isinstance(array, sparse.csr_array)
        for part in (array.data, array.indices, array.indptr) if is_sparse else (array,):
            digest.update(np.ascontiguousarray(part).tobytes())
    return digest.digest()


class Query:
    """A query to a partition; without a repr from which a log could quote coefficients."""

    def __init__(self, answer: Callable[..., Answer | Gone], arguments: Iterable[Any]) -> None:
        self._answer, self._arguments = answer, tuple(arguments)

    def run_on(self, partition: Partition) -> Answer | Gone:
        return self._answer(partition, *self._arguments)


def send_query(query: Query) -> Query:
    """Return the query: as a separate task it is sent to each worker once."""
    return query


def answer_query(partition: Any, query: Query, token: str) -> Any:
    """Return a partition's answer; `Gone` if its cells are elsewhere or from another reading than the token's."""
    if not isinstance(partition, Partition):
        return partition if isinstance(partition, Refusal) else Gone()
    if partition.receipt.token != token:
        return Gone()
    return or_refusal(lambda: query.run_on(partition))


def add_answers(*answers: Any) -> Any:
    """Return the sum of the answers, in their order; or the first refusal."""
    failed = next((answer for answer in answers if not isinstance(answer, tuple)), None)
    return or_refusal(lambda: tuple(sums_in_order(answers))) if failed is None else failed


@dataclass(frozen=True, repr=False, eq=False)
class Persons:
    """PRIVATE: the number of persons, and for each partition the weights of its persons' rows."""

    count: int
    shares: list[Array]


def count_persons(*answers: Any) -> Any:
    """Return the persons of all partitions; a row counts 1/m if its person has m rows in total, or by its weight."""
    failed = next((answer for answer in answers if not isinstance(answer, tuple)), None)
    if failed is not None:
        return failed
    return or_refusal(lambda: _count_persons(*zip(*answers, strict=True)))


def _count_persons(keys: Sequence[NDArray[np.uint64]], *sums: Sequence[NDArray[Any]]) -> Persons:
    _, person = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    person = person.ravel()
    shares = row_shares(
        *(np.bincount(person, weights=np.concatenate(part)).astype(np.float64) for part in sums)
    )
    ends = np.cumsum([len(part) for part in keys])[:-1]
    return Persons(len(shares), np.split(shares[person], ends))


def count_of(persons: Any) -> Any:
    """Return the number of persons as an answer, or the refusal."""
    return (persons.count,) if isinstance(persons, Persons) else persons


def share_of(persons: Any, number: int) -> Any:
    """Return what the rows of one partition's persons weigh, or the refusal."""
    return persons.shares[number] if isinstance(persons, Persons) else persons


def set_weights(partition: Any, share: Any, token: str) -> Any:
    """Set what the rows of a partition's persons weigh; return its answer, or the refusal in place of the weights."""
    if not isinstance(share, np.ndarray):
        return share
    return answer_query(partition, Query(Partition.set_person_weights, [share]), token)
