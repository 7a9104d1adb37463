"""An address of a table holds no key, and rows do not come unencrypted."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from privlearn.data.sources import StoredPath, check_endpoint, table_path
from privlearn.data.sources.directories import _matches
from privlearn.errors import InvalidParameter

SECRET = "correct-horse-battery-staple"


def test_words_become_paths() -> None:
    assert table_path("data/*.parquet") == Path("data/*.parquet")
    assert table_path("file:///data/my%20table.csv") == Path("/data/my table.csv")
    assert table_path(Path("a.csv")) == Path("a.csv")
    stored = table_path("s3://bucket/year=202?/", region="eu-central-1")
    assert stored == StoredPath(PurePosixPath("bucket/year=202?"), None, "eu-central-1")
    assert str(stored) == "s3://bucket/year=202?"
    assert table_path(stored) is stored


@pytest.mark.parametrize(
    "address",
    [
        f"s3://AKIA:{SECRET}@bucket/a.csv",
        f"s3://{SECRET}@bucket/a.csv",
        f"s3://bucket/a.csv?secret_key={SECRET}",
        f"https://{SECRET}:x@bucket/a.csv",
        "gs://bucket/a.csv",
        "s3:///a.csv",
        "file://elsewhere/a.csv",
    ],
)
def test_addresses_that_hold_a_key_or_lead_elsewhere(address: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        table_path(address)
    assert SECRET not in str(refused.value)


def test_an_address_that_was_made_a_path() -> None:
    with pytest.raises(InvalidParameter, match="as text"):
        table_path(Path("s3://bucket/a.csv"))


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        (f"https://a:{SECRET}@storage.example", "without a key"),
        ("storage.example:9000", "https://host"),
        ("http://storage.example:9000", "unencrypted"),
        ("https://storage.example/bucket", "must end with its host"),
    ],
)
def test_endpoints_that_are_refused(endpoint: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        check_endpoint(endpoint)
    assert SECRET not in str(refused.value)


def test_endpoints_that_are_taken() -> None:
    for endpoint in ("https://storage.example:9000", "http://127.0.0.1:9000", "http://localhost:9000/"):
        assert check_endpoint(endpoint) == endpoint


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*.parquet", "a.parquet", True),
        ("*.parquet", "below/a.parquet", False),
        ("**/*.parquet", "below/further/a.parquet", True),
        ("**/*.parquet", "a.parquet", True),
        ("year=202?/*", "year=2024/a.csv", True),
        ("year=202?/*", "year=2024", False),
        ("[ab].csv", "c.csv", False),
    ],
)
def test_patterns_go_part_by_part(pattern: str, name: str, fits: bool) -> None:
    assert _matches(tuple(name.split("/")), tuple(pattern.split("/"))) == fits
