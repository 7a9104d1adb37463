"""The schema: what is public about a table, written by people in YAML or JSON.

Start with `schema.Schema` and `columns`; `target` describes the column to predict, `file_format` the file, and
`cell_grammar` which texts are numbers, dates and gaps. `draft` is a schema with gaps that are estimated privately,
`private_bounds` the receipt for them, and `template` the commented file that people fill in.

Imports nothing else of `data`, except `template`, which reads the names of a file's columns through `data.sources`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.data.schema.cell_grammar import GAPS, CellRules, UnreadableCell
    from privlearn.data.schema.documents import parse_json, parse_yaml, read_document, write_document
    from privlearn.data.schema.draft import Bound
    from privlearn.data.schema.file_format import FileFormat
    from privlearn.data.schema.name_ranges import expand_ranges
    from privlearn.data.schema.private_bounds import JointPrivateBounds, add_private_bounds
    from privlearn.data.schema.template import schema_template
else:
    __getattr__ = export_late(__name__)
