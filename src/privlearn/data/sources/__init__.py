"""Sources of rows: tables in memory, files, directories of files and S3-compatible storage, read in blocks.

Start with `row_source` (what a source is), then `files` (open a path) and `read_columns` (one grammar for all cells).
`table` converts tables in memory; `csv_lines` and `csv_files` read text, `program_files` workbooks and the like.

May import `data.schema`. No message of an error quotes a cell.
"""
