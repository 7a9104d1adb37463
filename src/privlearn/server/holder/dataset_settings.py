"""The part of owner.toml about data sets: table, budget, shares of analysts, requests that need approval."""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from privlearn.budget.composition import CompositionName
from privlearn.data.schema.private_bounds import Neighbours
from privlearn.data.schema.public import PublicModel
from privlearn.data.sources.addresses import StoredPath, TablePath, check_endpoint, table_path
from privlearn.errors import InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.server.holder.query_rows import check_address
from privlearn.server.holder.recipes import Positive, Recipe


def check_name(name: str) -> str:
    """Return the name; refuse one that cannot be part of an address."""
    allowed = name.isascii() and name.replace("-", "").replace("_", "").isalnum() and name[0].isalnum()
    if not allowed or len(name) > 64:
        raise ValueError(
            f"the name {name!r} is part of addresses. Use up to 64 letters, digits, - and _, e.g. census-2021"
        )
    return name


def check_distinct(name: str, others: Iterable[str]) -> None:
    """Refuse a name that differs from another one by upper and lower case only: people would confuse the two."""
    for other in others:
        if other != name and other.lower() == name.lower():
            raise ValueError(f"{name!r} and {other!r} differ in upper and lower case only. Rename one")


Name = Annotated[StrictStr, Field(min_length=1), AfterValidator(check_name)]
Count = Annotated[StrictInt, Field(ge=1)]
Delta = Annotated[float, Field(ge=0, lt=1, strict=True)]
_Epsilon = Annotated[float, Field(ge=0, strict=True)]


class Approval(PublicModel):
    """The requests about a data set that wait until a second person approves them.

    Parameters
    ----------
    above : float or dict of str to float
        Requests with a larger epsilon wait; with 0, all do. Given a limit per kind of job, other kinds never wait.
    days : float, default=14
        A request without a decision ends after this time; its budget is not charged.
    """

    above: _Epsilon | dict[StrictStr, _Epsilon]
    days: Annotated[float, Field(gt=0, le=366, strict=True)] = 14.0

    def limit(self, kind: str) -> float | None:
        """Return the epsilon up to which a kind of job needs no approval; None if it never needs one."""
        return self.above.get(kind) if isinstance(self.above, dict) else self.above

    def is_needed(self, kind: str, epsilon: float) -> bool:
        limit = self.limit(kind)
        return limit is not None and epsilon > limit

    @property
    def timeout(self) -> timedelta:
        return timedelta(days=self.days)

    def check_kinds(self, where: str, known: Container[str]) -> None:
        """Refuse a misspelt kind: it would let everything pass."""
        for kind in self.above if isinstance(self.above, dict) else ():
            if kind not in known:
                raise SchemaError(
                    f"{where}.approval.above: this server does no job of kind {kind!r}. Correct its name"
                )


class Share(PublicModel):
    """The limit of one analyst within a data set's budget."""

    epsilon: Positive
    delta: Delta = 0.0


class DataSet(PublicModel):
    """A table and its budget.

    Parameters
    ----------
    table : path or address
        A file or a directory of files, as `open_records` reads them; or give ``database`` and ``query`` instead.
    endpoint, region : str, optional
        Address and region of the S3-compatible storage in ``table``; its keys are looked up as by AWS's tools.
    database, query : str
        An SQLAlchemy address without a password, and one SELECT.
    schema : path
        In Python the attribute is ``schema_file``.
    epsilon, delta, neighbours, composition
        The budget, as in `Ledger.create`; fixed from the first start on.
    expected_records : int, optional
        With ``neighbours = "add_remove"``: the approximate number of records, published in place of n.
    least_epsilon : float, default=0.001
        The smallest epsilon of a request. It bounds the number of results and of entries in the ledger.
    training_seconds : float, optional
        The end of a training becomes visible this time after its start, or 2, 4, 8, ... times this time if it takes
        longer. By default it is derived from the number of records and the learner (`timing.default_slot`).
    retired : bool, default=False
        True: new requests are refused; results remain, and sessions continue to answer.
    accept_weak_privacy : bool, default=False
        True allows requests with an epsilon above 20 or a delta of at least 1/n, which protect hardly anyone.
    approval : Approval, optional
        Requests that a second person must approve; by default none.
    learners : dict of str to Recipe, optional
        The learners that analysts may train; by default `default_recipes`.
    """

    table: StrictStr | None = None
    endpoint: StrictStr | None = None
    region: StrictStr | None = None
    database: StrictStr | None = None
    query: Annotated[StrictStr, Field(min_length=1)] | None = None
    schema_file: Annotated[Path, Field(alias="schema")]
    epsilon: Positive
    delta: Delta = 0.0
    neighbours: Neighbours = "replace_one"
    expected_records: Count | None = None
    composition: CompositionName = "basic"
    least_epsilon: Positive = 0.001
    training_seconds: Positive | None = None
    accept_weak_privacy: StrictBool = False
    approval: Approval | None = None
    retired: StrictBool = False
    learners: dict[Name, Recipe] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_valid_location(self) -> DataSet:
        try:
            stored = self.table is not None and isinstance(self.table_location, StoredPath)
            if self.endpoint is not None:
                check_endpoint(self.endpoint)
        except InvalidParameter as error:
            raise ValueError(str(error)) from None
        if not stored and (self.endpoint or self.region):
            raise ValueError('endpoint and region need a storage. Give table = "s3://bucket/folder/"')
        return self

    @field_validator("database")
    @classmethod
    def _holds_no_password(cls, database: str | None) -> str | None:
        return database if database is None else check_address(database)

    @model_validator(mode="after")
    def _has_one_source(self) -> DataSet:
        of_database = self.database is not None and self.query is not None
        if (self.table is None) != of_database or (self.database is None) != (self.query is None):
            raise ValueError(
                'the rows have no location. Give table = "census.csv", or database = "postgresql://..." together with '
                'query = "SELECT ..."'
            )
        return self

    @model_validator(mode="after")
    def _can_be_composed(self) -> DataSet:
        if self.composition == "renyi" and self.delta == 0:
            raise ValueError('composition: "renyi" needs a delta above 0. Give delta = 1e-6, or use "basic"')
        return self

    @model_validator(mode="after")
    def _expects_records(self) -> DataSet:
        try:
            self.guarantee.relation.check_expected(self.expected_records)
        except InvalidParameter as error:
            raise ValueError(f"expected_records: {error}") from None
        return self

    @property
    def table_location(self) -> TablePath:
        """The path or the storage address of ``table``."""
        return table_path(str(self.table), endpoint=self.endpoint, region=self.region)

    @property
    def guarantee(self) -> Guarantee:
        """The whole budget."""
        return Guarantee(self.epsilon, self.delta, self.neighbours)


def check_share(where: str, share: Share, dataset: DataSet | None) -> None:
    if dataset is None:
        raise ValueError(f"{where}: there is no such data set. Add it under datasets, or remove the share")
    if share.epsilon > dataset.epsilon or share.delta > dataset.delta:
        raise ValueError(
            f"{where}: is more than the whole budget, epsilon {dataset.epsilon:g} and delta {dataset.delta:g}. "
            "Give no more than that"
        )
