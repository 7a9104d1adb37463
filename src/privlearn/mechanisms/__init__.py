"""The only place that adds noise; a file a theorem."""

from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.objective import ObjectivePerturbation
from privlearn.mechanisms.output import OutputPerturbation
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

AnyMechanism = Mechanism | KernelMechanism

__all__ = [
    "ADD_NOISE",
    "KERNEL_MECHANISMS",
    "MECHANISMS",
    "AnyMechanism",
    "KernelMechanism",
    "Mechanism",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Task",
    "TestDataDependentLearner",
    "TestDataIndependentLearner",
]
