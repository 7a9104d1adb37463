"""The schema: what is public about a table, written by people in YAML or JSON.

Start with `schema.Schema` and `columns`; `target` describes the column to predict, `file_format` the file, and
`cell_grammar` which texts are numbers, dates and gaps. `draft` is a schema with gaps that are estimated privately,
`private_bounds` the receipt for them, and `template` the commented file that people fill in.

Imports nothing else of `data`, except `template`, which reads the names of a file's columns through `data.sources`.
"""
