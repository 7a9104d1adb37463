"""Audits of mechanisms, releases and estimators: replay, exact privacy curves, empirical epsilon, tests of samplers.

An audit can refute a guarantee, not prove it. Start with `empirical.py` (findings, reports and the lower bound of
epsilon), then `mechanisms.py` (this library's mechanisms) and `black_box.py` (any estimator). May import `parties`
and below.
"""

from typing import TYPE_CHECKING

from privlearn.audit.black_box import audit_estimator, audit_fits
from privlearn.audit.empirical import AuditReport, EpsilonBound, Finding, epsilon_bound
from privlearn.audit.mechanisms import (
    Case,
    audit_case,
    audit_mechanism,
    audit_release,
    cases,
    mechanism_names,
)
from privlearn.audit.membership import (
    MembershipAttack,
    advantage_ceiling,
    membership_attack,
    true_positive_ceiling,
)
from privlearn.audit.samplers import audit_samplers
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.audit.densities import DensityPair, Grid, gradient_sum, log_jacobian, objective_densities
    from privlearn.audit.neighbours import Pair, Records, worst_pairs
    from privlearn.audit.whole_runs import WHOLE_RUNS, WholeRun, check_whole_run
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "AuditReport", "Case", "EpsilonBound", "Finding", "MembershipAttack", "advantage_ceiling", "audit_case",
    "audit_estimator", "audit_fits", "audit_mechanism", "audit_release", "audit_samplers", "cases", "epsilon_bound",
    "mechanism_names", "membership_attack", "true_positive_ceiling",
]  # fmt: skip
