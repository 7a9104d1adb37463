"""What may leave, and how a stranger checks it."""

from privlearn.release.artifact import Release
from privlearn.release.certificate import Certificate
from privlearn.release.model import LinearModel
from privlearn.release.verify import Verification, verify

__all__ = ["Certificate", "LinearModel", "Release", "Verification", "verify"]
