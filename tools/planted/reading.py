"""Defects between a file and the cells that are encoded: quotes, line ends, gaps, the grammar of cells."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

READ = ("data/test_read_right_or_refused.py",)
WORDS = ("data/test_cell_grammar.py",)

MUTANTS = [
    Mutant("persons: scientific notation is another person", "privlearn.data.encoding.column_cells:people", "_without_powers(_normalised(spellings))", "_normalised(spellings)", ("data/test_persons.py",)),
    Mutant("reading: an open quote swallows records", "privlearn.data.sources.csv_lines:_check_quotes", "np.union1d(line[quotes][wrong], line[unclosed])", "line[quotes][wrong]", READ),
    Mutant("reading: text after a closing quote", "privlearn.data.sources.csv_lines:_check_quotes", "np.where(odd, opens, closes)", "np.where(odd, opens, True)", READ),
    Mutant("reading: a carriage return splits a record", "privlearn.data.sources.csv_lines:_with_line_feeds", r"b'\r' in text and text.count(b'\r') > text.count(b'\r\n')", "False", READ),
    Mutant("reading: a line without end", "privlearn.data.sources.csv_lines:record_pieces", "len(rest) > max_length", "False", READ),
    Mutant("reading: a point in a decimal comma's file", "privlearn.data.sources.read_columns:_parse", "pc.any(pc.match_substring(text, '.')).as_py()", "False", READ),
    Mutant("reading: a date that is a gap counts", "privlearn.data.sources.read_columns:_day_gaps", "not rules.gap_days", "True", READ),
    Mutant("reading: a listed text is a gap", "privlearn.data.schema.cell_grammar:CellRules.__init__", "text not in listed", "", WORDS),
    Mutant("reading: codes compared as text", "privlearn.data.schema.cell_grammar:CellRules.__init__", "tuple(sorted((number for number in numbers if number is not None)))", "()", WORDS),
    Mutant("reading: blanks around numbers", "privlearn.data.schema.cell_grammar:CellRules.strips", "self.trim or self.kind not in ('text', 'any')", "self.trim", WORDS),
    Mutant("reading: errors of a workbook are gaps", "privlearn.data.sources.workbook_check:_add_cell", "cell.get('t') == 'e' or ('f' in parts and (value is None or not value.text))", "'f' in parts and (value is None or not value.text)", READ),
    Mutant("reading: a far cell of a workbook", "privlearn.data.sources.workbook_check:check_sheet", "extent.last_row * extent.last_column > MAX_CELLS", "False", READ),
    Mutant("reading: an error in the first row of a workbook without names is a gap", "privlearn.data.sources.program_files:_rows", "1 if skip_empty_area else 0", "1", READ),
    Mutant("reading: a note outside a workbook's table adds records", "privlearn.data.sources.program_files:_named_columns", "_none_if_empty(cell) is not None", "False", READ),
    Mutant("reading: a cut transport file loses records", "privlearn.data.sources.program_files:check_transport_file", "filling.strip(b' ')", "", READ),
    Mutant("reading: text that is not UTF-8 is a strange value", "privlearn.data.sources.table:_to_arrow", "is_text(kind)", "False", READ),
    Mutant("reading: names of directories as they are", "privlearn.data.sources.directories:_unquote", "unquote(text, errors='strict')", "text", READ),
    Mutant("reading: checksums of pages", "privlearn.data.sources.files:open_parquet", "page_checksum_verification=True", "page_checksum_verification=False", READ),
    Mutant("reading: octal numbers of YAML", "privlearn.data.schema.documents:_UniqueKeyLoader.construct_scalar", "_AMBIGUOUS.fullmatch(node.value)", "False", READ),
    Mutant("reading: masks of arrays", "privlearn.data.sources.table:_unmask", "None if hidden else cell", "cell", READ),
]  # fmt: skip
