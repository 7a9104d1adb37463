"""The only place that adds noise; a file a theorem."""

from privlearn.mechanisms.local_aggregation import LocalAggregation
from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.noisy_descent import NoisyDescent
from privlearn.mechanisms.objective import ObjectivePerturbation
from privlearn.mechanisms.output import OutputPerturbation
from privlearn.mechanisms.psgd import PrivateSGD
from privlearn.mechanisms.task import Task
from privlearn.mechanisms.tddl import TestDataDependentLearner
from privlearn.mechanisms.tdil import TestDataIndependentLearner

Mechanism = OutputPerturbation | ObjectivePerturbation
MECHANISMS: dict[str, type[Mechanism]] = {
    "objective": ObjectivePerturbation,
    "output": OutputPerturbation,
}

KernelMechanism = TestDataDependentLearner | TestDataIndependentLearner
KERNEL_MECHANISMS: dict[str, type[KernelMechanism]] = {
    "tddl": TestDataDependentLearner,
    "tdil": TestDataIndependentLearner,
}

MultipartyMechanism = NoisyDescent | LocalAggregation | PrivateSGD
MULTIPARTY_MECHANISMS: dict[str, type[MultipartyMechanism]] = {
    kind.name: kind for kind in (NoisyDescent, LocalAggregation, PrivateSGD)
}

AnyMechanism = Mechanism | KernelMechanism
"""Those that one holder runs."""

__all__ = [
    "ADD_NOISE",
    "KERNEL_MECHANISMS",
    "MECHANISMS",
    "MULTIPARTY_MECHANISMS",
    "AnyMechanism",
    "KernelMechanism",
    "LocalAggregation",
    "Mechanism",
    "MultipartyMechanism",
    "NoisyDescent",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PrivateSGD",
    "Task",
    "TestDataDependentLearner",
    "TestDataIndependentLearner",
]
