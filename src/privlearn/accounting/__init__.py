"""What happened, and what it costs."""

from privlearn.accounting.calibrate import MARGIN, gaussian_ratio, ra12_noise_scale, zcdp_budget
from privlearn.accounting.compose import composed_delta, renyi_divergence
from privlearn.accounting.curves import Curve, GaussianCurve, GaussianObjectiveCurve, PureCurve
from privlearn.accounting.zcdp import zcdp_delta

__all__ = [
    "MARGIN",
    "Curve",
    "GaussianCurve",
    "GaussianObjectiveCurve",
    "PureCurve",
    "composed_delta",
    "gaussian_ratio",
    "ra12_noise_scale",
    "renyi_divergence",
    "zcdp_budget",
    "zcdp_delta",
]
