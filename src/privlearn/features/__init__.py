"""From bounded vectors to bounded features: kernels, and finite maps for them that are public."""

from privlearn.features.feature_map import FeatureMap
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import Kernel
from privlearn.features.kernels import KERNELS, kernel_from_dict, kernel_from_name
from privlearn.features.landmarks import LandmarkFeatures
from privlearn.features.unit_landmarks import UnitLandmarkFeatures

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
