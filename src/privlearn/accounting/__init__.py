"""Privacy accounting: curves of single mechanisms, their composition, and calibration of noise to a guarantee.

A `Curve` gives delta as a function of epsilon; every computed delta is an upper bound that includes rounding. May
import the top-level modules only, and no scipy: verification of a release has to work without it. Start reading with
`curves.py`; then `compose.py` (several mechanisms) and `calibrate.py` (the noise for a guarantee). The arguments are in
docs/theory/composition.md.
"""

from privlearn.accounting.calibrate import (
    MARGIN,
    STOPPED_PURE,
    gaussian_delta,
    gaussian_ratio,
    ra12_noise_scale,
    stopping_budget,
    stopping_renyi,
    zcdp_budget,
)
from privlearn.accounting.compose import (
    composition_delta,
    gaussian_epsilon,
    pure_composition_delta,
    pure_composition_epsilon,
    pure_renyi,
    renyi_delta,
    renyi_divergence,
    zcdp_delta,
    zcdp_order,
)
from privlearn.accounting.curves import (
    Curve,
    FreeGaussianCurve,
    GaussianCurve,
    GaussianObjectiveCurve,
    GaussianObjectiveCurves,
    PureCurve,
)
from privlearn.accounting.release_curves import (
    ComposedCurve,
    EpsilonDeltaCurve,
    JointCurve,
    ZcdpCurve,
    curve_of_runs,
)

__all__ = [
    "MARGIN", "STOPPED_PURE", "ComposedCurve", "Curve", "EpsilonDeltaCurve", "FreeGaussianCurve", "GaussianCurve",
    "GaussianObjectiveCurve", "GaussianObjectiveCurves", "JointCurve", "PureCurve", "ZcdpCurve", "composition_delta",
    "curve_of_runs", "gaussian_delta", "gaussian_epsilon", "gaussian_ratio", "pure_composition_delta",
    "pure_composition_epsilon", "pure_renyi", "ra12_noise_scale", "renyi_delta", "renyi_divergence",
    "stopping_budget", "stopping_renyi", "zcdp_budget", "zcdp_delta", "zcdp_order",
]  # fmt: skip
