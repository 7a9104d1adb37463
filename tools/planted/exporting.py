"""Defects of exports: of the fold from a release, of the standalone file, and of what papers may say."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant, TextMutant

AGREE = ("export/test_exports_agree.py",)
CELLS_AGREE = ("export/test_cells_agree.py",)
CONTENT = ("export/test_export_content.py",)
REPORTS = ("export/report/test_reports.py",)


# fmt: off
MUTANTS: list[Mutant | TextMutant] = [
    Mutant("export: no codes for gaps of single columns", "privlearn.export.fold:_fold_schema", "encoder.schema.file.codes_of(name)", "encoder.schema.file.missing", CELLS_AGREE),
    Mutant("export: ONNX has no codes for gaps", "privlearn.export.as_onnx:_Cell._present", "present = graph.call('And', present, graph.call('Not', is_gap))", "pass", CELLS_AGREE),
    Mutant("export: typed codes for gaps are cells", "privlearn.export.standalone:_read_typed", "rules.number(_as_float(cell))", "_as_float(cell)", CELLS_AGREE),
    Mutant("export: a quote hides records", "privlearn.export.standalone:_records", """'"' in line and (not record.fullmatch(line))""", "False", ("export/test_files_of_rows.py",)),
    Mutant("export: several kinds of line ends", "privlearn.export.standalone:_lines", r"'\r' in text, text != line and line.endswith('\r') != alone", r"False and (text != line and line.endswith('\r') != alone)", ("export/test_files_of_rows.py",)),
    TextMutant("export: SQL casts large exponents", "src/privlearn/export/sql_cells.py", "WHEN length({digits}) > 2 THEN {huge} ", "", CELLS_AGREE),
    Mutant("export: hats keep their mean", "privlearn.export.fold:_coarse", "hats - hats.mean(axis=0) if centred else hats", "hats", AGREE),
    Mutant("export: hats are as long as if not centred", "privlearn.export.fold:_coarse", "1.0 / knots if centred else 0.0", "0.0", AGREE),
    Mutant("export: a share is not divided", "privlearn.export.fold:_fine", "share / len(groups)", "share", AGREE),
    Mutant("export: bins end one step late", "privlearn.export.fold:_starts", "_bins(column, middle, size) >= targets", "_bins(column, middle, size) > targets", AGREE),
    Mutant("export: a period does not begin again", "privlearn.export.fold:_axis", "index % size", "min(index, size - 1)", AGREE),
    Mutant("export: threshold stays a probability", "privlearn.export.fold:_outcome", "_log_odds(model.threshold)", "model.threshold", AGREE),
    Mutant("export: the mean's own part is forgotten", "privlearn.export.fold:_centring", "moved[:-1, :features] @ encoder.mean", "np.zeros(len(weights))", AGREE),
    Mutant("export: two softmax scores count once", "privlearn.export.fold:_weights", "rows[1:] - rows[:1]", "rows[1:]", AGREE),
    Mutant("export: text is left out silently", "privlearn.export.target:export_release", """
        if card.texts and (not target.reads_texts):
            ...
    """, """
        if False:
            ...
    """, CONTENT),
    Mutant("export: words count once each", "privlearn.export.standalone:_words", "count / length", "1.0 / length", CONTENT),
    Mutant("export: a seeded release looks private", "privlearn.export.fold:_about", "certificate.is_private", "True", CONTENT),
    Mutant("export: standalone takes gaps for nothing", "privlearn.export.standalone:_ignore", "rule == 'refuse'", "False", CONTENT),
    Mutant("export: SQL takes gaps for nothing", "privlearn.export.as_sql:_Steps.scores", "f'CASE WHEN pl_refused THEN NULL ELSE {score} + {number(constant)} END'", "f'CASE WHEN FALSE THEN NULL ELSE {score} + {number(constant)} END'", CONTENT),
    TextMutant("export: SQL casts any text to a number", "src/privlearn/export/sql_cells.py", 'f"WHEN {self._f} IN ({_texts(_MANTISSAS)}) THEN', 'f"WHEN {self._t} IS NOT NULL THEN', CELLS_AGREE),
    TextMutant("export: SQL knows no calendar", "src/privlearn/export/sql_cells.py", "WHEN NOT {is_a_day(text)} THEN NULL ", "", CELLS_AGREE),
    Mutant("export: SQL takes unreadable cells for gaps", "privlearn.export.as_sql:_is_refused", "f'({cell} IS NULL AND NOT {cell}m)'", "f'FALSE'", CELLS_AGREE),
    Mutant("export: ONNX takes gaps for nothing", "privlearn.export.as_onnx:_any_refused", "found = graph.call('Or', found, mark)", "pass", CONTENT),
    Mutant("export: quotes in SQL", "privlearn.export.sql_expressions:literal", """value.replace("'", "''")""", "value", CONTENT),
    Mutant("report: a seeded release has parameters", "privlearn.export.report.properties:ReleaseProperties.parameters", """
        if not self.certificate.is_private:
            return {}
    """, "", REPORTS),
    Mutant("report: another model's evaluation", "privlearn.export.report.properties:ReleaseProperties.__post_init__", "self.release.undecided.digest", "self.evaluation.about.get('release_sha256')", REPORTS),
    Mutant("report: names become markup", "privlearn.export.report.report:_one_line", "escape(' '.join(text.split()), quote=False)", "' '.join(text.split())", REPORTS),
]  # fmt: skip
