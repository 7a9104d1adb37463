"""A release in other languages: tables of numbers that need no privlearn to predict."""

from privlearn.export import as_html, as_json, as_onnx, as_python, as_sql
from privlearn.export.by_row import RowPredictor
from privlearn.export.fold import scorecard
from privlearn.export.scorecard import Scorecard
from privlearn.export.target import TARGETS, ExportTarget, export_release, register_target

__all__ = [
    "TARGETS",
    "ExportTarget",
    "RowPredictor",
    "Scorecard",
    "as_html",
    "as_json",
    "as_onnx",
    "as_python",
    "as_sql",
    "export_release",
    "register_target",
    "scorecard",
]
