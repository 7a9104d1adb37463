"""The holder's file, owner.toml: what is served, to whom, within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from privlearn.data.schema.documents import read_toml
from privlearn.data.schema.public import PublicModel
from privlearn.data.schema.purchases import Neighbours
from privlearn.data.sources.addresses import StoredPath, TablePath, check_endpoint, table_path
from privlearn.errors import InvalidParameter, LedgerError, SchemaError
from privlearn.estimators.cluster.workers import check_address as check_cluster_address
from privlearn.extensions import load_extensions
from privlearn.guarantee import Guarantee
from privlearn.ledger.statement import CompositionName
from privlearn.listening import is_loopback
from privlearn.service.access.keys import HOLDER, MONITOR
from privlearn.service.holder.approval import Approval
from privlearn.service.holder.console_sources import Console
from privlearn.service.holder.notices import Notices
from privlearn.service.holder.sign_in import SignIn
from privlearn.service.holder.signing import SigningToken
from privlearn.service.holder.sources import check_address
from privlearn.service.holder.telemetry import Telemetry
from privlearn.service.jobs.recipes import Positive, Recipe
from privlearn.storage import locate


def servable(name: str) -> str:
    """Refuse what cannot stand in an address."""
    allowed = name.isascii() and name.replace("-", "").replace("_", "").isalnum() and name[0].isalnum()
    if not allowed or len(name) > 64:
        raise ValueError(
            f"the name {name!r} stands in addresses: take up to 64 letters, digits, - and _, e.g. census-2021"
        )
    return name


Name = Annotated[StrictStr, Field(min_length=1), AfterValidator(servable)]
Count = Annotated[StrictInt, Field(ge=1)]
Delta = Annotated[float, Field(ge=0, lt=1, strict=True)]


class ServerSettings(PublicModel):
    """Where the server listens, and where it keeps what must outlive it.

    Parameters
    ----------
    host, port
        Without TLS only this machine itself, unless ``behind_proxy``.
    folder : path
        Made if missing, for its owner alone: database, lock.
    ledger : str, optional
        ``postgresql://user@host/database`` if several servers share budgets; by default SQLite in the folder.
    tls_certificate, tls_key : path, optional
    behind_proxy : bool, default=False
        True if another server, which does TLS, passes requests on to this one.
    training_processes : int, default=1
    signing_key : path, optional
        An Ed25519 key (PEM) that signs whatever leaves as a file, and what is left of old lines of the log.
    signing_token : SigningToken, optional
        A key in a token of hardware instead.
    """

    host: Annotated[StrictStr, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[StrictInt, Field(ge=0, le=65535)] = 8383
    folder: Path = Path("state")
    ledger: StrictStr | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: StrictBool = False
    training_processes: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    signing_key: Path | None = None
    signing_token: SigningToken | None = None

    @field_validator("ledger")
    @classmethod
    def _is_postgresql(cls, ledger: str | None) -> str | None:
        if ledger is None:
            return None
        if not ledger.startswith("postgresql"):
            raise ValueError(
                "must be postgresql://user@host/database: leave it out for SQLite in the server's folder"
            )
        try:
            return locate(ledger)
        except LedgerError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _is_not_overheard(self) -> ServerSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together: give both, or neither")
        if not (self.uses_tls or self.behind_proxy or is_loopback(self.host)):
            raise ValueError(
                'host: keys would be sent in the clear: give tls_certificate and tls_key, or host = "127.0.0.1", '
                "or behind_proxy = true if another server does TLS"
            )
        return self

    @model_validator(mode="after")
    def _has_one_key(self) -> ServerSettings:
        if self.signing_key is not None and self.signing_token is not None:
            raise ValueError("a file has one signature: give signing_key or signing_token")
        return self

    @property
    def uses_tls(self) -> bool:
        return self.tls_certificate is not None

    @property
    def store(self) -> str:
        """Where everything durable is kept, as `privlearn.storage` names it."""
        return self.ledger or locate(self.folder / "privlearn.db")


class Limits(PublicModel):
    """What is refused as too large, too slow or too often, so that nobody can take the server from the others.

    Parameters
    ----------
    body_megabytes, file_megabytes, form_kilobytes : int
        Of a request with rows, of a release file to verify, of every other body.
    bodies_megabytes, reading_megabytes : int
        Of all large bodies under way together; of the memory that reading them may take.
    body_seconds, header_seconds : int
        For a body, and for the first line and headers, to arrive.
    header_kilobytes : int
        Of the first line and headers together.
    connections : int
        At a time.
    batch_rows : int
        Rows of one request.
    requests_per_minute, sign_ins_per_minute : int
        Of one key; wrong keys from one address.
    long_polls : int
        Requests of one analyst that wait for the end of a job, at a time.
    waiting_jobs, jobs_per_day, trials_per_day : int
        Of one analyst; a trial is on made-up rows, and costs nothing.
    points_per_day, session_points, trial_points : int
        New points of sessions that write each answer down: of one analyst, of one session, and of one session on
        made-up rows. What a session remembers grows with the square of its points.
    """

    body_megabytes: Count = 8
    file_megabytes: Count = 32
    form_kilobytes: Count = 64
    bodies_megabytes: Count = 64
    reading_megabytes: Count = 160
    body_seconds: Count = 60
    header_seconds: Count = 10
    header_kilobytes: Count = 32
    connections: Count = 500
    batch_rows: Count = 10_000
    requests_per_minute: Count = 6000
    sign_ins_per_minute: Count = 10
    long_polls: Count = 20
    waiting_jobs: Count = 100
    jobs_per_day: Count = 1000
    trials_per_day: Count = 500
    points_per_day: Count = 20_000
    session_points: Count = 5000
    trial_points: Count = 1000

    @model_validator(mode="after")
    def _bodies_fit(self) -> Limits:
        largest = max(self.body_megabytes, self.file_megabytes)
        if self.bodies_megabytes < largest:
            raise ValueError(
                f"bodies_megabytes: must hold one body of {largest} megabytes at least: give more, or allow less"
            )
        return self


DEFAULT_LIMITS = Limits()


class Log(PublicModel):
    """How long lines of the audit log are kept; by default for ever. `privlearn log prune` removes older ones."""

    keep_days: Count | None = None


class Share(PublicModel):
    """What an analyst may spend of a data set's budget."""

    epsilon: Positive
    delta: Delta = 0.0


class DataSet(PublicModel):
    """A table and its budget.

    Parameters
    ----------
    table : path or address
        A file, or a folder of files, as `open_records` reads them; or ``database`` and ``query`` instead.
    endpoint, region : str, optional
        Of the S3-compatible storage that ``table`` names; keys to it are found as AWS's tools find them.
    database, query : str
        An address as SQLAlchemy takes it, without a password, and one SELECT.
    schema : path
        In Python the attribute is ``schema_file``.
    epsilon, delta, neighbours, composition
        The budget, as in `Ledger.create`; fixed from the first start on.
    expected_records : int, optional
        With ``neighbours = "add_remove"``: how many records there are about, for analysts and in place of n.
    least_epsilon : float, default=0.001
        The lowest price. It bounds how many results, and entries in the ledger, the budget can pay for.
    training_seconds : float, default=1
        A training's end is seen so long after its start, or twice, four times, ... so long if it takes longer; its
        charge, half so long after it.
    retired : bool, default=False
        True: nothing new is done with it; what was made of it stays, and sessions go on answering.
    accept_weak_privacy : bool, default=False
        True lets analysts ask for an epsilon above 20 or a delta of at least 1/n, which hardly protect anybody.
    approval : Approval, optional
        Which requests a second person must approve; by default none.
    learners : dict of str to Recipe, optional
        What analysts may train; by default `default_recipes`.
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
    training_seconds: Positive = 1.0
    accept_weak_privacy: StrictBool = False
    approval: Approval | None = None
    retired: StrictBool = False
    learners: dict[Name, Recipe] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_readable_place(self) -> DataSet:
        try:
            stored = self.table is not None and isinstance(self.place, StoredPath)
            if self.endpoint is not None:
                check_endpoint(self.endpoint)
        except InvalidParameter as error:
            raise ValueError(str(error)) from None
        if not stored and (self.endpoint or self.region):
            raise ValueError('endpoint and region are of a storage: give table = "s3://bucket/folder/"')
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
                'say where the rows are: table = "census.csv", or database = "postgresql://..." together with '
                'query = "SELECT ..."'
            )
        return self

    @model_validator(mode="after")
    def _can_be_composed(self) -> DataSet:
        if self.composition == "renyi" and self.delta == 0:
            raise ValueError('composition: "renyi" needs a delta above 0: give delta = 1e-6, or take "basic"')
        return self

    @model_validator(mode="after")
    def _expects_records(self) -> DataSet:
        try:
            self.guarantee.relation.check_expected(self.expected_records)
        except InvalidParameter as error:
            raise ValueError(f"expected_records: {error}") from None
        return self

    @property
    def place(self) -> TablePath:
        """Where the table is, if it is one."""
        return table_path(str(self.table), endpoint=self.endpoint, region=self.region)

    @property
    def guarantee(self) -> Guarantee:
        """The whole budget."""
        return Guarantee(self.epsilon, self.delta, self.neighbours)


class Training(PublicModel):
    """Where releases are trained.

    Parameters
    ----------
    cluster : str, optional
        ``tls://HOST:PORT`` of a Dask scheduler whose workers read the tables; by default the server does it all itself.
    cluster_ca, cluster_certificate, cluster_key : path, optional
        In PEM format: who signed the cluster's certificates, the server's own, and its key.
    """

    cluster: StrictStr | None = None
    cluster_ca: Path | None = None
    cluster_certificate: Path | None = None
    cluster_key: Path | None = None

    @model_validator(mode="after")
    def _is_encrypted(self) -> Training:
        if self.cluster is None:
            return self
        try:
            check_cluster_address(self.cluster)
        except InvalidParameter as error:
            raise ValueError(f"cluster: {error}") from None
        files = (self.cluster_ca, self.cluster_certificate, self.cluster_key)
        if self.cluster.startswith("tls://") and None in files:
            raise ValueError("cluster: give cluster_ca, cluster_certificate and cluster_key, three PEM files")
        return self


class Extensions(PublicModel):
    """What the holder adds to the server.

    Parameters
    ----------
    modules : tuple of str
        Modules that register kernels, losses, relations or mechanisms when they are imported.
    job_kinds : tuple of str
        Kinds of job of the holder's own, each as ``module:class`` that Python can import.
    """

    modules: tuple[Annotated[StrictStr, Field(pattern=r"^[\w.]+$")], ...] = ()
    job_kinds: tuple[Annotated[StrictStr, Field(pattern=r"^[\w.]+:\w+$")], ...] = ()


class Owner(PublicModel):
    """The holder's file.

    Parameters
    ----------
    server : ServerSettings
    limits : Limits
    datasets : dict of str to DataSet
        A key is the data set's name: in the ledger, in addresses, for analysts. Without any, the console makes them.
    analysts : dict of str to dict of str to Share
        What each analyst may spend of which data sets; others it does not see.
    training : Training
    console : Console
    extensions : Extensions
    sign_in : SignIn
    notices : Notices, optional
    telemetry : Telemetry
    """

    server: ServerSettings = Field(default_factory=ServerSettings)
    limits: Limits = Field(default_factory=Limits)
    log: Log = Field(default_factory=Log)
    datasets: dict[Name, DataSet] = Field(default_factory=dict)
    analysts: dict[Name, dict[Name, Share]] = Field(default_factory=dict)
    training: Training = Field(default_factory=Training)
    console: Console = Field(default_factory=Console)
    extensions: Extensions = Field(default_factory=Extensions)
    sign_in: SignIn = Field(default_factory=SignIn)
    notices: Notices | None = None
    telemetry: Telemetry = Field(default_factory=Telemetry)

    @classmethod
    def load(cls, path: str | Path) -> Owner:
        """Read a .toml file; its paths are relative to its folder."""
        path = Path(path)
        content = read_toml(path)
        _resolve(content, path.absolute().parent)
        try:
            load_extensions(_modules(content))  # first: what they register may be named anywhere in the file
            return cls(**content)
        except (SchemaError, InvalidParameter) as error:
            raise SchemaError(f"{path}:\n{error}") from None

    @model_validator(mode="after")
    def _has_something_to_serve(self) -> Owner:
        if not self.datasets and not self.console.sources:
            raise ValueError(
                "datasets: there is none: add one, [datasets.census], or console.sources to make it of"
            )
        return self

    @model_validator(mode="after")
    def _shares_fit(self) -> Owner:
        for analyst, shares in self.analysts.items():
            check_analyst(analyst)
            for name, share in shares.items():
                check_share(f"analysts.{analyst}.{name}", share, self.datasets.get(name))
        return self

    def approvals(self) -> list[tuple[str, Approval]]:
        """What says which requests need approval, with its place in the file."""
        places = [(f"datasets.{name}", dataset.approval) for name, dataset in self.datasets.items()]
        return [
            (place, one) for place, one in (*places, ("console", self.console.approval)) if one is not None
        ]

    def share(self, analyst: str, dataset: str) -> Guarantee | None:
        """What an analyst may spend of a data set; ``None`` if it is none of theirs."""
        share = self.analysts.get(analyst, {}).get(dataset)
        if share is None:
            return None
        return Guarantee(share.epsilon, share.delta, self.datasets[dataset].neighbours)


def check_analyst(name: str) -> None:
    """Refuse a name that means somebody else in the log."""
    if name in (HOLDER, MONITOR):
        raise ValueError(f"analysts.{name}: is the {name}'s own name in the log: choose another")


def check_share(where: str, share: Share, dataset: DataSet | None) -> None:
    if dataset is None:
        raise ValueError(f"{where}: there is no such data set: add it under datasets, or remove the share")
    if share.epsilon > dataset.epsilon or share.delta > dataset.delta:
        raise ValueError(
            f"{where}: is more than the whole budget, epsilon {dataset.epsilon:g} and delta {dataset.delta:g}: "
            "give no more than that"
        )


def _modules(content: dict[str, Any]) -> list[str]:
    """The extensions that a file names; what has the wrong type is left for the checks."""
    extensions = content.get("extensions")
    named = extensions.get("modules") if isinstance(extensions, dict) else None
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def _resolve(content: dict[str, Any], folder: Path) -> None:
    """Make paths absolute, in place; what has the wrong type is left for the checks."""
    server = content.setdefault("server", {})
    if isinstance(server, dict):
        server.setdefault("folder", "state")
        _resolve_paths(server, ("folder", "tls_certificate", "tls_key", "signing_key"), folder)
        if isinstance(server.get("signing_token"), dict):
            _resolve_paths(server["signing_token"], ("module", "pin_file"), folder)
    training = content.get("training")
    if isinstance(training, dict):
        _resolve_paths(training, ("cluster_ca", "cluster_certificate", "cluster_key"), folder)
    console = content.get("console")
    if isinstance(console, dict) and isinstance(console.get("sources"), dict):
        _resolve_paths(console["sources"], tuple(console["sources"]), folder)
    sign_in = content.get("sign_in")
    if isinstance(sign_in, dict) and isinstance(sign_in.get("openid"), dict):
        _resolve_paths(sign_in["openid"], ("client_secret_file",), folder)
    notices = content.get("notices")
    for channel in notices.values() if isinstance(notices, dict) else ():
        if isinstance(channel, dict):
            _resolve_paths(channel, ("password_file", "secret_file"), folder)
    datasets = content.get("datasets")
    for dataset in datasets.values() if isinstance(datasets, dict) else ():
        if isinstance(dataset, dict):
            _resolve_paths(dataset, ("table", "schema"), folder)
            _resolve_sqlite(dataset, folder)


def _resolve_paths(table: dict[str, Any], names: tuple[str, ...], folder: Path) -> None:
    for name in names:
        if isinstance(table.get(name), str) and "://" not in table[name]:
            table[name] = str(folder / table[name])


def _resolve_sqlite(dataset: dict[str, Any], folder: Path) -> None:
    database = dataset.get("database")
    if isinstance(database, str) and database.startswith("sqlite:///"):
        dataset["database"] = f"sqlite:///{folder / database.removeprefix('sqlite:///')}"
