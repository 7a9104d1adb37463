"""Sources of rows: tables in memory, files, directories of files and S3-compatible storage, read in blocks.

Start with `row_source` (what a source is), then `files` (open a path) and `read_columns` (one grammar for all cells).
`table` converts tables in memory; `csv_lines` and `csv_files` read text, `program_files` workbooks and the like.

May import `data.schema`. No message of an error quotes a cell.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.data.sources.addresses import StoredPath, check_endpoint, table_path
    from privlearn.data.sources.csv_files import parse_csv, upload_format
    from privlearn.data.sources.files import open_rows
    from privlearn.data.sources.raw_cells import open_cells, write_rows
    from privlearn.data.sources.read_columns import read_block, read_column
    from privlearn.data.sources.row_source import (
        ArrayRows,
        CachedRows,
        EncodedRows,
        RowSource,
        SelectedRows,
        TableRows,
        concatenate_tables,
        in_memory,
        read_each,
    )
    from privlearn.data.sources.schema_columns import looks_like_identifier, refuse_unclear_persons, rules_of
    from privlearn.data.sources.table import as_array
    from privlearn.data.sources.workbook_check import check_sheet
else:
    __getattr__ = export_late(__name__)
