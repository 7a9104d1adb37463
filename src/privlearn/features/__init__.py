"""Kernels, and public finite feature maps for them: from vectors of norm at most 1 to features of norm at most 1.

Start with `kernel` (what a kernel is) and `kernels` (those with a name), then `feature_map`, `fourier` and `landmarks`.
`equal_blocks` makes a row's features independent of the other rows, bit for bit. Nothing is fitted to private rows.

May import `data` and the modules at the top of privlearn.
"""

from privlearn.features.feature_map import FeatureMap
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import KERNELS, kernel_from_dict, kernel_from_name
from privlearn.features.landmarks import LandmarkFeatures, UnitLandmarkFeatures

__all__ = [
    "KERNELS",
    "FeatureMap",
    "FourierFeatures",
    "Kernel",
    "LandmarkFeatures",
    "UnitLandmarkFeatures",
    "kernel_from_dict",
    "kernel_from_name",
]
