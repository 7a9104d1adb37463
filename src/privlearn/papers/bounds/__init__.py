"""Upper and lower bounds from the papers, computed from public numbers alone, with corrected constants.

One file per kind of theorem: `finite` and `fourier` (RBHT), `excess` (CMS11, RA12), `pinp` (JT13), `growth` (bounds
without constants). Derivations: docs/theory/bounds.md. May import `mechanisms` and below. Start with `finite`.
"""

from privlearn.papers.bounds.excess import (
    Bound,
    gamma_length,
    gaussian_excess,
    objective_excess,
    output_excess,
    ra12_noise,
    tuning_excess,
)
from privlearn.papers.bounds.finite import (
    ball_upper_bound,
    finite_private_noise,
    finite_upper_bound,
    finite_useful_noise,
    linear_accuracy_limit,
    linear_lower_bound,
    rbf_accuracy_limit,
    rbf_lower_bound,
    rbf_packing,
    sensitivity,
)
from privlearn.papers.bounds.fourier import (
    fourier_features,
    fourier_private_noise,
    fourier_upper_bound,
    fourier_useful_noise,
    frequency_moment,
)
from privlearn.papers.bounds.growth import GROWTH_RATES, ROWS, GrowthRate, Sizes
from privlearn.papers.bounds.pinp import PinpSizes, pinp_threshold

__all__ = [
    "GROWTH_RATES", "ROWS", "Bound", "GrowthRate", "PinpSizes", "Sizes", "ball_upper_bound", "finite_private_noise",
    "finite_upper_bound", "finite_useful_noise", "fourier_features", "fourier_private_noise", "fourier_upper_bound",
    "fourier_useful_noise", "frequency_moment", "gamma_length", "gaussian_excess", "linear_accuracy_limit",
    "linear_lower_bound", "objective_excess", "output_excess", "pinp_threshold", "ra12_noise", "rbf_accuracy_limit",
    "rbf_lower_bound", "rbf_packing", "sensitivity", "tuning_excess",
]  # fmt: skip
