"""Tables with 0, 1 and 2 rows, from every source, on every path that reads rows.

Under `add_remove` the number of rows is private: all three must have the same outcome. Where it is public, a refusal is
allowed, but it must be one of privlearn's errors and depend on the number of rows alone, never on how they come.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from privlearn import (
    Guarantee,
    KernelLearner,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    curvature,
    describe,
    discover,
    evaluate,
)
from privlearn.data import SchemaDraft, open_records
from privlearn.data.sources import SelectedRows, TableRows
from privlearn.errors import PrivlearnError
from privlearn.export import export_release
from privlearn.parties import JointDiscovery, JointMoments, JointTraining
from privlearn.parties.run import JointEvaluation

SIZES = (0, 1, 2)
COLUMNS: dict[str, Any] = {
    "age": {"type": "number", "lower": 0, "upper": 100},
    "region": {"type": "category", "values": ["north", "south"]},
}
ONE_ROW = {"one_row_per_person": True}
TWO = Schema.from_dict(
    ONE_ROW | {"name": "clinic", "columns": COLUMNS, "target": {"name": "ill", "classes": ["no", "yes"]}}
)
THREE = Schema.from_dict(
    ONE_ROW | {"name": "clinic", "columns": COLUMNS, "target": {"name": "ward", "classes": ["a", "b", "c"]}}
)
NUMBER = Schema.from_dict(
    ONE_ROW | {"name": "clinic", "columns": COLUMNS, "target": {"name": "days", "lower": 0, "upper": 30}}
)
PERSONS = Schema.from_dict(TWO.to_dict() | {"person": "patient", "one_row_per_person": False})


def people(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    age = random.uniform(20.0, 90.0, rows)
    return pa.table(
        {
            "patient": pa.array([f"p{row}" for row in range(rows)], pa.string()),
            "age": age,
            "region": pa.array(np.where(age > 50, "north", "south").tolist(), pa.string()),
            "ill": pa.array(np.where(age > 60, "yes", "no").tolist(), pa.string()),
            "ward": pa.array(np.array(["a", "b", "c"])[(age // 31).astype(int)].tolist(), pa.string()),
            "days": random.uniform(0.0, 30.0, rows),
        }
    )


MANY, PUBLIC = people(300), people(6)

Source = Callable[[pa.Table, Path, Schema], Any]


def csv_file(table: pa.Table, directory: Path, schema: Schema) -> Any:
    pa.csv.write_csv(table, directory / "rows.csv")
    return open_records(str(directory / "rows.csv"), schema)


def parquet_file(table: pa.Table, directory: Path, schema: Schema) -> Any:
    pa.parquet.write_table(table, directory / "rows.parquet")
    return open_records(str(directory / "rows.parquet"), schema)


def directory_with_an_empty_file(kind: str, table: pa.Table, directory: Path, schema: Schema) -> Any:
    write: Any = {"csv": pa.csv.write_csv, "parquet": pa.parquet.write_table}[kind]
    (directory / "files").mkdir()
    for number, part in enumerate((table.slice(0, 0), table, table.slice(0, 0))):
        write(part, directory / "files" / f"{number}.{kind}")
    return open_records(str(directory / "files"), schema)


def part_of_a_split(table: pa.Table, directory: Path, schema: Schema) -> Any:
    """Return rows in blocks of which some contain no row of the part."""
    others = PUBLIC.slice(0, 2)
    blocks = BlockRows([others, table, others])
    chosen = np.array([False] * 2 + [True] * table.num_rows + [False] * 2)
    return SelectedRows(blocks, chosen)


class BlockRows(TableRows):
    """A table in blocks as they are given."""

    def __init__(self, blocks: list[pa.Table]) -> None:
        super().__init__(pa.concat_tables(blocks))
        self._blocks = blocks

    def blocks(self) -> Iterator[pa.Table]:
        return iter(self._blocks)


SOURCES: dict[str, Source] = {
    "arrow": lambda table, *_: table,
    "pandas": lambda table, *_: table.to_pandas(),
    "dict": lambda table, *_: table.to_pydict(),
    "reader": lambda table, *_: table.to_reader(),
    "iterator": lambda table, *_: iter([table.slice(0, 0), table, table.slice(0, 0)]),
    "CSV": csv_file,
    "Parquet": parquet_file,
    "directory of CSV files": functools.partial(directory_with_an_empty_file, "csv"),
    "directory of Parquet files": functools.partial(directory_with_an_empty_file, "parquet"),
    "part of a split": part_of_a_split,
    "empty blocks": lambda table, *_: BlockRows([table.slice(0, 0), table, table.slice(0, 0)]),
}


def promise_of(neighbours: str) -> dict[str, Any]:
    expected = {"expected_records": 1000} if neighbours == "add_remove" else {}
    return {
        "epsilon": 1.0,
        "delta": 1e-6,
        "neighbours": neighbours,
        "random_state": 0,
        "accept_weak_privacy": True,
    } | expected


@functools.cache
def released(kind: str, neighbours: str) -> Release:
    maker, schema, settings = MODELS[kind]
    return maker(schema=schema, **settings, **promise_of(neighbours)).fit(MANY).release_


MODELS: dict[str, tuple[Any, Schema, dict[str, Any]]] = {
    "logistic": (PrivateLogisticRegression, TWO, {}),
    "logistic, centred": (PrivateLogisticRegression, TWO, {"centre": True}),
    "output": (PrivateLogisticRegression, TWO, {"mechanism": "output"}),
    "svc": (PrivateSVC, TWO, {"probability": True}),
    "hinge": (PrivateSVC, TWO, {"loss": "hinge"}),
    "several classes": (PrivateLogisticRegression, THREE, {}),
    "one against the rest": (PrivateSVC, THREE, {}),
    "regression": (PrivateRegressor, NUMBER, {}),
    "persons": (PrivateLogisticRegression, PERSONS, {}),
    "Fourier": (PrivateSVC, TWO, {"kernel": "rbf", "fourier_pairs": 4}),
    "Fourier, several classes": (PrivateLogisticRegression, THREE, {"kernel": "rbf", "fourier_pairs": 4}),
    "Fourier, number": (PrivateRegressor, NUMBER, {"kernel": "rbf", "fourier_pairs": 4}),
    "landmarks": (PrivateSVC, TWO, {"kernel": "rbf", "public_points": PUBLIC}),
    "tddl": (PrivateSVC, TWO, {"kernel": "rbf", "public_points": PUBLIC, "mechanism": "tddl"}),
    "tdil": (PrivateSVC, TWO, {"mechanism": "tdil"}),
    "tdil over a net": (PrivateSVC, TWO, {"kernel": "rbf", "public_points": PUBLIC, "mechanism": "tdil"}),
    "function release": (
        PrivateSVC,
        TWO,
        {"kernel": "rbf", "public_points": PUBLIC, "mechanism": "function_release"},
    ),
}


def fit(kind: str, rows: Any, neighbours: str) -> None:
    maker, schema, settings = MODELS[kind]
    maker(schema=schema, **settings, **promise_of(neighbours)).fit(rows)


def search(method: str, rows: Any, neighbours: str) -> None:
    promise = promise_of(neighbours)
    expected = {"expected_records": promise.pop("expected_records")} if "expected_records" in promise else {}
    PrivateGridSearch(
        PrivateLogisticRegression(schema=TWO, mechanism="output", **expected),
        {"regularization": [0.01, 0.1]},
        method=method,
        **promise,
    ).fit(rows)


def session(rows: Any, neighbours: str) -> None:
    KernelLearner(schema=TWO, guarantee=Guarantee(1.0, 1e-6, neighbours)).fit(rows)


def evaluated(kind: str, rows: Any, neighbours: str) -> None:
    evaluate(released(kind, neighbours), rows, by="region", **promise_of(neighbours))


@functools.cache
def foreign() -> Any:
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    frame = MANY.to_pandas()
    return model.fit(frame[["region"]], frame["ill"])


class OnRegions:
    """A model from elsewhere, which takes its own column of a table."""

    classes_ = np.array(["no", "yes"])

    def predict(self, rows: Any) -> Any:
        raise AssertionError("it has probabilities")

    def predict_proba(self, rows: Any) -> Any:
        frame = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
        return foreign().predict_proba(frame[["region"]])


def evaluated_foreign(rows: Any, neighbours: str) -> None:
    evaluate(OnRegions(), rows, schema=TWO, **promise_of(neighbours))


def evaluated_scores(rows: Any, neighbours: str) -> None:
    evaluate(None, rows, schema=NUMBER, scores="days", **promise_of(neighbours))


def described(schema: Schema, rows: Any, neighbours: str) -> None:
    describe(rows, schema, **promise_of(neighbours))


DRAFT = ONE_ROW | {
    "name": "clinic",
    "columns": {
        "age": {"type": "number", "lower": "estimate", "upper": "estimate"},
        "region": {"type": "category", "values": "estimate"},
    },
}


def discovered(rows: Any, neighbours: str) -> None:
    discover(rows, SchemaDraft.from_dict(DRAFT), **promise_of(neighbours))


def curved(kind: str, rows: Any, neighbours: str) -> None:
    promise = {
        name: value
        for name, value in promise_of(neighbours).items()
        if name not in ("neighbours", "expected_records")
    }
    curvature(released(kind, neighbours), rows, **promise)


def predicted(kind: str, rows: Any, neighbours: str) -> None:
    model: Any = released(kind, neighbours).model
    model.predict(rows)
    if getattr(model, "has_probabilities", False):
        model.predict_proba(rows)


def party(settings: dict[str, Any], rows: Any, neighbours: str) -> None:
    plan = JointTraining(
        schema=TWO,
        parties={"north": 1000, "south": 1000},
        epsilon=2.0,
        delta=1e-6,
        neighbours=neighbours,
        **settings,
    )
    plan.read_party("north", rows).answer(
        plan.mechanism.question(0, np.zeros((1, plan.mechanism.task.dimension)))
    )


JOINT: dict[str, Any] = {"parties": {"north": 1000, "south": 1000}, "epsilon": 2.0, "delta": 1e-6}


def counting_party(rows: Any, neighbours: str) -> None:
    plan = JointEvaluation(
        release=released("Fourier", neighbours), schema=TWO, neighbours=neighbours, **JOINT
    )
    plan.read_party("north", rows)


MOMENTS = Schema.from_dict(
    ONE_ROW | {"name": "clinic", "columns": COLUMNS | {"days": {"type": "number", "lower": 0, "upper": 30}}}
)


def moments_party(rows: Any, neighbours: str) -> None:
    plan = JointMoments(schema=MOMENTS, targets=("days",), neighbours=neighbours, **JOINT)
    plan.read_party("north", rows)


def discovering_party(rows: Any, neighbours: str) -> None:
    draft = ONE_ROW | {
        "name": "clinic",
        "columns": {"age": {"type": "number", "lower": "estimate", "upper": "estimate"}},
    }
    plan = JointDiscovery.from_dict({"draft": draft, "neighbours": neighbours, **JOINT})
    plan.read_party("north", rows)


Read = Callable[[Any, str], None]
KINDS_IN_ALL_SOURCES = ("logistic", "several classes", "regression", "persons", "Fourier", "landmarks")


def of_models(name: str, run: Callable[..., None], kinds: Iterable[str]) -> dict[str, tuple[Schema, Read]]:
    return {f"{name}: {kind}": (MODELS[kind][1], functools.partial(run, kind)) for kind in kinds}


PATHS: dict[str, tuple[Schema, Read]] = {
    **of_models("fit", fit, KINDS_IN_ALL_SOURCES),
    **{
        f"search: {method}": (TWO, functools.partial(search, method))
        for method in ("random_stopping", "partition")
    },
    **of_models(
        "evaluate",
        evaluated,
        ("logistic", "persons", "Fourier", "Fourier, number"),
    ),
    "session": (TWO, session),
    "evaluate: foreign model": (TWO, evaluated_foreign),
    "evaluate: scores": (NUMBER, evaluated_scores),
    "describe": (TWO, functools.partial(described, TWO)),
    "describe: persons": (PERSONS, functools.partial(described, PERSONS)),
    "discover": (TWO, discovered),
    **of_models("curvature", curved, ("logistic", "several classes", "regression")),
    **of_models("predict", predicted, ("logistic", "regression", "Fourier", "landmarks")),
    "party: descent": (TWO, functools.partial(party, {})),
    "party: kernel": (TWO, functools.partial(party, {"kernel": {"name": "rbf", "fourier_pairs": 4}})),
    "party: evaluation": (TWO, counting_party),
    "party: moments": (MOMENTS, moments_party),
    "party: bounds": (TWO, discovering_party),
}
"""With every source."""

MORE_PATHS: dict[str, tuple[Schema, Read]] = {
    **of_models("fit", fit, MODELS),
    "search: every_candidate": (TWO, functools.partial(search, "every_candidate")),
    **of_models("evaluate", evaluated, MODELS),
    **of_models("predict", predicted, MODELS),
}
"""The other models, which read rows as those do: with a table, and with blocks of which some are empty."""


def outcome(run: Read, source: Source, schema: Schema, rows: int, neighbours: str, directory: Path) -> str:
    """Return "works", or the refusal without the names of files; any other error fails the test."""
    directory.mkdir(parents=True)
    try:
        run(source(MANY.slice(0, rows), directory, schema), neighbours)
    except PrivlearnError as error:
        return f"{type(error).__name__}: {error}".replace(str(directory), "")
    return "works"


def outcomes(path: tuple[Schema, Read], source: str, neighbours: str, directory: Path) -> list[str]:
    schema, run = path
    return [
        outcome(run, SOURCES[source], schema, rows, neighbours, directory / source / f"{neighbours} {rows}")
        for rows in SIZES
    ]


def check(
    path: tuple[Schema, Read], sources: Iterable[str], directory: Path, refused: Collection[str] = ()
) -> None:
    allowed = [source for source in sources if source not in refused]
    for source in sources:
        private = outcomes(path, source, "add_remove", directory)
        assert len(set(private)) == 1, (source, private)
    public = {source: outcomes(path, source, "replace_one", directory) for source in allowed}
    assert len(set(map(tuple, public.values()))) == 1, public


ONCE = ("reader", "iterator")
"""Sources whose length is not known before they are read: a release predicts for no such source, of any length."""


@pytest.mark.parametrize("name", PATHS)
def test_every_source(name: str, tmp_path: Path) -> None:
    check(PATHS[name], SOURCES, tmp_path, ONCE if name.startswith("predict") else ())


@pytest.mark.parametrize("name", [name for name in MORE_PATHS if name not in PATHS])
def test_every_model(name: str, tmp_path: Path) -> None:
    check(MORE_PATHS[name], ("arrow", "empty blocks"), tmp_path)


@pytest.mark.parametrize("name", [*PATHS, *MORE_PATHS])
def test_what_works_under_add_remove_works_without_rows(name: str, tmp_path: Path) -> None:
    """Nothing but a session, which that relation excludes, is refused there."""
    schema, run = (PATHS | MORE_PATHS)[name]
    found = outcome(run, SOURCES["arrow"], schema, 0, "add_remove", tmp_path / "rows")
    assert found == "works" or (name == "session" and "would reveal that number" in found)


@pytest.mark.parametrize("rows", SIZES)
def test_an_exported_python_file(rows: int, tmp_path: Path) -> None:
    program, table = tmp_path / "model.py", tmp_path / "rows.csv"
    program.write_bytes(export_release(released("logistic", "add_remove"), "python"))
    pa.csv.write_csv(MANY.slice(0, rows), table)
    run = subprocess.run(
        [sys.executable, str(program), str(table)], capture_output=True, text=True, check=True, timeout=60
    )
    assert len(run.stdout.splitlines()) == (1 + rows if rows else 0)
