"""Encoding: from the cells of a table to vectors of norm at most 1, by public information only.

Start with `layout` (one description of the features, with a worked example), then `expansion` (from cells to vectors),
then `lookup_rows` (the fast product with many rows). `encoder.SchemaEncoder` puts them together; `arrays.ArrayEncoder`
is for arrays without a schema. A block of rows has one form on its way: cells by column (`packed_cells`).

May import `data.schema` and `data.sources`.
"""
