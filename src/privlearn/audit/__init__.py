"""Checks that a sceptic can run: replay, exact curves, empirical epsilon, tests of the samplers."""

from privlearn.audit.black_box import audit_estimator, audit_fits
from privlearn.audit.empirical import AuditReport, EpsilonBound, Finding, epsilon_bound
from privlearn.audit.mechanisms import audit_mechanism, audit_release, audited
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
    "audited",
    "epsilon_bound",
    "membership_attack",
    "true_positive_ceiling",
]
