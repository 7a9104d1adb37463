"""Public data sets for examples and experiments; the files are the user's, nothing is downloaded."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from privlearn.errors import DataError

_ADULT_NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
_ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def data_folder() -> Path:
    """The folder of data sets, from the environment variable PRIVLEARN_DATA."""
    folder = os.environ.get("PRIVLEARN_DATA")
    if not folder:
        raise DataError(
            "set PRIVLEARN_DATA to the folder that holds the data sets (adult/adult.data.gz, ...)"
        )
    return Path(folder)


def load_adult() -> pa.Table:
    """The UCI Adult census table: the 45,222 rows without unknown cells, 14 columns and income."""
    folder = data_folder() / "adult"
    parts = [_adult_part(folder / "adult.data.gz", skip=0), _adult_part(folder / "adult.test.gz", skip=1)]
    return pa.concat_tables(parts).combine_chunks()


def load_covertype() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """CoverType: 581,012 rows of ten measurements and 44 flags, and the cover type, 1 to 7."""
    table = arrow_csv.read_csv(data_folder() / "covtype" / "covtype.csv.gz")
    *columns, cover = table.columns
    features = np.empty((table.num_rows, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        features[:, place] = column.to_numpy()
    return features, cover.to_numpy()


def load_newsgroups() -> pa.Table:
    """The 20 newsgroups, split by date: columns text, group and part ("train" or "test")."""
    path = data_folder() / "newsgroups20" / "20news-bydate.tar.gz"
    rows: list[tuple[str, str, str]] = []
    with tarfile.open(path) as archive:
        for member in archive:
            message = archive.extractfile(member)
            if message is not None:  # folders have no content
                _, part, group, _ = member.name.split("/")
                rows.append((message.read().decode("latin-1"), group, part.removeprefix("20news-bydate-")))
    return pa.table([list(column) for column in zip(*rows, strict=True)], names=["text", "group", "part"])


def _adult_part(path: Path, skip: int) -> pa.Table:
    """One of the two files: no header, a blank after each comma, "?" for unknown, a dot after some labels."""
    types = {name: pa.int64() if name in _ADULT_NUMBERS else pa.string() for name in _ADULT_COLUMNS}
    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(column_names=_ADULT_COLUMNS, skip_rows=skip),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, null_values=[" ?"], strings_can_be_null=True
        ),
    ).drop_null()
    for place, name in enumerate(_ADULT_COLUMNS):
        if name not in _ADULT_NUMBERS:
            table = table.set_column(place, name, pc.utf8_trim(table[name], " ."))
    return table
