"""What a mechanism can and cannot do, computed from public numbers alone."""

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
from privlearn.bounds.pinp import PinpSizes, pinp_threshold

__all__ = [
    "PinpSizes",
    "ball_upper_bound",
    "finite_private_noise",
    "finite_upper_bound",
    "finite_useful_noise",
    "fourier_features",
    "fourier_private_noise",
    "fourier_upper_bound",
    "fourier_useful_noise",
    "frequency_moment",
    "linear_accuracy_limit",
    "linear_lower_bound",
    "pinp_threshold",
    "rbf_accuracy_limit",
    "rbf_lower_bound",
    "rbf_packing",
    "sensitivity",
]
