"""Load public tables for benchmarks and papers, simulate a census, and draw synthetic rows of any schema.

Synthetic rows depend on public information and a public seed only.
"""

from __future__ import annotations

import datetime
import math
import os
import tarfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.schema.columns import (
    AnyColumn,
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    TextColumn,
)
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import DataError, InvalidParameter

_ADULT_NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
_ADULT_NAMES = """
age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain capital-loss
hours-per-week native-country income
"""
_KDDCUP_NAMES = """
duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in
num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files num_outbound_cmds
is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate
diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate dst_host_diff_srv_rate
dst_host_same_src_port_rate dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
dst_host_rerror_rate dst_host_srv_rerror_rate
"""
_ADULT_COLUMNS = _ADULT_NAMES.split()


def data_directory() -> Path:
    """Return the directory of data sets, from the environment variable PRIVLEARN_DATA."""
    directory = os.environ.get("PRIVLEARN_DATA")
    if not directory:
        raise DataError(
            "PRIVLEARN_DATA is not set. Set it to the directory with adult/adult.data.gz and others."
        )
    return Path(directory)


def load_adult() -> pa.Table:
    """Return the UCI Adult census table: the 45,222 rows without unknown cells, 14 columns and income."""
    adult = data_directory() / "adult"
    parts = [_adult_part(adult / "adult.data.gz", skip=0), _adult_part(adult / "adult.test.gz", skip=1)]
    return pa.concat_tables(parts).combine_chunks()


def load_covertype() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return CoverType: 581,012 rows of ten measurements and 44 flags, and the cover type, 1 to 7."""
    table = arrow_csv.read_csv(data_directory() / "covtype" / "covtype.csv.gz")
    *columns, cover = table.columns
    features = np.empty((table.num_rows, len(columns)), dtype=np.float32)
    for index, column in enumerate(columns):
        features[:, index] = column.to_numpy()
    return features, cover.to_numpy()


def load_kddcup99() -> pa.Table:
    """Return KDD Cup 1999, the ten per cent sample: 494,021 connections, 41 columns, and ``attack``, "no" or "yes"."""
    table = arrow_csv.read_csv(
        data_directory() / "kddcup99" / "kddcup.data_10_percent.gz",
        read_options=arrow_csv.ReadOptions(column_names=[*_KDDCUP_NAMES.split(), "label"]),
    )
    attack = pc.if_else(pc.equal(table["label"], "normal."), "no", "yes")
    return table.drop_columns("label").append_column("attack", attack)


def load_bank_marketing() -> pa.Table:
    """Return UCI bank marketing: 41,188 calls, and ``y``, "no" or "yes".

    ``duration`` is left out, as its documentation recommends: it is known only after the call, with the outcome.
    """
    path = data_directory() / "bank_marketing" / "bank-additional-full.csv.gz"
    parse = arrow_csv.ParseOptions(delimiter=";")
    return arrow_csv.read_csv(path, parse_options=parse).drop_columns("duration")


def load_newsgroups() -> pa.Table:
    """Return the 20 newsgroups, split by date: columns text, group and part ("train" or "test")."""
    path = data_directory() / "newsgroups20" / "20news-bydate.tar.gz"
    rows: list[tuple[str, str, str]] = []
    with tarfile.open(path) as archive:
        for member in archive:
            message = archive.extractfile(member)
            if message is not None:  # directories have no content
                _, part, group, _ = member.name.split("/")
                rows.append((message.read().decode("latin-1"), group, part.removeprefix("20news-bydate-")))
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=["text", "group", "part"])


def load_kdd2010_algebra() -> pa.Table:
    """Return KDD Cup 2010, Algebra I 2005-2006: the 3,967 test steps with their answers, 19 columns."""
    path = data_directory() / "kdd2010_algebra" / "algebra_2005_2006_master.txt.gz"
    return arrow_csv.read_csv(path, parse_options=arrow_csv.ParseOptions(delimiter="\t", quote_char=False))


URL_COLUMNS = 3_231_961


def load_url_subset() -> tuple[Any, NDArray[np.int64]]:
    """Return 4,027 rows of UCI's URL Reputation, CSR over its 3,231,961 columns, and whether each is malicious, 0 or 1.

    Another project selected the rows, by a rule that it does not state; the original has 2,396,130 rows.
    """
    from sklearn.datasets import load_svmlight_file  # slow to import

    path = data_directory() / "url_reputation_subset" / "prb.txt.gz"
    rows, labels = load_svmlight_file(str(path), n_features=URL_COLUMNS, zero_based=False)
    return sparse.csr_array(rows), labels.astype(np.int64)


def _adult_part(path: Path, skip: int) -> pa.Table:
    """Return one of the two files: no header, a blank after each comma, "?" for unknown, a dot after some labels."""
    types = {name: pa.int64() if name in _ADULT_NUMBERS else pa.string() for name in _ADULT_COLUMNS}
    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(column_names=_ADULT_COLUMNS, skip_rows=skip),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, null_values=[" ?"], strings_can_be_null=True
        ),
    ).drop_null()
    for index, name in enumerate(_ADULT_COLUMNS):
        if name not in _ADULT_NUMBERS:
            table = table.set_column(index, name, pc.utf8_trim(table[name], " ."))
    return table


_OCCUPATIONS = {  # share of the people and effect on income
    "office": (0.22, 0.2),
    "trade": (0.18, -0.2),
    "craft": (0.16, -0.3),
    "services": (0.16, -1.0),
    "health": (0.12, 0.4),
    "management": (0.10, 1.4),
    "farming": (0.06, -1.2),
}
_REGIONS = {"north": (0.3, 0.2), "east": (0.2, -0.4), "south": (0.3, 0.0), "west": (0.2, 0.3)}
_SEXES = {"female": (0.5, -0.2), "male": (0.5, 0.2)}


def census_schema() -> Schema:
    """Return the schema of :func:`simulated_census`."""
    return Schema(
        name="census",
        columns={
            "age": NumberColumn(lower=18, upper=90),
            "hours": NumberColumn(lower=0, upper=80),
            "education_years": NumberColumn(lower=6, upper=22),
            "capital_income": NumberColumn(lower=0, upper=1_000_000, scale="log"),
            "occupation": CategoryColumn(values=tuple(_OCCUPATIONS)),
            "region": CategoryColumn(values=tuple(_REGIONS)),
            "sex": CategoryColumn(values=tuple(_SEXES)),
        },
        target=Target(name="income", classes=("low", "high")),
    )


def simulated_census(n_rows: int, seed: int) -> pa.Table:
    """Draw a table that fits :func:`census_schema`, column income included.

    A high income becomes likelier with age until 50 and rarer after, likelier with full-time hours and rarer
    with very long ones, and jumps with a degree and with capital: effects that a straight line misses.
    About 15 % of the labels are noise that no rule can predict.

    Parameters
    ----------
    n_rows : int
        Number of people.
    seed : int
        The same seed draws the same people.
    """
    random = np.random.default_rng(seed)
    age = np.clip(np.round(18 + 72 * random.beta(1.6, 2.4, n_rows)), 18, 90)
    hours = np.clip(np.round(random.normal(38, 11, n_rows)), 0, 80)
    education = np.clip(np.round(random.normal(12.5, 2.8, n_rows)), 6, 22)
    has_capital = random.random(n_rows) < 0.2
    capital = np.minimum(random.lognormal(7.5, 1.8, n_rows), 1e6).round() * has_capital
    occupation, occupation_effect = _draw(_OCCUPATIONS, n_rows, random)
    region, region_effect = _draw(_REGIONS, n_rows, random)
    sex, sex_effect = _draw(_SEXES, n_rows, random)
    score = _score(age, hours, education, capital) + occupation_effect + region_effect + sex_effect
    is_high = random.random(n_rows) < 1.0 / (1.0 + np.exp(-1.3 * score))
    return pa.table(
        {
            "age": age.astype(np.int64),
            "hours": hours.astype(np.int64),
            "education_years": education.astype(np.int64),
            "capital_income": capital,
            "occupation": occupation,
            "region": region,
            "sex": sex,
            "income": np.where(is_high, "high", "low"),
        }
    )


def _score(
    age: NDArray[np.float64],
    hours: NDArray[np.float64],
    education: NDArray[np.float64],
    capital: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the effect of the numbers on the odds of a high income."""
    career = 2.5 * np.exp(-(((age - 50) / 13) ** 2)) - 1.5
    work = 1.5 * np.tanh((hours - 36) / 5) - 1.5 * np.maximum(hours - 55, 0) / 10
    degree = 1.8 * (education >= 16) + 0.5 * (education >= 12) - 0.9
    wealth = 2.5 * (capital > 5000)
    return np.asarray(career + work + degree + wealth - 0.9)


def _draw(
    shares: dict[str, tuple[float, float]], count: int, random: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return a category for each person, and its effect on income."""
    names = np.array(list(shares))
    share, effect = np.array(list(shares.values())).T
    indices = random.choice(len(names), size=count, p=share)
    return names[indices], effect[indices]


FROM_SCHEMA: Final = "schema"
"""Parameter value for public points that are drawn uniformly within the schema's ranges and lists."""


def uniform_table(schema: Schema, rows: int, seed: int) -> pa.Table:
    """Return a table whose cells are uniform within the ranges and lists of a schema; none is missing.

    The first rows do not depend on the number of rows.
    """
    positions = np.random.default_rng(seed).random((rows, len(schema.columns)))
    columns = zip(schema.columns.items(), positions.T, strict=True)
    return pa.table({name: cells_at(name, column, values) for (name, column), values in columns})


def uniform_ball(columns: int, radius: float, rows: int, seed: int) -> Array:
    """Return points that are uniform in a ball, of shape (rows, columns)."""
    # d of the d + 2 coordinates of a uniform point on a sphere are uniform in a ball.
    normals = np.random.default_rng(seed).standard_normal((rows, columns + 2))
    norms = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(radius * normals[:, :columns] / norms, dtype=np.float64)


def cells_at(name: str, column: AnyColumn, positions: Array) -> Any:
    """Return the cells of a column at positions between 0 and 1 of its range or list."""
    match column:
        case NumberColumn():
            width = column.upper - column.lower
            if column.scale == "log":
                return column.lower + np.expm1(positions * math.log1p(width))
            return column.lower + positions * width
        case CategoryColumn() | OrdinalColumn():
            indices = np.minimum((positions * len(column.values)).astype(int), len(column.values) - 1)
            return np.array(column.values)[indices]
        case DateColumn():
            days = np.rint(positions * (column.upper - column.lower).days).astype(int)
            return [column.lower + datetime.timedelta(int(count)) for count in days]
        case TextColumn():
            raise InvalidParameter(
                f"{name!r} is text, which cannot be drawn from a range. Pass public points with similar texts."
            )
