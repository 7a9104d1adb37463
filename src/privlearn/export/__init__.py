"""Export a release to other languages, and write reports about it.

`fold.py` turns a release into a `Scorecard`: tables and curves that any program can add up. Each `as_*.py` is a target
that writes a scorecard in one language; `standalone.py` is the program that predicts from one without dependencies, and
`report/` writes texts for people. May import everything up to `statistics`. Start with `scorecard.py`.
"""

from privlearn.export import as_onnx, as_program, as_sql
from privlearn.export.by_row import RowPredictor
from privlearn.export.fold import scorecard
from privlearn.export.scorecard import Scorecard
from privlearn.export.target import TARGETS, ExportTarget, export_release, register_target

__all__ = [
    "TARGETS", "ExportTarget", "RowPredictor", "Scorecard", "as_onnx", "as_program", "as_sql", "export_release",
    "register_target", "scorecard",
]  # fmt: skip
