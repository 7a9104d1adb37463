"""What a kernel among an estimator's parameters means, for classifiers and regressions alike."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.errors import InvalidParameter, shown
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.lifting import PUBLIC_POINTS, lift
from privlearn.mechanisms import ReleaseMechanism, mechanisms_of

Array = NDArray[np.float64]


class KernelChoice(PrivateLinearModel):
    """A linear model over the public features of a kernel; `PrivateSVC` lists the parameters."""

    @abstractmethod
    def _read_objects(self, X: Any, y: Any, private: bool) -> Any:
        """Rows that only the user's kernel can read."""

    def _chosen_mechanism(self) -> tuple[str, str]:
        names = ("auto", "function_release", *mechanisms_of(ReleaseMechanism))
        if self.mechanism not in names:
            raise InvalidParameter(
                f"mechanism must be one of {', '.join(names)}, not {shown(self.mechanism)}; "
                "'pinp' answers questions: InteractivePredictor(learner, guarantee, mechanism='pinp', state=...)"
            )
        linear = isinstance(self.kernel, str) and self.kernel == "linear"
        if self.mechanism == "tdil" and self.public_points is None and not linear:
            raise InvalidParameter(
                "mechanism='tdil' asks about points of the unit ball, with the linear kernel; "
                f"for another kernel pass a net of points: {PUBLIC_POINTS}"
            )
        if self.mechanism != "function_release":
            return super()._chosen_mechanism()
        self._check_function_release()
        return "output", "gaussian"

    def _check_function_release(self) -> None:
        if self.public_points is None:
            raise InvalidParameter(
                f"mechanism='function_release' is a release at public points: pass {PUBLIC_POINTS}"
            )
        if self.noise not in ("auto", "gaussian") or self.calibration != "tight":
            raise InvalidParameter(
                "mechanism='function_release' has Gaussian noise and the tight calibration: leave noise and "
                "calibration out, or take mechanism='output'"
            )
        if self.delta == 0 and math.isfinite(self.epsilon):
            raise InvalidParameter("mechanism='function_release' needs delta > 0: pass delta=1e-6")

    def _read(self, X: Any, y: Any, private: bool) -> Any:
        self._chosen_mechanism()  # refuse what cannot be before reading what may be long
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        if precomputed and not (self.schema is None and self.norm_bound is None):
            raise InvalidParameter(
                "kernel='precomputed' takes kernel values as they are: leave out schema and norm_bound"
            )
        if self.schema is None and self.norm_bound is None and self._takes_objects:
            return self._read_objects(X, y, private)
        return super()._read(X, y, private)

    @property
    def _takes_objects(self) -> bool:
        return not isinstance(self.kernel, str) or self.kernel == "precomputed"

    def _lift(self, rows: Any) -> tuple[Any, Callable[[Array], Array]]:
        return lift(self, rows)
