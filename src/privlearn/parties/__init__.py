"""Several holders train one model, or compute one statistic, without showing each other their rows.

`run` has the agreement that all parties sign and both sides of a run, without a transport; `secure_sum` the protocol in
which only the noisy sum becomes known; `flower` carries messages with Flower. The package may import everything up to
`statistics`; `secure_sum` imports nothing from `run`, and only `flower` imports Flower.

Start with `run/agreement.py`, then `run/conversation.py`, which lists the stages of a run. The arguments are in
docs/theory/multiparty.md and docs/theory/secure-sum.md.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.parties.run.answers import Party
from privlearn.parties.run.features import KernelSettings
from privlearn.parties.run.gains import Gains, PartyGain, expected_gains
from privlearn.parties.run.joint_discovery import JointDiscovery
from privlearn.parties.run.joint_moments import JointMoments
from privlearn.parties.run.joint_training import JointTraining
from privlearn.parties.run.simulation import TrustedSum, simulate, train_together
from privlearn.parties.secure_sum.noise_share import FixedPoint, NoiseShare, distributed_zcdp
from privlearn.parties.secure_sum.session import Cohort
from privlearn.release.moments_file import Moments

if TYPE_CHECKING:
    from privlearn.parties.listening import listen
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "Cohort", "FixedPoint", "Gains", "JointDiscovery", "JointMoments", "JointTraining", "KernelSettings", "Moments",
    "NoiseShare", "Party", "PartyGain", "TrustedSum", "distributed_zcdp", "expected_gains", "simulate",
    "train_together",
]  # fmt: skip
