"""Types that bite: a misspelt attribute of an estimator is an error of mypy, inside its class and outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISSPELT = """
from privlearn import KernelLearner, PrivateGridSearch, PrivateLogisticRegression, PrivateRegressor, PrivateSVC
from privlearn.estimators.fitting import Fitting

PrivateLogisticRegression(epsilon=1.0).regularisation
PrivateSVC(epsilon=1.0).epsilom = 2.0
PrivateRegressor(epsilon=1.0).release
KernelLearner().gama
PrivateGridSearch(PrivateSVC(), {}, epsilon=1.0).best_parameters_

class Own(PrivateSVC):
    def chosen_mechanism(self) -> tuple[str, str]:
        return self.mechanisms, self.noise

def estimators(work: Fitting) -> object:
    return work.estimator.lodger
"""
RIGHT = """
from privlearn import PrivateSVC

model = PrivateSVC(epsilon=1.0)
model.regularization, model.epsilon, model.release_, model.classes_, model.get_params()
"""


def test_a_misspelt_attribute_is_a_type_error(tmp_path: Path) -> None:
    (tmp_path / "misspelt.py").write_text(MISSPELT)
    (tmp_path / "right.py").write_text(RIGHT)
    # From the root, for its settings and its cache: with a cold one mypy reads the whole library first.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
    assert all("misspelt.py" in line and "[attr-defined]" in line for line in errors), checked.stdout
    for name in ("regularisation", "epsilom", "release", "gama", "best_parameters_", "mechanisms", "lodger"):
        assert sum(f'no attribute "{name}"' in line for line in errors) == 1, checked.stdout
