"""The only place that adds noise; a file a theorem."""

from privlearn.mechanisms.noise import ADD_NOISE
from privlearn.mechanisms.objective import ObjectivePerturbation
from privlearn.mechanisms.output import OutputPerturbation
from privlearn.mechanisms.task import Task

Mechanism = OutputPerturbation | ObjectivePerturbation
MECHANISMS: dict[str, type[Mechanism]] = {
    "objective": ObjectivePerturbation,
    "output": OutputPerturbation,
}

__all__ = ["ADD_NOISE", "MECHANISMS", "Mechanism", "ObjectivePerturbation", "OutputPerturbation", "Task"]
