"""From a raw table to vectors of norm at most 1, by public information only.

`schema` says what is public about a table, `sources` read its rows in blocks, `encoding` turns them into vectors.
`parts` splits a table into a training and a test part, `table_check` reports what does not fit the schema,
`datasets` loads public tables and `synthetic` draws rows from a schema. Start with `schema/schema.py`.

May import the modules at the top of privlearn, and no other directory.
"""

from privlearn.data.encoding.arrays import ArrayEncoder
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.parts import split
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.draft import SchemaDraft
from privlearn.data.schema.private_bounds import PrivateBounds
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.files import open_records, read_table, write_table
from privlearn.data.sources.passes import spill_to, watch_passes
from privlearn.data.sources.table import as_table

__all__ = [
    "ArrayEncoder",
    "CategoryColumn",
    "DateColumn",
    "NumberColumn",
    "OrdinalColumn",
    "PrivateBounds",
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
