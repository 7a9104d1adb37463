"""What a mechanism can and cannot do, computed from public numbers alone."""

from privlearn.bounds.excess import (
    Bound,
    gamma_length,
    gaussian_excess,
    objective_excess,
    output_excess,
    ra12_noise,
    tuning_excess,
)
from privlearn.bounds.finite import (
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
from privlearn.bounds.fourier import (
    fourier_features,
    fourier_private_noise,
    fourier_upper_bound,
    fourier_useful_noise,
    frequency_moment,
)
from privlearn.bounds.growth import LAWS, Law, Sizes
from privlearn.bounds.pinp import PinpSizes, pinp_threshold

__all__ = [
    "LAWS",
    "Bound",
    "Law",
    "PinpSizes",
    "Sizes",
    "ball_upper_bound",
    "finite_private_noise",
    "finite_upper_bound",
    "finite_useful_noise",
    "fourier_features",
    "fourier_private_noise",
    "fourier_upper_bound",
    "fourier_useful_noise",
    "frequency_moment",
    "gamma_length",
    "gaussian_excess",
    "linear_accuracy_limit",
    "linear_lower_bound",
    "objective_excess",
    "output_excess",
    "pinp_threshold",
    "ra12_noise",
    "rbf_accuracy_limit",
    "rbf_lower_bound",
    "rbf_packing",
    "sensitivity",
    "tuning_excess",
]
