"""What a worker does: read a part of the rows, keep its cells, answer with sums.

Nothing here raises on a worker: Dask writes what a failing task was given, rows of a data frame among it, into the
worker's log. A refusal is a value that the caller raises.
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

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import people
from privlearn.data.encode.encoder import Bounds, SchemaEncoder
from privlearn.data.encode.packed_cells import PackedCells
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.row_source import EncodedRows, Matrix, RowSource
from privlearn.erm.losses import Loss
from privlearn.erm.multinomial import Softmax
from privlearn.erm.objective import Objective
from privlearn.erm.problem import Problem, Rows, sampled
from privlearn.erm.summed import Answer, RowsAt, sums_in_order
from privlearn.errors import ClusterError, PrivlearnError
from privlearn.estimators.cluster.workers import WorkerFacts, check_address
from privlearn.estimators.goal import ClassGoal, Goal, NumberGoal, TrainingRows
from privlearn.estimators.inputs import class_goal, read_columns, target_of
from privlearn.estimators.memory_oracle import MemoryOracle
from privlearn.mechanisms.task import Task
from privlearn.release.encoders import Encoder


@dataclass(frozen=True, repr=False)
class Receipt:
    """PRIVATE: what is told of a partition, and all that remains of it on another worker.

    Attributes
    ----------
    rows : int
    digest : bytes
        Of all its cells, under a key of this fit: a partition that is read again must be the same.
    worker : str
        The address of the only one that has its cells.
    token : str
        Drawn anew with every reading. A worker that starts again at its old address has Dask read the rows once more,
        unasked: that partition knows no weights, and nobody has compared its digest.
    """

    rows: int
    digest: bytes
    worker: str
    token: str


@dataclass(frozen=True, repr=False)
class Refusal:
    """An error to be raised by the caller: its kind, and words that quote no cell."""

    kind: type[PrivlearnError]
    message: str

    def raised(self) -> PrivlearnError:
        return self.kind(self.message)


@dataclass(frozen=True)
class Gone:
    """A partition's cells are not where they were asked for, or are not those that were loaded there."""


def refusal_of(work: Callable[[], Any]) -> Any:
    """What the work returns; or why it did not, as a value."""
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
    """Public: what the cells are made into.

    Parameters
    ----------
    encoder : SchemaEncoder
    goal : Goal
        Without a row's answer.
    total : int
        Public number of records or persons.
    lift, dimension : callable and int, optional
        A further map of the encoder's vectors, such as that around a mean; and what it leads to.
    """

    encoder: SchemaEncoder
    goal: Goal
    total: int
    lift: Callable[[Matrix], Matrix] | None = None
    dimension: int = 0

    def features(self, cells: PackedCells) -> EncodedRows:
        rows = self.encoder.expanded(cells)
        return rows if self.lift is None else rows.lifted(self.lift, self.dimension)

    def answered(self, goal: Goal) -> Goal:
        """A partition's answers, weighted by the public class weights."""
        if isinstance(goal, ClassGoal):
            return replace(goal, class_weights=cast(ClassGoal, self.goal).class_weights)
        return goal


@dataclass(frozen=True)
class Share:
    """Public: one of the problems, over every so many-th row, as one of so many records."""

    number: int
    loss: Loss
    total: int
    stride: int = 1


class Partition:
    """PRIVATE: some rows' cells, on the worker that read them.

    Pickled it is its receipt. So whatever Dask does with it, move, copy, gather or spill, no row goes with it.
    """

    def __init__(self, receipt: Receipt, cells: PackedCells, goal: Goal, owners: Owners | None) -> None:
        self.receipt = receipt
        self._cells, self._goal, self._owners = cells, goal, owners
        self._weights: Array | None = None
        self._rows: TrainingRows | None = None
        self._shares: dict[Share, RowsAt] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Receipt, (self.receipt.rows, self.receipt.digest, self.receipt.worker, self.receipt.token)

    def here(self) -> Answer:
        """That its cells are."""
        return ()

    def persons(self) -> Answer:
        """The persons by their keys, and how many rows of each are here."""
        owners = cast(Owners, self._owners)
        return owners.keys, np.bincount(owners.of_row, minlength=len(owners.keys))

    def weigh(self, shares: Array) -> Answer:
        """What a row of each person counts, persons in the order of `persons`."""
        self._weights = shares[cast(Owners, self._owners).of_row]
        return ()

    def equip(self, setting: Setting) -> Answer | Gone:
        """From now on the cells are made into this; never while rows of persons would count as rows of anybody."""
        if self._owners is not None and self._weights is None:
            return Gone()
        self._shares = {}
        self._rows = TrainingRows(
            setting.features(self._cells),
            cast(Encoder, setting.encoder),
            setting.answered(self._goal),
            setting.total,
            self._weights,
        )
        return ()

    def mass(self) -> Answer:
        """The rows' weights."""
        weights = self.rows.weights
        return (float(len(self._cells) if weights is None else weights.sum()),)

    def ask_oracle(self, task: Task, answer: Callable[..., Any], *arguments: Any) -> Answer:
        """One of the oracle's sums."""
        return (answer(MemoryOracle(self.rows, task), *arguments),)

    def ask_share(self, share: Share, answer: Callable[..., Answer], *arguments: Any) -> Answer:
        """One of a problem's sums."""
        if share not in self._shares:
            self._shares[share] = RowsAt(self._objective(share))
        return answer(self._shares[share], *arguments)

    @property
    def rows(self) -> TrainingRows:
        return cast(TrainingRows, self._rows)

    def _objective(self, share: Share) -> Objective | Softmax:
        """The regularization is the caller's, and so is the linear term: this one is never used."""
        rows, goal, some = self.rows, self.rows.goal, slice(None, None, share.stride)
        features = rows.features if share.stride == 1 else sampled(rows.features, share.stride)
        weights = None if rows.weights is None else rows.weights[some]
        if share.loss.sees == "classes":
            return _softmax(features, cast(ClassGoal, goal), some, weights, share)
        offsets = goal.offsets[share.number]
        return Objective(
            Problem(
                features,
                goal.signs[share.number][some],
                share.loss,
                1.0,
                share.total,
                weights,
                offsets=None if offsets is None else offsets[some],
            )
        )


def _softmax(features: Any, goal: ClassGoal, some: slice, weights: Array | None, share: Share) -> Softmax:
    rows, classes = Rows(features, 1.0), len(goal.classes)
    scales = (np.ones(rows.count) if weights is None else weights) / share.total
    linear = np.zeros(classes * rows.dimension)
    return Softmax(rows, goal.labels[some], classes, 1.0, scales, 1.0, linear)


@dataclass(frozen=True, repr=False, eq=False)
class Owners:
    """PRIVATE: whose rows are here: a person's key follows from the identifier and the fit's secret."""

    of_row: NDArray[np.int64]
    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, column: Any, label: str, secret: bytes) -> Owners:
        of_row, names = people(column, label)
        digests = (hashlib.blake2b(name.encode(), digest_size=16, key=secret).digest() for name in names)
        return cls(of_row, np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2))


def load(part: Any, schema: Schema, secret: bytes, version: str) -> Partition | Refusal:
    """Touch the data: a part of it as packed cells, whatever would not fit refused.

    ``part`` is `Readable`, or a table in memory. Workers may have come since the caller has looked at them.
    """
    return cast(Partition | Refusal, refusal_of(lambda: _load(part, schema, secret, version)))


def _load(part: Any, schema: Schema, secret: bytes, version: str) -> Partition:
    address = _address()
    check_address(address)
    WorkerFacts.here().check(version, address)
    source = part.rows(schema) if isinstance(part, Readable) else part
    encoder, target = SchemaEncoder(schema), target_of(schema)
    read_answers = encoder.encode_labels if target.classes else encoder.encode_targets
    answers, read = read_columns(encoder, source, None, read_answers)
    goal: Goal = NumberGoal(answers, cast(Bounds, target.bounds))
    if target.classes:
        goal = class_goal(target, answers.astype(np.min_scalar_type(-len(target.classes))))
    owners = None
    if schema.person is not None:
        owners = Owners.of(read.person, f"column {schema.person!r}", secret)
    digest = _digest(read.cells, answers, owners, secret)
    receipt = Receipt(len(read.cells), digest, address, secrets.token_hex(16))
    return Partition(receipt, read.cells, goal, owners)


class Readable(ABC):
    """A part of the rows that a worker reads itself."""

    @abstractmethod
    def rows(self, schema: Schema) -> RowSource[Any]:
        """Touch the data, on the worker."""


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _digest(cells: PackedCells, answers: NDArray[Any], owners: Owners | None, secret: bytes) -> bytes:
    found = hashlib.blake2b(key=secret)
    arrays: list[Any] = [answers] if owners is None else [answers, owners.of_row, owners.keys]
    columns: Iterable[Any] = (column for block in cells.blocks() for column in block.values())
    for array in chain(arrays, columns):
        is_sparse = isinstance(array, sparse.csr_array)
        for part in (array.data, array.indices, array.indptr) if is_sparse else (array,):
            found.update(np.ascontiguousarray(part).tobytes())
    return found.digest()


class Question:
    """What a partition is asked; it has no repr that a log could quote coefficients from."""

    def __init__(self, answer: Callable[..., Answer | Gone], arguments: Iterable[Any]) -> None:
        self._answer, self._arguments = answer, tuple(arguments)

    def put_to(self, partition: Partition) -> Answer | Gone:
        return self._answer(partition, *self._arguments)


def given(question: Question) -> Question:
    """A question as a task of its own, so that it goes to each worker once."""
    return question


def asked(partition: Any, question: Question, token: str) -> Any:
    """A partition's answer, its cells being here, and from the reading with this token; else `Gone`."""
    if not isinstance(partition, Partition):
        return partition if isinstance(partition, Refusal) else Gone()
    if partition.receipt.token != token:
        return Gone()
    return refusal_of(lambda: question.put_to(partition))


def added(*answers: Any) -> Any:
    """The sums of some answers, in their order; or the first that is none."""
    failed = next((answer for answer in answers if not isinstance(answer, tuple)), None)
    return refusal_of(lambda: tuple(sums_in_order(answers))) if failed is None else failed


@dataclass(frozen=True, repr=False, eq=False)
class Persons:
    """PRIVATE: how many there are, and for each partition what a row of its persons counts."""

    count: int
    shares: list[Array]


def persons_of(*answers: Any) -> Any:
    """A person's row counts 1/m where there are m of them in all partitions together."""
    failed = next((answer for answer in answers if not isinstance(answer, tuple)), None)
    if failed is not None:
        return failed
    return refusal_of(lambda: _persons_of(*zip(*answers, strict=True)))


def _persons_of(keys: Sequence[NDArray[np.uint64]], counts: Sequence[NDArray[np.int64]]) -> Persons:
    _, person = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    rows = np.bincount(person.ravel(), weights=np.concatenate(counts))
    ends = np.cumsum([len(part) for part in keys])[:-1]
    return Persons(len(rows), np.split((1.0 / rows)[person.ravel()], ends))


def count_of(persons: Any) -> Any:
    return (persons.count,) if isinstance(persons, Persons) else persons


def share_of(persons: Any, number: int) -> Any:
    """One partition's part of them."""
    return persons.shares[number] if isinstance(persons, Persons) else persons


def weighed(partition: Any, share: Any, token: str) -> Any:
    """Tell a partition what the rows of its persons count."""
    if not isinstance(share, np.ndarray):
        return share
    return asked(partition, Question(Partition.weigh, [share]), token)
