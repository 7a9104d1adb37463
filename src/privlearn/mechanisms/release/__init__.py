"""Mechanisms that release the coefficients of one holder's model, one file per theorem.

Start with `output.py`, which adds noise to the minimiser; `objective.py` adds it to the objective and is the default.
`answers.py` is the base of the three that release noisy answers at public points (`tddl.py`, `tdil.py`,
`tdil_jt13.py`). May import `mechanisms`, `accounting` and `solvers`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late

if TYPE_CHECKING:
    from privlearn.mechanisms.release.answers import answer_sensitivity, check_probes, least_squares_in_ball
else:
    __getattr__ = export_late(__name__)
