"""Defects of exports: of the fold from a release, of the standalone file, and of what papers may say."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

AGREE = ("export/test_exports_agree.py",)
CONTENT = ("export/test_export_content.py",)
PAPERS = ("report/test_papers.py",)

FOLD = "export/fold.py"
ALONE = "export/standalone.py"
SQL = "export/as_sql.py"
CELLS = "export/sql_cells.py"
ONNX = "export/as_onnx.py"

# fmt: off
MUTANTS = [
    Mutant(
        "export: no codes for gaps of single columns",
        ALONE,
        'cell in form["missing"] or cell in form["missing_in"].get(column["name"], ())',
        'cell in form["missing"]',
        ("export/test_files_of_rows.py",),
    ),
    Mutant("export: hats keep their mean", FOLD, "hats - hats.mean(axis=0) if centred else hats", "hats", AGREE),
    Mutant("export: hats are as long as if not centred", FOLD, "(1.0 / knots if centred else 0.0)", "0.0", AGREE),
    Mutant("export: a share is not divided", FOLD, "square = share / len(kind)", "square = share", AGREE),
    Mutant("export: bins end one step late", FOLD, ">= wanted", "> wanted", AGREE),
    Mutant("export: a period does not begin again", FOLD, "place % size for place in", "min(place, size - 1) for place in", AGREE),
    Mutant("export: threshold stays a probability", FOLD, "_log_odds(model.threshold)", "model.threshold", AGREE),
    Mutant("export: the mean's own part is forgotten", FOLD, "_row(moved[:-1, :features] @ encoder.mean)", "_row(np.zeros(len(weights)))", AGREE),
    Mutant("export: two softmax scores count once", FOLD, "return rows[1:] - rows[:1]", "return rows[1:]", AGREE),
    Mutant("export: text is left out silently", FOLD, "    if texts:\n", "    if False:\n", CONTENT),
    Mutant("export: a seeded release looks private", FOLD, '"private": certificate.is_private', '"private": True', CONTENT),
    Mutant("export: standalone takes gaps for nothing", ALONE, 'if rule == "refuse":', "if False:", CONTENT),
    Mutant("export: SQL takes gaps for nothing", SQL, "CASE WHEN pl_refused THEN NULL", "CASE WHEN FALSE THEN NULL", CONTENT),
    Mutant("export: SQL casts any text to a number", CELLS, 'read = f"WHEN {_is_number(_text(name))} THEN', 'read = f"WHEN TRUE THEN', AGREE),
    Mutant("export: SQL knows no calendar", CELLS, "WHEN NOT {is_a_day(text)} THEN NULL ", "", AGREE),
    Mutant("export: SQL takes unreadable cells for gaps", SQL, "({cell} IS NULL AND NOT {cell}m)", "FALSE", AGREE),
    Mutant("export: ONNX takes gaps for nothing", ONNX, 'found = graph.call("Or", found, mark)', "pass", CONTENT),
    Mutant("export: quotes in SQL", "export/sql_expressions.py", """value.replace("'", "''")""", "value", CONTENT),
    Mutant("report: a seeded release has parameters", "report/facts.py", "        if not self.certificate.is_private:\n            return {}\n", "", PAPERS),
    Mutant("report: another model's evaluation", "report/facts.py", '!= self.release.undecided.digest', '!= self.evaluation.about.get("release_sha256")', PAPERS),
    Mutant("report: names become markup", "report/paper.py", 'escape(" ".join(text.split()), quote=False)', '" ".join(text.split())', PAPERS),
]
