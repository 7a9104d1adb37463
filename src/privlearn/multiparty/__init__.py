"""Several holders, one model: nobody sees another's rows, and nobody a single holder's part of a sum."""

from privlearn.multiparty.run.features import KernelSettings
from privlearn.multiparty.run.gains import Gains, PartyGain, expected_gains
from privlearn.multiparty.run.joint_discovery import JointDiscovery, discover_together
from privlearn.multiparty.run.joint_moments import JointMoments, moments_together
from privlearn.multiparty.run.plan import MultipartyPlan
from privlearn.multiparty.run.simulation import simulate
from privlearn.multiparty.run.training import Party, TrustedSum, coordinate, train_together
from privlearn.multiparty.secure_sum.noise_share import FixedPoint, NoiseShare, distributed_zcdp
from privlearn.multiparty.secure_sum.session import Cohort
from privlearn.release.moments_file import Moments

__all__ = [
    "Cohort",
    "FixedPoint",
    "Gains",
    "JointDiscovery",
    "JointMoments",
    "KernelSettings",
    "Moments",
    "MultipartyPlan",
    "NoiseShare",
    "Party",
    "PartyGain",
    "TrustedSum",
    "coordinate",
    "discover_together",
    "distributed_zcdp",
    "expected_gains",
    "moments_together",
    "simulate",
    "train_together",
]
