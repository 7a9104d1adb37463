"""What may leave, and how a stranger checks it."""

from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.curvature_file import Curvature
from privlearn.release.model import LinearModel, Model, RegressionModel
from privlearn.release.session_certificate import SessionCertificate
from privlearn.release.verification import Verification, read_private_key, read_public_key, verify

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
