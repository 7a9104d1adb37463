"""What happened, and what it costs."""

from privlearn.accounting.calibrate import (
    MARGIN,
    STOPPED_PURE,
    gaussian_delta,
    gaussian_ratio,
    ra12_noise_scale,
    stopped_renyi,
    stopping_plan,
    zcdp_budget,
)
from privlearn.accounting.compose import composed_delta, renyi_divergence
from privlearn.accounting.conversions import renyi_delta, zcdp_delta, zcdp_order
from privlearn.accounting.curves import (
    ONE_CORNER,
    Corners,
    Curve,
    GaussianCurve,
    GaussianObjectiveCurve,
    GaussianObjectiveCurves,
    PureCurve,
)

__all__ = [
    "MARGIN",
    "ONE_CORNER",
    "STOPPED_PURE",
    "Corners",
    "Curve",
    "GaussianCurve",
    "GaussianObjectiveCurve",
    "GaussianObjectiveCurves",
    "PureCurve",
    "composed_delta",
    "gaussian_delta",
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
