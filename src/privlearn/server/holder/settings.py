"""The holder's file, owner.toml: what is served, to whom, within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from privlearn.budget.storage import locate
from privlearn.data.schema.documents import read_toml
from privlearn.data.schema.public import PublicModel
from privlearn.errors import InvalidParameter, LedgerError, SchemaError, is_loopback
from privlearn.guarantee import Guarantee
from privlearn.imports import load_extensions
from privlearn.server.access.keys import HOLDER, MONITOR
from privlearn.server.holder.console import Console
from privlearn.server.holder.dataset_settings import (
    Approval,
    Count,
    DataSet,
    Name,
    Share,
    check_distinct,
    check_share,
)
from privlearn.server.holder.external import Notices, SignIn, Telemetry
from privlearn.server.holder.signing import SigningToken

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class ServerSettings(PublicModel):
    """Where the server listens, and where it stores its state.

    Parameters
    ----------
    host, port
        Without TLS the server listens on this machine only, unless ``behind_proxy``.
    directory : path
        The directory of database and lock; created for its owner only.
    ledger : str, optional
        ``postgresql://user@host/database`` if several servers share budgets; by default SQLite in the directory.
    tls_certificate, tls_key : path, optional
    behind_proxy : bool, default=False
        True if another server terminates TLS and forwards requests to this one.
    allowed_hosts : tuple of str, optional
        Names in the header Host that requests may have, without ports. By default, a server that listens on this
        machine only accepts its own names, so that other sites cannot point theirs at it; others accept any one name.
    training_processes : int, default=1
    signing_key : path, optional
        An Ed25519 key (PEM) that signs every file given out, and the summary of pruned lines of the log.
    signing_token : SigningToken, optional
        A key in a hardware token instead.
    """

    host: Annotated[StrictStr, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[StrictInt, Field(ge=0, le=65535)] = 8383
    directory: Path = Path("state")
    ledger: StrictStr | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: StrictBool = False
    allowed_hosts: tuple[StrictStr, ...] = ()
    training_processes: Annotated[StrictInt, Field(ge=1, le=64)] = 1
    signing_key: Path | None = None
    signing_token: SigningToken | None = None

    @field_validator("ledger")
    @classmethod
    def _is_postgresql(cls, ledger: str | None) -> str | None:
        if ledger is None:
            return None
        if not ledger.startswith("postgresql"):
            raise ValueError("must be postgresql://user@host/database. Leave it out to use SQLite")
        try:
            return locate(ledger)
        except LedgerError as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _is_not_overheard(self) -> ServerSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together. Give both, or neither")
        if not (self.uses_tls or self.behind_proxy or is_loopback(self.host)):
            raise ValueError(
                'host: keys would be sent unencrypted. Give tls_certificate and tls_key, or host = "127.0.0.1", '
                "or behind_proxy = true if another server does TLS"
            )
        return self

    @model_validator(mode="after")
    def _has_one_key(self) -> ServerSettings:
        if self.signing_key is not None and self.signing_token is not None:
            raise ValueError("a file has one signature. Give signing_key or signing_token")
        return self

    @property
    def hosts(self) -> frozenset[str] | None:
        """The names that requests may have in their header Host; None: any."""
        if not self.allowed_hosts and (self.behind_proxy or not is_loopback(self.host)):
            return None
        return frozenset(name.lower() for name in self.allowed_hosts or (*LOOPBACK_NAMES, self.host))

    @property
    def uses_tls(self) -> bool:
        return self.tls_certificate is not None

    @property
    def store(self) -> str:
        """The address of the database, as `privlearn.budget.storage` writes it."""
        return self.ledger or locate(self.directory / "privlearn.db")


class Limits(PublicModel):
    """Limits on size, time and frequency of requests, so that no caller can block the others.

    Parameters
    ----------
    body_megabytes, file_megabytes, form_kilobytes : int
        Size of a request with rows, of a release file to verify, and of every other body.
    bodies_megabytes, reading_megabytes : int
        Size of all large bodies in progress together, and memory for reading them.
    body_seconds, header_seconds : int
        Time for a body, and for the first line and headers, to arrive.
    header_kilobytes : int
        Size of the first line and headers together.
    connections : int
        Simultaneous connections.
    batch_rows : int
        Rows in one request.
    requests_per_minute, sign_ins_per_minute : int
        Requests with one key; wrong keys from one address.
    long_polls : int
        Simultaneous requests of one analyst that wait for the end of a job.
    waiting_jobs, jobs_per_day, trials_per_day : int
        Jobs of one analyst; a trial uses synthetic rows and costs nothing.
    points_per_day, session_points, trial_points : int
        New points of sessions that store each answer: for one analyst, one session, and one session on synthetic
        rows. The memory of a session grows with the square of its points.
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
        max_body = max(self.body_megabytes, self.file_megabytes)
        if self.bodies_megabytes < max_body:
            raise ValueError(
                f"bodies_megabytes: must hold one body of {max_body} megabytes at least. Give more, or allow less"
            )
        return self


DEFAULT_LIMITS = Limits()


class Log(PublicModel):
    """How long lines of the audit log are stored; by default without limit. `privlearn log prune` removes them."""

    keep_days: Count | None = None


class Training(PublicModel):
    """Where releases are trained.

    Parameters
    ----------
    cluster : str, optional
        ``tls://HOST:PORT`` of a Dask scheduler whose workers read the tables; by default the server reads them.
    cluster_ca, cluster_certificate, cluster_key : path, optional
        PEM files: the authority of the cluster's certificates, the server's certificate, and its key.
    """

    cluster: StrictStr | None = None
    cluster_ca: Path | None = None
    cluster_certificate: Path | None = None
    cluster_key: Path | None = None

    @model_validator(mode="after")
    def _is_encrypted(self) -> Training:
        if self.cluster is None:
            return self
        from privlearn.estimators.cluster.workers import check_address  # late: it loads the estimators

        try:
            check_address(self.cluster)
        except InvalidParameter as error:
            raise ValueError(f"cluster: {error}") from None
        files = (self.cluster_ca, self.cluster_certificate, self.cluster_key)
        if self.cluster.startswith("tls://") and None in files:
            raise ValueError("cluster: give cluster_ca, cluster_certificate and cluster_key, three PEM files")
        return self


class Extensions(PublicModel):
    """The holder's additions to the server.

    Parameters
    ----------
    modules : tuple of str
        Modules that register kernels, losses, relations or mechanisms when they are imported.
    job_kinds : tuple of str
        Further kinds of job, each as an importable ``module:class``.
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
        By name, which is also the name in the ledger and in addresses. May be empty if the console adds them.
    analysts : dict of str to dict of str to Share
        The share of each analyst in each data set that the analyst may see.
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
        """Read a .toml file; its paths are relative to its directory."""
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
            raise ValueError("datasets: there is no data set. Add [datasets.NAME], or console.sources")
        return self

    @model_validator(mode="after")
    def _has_distinct_names(self) -> Owner:
        for name in self.datasets:
            check_distinct(name, self.datasets)
        return self

    @model_validator(mode="after")
    def _shares_fit(self) -> Owner:
        for analyst, shares in self.analysts.items():
            check_analyst(analyst)
            for name, share in shares.items():
                check_share(f"analysts.{analyst}.{name}", share, self.datasets.get(name))
        return self

    def approvals(self) -> list[tuple[str, Approval]]:
        """Return the approval rules with the names of their tables in the file."""
        rules = [(f"datasets.{name}", dataset.approval) for name, dataset in self.datasets.items()]
        return [(table, rule) for table, rule in (*rules, ("console", self.console.approval)) if rule]

    def share(self, analyst: str, dataset: str) -> Guarantee | None:
        """Return the analyst's share of a data set, or None."""
        share = self.analysts.get(analyst, {}).get(dataset)
        if share is None:
            return None
        return Guarantee(share.epsilon, share.delta, self.datasets[dataset].neighbours)


def check_analyst(name: str) -> None:
    """Refuse a name that stands for another role in the log."""
    if name in (HOLDER, MONITOR):
        raise ValueError(f"analysts.{name}: is the {name}'s own name in the log. Choose another")


def _modules(content: dict[str, Any]) -> list[str]:
    """Return the extensions that the file names; leave values of a wrong type to the validation."""
    extensions = content.get("extensions")
    named = extensions.get("modules") if isinstance(extensions, dict) else None
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


_PATHS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("server",), ("directory", "tls_certificate", "tls_key", "signing_key")),
    (("server", "signing_token"), ("module", "pin_file")),
    (("training",), ("cluster_ca", "cluster_certificate", "cluster_key")),
    (("console", "sources"), ("*",)),
    (("sign_in", "openid"), ("client_secret_file",)),
    (("notices", "*"), ("password_file", "secret_file")),
    (("datasets", "*"), ("table", "schema")),
)
"""Tables of the file and the settings in them that are paths; * stands for every name."""


def _resolve(content: dict[str, Any], directory: Path) -> None:
    """Make paths absolute, in place; leave values of a wrong type to the validation."""
    server = content.setdefault("server", {})
    if isinstance(server, dict):
        server.setdefault("directory", "state")
    for address, names in _PATHS:
        for table in _tables_at(content, address):
            for name in table if names == ("*",) else names:
                if isinstance(table.get(name), str) and "://" not in table[name]:
                    table[name] = str(directory / table[name])
    for dataset in _tables_at(content, ("datasets", "*")):
        database = dataset.get("database")
        if isinstance(database, str) and database.startswith("sqlite:///"):
            dataset["database"] = f"sqlite:///{directory / database.removeprefix('sqlite:///')}"


def _tables_at(content: dict[str, Any], address: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the tables of the file at an address; * stands for every name."""
    tables = [content]
    for part in address:
        values = [
            value for table in tables for value in (table.values() if part == "*" else [table.get(part)])
        ]
        tables = [value for value in values if isinstance(value, dict)]
    return tables
