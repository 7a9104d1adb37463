"""Encoding: from the cells of a table to vectors of norm at most 1, by public information only.

Start with `layout` (one description of the features, with a worked example), then `expansion` (from cells to vectors),
then `lookup_rows` (the fast product with many rows). `encoder.SchemaEncoder` puts them together; `arrays.ArrayEncoder`
is for arrays without a schema. A block of rows has one form on its way: cells by column (`packed_cells`).

May import `data.schema` and `data.sources`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.data.encoding.arrays import CentredEncoder
    from privlearn.data.encoding.column_cells import owners
    from privlearn.data.encoding.encoder import from_unit, to_unit
    from privlearn.data.encoding.feature_groups import BinIndicators, ColumnCells, coarse_features
    from privlearn.data.encoding.lookup_rows import LookupTables, lookup_tables
    from privlearn.data.encoding.packed_cells import PackedCells
    from privlearn.data.encoding.resolution import MAX_PAIRS, affordable_pairs, choose_resolution
    from privlearn.data.encoding.rough_rows import RoughRows, RoughTables, rough_tables
    from privlearn.data.encoding.row_weights import WeightColumns
    from privlearn.data.encoding.table_cover import MAX_CELLS, cover_pairs
else:
    __getattr__ = export_late(__name__)
