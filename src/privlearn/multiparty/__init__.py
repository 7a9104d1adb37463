"""Several holders, one sum: nobody sees a single holder's part of it."""

from privlearn.multiparty.cohort import Cohort
from privlearn.multiparty.fixed_point import FixedPoint
from privlearn.multiparty.noise_share import NoiseShare, distributed_zcdp

__all__ = ["Cohort", "FixedPoint", "NoiseShare", "distributed_zcdp"]
