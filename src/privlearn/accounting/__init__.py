"""What happened, and what it costs."""

from privlearn.accounting.calibrate import MARGIN, gaussian_ratio, ra12_noise_scale
from privlearn.accounting.compose import composed_delta, renyi_divergence
from privlearn.accounting.curves import Curve, GaussianCurve, GaussianObjectiveCurve, PureCurve

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
]
