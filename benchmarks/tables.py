"""The tables that several benchmarks share: rows, the public schema of each, and two ways to write them as vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_breast_cancer

from privlearn import Schema
from privlearn.data import SchemaEncoder
from privlearn.data.datasets import load_adult, load_bank_marketing, load_covertype, load_kddcup99

EXAMPLES = Path(__file__).parent.parent / "examples"
FLAGS = {"Wilderness_Area": slice(10, 14), "Soil_Type": slice(14, 54)}
"""CoverType's flags: in each row one of each kind is set."""


class Rows(NamedTuple):
    """Encoded records, of norm 1, and labels 0 and 1."""

    features: Any
    labels: np.ndarray


def load(name: str) -> tuple[pa.Table, Schema]:
    """A table, at most `_MOST` of its rows, and its example schema."""
    table, most = _LOADERS[name](), _MOST.get(name)
    if most is not None:
        table = table.take(np.random.default_rng(0).permutation(table.num_rows)[:most])
    return table, Schema.load(EXAMPLES / f"{name}.schema.yaml")


def plain(schema: Schema) -> Schema:
    """The same with each number scaled to [-1, 1] as it is, on no curve: what linear models usually get."""
    content = schema.to_dict()
    for column in content["columns"].values():
        if column["type"] == "number":
            column.update(encoding="linear", scale="linear")
    return Schema.from_dict(content)


def encoded(table: pa.Table, schema: Schema) -> Rows:
    """The records as the schema's encoder writes them, the intercept among the features."""
    encoder = SchemaEncoder(schema)
    assert schema.target is not None
    labels = encoder.encode_labels(table[schema.target.name])
    return Rows(np.ascontiguousarray(encoder.encode(table)), labels)


def _breast_cancer() -> pa.Table:
    data = load_breast_cancer()
    columns = dict(zip(data.feature_names, data.data.T, strict=True))
    return pa.table(columns | {"diagnosis": data.target_names[data.target]})


def all_covertype() -> pa.Table:
    features, cover = load_covertype()
    names = list(Schema.load(EXAMPLES / "covertype.schema.yaml").columns)
    columns = dict(zip(names[:10], features[:, :10].T.astype(float), strict=True))
    kinds = {kind: features[:, flags].argmax(axis=1) + 1 for kind, flags in FLAGS.items()}
    return pa.table(columns | kinds | {"lodgepole": np.where(cover == 2, "yes", "no")})


_LOADERS: dict[str, Callable[[], pa.Table]] = {
    "breast_cancer": _breast_cancer,
    "adult": load_adult,
    "bank_marketing": load_bank_marketing,
    "covertype": all_covertype,
    "kddcup99": load_kddcup99,
}
_MOST = {"kddcup99": 87_500, "covertype": 62_500}
"""Four fifths of them, the training rows, are 70,000 and 50,000."""

NAMES = tuple(_LOADERS)
