"""What happened, and what it costs."""

from privlearn.accounting.calibrate import MARGIN, gaussian_ratio, ra12_noise_scale, zcdp_budget
from privlearn.accounting.compose import composed_delta, renyi_divergence
from privlearn.accounting.curves import Curve, GaussianCurve, GaussianObjectiveCurve, PureCurve
from privlearn.accounting.stopping import STOPPED_PURE, stopped_renyi, stopping_plan
from privlearn.accounting.zcdp import renyi_delta, zcdp_delta, zcdp_order

__all__ = [
    "MARGIN",
    "STOPPED_PURE",
    "Curve",
    "GaussianCurve",
    "GaussianObjectiveCurve",
    "PureCurve",
    "composed_delta",
    "gaussian_ratio",
    "ra12_noise_scale",
    "renyi_delta",
    "renyi_divergence",
    "stopped_renyi",
    "stopping_plan",
    "zcdp_budget",
    "zcdp_delta",
    "zcdp_order",
]
