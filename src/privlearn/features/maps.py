"""`choose_map`: the public feature map that an estimator's ``features`` parameter names."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from privlearn.errors import InvalidParameter, did_you_mean, preview
from privlearn.features.public_map import FEATURE_MAPS, PublicMap
from privlearn.features.scattering import ScatteringFeatures
from privlearn.features.texts import TextFeatures
from privlearn.features.weights_file import ENDINGS, WeightsFeatures


def choose_map(features: Any, X: Any) -> PublicMap:
    """Public: return the map that a parameter names; of X only its shape and type are read."""
    if isinstance(features, PublicMap):
        return features
    if features == "text":
        return TextFeatures()
    if features == "scattering":
        return _scattering(X)
    if isinstance(features, str) and PurePath(features).suffix in ENDINGS:
        return WeightsFeatures(features)
    names = ("scattering", "text", *FEATURE_MAPS)
    raise InvalidParameter(
        f"features must be 'scattering', 'text', the name of an .npz or .onnx file, or a PublicMap, not "
        f"{preview(features)}{did_you_mean(features, names)}"
    )


def _scattering(X: Any) -> ScatteringFeatures:
    shape, kind = getattr(X, "shape", ()), getattr(X, "dtype", np.dtype(object))
    if len(shape) not in (3, 4) or kind != np.uint8:
        size = tuple(shape[1:3]) if len(shape) in (3, 4) else (28, 28)
        raise InvalidParameter(
            "features='scattering' reads an array of bytes of shape (n, height, width). For other inputs pass "
            f"features=ScatteringFeatures({size}, value_bounds=(0, 1)), with the range of their values"
        )
    return ScatteringFeatures(shape[1:])
