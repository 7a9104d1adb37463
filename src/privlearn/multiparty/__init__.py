"""Several holders, one model: nobody sees another's rows, and nobody a single holder's part of a sum."""

from privlearn.multiparty.cohort import Cohort
from privlearn.multiparty.fixed_point import FixedPoint
from privlearn.multiparty.noise_share import NoiseShare, distributed_zcdp
from privlearn.multiparty.party import Party
from privlearn.multiparty.plan import KernelSettings, MultipartyPlan
from privlearn.multiparty.simulation import simulate
from privlearn.multiparty.training import coordinate, train_together
from privlearn.multiparty.trusted_sum import TrustedSum

__all__ = [
    "Cohort",
    "FixedPoint",
    "KernelSettings",
    "MultipartyPlan",
    "NoiseShare",
    "Party",
    "TrustedSum",
    "coordinate",
    "distributed_zcdp",
    "simulate",
    "train_together",
]
