"""Kernels, and public finite feature maps for them: from vectors of norm at most 1 to features of norm at most 1.

Start with `kernel` (what a kernel is) and `kernels` (those with a name), then `feature_map`, `fourier` and `landmarks`;
`public_map` has the maps with a name, for raw rows.
`in_equal_blocks` makes a row's features independent of the other rows, bit for bit. Nothing is fitted to private rows.

May import `data` and the modules at the top of privlearn.
"""

from typing import TYPE_CHECKING

from privlearn.features.feature_map import FeatureMap
from privlearn.features.fourier import FourierFeatures
from privlearn.features.kernel import KERNEL_ROUNDING, CallableKernel, Kernel, as_matrix, as_points
from privlearn.features.kernels import (
    KERNELS,
    LaplacianKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    ShiftInvariantKernel,
    kernel_from_dict,
    kernel_from_name,
    kernel_names,
    register_kernel,
)
from privlearn.features.landmarks import LandmarkFeatures, UnitLandmarkFeatures
from privlearn.features.map_encoder import MapEncoder
from privlearn.features.public_map import FEATURE_MAPS, PublicMap, map_from_dict, register_feature_map
from privlearn.features.scattering import ScatteringFeatures
from privlearn.features.texts import TextFeatures
from privlearn.features.weights_file import WeightsFeatures
from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.features.objects import canonical, list_objects, object_from_bytes, object_to_bytes
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "FEATURE_MAPS", "KERNELS", "KERNEL_ROUNDING", "CallableKernel", "FeatureMap", "FourierFeatures", "Kernel",
    "LandmarkFeatures", "LaplacianKernel", "MapEncoder", "PolynomialKernel", "ProductKernel", "PublicMap",
    "RBFKernel", "ScatteringFeatures", "ShiftInvariantKernel", "TextFeatures", "UnitLandmarkFeatures",
    "WeightsFeatures", "as_matrix", "as_points", "kernel_from_dict", "kernel_from_name", "kernel_names",
    "map_from_dict", "register_feature_map", "register_kernel",
]  # fmt: skip
