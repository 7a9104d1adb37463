"""From a raw table to vectors of norm at most 1, by public information only."""

from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.packed_cells import spill_to
from privlearn.data.encode.resolution import Resolution
from privlearn.data.parts import split
from privlearn.data.schema.columns import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    OrdinalColumn,
    Target,
    TextColumn,
)
from privlearn.data.schema.draft import SchemaDraft
from privlearn.data.schema.purchases import Purchase
from privlearn.data.schema.schema import Schema
from privlearn.data.sources.files import open_records, read_table, write_table
from privlearn.data.sources.passes import watch_passes
from privlearn.data.sources.table import as_table
from privlearn.moved import say_moved

__all__ = [
    "ArrayEncoder",
    "CategoryColumn",
    "DateColumn",
    "NumberColumn",
    "OrdinalColumn",
    "Purchase",
    "Resolution",
    "Schema",
    "SchemaDraft",
    "SchemaEncoder",
    "Target",
    "TextColumn",
    "as_table",
    "open_records",
    "read_table",
    "spill_to",
    "split",
    "watch_passes",
    "write_table",
]


def __getattr__(name: str) -> object:
    if name == "BoundedRows":
        say_moved("privlearn.data.BoundedRows", "privlearn.data.ArrayEncoder")
        return ArrayEncoder
    raise AttributeError(f"module 'privlearn.data' has no attribute {name!r}")
