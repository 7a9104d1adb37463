"""A small plan for second moments with two targets, of the parties of `run_cases`."""

from __future__ import annotations

from privlearn.data import census_schema
from privlearn.parties import JointMoments
from tests.support.run_cases import SIZES

COLUMNS = {name: census_schema().columns[name] for name in ("age", "hours", "education_years", "sex")}
SCHEMA = census_schema().model_copy(update={"target": None, "columns": COLUMNS})
AGREEMENT = JointMoments(
    schema=SCHEMA, targets=("hours", "education_years"), parties=SIZES, epsilon=2.0, delta=1e-5
)
