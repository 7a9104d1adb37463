"""Data sets: who sees which, and rows from files and databases alike; nothing of the rows is ever said."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from privlearn.data import Schema, SchemaEncoder, Target, write_table
from privlearn.data.sources import concatenate_tables
from privlearn.errors import DataError, InvalidParameter, PrivlearnError, SchemaError
from privlearn.estimators.forecast import synthetic_table
from privlearn.server import Forbidden, NotFound
from privlearn.server.access import Caller
from privlearn.server.holder import (
    Catalog,
    Owner,
    Recipe,
    default_recipes,
    estimator,
    kernel_learner,
    open_query,
)
from privlearn.server.store import open_store
from tests.support.rows import filled
from tests.support.service_support import SCHEMA, load_clinic, write_clinic

HOLDER = Caller("k", "holder")
ALICE = Caller("k", "analyst", "alice")
CANARY = "Xylophon-Quirk"
KINDS = Schema.from_dict(
    {
        "name": "kinds",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 120, "missing": "zero"},
            "ward": {"type": "category", "values": [1, 2, 3]},
            "smokes": {"type": "category", "values": [False, True]},
            "note": {"type": "text", "features": 64},
        },
        "target": {"name": "outcome", "classes": ["healthy", "ill"]},
        "person": "patient",
    }
)
ROWS: dict[str, Any] = {
    "patient": [11, 11, 12, 13],
    "age": [20, 30.5, None, 50],
    "ward": [1, 2, 3, 1],
    "smokes": [True, False, True, False],
    "note": ["was ill", "is well", "50 % : better", "well"],
    "outcome": ["ill", "healthy", "ill", "healthy"],
    "unlisted": ["a", "b", "c", CANARY],
}
_CREATE = (
    "CREATE TABLE rows (patient integer, age {number}, ward integer, smokes boolean, note text, outcome text,"
    " unlisted text)"
)


def _read_query(address: str, query: str, schema: Schema) -> pa.Table:
    return concatenate_tables(open_query(address, query, schema).blocks())


def _sqlite(folder: Path, rows: dict[str, Any] = ROWS) -> str:
    path = folder / "rows.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(_CREATE.format(number="numeric"))
        connection.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", zip(*rows.values(), strict=True)
        )
        connection.commit()
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return _sqlite(tmp_path)
    address: str = request.getfixturevalue("server").new_place()
    with psycopg.connect(address) as connection:
        connection.execute(_CREATE.format(number="decimal(5, 1)"))
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO rows VALUES (%s, %s, %s, %s, %s, %s, %s)", list(zip(*ROWS.values(), strict=True))
            )
    return address


def _same_encoding(found: pa.Table) -> None:
    encoder, expected = SchemaEncoder(KINDS), pa.table(ROWS)
    assert np.array_equal(filled(encoder.encode(found)), filled(encoder.encode(expected)))
    assert encoder.encode_labels(found["outcome"]).tolist() == [1, 0, 1, 0]
    assert encoder.person_weights(found)[0].tolist() == [0.5, 0.5, 1.0, 1.0]


def test_a_query_gives_what_a_file_gives(database: str) -> None:
    found = _read_query(database, "SELECT * FROM rows ORDER BY patient, age", KINDS)
    assert found.column_names == ["age", "ward", "smokes", "note", "outcome", "patient"]
    _same_encoding(found)


def test_signs_of_the_query_are_its_own(database: str) -> None:
    found = _read_query(database, "SELECT * FROM rows WHERE note LIKE '%50 % : b%'", KINDS)
    assert found["patient"].to_pylist() == ["12"]


def test_rows_come_in_pieces(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privlearn.server.holder.query_rows._BATCH_ROWS", 3)
    found = _read_query(database, "SELECT * FROM rows ORDER BY patient, age", KINDS)
    assert found["ward"].num_chunks == 3  # the first is empty, and says what the types are
    _same_encoding(found)


def test_no_rows_still_have_their_types(database: str) -> None:
    found = _read_query(database, "SELECT * FROM rows WHERE patient < 0", KINDS)
    assert (found.num_rows, found.schema.field("age").type) == (0, pa.float64())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM nowhere",
        "SELEKT",
        f"SELECT json('{CANARY}') AS age FROM rows",
        "SELECT cast(unlisted AS integer) AS age, 1 / (age - 20) AS ward FROM rows; DROP TABLE rows",
        "DELETE FROM rows",
        "SELECT unlisted FROM rows",
        "SELECT age, age FROM rows",
        "SELECT unlisted AS age FROM rows",
        "SELECT unlisted AS smokes FROM rows",
    ],
)
def test_what_a_query_does_wrong_is_said_without_cells(database: str, query: str) -> None:
    with pytest.raises(DataError) as refused:
        _read_query(database, query, KINDS)
    chain: BaseException | None = refused.value
    while chain is not None:
        assert CANARY not in str(chain)
        chain = chain.__context__
    assert _read_query(database, "SELECT * FROM rows", KINDS).num_rows == 4


def test_a_driver_that_is_not_installed() -> None:
    with pytest.raises(DataError, match="no driver"):
        _read_query("nosuchdatabase://host/db", "SELECT 1", KINDS)


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="did not answer"):
        _read_query(f"sqlite:///{tmp_path}/nowhere.db", "SELECT 1", KINDS)
    assert not (tmp_path / "nowhere.db").exists()


def _catalog_of(folder: Path, source: str) -> Catalog:
    KINDS.save(folder / "kinds.yaml")
    path = folder / "owner.toml"
    path.write_text(f'[datasets.kinds]\n{source}\nschema = "kinds.yaml"\nepsilon = 1.0\n')
    return Catalog(Owner.load(path))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_persons_are_counted_in_files(tmp_path: Path, suffix: str) -> None:
    write_table(pa.table(ROWS), tmp_path / f"rows.{suffix}")
    (offered,) = _catalog_of(tmp_path, f'table = "rows.{suffix}"').visible_to(HOLDER)
    assert offered.records == 3
    _same_encoding(offered.read_rows())


def test_a_folder_of_files_is_read_a_block_at_a_time(tmp_path: Path) -> None:
    rows, folder = pa.table(ROWS), tmp_path / "rows"
    for part in range(2):
        (folder / f"year={2020 + part}").mkdir(parents=True)
        write_table(rows.slice(2 * part, 2), folder / f"year={2020 + part}" / "part.parquet")
    (offered,) = _catalog_of(tmp_path, 'table = "rows"').visible_to(HOLDER)
    assert offered.records == 3
    assert [block.num_rows for block in offered.open_rows().blocks()] == [2, 2]
    _same_encoding(offered.read_rows())


def test_one_bad_file_of_a_folder_is_named_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    write_table(pa.table(ROWS), folder / "1.parquet")
    write_table(pa.table(ROWS | {"ward": [1, 2, 3, 7364518]}), folder / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet: column 'ward'") as refused:
        _catalog_of(tmp_path, 'table = "rows"').check()
    assert "7364518" not in str(refused.value)


def test_persons_are_counted_in_databases(tmp_path: Path) -> None:
    _sqlite(tmp_path)
    (offered,) = _catalog_of(
        tmp_path, 'database = "sqlite:///rows.db"\nquery = "SELECT * FROM rows"'
    ).visible_to(HOLDER)
    assert offered.records == 3
    _same_encoding(offered.read_rows())


@pytest.mark.parametrize(
    ("column", "cells", "told"),
    [
        ("ward", [1, 2, 3, 7364518], "column 'ward'"),
        ("outcome", ["ill", "healthy", "ill", CANARY], "target 'outcome'"),
        ("age", ["1", "2", "3", CANARY], "column 'age'"),
        ("patient", [1, 2, None, 3], "column 'patient'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_at_the_start(
    tmp_path: Path, column: str, cells: list[Any], told: str
) -> None:
    write_table(pa.table(ROWS | {column: cells}), tmp_path / "rows.csv")
    with pytest.raises(PrivlearnError) as refused:
        _catalog_of(tmp_path, 'table = "rows.csv"').check()
    assert str(refused.value).startswith("datasets.kinds: ")
    assert told in str(refused.value)
    assert CANARY not in str(refused.value)
    assert "7364518" not in str(refused.value)


def test_a_target_is_needed(tmp_path: Path) -> None:
    write_table(pa.table(ROWS).drop_columns(["outcome"]), tmp_path / "rows.csv")
    with pytest.raises(DataError, match=r"datasets\.kinds: .*rows\.csv has no column 'outcome'"):
        _catalog_of(tmp_path, 'table = "rows.csv"').check()


@pytest.mark.parametrize(
    ("learner", "error", "told"),
    [
        ('model = "regression"', SchemaError, "has classes"),
        ('model = "svm"\nloss = "logistic"', InvalidParameter, "loss must be one of"),
        ('model = "logistic"\nprobability = true', InvalidParameter, "is for the model svm"),
    ],
)
def test_learners_that_do_not_fit_are_refused_at_the_start(
    tmp_path: Path, learner: str, error: type[Exception], told: str
) -> None:
    path = write_clinic(tmp_path)
    path.write_text(path.read_text() + f"\n[datasets.clinic.learners.odd]\n{learner}\n")
    with pytest.raises(error, match=told) as refused:
        Catalog(Owner.load(path)).check()
    assert str(refused.value).startswith("datasets.clinic.learners.odd: ")


def test_a_missing_schema_is_said(tmp_path: Path) -> None:
    path = write_clinic(tmp_path)
    (tmp_path / "clinic.schema.yaml").unlink()
    with pytest.raises(SchemaError, match=r"datasets\.clinic: .*cannot be read"):
        Catalog(Owner.load(path))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    path = write_clinic(tmp_path)
    other = '[datasets.ward]\ntable = "clinic.csv"\nschema = "clinic.schema.yaml"\nepsilon = 1.0\n'
    path.write_text(path.read_text() + other + "[analysts.carol]\nward = { epsilon = 1.0 }\n")
    owner = Owner.load(path)
    open_store(owner)
    return Catalog(owner)


def test_analysts_see_what_they_have_a_share_of(catalog: Catalog) -> None:
    def seen(caller: Caller) -> list[str]:
        return [offered.name for offered in catalog.visible_to(caller)]

    assert seen(HOLDER) == ["clinic", "ward"]
    assert seen(ALICE) == ["clinic"]
    assert seen(Caller("k", "analyst", "carol")) == ["ward"]
    assert seen(Caller("k", "analyst", "stranger")) == []
    assert seen(Caller("k", "holder", "", frozenset({"ward"}))) == ["ward"]
    assert seen(Caller("k", "analyst", "alice", frozenset({"ward"}))) == []


def test_what_is_foreign_looks_like_what_is_not_there(catalog: Catalog) -> None:
    told = set()
    for name in ("ward", "nowhere", "", "../clinic"):
        with pytest.raises(NotFound) as refused:
            catalog.get(ALICE, name)
        told.add(str(refused.value))
    assert len(told) == 1
    assert catalog.get(ALICE, "clinic").name == "clinic"
    with pytest.raises(NotFound):
        catalog.find("nowhere")


def test_nobody_charges_more_than_a_share(catalog: Catalog) -> None:
    offered = catalog.find("clinic")
    bob = offered.ledger_of("bob")
    assert (bob.account, bob.share) == ("bob", offered.owner.share("bob", "clinic"))
    assert offered.ledger_of("holder").share is None
    with pytest.raises(Forbidden):
        offered.ledger_of("carol")


def test_learners_by_name(catalog: Catalog) -> None:
    offered = catalog.find("clinic")
    assert offered.recipe("kernel").kernel == "rbf"
    with pytest.raises(NotFound, match="logistic, kernel"):
        offered.recipe("forest")
    assert list(catalog.find("ward").learners) == ["logistic", "svm"]


def test_nothing_private_is_shown(catalog: Catalog) -> None:
    assert "clinic.csv" not in repr(catalog.find("clinic"))


def test_default_learners_follow_the_target() -> None:
    number = SCHEMA.model_copy(update={"target": Target(name="cost", lower=0, upper=9)})
    assert {name: recipe.model for name, recipe in default_recipes(number).items()} == {
        "regression": "regression"
    }
    with pytest.raises(SchemaError, match="no target"):
        default_recipes(SCHEMA.model_copy(update={"target": None}))


def test_a_recipe_becomes_an_estimator(tmp_path: Path) -> None:
    guarantee = load_clinic(tmp_path).datasets["clinic"].guarantee
    kernel: dict[str, Any] = {"kernel": "polynomial", "degree": 2, "coef0": 0.5, "gamma": 2.0}
    recipe = Recipe(model="svm", **kernel, regularization=0.1, intercept=False)
    points = synthetic_table(SCHEMA, 5, seed=0)
    found = estimator(recipe, SCHEMA, guarantee, public_points=points).get_params()
    expected = kernel | {"regularization": 0.1, "fit_intercept": False}
    expected |= {"epsilon": 4.0, "delta": 1e-5, "schema": SCHEMA}
    assert {name: found[name] for name in expected} == expected
    assert found["public_points"] is points
    machine = kernel_learner(recipe, SCHEMA, guarantee).get_params()
    assert {name: machine[name] for name in ("degree", "gamma", "fit_intercept")} == {
        "degree": 2, "gamma": 2.0, "fit_intercept": False,
    }  # fmt: skip
    assert kernel_learner(Recipe(model="logistic"), SCHEMA, guarantee).loss == "logistic"
    assert kernel_learner(Recipe(model="svm"), SCHEMA, guarantee).loss is None
