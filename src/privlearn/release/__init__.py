"""Release files and their certificates, and how a stranger verifies them.

A release file holds a model (`model.py`), its certificate (`certificate.py`) and everything needed to recompute both.
Reading a file checks every byte, rebuilds the mechanism from its constants, and refuses contradictions
(`agreement.py`). May import everything up to `mechanisms`; start with `artifact.py`, then `base_certificate.py`.
"""

from typing import TYPE_CHECKING

from privlearn.imports import export_late
from privlearn.release.artifact import Outcome, Release, read_certificate, read_outcome
from privlearn.release.certificate import Certificate, SearchCertificate
from privlearn.release.curvature_file import Curvature, CurvatureCertificate
from privlearn.release.model import LinearModel, Model, RegressionModel, row_scores
from privlearn.release.moments_file import MomentsCertificate
from privlearn.release.session_certificate import SessionCertificate
from privlearn.release.signatures import read_private_key, read_public_key
from privlearn.release.verification import Verification, verify, verify_bytes

if TYPE_CHECKING:
    from privlearn.release.agreement import check_agreement
    from privlearn.release.archive import digest_of, json_bytes, pack
    from privlearn.release.base_certificate import check_receipt, library_versions
    from privlearn.release.counts_file import CountsFile
    from privlearn.release.decision import Decision
    from privlearn.release.encoders import (
        KernelEncoder,
        base_of,
        describe_encoding,
        encoder_from_dict,
        encoder_to_dict,
        feature_columns,
    )
    from privlearn.release.meaning import meaning_of
    from privlearn.release.moments_file import Moments, schema_for
    from privlearn.release.refinement import Flatten, Monotone, Refinement, Round, Smooth, curves, isotonic
    from privlearn.release.run_record import RunRecord
    from privlearn.release.score_map import MechanismOutput, on_grid
else:
    __getattr__ = export_late(__name__)


__all__ = [
    "Certificate", "Curvature", "CurvatureCertificate", "LinearModel", "Model", "MomentsCertificate", "Outcome",
    "RegressionModel", "Release", "SearchCertificate", "SessionCertificate", "Verification", "read_certificate",
    "read_outcome", "read_private_key", "read_public_key", "row_scores", "verify", "verify_bytes",
]  # fmt: skip
