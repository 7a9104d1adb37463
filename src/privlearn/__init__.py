"""Differentially private linear and kernel learning, from a raw table to a release anyone can verify.

The names below are imported when they are first used, so that ``privlearn --help`` does not wait for the
numerical libraries.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from privlearn._version import __version__ as __version__
from privlearn.heavy import explained

if TYPE_CHECKING:
    from privlearn.data import Schema, SchemaDraft, SchemaEncoder, split
    from privlearn.description import Description, describe
    from privlearn.discovery import discover
    from privlearn.erm import ClippedSquare, Hinge, Huber, HuberHinge, Logistic, SmoothedHinge
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
    from privlearn.evaluation import Evaluation, evaluate
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
    from privlearn.ledger import Ledger
    from privlearn.planning import Plan, plan
    from privlearn.release import Certificate, Curvature, Release, verify
    from privlearn.selection import PrivateGridSearch
    from privlearn.sessions import InteractivePredictor
    from privlearn.splitting import BudgetSplit

__all__ = [
    "Band",
    "BudgetExceeded",
    "BudgetSplit",
    "Certificate",
    "ClippedSquare",
    "Cluster",
    "ClusterError",
    "Contributions",
    "Curvature",
    "DataError",
    "Description",
    "Effects",
    "Evaluation",
    "Guarantee",
    "Hinge",
    "Huber",
    "HuberHinge",
    "InteractivePredictor",
    "Intervals",
    "InvalidParameter",
    "KernelLearner",
    "Ledger",
    "LedgerError",
    "Logistic",
    "NothingRecorded",
    "Plan",
    "PrivateGridSearch",
    "PrivateLogisticRegression",
    "PrivateRegressor",
    "PrivateSVC",
    "PrivlearnError",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaDraft",
    "SchemaEncoder",
    "SchemaError",
    "SessionError",
    "SmoothedHinge",
    "SolverError",
    "VerificationError",
    "contributions",
    "curvature",
    "describe",
    "discover",
    "effects",
    "evaluate",
    "export_release",
    "intervals",
    "plan",
    "refine",
    "split",
    "verify",
]

# planning before estimators: those have a module that is called plan, too
_PARTS = (
    "errors",
    "guarantee",
    "data",
    "erm",
    "release",
    "ledger",
    "splitting",
    "discovery",
    "planning",
    "explain",
    "estimators",
    "selection",
    "sessions",
    "evaluation",
    "description",
    "export",
    "report",
)

if not TYPE_CHECKING:  # for a type checker the imports above say more

    def __getattr__(name: str) -> object:
        if name in _PARTS:
            return import_module(f"privlearn.{name}")
        if name in __all__:
            for part in _PARTS:
                with explained():
                    module = import_module(f"privlearn.{part}")
                if hasattr(module, name):
                    return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module 'privlearn' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_PARTS})
