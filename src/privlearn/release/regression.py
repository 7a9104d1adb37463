"""A released regression: public encoder, noisy coefficients, bounds of what it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.data.target_scale import Bounds, from_unit
from privlearn.erm.losses import LossFacts
from privlearn.errors import ReleaseError
from privlearn.release.encoders import base_of, encoder_from_dict, encoder_to_dict
from privlearn.release.model import LinearModel, ScoredFeatures

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegressionModel(ScoredFeatures):
    """The score <w, encode(x)>, scaled from [-1, 1] to public bounds and clamped to them.

    Parameters
    ----------
    encoder : SchemaEncoder, BoundedRows, FourierEncoder or KernelEncoder
    coefficients : array of shape (1, dimension)
    target_bounds : tuple of two floats
        Public bounds of the numbers it predicts.
    """

    target_bounds: Bounds

    def predict(self, data: Any) -> Array:
        return from_unit(self._scores(data)[:, 0], self.target_bounds)

    def is_learnt_by(self, loss: LossFacts) -> bool:
        """Whether a model of this kind comes from such a loss."""
        return loss.sees == "residual"

    def to_dict(self) -> dict[str, Any]:
        """The public part, for a release's manifest; the coefficients travel as an array."""
        return {"encoder": encoder_to_dict(self.encoder), "target_bounds": list(self.target_bounds)}

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
    ) -> RegressionModel:
        """Inverse of ``to_dict`` and ``arrays``; ``kernel`` is the user's function, if one is needed."""
        encoder = encoder_from_dict(record["encoder"], arrays.get("public_points"), kernel)
        lower, upper = map(float, record["target_bounds"])
        schema = getattr(base_of(encoder), "schema", None)
        stated = schema is None or (schema.target is not None and schema.target.bounds == (lower, upper))
        ordered = lower < upper and np.isfinite(upper - lower)
        if not (stated and ordered) or arrays["coefficients"].shape != (1, encoder.dimension):
            raise ReleaseError("the model's arrays do not fit its description")
        return cls(encoder, arrays["coefficients"], (lower, upper))


Model = LinearModel | RegressionModel


def model_from_dict(
    record: Mapping[str, Any], arrays: Mapping[str, Array], kernel: Callable[..., Any] | None = None
) -> Model:
    """The model that a release describes: a regression if it states bounds of what it predicts."""
    kind: Any = RegressionModel if "target_bounds" in record else LinearModel
    return kind.from_dict(record, arrays, kernel)  # type: ignore[no-any-return]
