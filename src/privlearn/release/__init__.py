"""Release files and their certificates, and how a stranger verifies them.

A release file holds a model (`model.py`), its certificate (`certificate.py`) and everything needed to recompute both.
Reading a file checks every byte, rebuilds the mechanism from its constants, and refuses contradictions
(`agreement.py`). May import everything up to `mechanisms`; start with `artifact.py`, then `base_certificate.py`.
"""

from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.curvature_file import Curvature
from privlearn.release.model import LinearModel, Model, RegressionModel
from privlearn.release.session_certificate import SessionCertificate
from privlearn.release.signatures import read_private_key, read_public_key
from privlearn.release.verification import Verification, verify

__all__ = [
    "Certificate",
    "Curvature",
    "LinearModel",
    "Model",
    "RegressionModel",
    "Release",
    "SessionCertificate",
    "Verification",
    "read_private_key",
    "read_public_key",
    "verify",
]
