"""Audits of mechanisms, releases and estimators: replay, exact privacy curves, empirical epsilon, tests of samplers.

An audit can refute a guarantee, not prove it. Start with `empirical.py` (findings, reports and the lower bound of
epsilon), then `mechanisms.py` (this library's mechanisms) and `black_box.py` (any estimator). May import `parties`
and below.
"""

from privlearn.audit.black_box import audit_estimator, audit_fits
from privlearn.audit.empirical import AuditReport, EpsilonBound, Finding, epsilon_bound
from privlearn.audit.mechanisms import audit_mechanism, audit_release, mechanism_names
from privlearn.audit.membership import (
    MembershipAttack,
    advantage_ceiling,
    membership_attack,
    true_positive_ceiling,
)
from privlearn.audit.samplers import audit_samplers

__all__ = [
    "AuditReport",
    "EpsilonBound",
    "Finding",
    "MembershipAttack",
    "advantage_ceiling",
    "audit_estimator",
    "audit_fits",
    "audit_mechanism",
    "audit_release",
    "audit_samplers",
    "epsilon_bound",
    "mechanism_names",
    "membership_attack",
    "true_positive_ceiling",
]
