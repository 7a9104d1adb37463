"""The holder's file: what it says is what is served, and what is wrong with it is said in a line that names the key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.errors import SchemaError
from privlearn.guarantee import Guarantee
from privlearn.server.holder import Owner, ServerSettings

DATASET: dict[str, Any] = {"table": "census.csv", "schema": "census.yaml", "epsilon": 4.0, "delta": 1e-6}
EXAMPLE = """
[server]
directory = "kept"
tls_certificate = "cert.pem"
tls_key = "/etc/key.pem"
host = "0.0.0.0"

[datasets.census]
table = "census.csv"
schema = "/public/census.yaml"
epsilon = 4
delta = 1e-6

[datasets.census.learners.income]
model = "svm"
kernel = "rbf"
regularization = 0.01

[datasets.ward]
database = "sqlite:///ward.db"
query = "SELECT * FROM patients"
schema = "ward.yaml"
epsilon = 1.5

[analysts.alice]
census = { epsilon = 1.0, delta = 5e-7 }
"""


def _owner(**changed: Any) -> Owner:
    return Owner(**{"datasets": {"census": DATASET}} | changed)


def _refusal(**changed: Any) -> str:
    with pytest.raises(SchemaError) as refused:
        _owner(**changed)
    return str(refused.value)


def test_the_file_is_read_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    path = tmp_path / "owner.toml"
    path.write_text(EXAMPLE)
    owner = Owner.load(path)
    census, ward = owner.datasets["census"], owner.datasets["ward"]
    assert owner.server.directory == tmp_path / "kept"
    assert owner.server.store == str(tmp_path / "kept" / "privlearn.db")
    assert (owner.server.tls_certificate, owner.server.tls_key) == (
        tmp_path / "cert.pem",
        Path("/etc/key.pem"),
    )
    assert (census.table_location, census.schema_file) == (
        tmp_path / "census.csv",
        Path("/public/census.yaml"),
    )
    assert ward.database == f"sqlite:///{tmp_path}/ward.db"
    assert census.guarantee == Guarantee(4.0, 1e-6)
    assert census.learners["income"].regularization == 0.01
    assert owner.share("alice", "census") == Guarantee(1.0, 5e-7)
    assert owner.share("alice", "ward") is None
    assert owner.share("eve", "census") is None


def test_a_folder_need_not_be_named(tmp_path: Path) -> None:
    path = tmp_path / "owner.toml"
    path.write_text('[datasets.a]\ntable = "a.csv"\nschema = "a.yaml"\nepsilon = 1.0\n')
    assert Owner.load(path).server.directory == tmp_path / "state"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"server": {"host": "0.0.0.0"}}, "server: host: keys would be sent unencrypted"),
        ({"server": {"tls_key": "key.pem"}}, "tls_certificate and tls_key go together"),
        ({"server": {"ledger": "mysql://host/db"}}, "server: ledger: must be postgresql://user@host/database"),
        ({"server": {"ledger": "postgresql://host"}}, "server: ledger: the ledger's address names no database"),
        ({"server": {"port": 99999}}, "server: port: "),
        ({"server": {"prot": 80}}, "server: prot: unknown setting"),
        ({"limits": {"batch_rows": 0}}, "limits: batch_rows: "),
        ({"datasets": {}}, "datasets: "),
        ({"datasets": {"census": DATASET | {"epsilon": 0}}}, "datasets.census: epsilon: "),
        ({"datasets": {"census": DATASET | {"epsilon": "4"}}}, "datasets.census: epsilon: "),
        ({"datasets": {"census": DATASET | {"epsilon": True}}}, "datasets.census: epsilon: "),
        ({"datasets": {"census": DATASET | {"delta": 1}}}, "datasets.census: delta: "),
        ({"datasets": {"census": DATASET | {"epsilon": float("inf")}}}, "datasets.census: epsilon: "),
        ({"datasets": {"census": {"table": "a.csv", "epsilon": 1.0}}}, "datasets.census: schema: missing"),
        ({"datasets": {"census": DATASET | {"query": "SELECT 1"}}}, "datasets.census: the rows have no location"),
        ({"datasets": {"census": DATASET | {"table": None}}}, "datasets.census: the rows have no location"),
        ({"datasets": {"a": DATASET | {"composition": "renyi", "delta": 0}}}, '"renyi" needs a delta above 0'),
        ({"datasets": {"a/b": DATASET}}, "part of addresses"),
        ({"datasets": {"a": DATASET | {"learners": {"x": {"model": "tree"}}}}}, "learners.x: model: "),
        (
            {"datasets": {"a": DATASET | {"learners": {"x": {"model": "svm", "regularization": -1}}}}},
            'learners.x: regularization: must be "auto" or a number above 0',
        ),
        ({"analysts": {"alice": {"cencus": {"epsilon": 1.0}}}}, "analysts.alice.cencus: there is no such data set"),
        ({"analysts": {"alice": {"census": {"epsilon": 5.0}}}}, "analysts.alice.census: is more than the whole"),
        ({"analysts": {"alice": {"census": {"epsilon": 1.0, "delta": 1e-5}}}}, "is more than the whole"),
        ({"analysts": {"holder": {"census": {"epsilon": 1.0}}}}, "analysts.holder: "),
        ({"analysts": {"monitor": {"census": {"epsilon": 1.0}}}}, "analysts.monitor: "),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_wrong_names_its_key(changed: dict[str, Any], told: str) -> None:
    assert told in _refusal(**changed)


def test_all_that_is_wrong_is_said_at_once() -> None:
    lines = _refusal(server={"port": -1, "colour": "red"}, limits={"batch_rows": "many"}).splitlines()
    assert len(lines) == 3


@pytest.mark.parametrize(
    "content", ["[server", "datasets = 3", '[datasets]\ncensus = "x"', "server = 1", "é = 1"]
)
def test_files_that_are_no_holders_files(tmp_path: Path, content: str) -> None:
    path = tmp_path / "owner.toml"
    path.write_text(content)
    with pytest.raises(SchemaError, match=re.escape(str(path))):
        Owner.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"owner\.toml cannot be read"):
        Owner.load(tmp_path / "owner.toml")


@given(secret=st.text("abcdefgh0123456789", min_size=8))
def test_no_message_repeats_a_password(secret: str) -> None:
    of_rows = DATASET | {"table": None, "database": f"postgresql://me:{secret}@host/db", "query": "SELECT 1"}
    for refusal in (
        _refusal(server={"ledger": f"postgresql://me:{secret}@host/db"}),
        _refusal(datasets={"census": of_rows}),
        _refusal(datasets={"census": of_rows | {"database": f"mysql://host/db?password={secret}"}}),
        _refusal(datasets={"census": of_rows | {"database": f"not an address {secret}"}}),
        _refusal(datasets={"census": DATASET | {"table": f"s3://me:{secret}@bucket/"}}),
        _refusal(
            datasets={"census": DATASET | {"table": "s3://b/", "endpoint": f"https://me:{secret}@host"}}
        ),
        _refusal(telemetry={"endpoint": f"https://me:{secret}@host/v1/traces"}),
    ):
        assert secret not in refusal
        assert any(word in refusal for word in ("password", "cannot be read", "no key", "without a key"))


def test_endpoint_and_region_are_of_a_storage() -> None:
    for more in ({"endpoint": "https://storage.example"}, {"region": "eu-central-1"}):
        assert "endpoint and region need a storage" in _refusal(datasets={"census": DATASET | more})
    clear = DATASET | {"table": "s3://b/", "endpoint": "http://storage.example"}
    assert "unencrypted" in _refusal(datasets={"census": clear})


@given(name=st.text(max_size=70))
def test_names_can_stand_in_an_address(name: str) -> None:
    try:
        owner = _owner(datasets={name: DATASET}, analysts={name: {name: {"epsilon": 1.0}}})
    except SchemaError:
        assert name in ("holder", "monitor") or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name)
    else:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", next(iter(owner.datasets)))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("192.168.1.5", False),
     ("0.0.0.0", False), ("::", False), ("localhost.example.org", False)],
)  # fmt: skip
def test_without_tls_only_this_machine_is_served(host: str, allowed: bool) -> None:
    if allowed:
        assert not ServerSettings(host=host).uses_tls
    else:
        with pytest.raises(SchemaError):
            ServerSettings(host=host)
    assert ServerSettings(host=host, behind_proxy=True).host == host


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [
        ({}, {"localhost", "127.0.0.1", "::1"}),
        ({"behind_proxy": True, "host": "0.0.0.0"}, None),
        ({"behind_proxy": True, "allowed_hosts": ["Learner.example"]}, {"learner.example"}),
    ],
)
def test_names_that_a_server_answers_to(settings: dict[str, Any], hosts: set[str] | None) -> None:
    assert ServerSettings(**settings).hosts == hosts


def test_data_sets_that_differ_by_case_only_are_refused() -> None:
    with pytest.raises(SchemaError, match="case only"):
        _owner(datasets={"census": DATASET, "Census": DATASET})
