"""Types that bite: a misspelt attribute of an estimator is an error of mypy, inside its class and outside.

Each `type: ignore` below expects such an error: `make check` fails where there is none.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from privlearn import (
    KernelLearner,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
)
from privlearn.estimators import Fit


def misspelt(work: Fit) -> object:
    PrivateSVC(epsilon=1.0).epsilom = 2.0  # type: ignore[attr-defined]
    return (
        PrivateLogisticRegression(epsilon=1.0).regularisation,  # type: ignore[attr-defined]
        PrivateRegressor(epsilon=1.0).release,  # type: ignore[attr-defined]
        KernelLearner().gama,  # type: ignore[attr-defined]
        PrivateGridSearch(PrivateSVC(), {}, epsilon=1.0).best_parameters_,  # type: ignore[attr-defined]
        work.estimator.lodger,  # type: ignore[attr-defined]
    )


class Misspelt(PrivateSVC):
    def select_mechanism(self) -> tuple[str, str]:
        return self.mechanisms, self.noise  # type: ignore[attr-defined]


def test_this_file_is_checked_strictly() -> None:
    """So that an ignored error that is none is an error itself."""
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    assert "tests" in settings["files"]
    assert not any("warn_unused_ignores" in override for override in settings["overrides"])
