"""The only place that adds noise; one file per theorem. `MECHANISMS` lists them, in the order of preference."""

from privlearn.mechanisms.objective import ObjectivePerturbation  # isort: skip - the first default that fits is taken
from privlearn.mechanisms.output import OutputPerturbation  # isort: skip
from privlearn.mechanisms.every_candidate import EveryCandidate
from privlearn.mechanisms.function_release import FunctionRelease
from privlearn.mechanisms.kernel_task import SessionMechanism
from privlearn.mechanisms.local_aggregation import LocalAggregation
from privlearn.mechanisms.mechanism import (
    MECHANISMS,
    DataOracle,
    Mechanism,
    ReleaseMechanism,
    mechanisms_of,
    register_mechanism,
)
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.noisy_descent import NoisyDescent
from privlearn.mechanisms.partition import Partition
from privlearn.mechanisms.pinp import PaperPINP, TightPINP
from privlearn.mechanisms.psgd import PrivateSGD
from privlearn.mechanisms.public_tuning import PublicTuning
from privlearn.mechanisms.random_stopping import RandomStopping
from privlearn.mechanisms.search import Search
from privlearn.mechanisms.summed import SummedMechanism
from privlearn.mechanisms.task import Task
from privlearn.mechanisms.tddl import TestDataDependentLearner
from privlearn.mechanisms.tdil import TestDataIndependentLearner

__all__ = [
    "ADD_NOISE",
    "MECHANISMS",
    "DataOracle",
    "EveryCandidate",
    "FunctionRelease",
    "LocalAggregation",
    "Mechanism",
    "NoisyDescent",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PaperPINP",
    "Partition",
    "PrivateSGD",
    "PublicTuning",
    "RandomStopping",
    "ReleaseMechanism",
    "Search",
    "SessionMechanism",
    "SummedMechanism",
    "Task",
    "TestDataDependentLearner",
    "TestDataIndependentLearner",
    "TightPINP",
    "mechanisms_of",
    "register_mechanism",
]
