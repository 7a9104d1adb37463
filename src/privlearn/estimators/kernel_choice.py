"""What a kernel among an estimator's parameters means, for classifiers and regressions alike."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.lifting import lift

Array = NDArray[np.float64]


class KernelChoice(PrivateLinearModel):
    """A linear model over the public features of a kernel; `PrivateSVC` lists the parameters."""

    @abstractmethod
    def _read_objects(self, X: Any, y: Any, private: bool) -> Any:
        """Rows that only the user's kernel can read."""

    def _chosen_mechanism(self) -> tuple[str, str]:
        if self.mechanism == "tdil" and self.public_points is None and self.kernel != "linear":
            raise InvalidParameter(
                "mechanism='tdil' asks about points of the unit ball, with the linear kernel; "
                "for another kernel pass a net of points: public_points=..."
            )
        if self.mechanism != "function_release":
            return super()._chosen_mechanism()
        if self.public_points is None:
            raise InvalidParameter(
                "mechanism='function_release' is a release at public points: pass public_points=..."
            )
        return "output", "gaussian"

    def _read(self, X: Any, y: Any, private: bool) -> Any:
        if self.schema is None and self.norm_bound is None and self._takes_objects:
            return self._read_objects(X, y, private)
        return super()._read(X, y, private)

    @property
    def _takes_objects(self) -> bool:
        return self.kernel == "precomputed" or not isinstance(self.kernel, str)

    def _lift(self, rows: Any) -> tuple[Any, Callable[[Array], Array]]:
        return lift(self, rows)
