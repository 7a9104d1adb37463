"""Mechanisms: the only place that adds noise, one file per theorem, each with a page in docs/theory.

A mechanism is a frozen value: calibrated from public parameters, with all its constants, and a `run` that touches the
data last. `MECHANISMS` lists them in order of preference. `release/` perturbs one model, `session/` answers queries of
a kernel machine, `summed/` works on sums over several holders, `search/` chooses among candidates, and `statistics/`
releases counts and sums. May import accounting, solvers, features and data. Start with `mechanism.py`.
"""

from privlearn.mechanisms.release.objective import ObjectivePerturbation  # isort: skip - the first default that fits is taken
from privlearn.mechanisms.release.output import OutputPerturbation  # isort: skip
from privlearn.mechanisms.mechanism import (
    MECHANISMS,
    Mechanism,
    ReleaseMechanism,
    mechanisms_of,
    register_mechanism,
)
from privlearn.mechanisms.noise import ADD_NOISE, grid_step
from privlearn.mechanisms.oracle import Cells, ColumnOracle, DataOracle, PrecomputedMinimisers, Sides
from privlearn.mechanisms.release.tddl import NormBoundedLearner, TestDataDependentLearner
from privlearn.mechanisms.release.tdil import TestDataIndependentLearner
from privlearn.mechanisms.release.tdil_jt13 import PaperTDIL
from privlearn.mechanisms.search.every_candidate import EveryCandidate
from privlearn.mechanisms.search.partition import Partition
from privlearn.mechanisms.search.public_tuning import PublicTuning
from privlearn.mechanisms.search.random_stopping import RandomStopping
from privlearn.mechanisms.search.search import Search
from privlearn.mechanisms.session.function_release import FunctionRelease
from privlearn.mechanisms.session.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.session.task import SessionMechanism
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.mechanisms.statistics.curvature import NoisyCurvature
from privlearn.mechanisms.statistics.scoring import NoisyScoring
from privlearn.mechanisms.summed.local_aggregation import LocalAggregation
from privlearn.mechanisms.summed.noisy_descent import NoisyDescent
from privlearn.mechanisms.summed.psgd import PrivateSGD
from privlearn.mechanisms.summed.summed import SummedMechanism
from privlearn.mechanisms.summed.summed_counts import SummedCounts
from privlearn.mechanisms.task import Task

__all__ = [
    "ADD_NOISE", "MECHANISMS", "Cells", "ColumnOracle", "DataOracle", "EveryCandidate", "FunctionRelease",
    "LocalAggregation", "Mechanism", "NoisyCounts", "NoisyCurvature", "NoisyDescent", "NoisyScoring",
    "NormBoundedLearner", "ObjectivePerturbation", "OutputPerturbation", "PaperPINP", "PaperTDIL", "Partition",
    "PrecomputedMinimisers", "PrivateSGD", "PublicTuning", "RandomStopping", "ReleaseMechanism", "Search",
    "SessionMechanism", "Sides", "SummedCounts", "SummedMechanism", "Task", "TestDataDependentLearner",
    "TestDataIndependentLearner", "TightPINP", "grid_step", "mechanisms_of", "register_mechanism",
]  # fmt: skip
