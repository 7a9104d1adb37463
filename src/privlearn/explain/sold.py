"""Public: of which releases a curvature is sold."""

from __future__ import annotations

from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.mechanisms.statistics.curvature import MOST_COEFFICIENTS, explain_refusal
from privlearn.release.artifact import Release


def why_not_sold(release: Release) -> str | None:
    """Why no curvature of a release is sold; ``None`` if it is."""
    if release.refinement is not None:
        return "it was refined: buy that of its origin"
    if not isinstance(release.model.encoder, SchemaEncoder | ArrayEncoder | CentredEncoder):
        return "it has a kernel"
    dimension = release.certificate.task.dimension
    too_many = f"it has {dimension} coefficients, more than {MOST_COEFFICIENTS}, and noise would drown them"
    return explain_refusal(release.certificate.mechanism) or (
        too_many if dimension > MOST_COEFFICIENTS else None
    )
