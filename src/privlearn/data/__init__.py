"""From a raw table to vectors of norm at most 1, by public information only."""

from privlearn.data.clip import BoundedRows
from privlearn.data.columns import CategoryColumn, NumberColumn, Target, TextColumn
from privlearn.data.draft import SchemaDraft
from privlearn.data.encode import SchemaEncoder
from privlearn.data.files import read_table, write_table
from privlearn.data.purchase import Purchase
from privlearn.data.schema import Schema
from privlearn.data.table import as_table

__all__ = [
    "BoundedRows",
    "CategoryColumn",
    "NumberColumn",
    "Purchase",
    "Schema",
    "SchemaDraft",
    "SchemaEncoder",
    "Target",
    "TextColumn",
    "as_table",
    "read_table",
    "write_table",
]
