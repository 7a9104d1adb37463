"""Tables in S3-compatible storage are read like files: in blocks, by folder and pattern, refused when they change."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv as arrow_csv
import pytest

from privlearn.cli import main
from privlearn.data import census_schema, check_table, open_records, simulated_census
from privlearn.data.schema import schema_template
from privlearn.data.sources import concatenate_tables
from privlearn.errors import DataError
from privlearn.estimators.forecast import synthetic_table
from privlearn.release import verify
from privlearn.server.holder import Catalog, Owner
from tests.support.canary import CANARY_TEXT
from tests.support.service_support import SCHEMA, write_clinic
from tests.support.storage_server import SECRET, VARIABLES, Storage, running_storage

TABLE = simulated_census(600, seed=7)


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with running_storage() as storage, pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", storage.url)
        yield storage


def _packed_csv() -> bytes:
    text = io.BytesIO()
    arrow_csv.write_csv(TABLE.slice(400), text)
    return gzip.compress(text.getvalue())


def test_folders_and_patterns(storage: Storage) -> None:
    storage.put_table("rows/a.parquet", TABLE.slice(0, 200))
    storage.put_table("rows/below/b.parquet", TABLE.slice(200, 200))
    storage.put("rows/c.csv.gz", _packed_csv())
    storage.put("rows/_done", b"left out")
    rows = open_records("s3://clinic/rows/", census_schema())
    found = concatenate_tables(rows.blocks())
    assert found.equals(TABLE.select(found.column_names).cast(found.schema))
    assert len(open_records("s3://clinic/rows/*.parquet", census_schema())) == 200
    assert len(open_records("s3://clinic/**/*.parquet", census_schema())) == 400
    assert check_table("s3://clinic/rows/", census_schema()).problems == 0
    assert "age" in schema_template("s3://clinic/rows/")


@pytest.mark.parametrize("name", ["one.parquet", "one.csv"])
def test_a_file_that_is_written_again_between_two_passes(storage: Storage, name: str) -> None:
    """Of the same length and in the same second: what the storage calls its ETag tells."""

    def written(first: str) -> None:
        place = TABLE.column_names.index("sex")
        table, text = TABLE.slice(0, 2).set_column(place, "sex", [[first, "female"]]), io.BytesIO()
        if name.endswith(".parquet"):
            storage.put_table(f"steady/{name}", table)
        else:
            arrow_csv.write_csv(table, text)
            storage.put(f"steady/{name}", text.getvalue())

    written("female")
    rows = open_records(f"s3://clinic/steady/{name}", census_schema())
    assert sum(block.num_rows for block in rows.blocks()) == 2
    written("FEMALE")
    with pytest.raises(DataError, match="has changed since it was opened"):
        list(rows.blocks())


def test_what_is_wrong_names_the_file_and_no_key(storage: Storage) -> None:
    storage.put_table("broken/a.parquet", TABLE.slice(0, 10))
    storage.put("broken/b.parquet", CANARY_TEXT.encode() * 100)
    for place, told in {
        "s3://clinic/broken/": "s3://clinic/broken/b.parquet cannot be read as Parquet",
        "s3://clinic/nothing.csv": "s3://clinic/nothing.csv is not a file",
        "s3://other/a.csv": "s3://other/a.csv",
        "s3://clinic/broken/*.csv": "without tables",
    }.items():
        with pytest.raises(DataError) as refused:
            open_records(place, census_schema())
        assert told in str(refused.value)
        assert SECRET not in str(refused.value)
        assert CANARY_TEXT not in str(refused.value)


def test_commands_take_addresses(
    storage: Storage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage.put_table("shell/a.parquet", TABLE)
    census_schema().save(tmp_path / "census.yaml")
    out = tmp_path / "income.privlearn"

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        return int(ended.value.code or 0)

    place, schema = "s3://clinic/shell/", str(tmp_path / "census.yaml")
    assert run("check", place, "--schema", schema) == 0
    assert (
        run("train", place, "--schema", schema, "--epsilon", "1", "--delta", "1e-6", "--out", str(out)) == 0
    )
    assert verify(out).is_private
    assert run("predict", str(out), place, "--out", str(tmp_path / "found.csv")) == 0
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 601
    assert run("train", f"s3://k:{SECRET}@clinic/", "--schema", schema, "--epsilon", "1", "--out", "x") == 2
    told = capsys.readouterr()
    assert SECRET not in told.out + told.err


def test_a_server_reads_a_data_set_from_storage(storage: Storage, tmp_path: Path) -> None:
    storage.put_table("served/a.parquet", synthetic_table(SCHEMA, 120, seed=1))
    storage.put_table("served/b.parquet", synthetic_table(SCHEMA, 80, seed=2))
    settings = write_clinic(tmp_path, dataset=f'endpoint = "{storage.url}"\nregion = "eu-central-1"')
    text = settings.read_text()
    settings.write_text(text.replace('"clinic.csv"', '"s3://clinic/served/"'))
    assert Catalog(Owner.load(settings)).check() == {"clinic": 200}
