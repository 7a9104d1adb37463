"""Differentially private linear and kernel learning, from a raw table to a release anyone can verify.

The names below are imported when they are first used, so that ``privlearn --help`` does not wait for the
numerical libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privlearn._version import __version__ as __version__
from privlearn.imports import VIEWS, export_late

if TYPE_CHECKING:
    from privlearn.budget.ledger import Ledger
    from privlearn.budget.split import BudgetSplit
    from privlearn.data import Schema, SchemaDraft, SchemaEncoder, split
    from privlearn.errors import (
        BudgetExceeded,
        ClusterError,
        DataError,
        InvalidParameter,
        LedgerError,
        NothingRecorded,
        PrivlearnError,
        ReleaseError,
        SchemaError,
        SessionError,
        SolverError,
        VerificationError,
    )
    from privlearn.estimators import (
        Cluster,
        KernelLearner,
        PrivateLogisticRegression,
        PrivateRegressor,
        PrivateSVC,
    )
    from privlearn.estimators.forecast import Plan, plan
    from privlearn.estimators.selection import PrivateGridSearch
    from privlearn.explain import (
        Band,
        Contributions,
        Effects,
        Intervals,
        contributions,
        curvature,
        effects,
        intervals,
        refine,
    )
    from privlearn.export import export_release
    from privlearn.guarantee import Guarantee
    from privlearn.release import Certificate, Curvature, Release, verify
    from privlearn.sessions import InteractivePredictor
    from privlearn.solvers import ClippedSquare, Hinge, Huber, HuberHinge, Logistic, SmoothedHinge
    from privlearn.statistics.description import Description, describe
    from privlearn.statistics.discovery import discover
    from privlearn.statistics.evaluation import Evaluation, evaluate
    from privlearn.statistics.regression import Estimates, PrivateGLM, estimate

__all__ = [
    "Band", "BudgetExceeded", "BudgetSplit", "Certificate", "ClippedSquare", "Cluster", "ClusterError",
    "Contributions", "Curvature", "DataError", "Description", "Effects", "Estimates", "Evaluation", "Guarantee",
    "Hinge", "Huber", "HuberHinge", "InteractivePredictor", "Intervals", "InvalidParameter", "KernelLearner",
    "Ledger", "LedgerError", "Logistic", "NothingRecorded", "Plan", "PrivateGLM", "PrivateGridSearch",
    "PrivateLogisticRegression", "PrivateRegressor", "PrivateSVC", "PrivlearnError", "Release", "ReleaseError",
    "Schema", "SchemaDraft", "SchemaEncoder", "SchemaError", "SessionError", "SmoothedHinge", "SolverError",
    "VerificationError", "contributions", "curvature", "describe", "discover", "effects", "estimate", "evaluate",
    "export_release", "intervals", "plan", "refine", "split", "verify",
]  # fmt: skip

_PARTS = (
    "data", "errors", "estimators", "explain", "export", "guarantee", "release", "sessions", "solvers", "statistics",
)  # fmt: skip
"""Parts that are attributes of the package without an import of their own."""

if not TYPE_CHECKING:  # a type checker reads the imports above
    _export = export_late(__name__)

    def __getattr__(name: str) -> object:
        return import_module(f"privlearn.{name}") if name in _PARTS else _export(name)

    def _late_view(name: str) -> Callable[..., Any]:
        """Return a function that imports the one of this name when it is called."""
        return lambda *arguments, **options: __getattr__(name)(*arguments, **options)

    VIEWS.update({name: _late_view(name) for name in ("effects", "contributions")})
