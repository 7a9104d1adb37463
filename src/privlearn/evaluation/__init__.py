"""Measure a model on private records: one noisy histogram, and everything that follows from it."""

from privlearn.evaluation.evaluation import Evaluation, GroupResult
from privlearn.evaluation.measuring import evaluate
from privlearn.evaluation.metrics import Estimate

__all__ = ["Estimate", "Evaluation", "GroupResult", "evaluate"]
