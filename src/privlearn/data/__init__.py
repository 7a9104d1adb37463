"""From a raw table to vectors of norm at most 1, by public information only.

`schema` says what is public about a table, `sources` read its rows in blocks, `encoding` turns them into vectors.
`parts` splits a table into a training and a test part, `table_check` reports what does not fit the schema,
`datasets` loads public tables and `synthetic` draws rows from a schema. Start with `schema/schema.py`.

May import the modules at the top of privlearn, and no other directory.
"""

from typing import TYPE_CHECKING

from privlearn.data.encoding.arrays import ArrayEncoder
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.resolution import Resolution
from privlearn.data.parts import Part, PartRows, Split, SplitTable, split
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.draft import SchemaDraft
from privlearn.data.schema.private_bounds import PrivateBounds
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.data.sources.files import open_records, read_table, write_table
from privlearn.data.sources.passes import spill_to, watch_passes
from privlearn.data.sources.table import as_table
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.data.datasets import (
        census_schema,
        data_directory,
        load_adult,
        load_bank_marketing,
        load_kddcup99,
        load_newsgroups,
        simulated_census,
    )
    from privlearn.data.table_check import TableCheck, check_table
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "ArrayEncoder", "CategoryColumn", "DateColumn", "NumberColumn", "OrdinalColumn", "Part", "PartRows",
    "PrivateBounds", "Resolution", "Schema", "SchemaDraft", "SchemaEncoder", "Split", "SplitTable", "Target",
    "TextColumn", "as_table", "open_records", "read_table", "spill_to", "split", "watch_passes", "write_table",
]  # fmt: skip
