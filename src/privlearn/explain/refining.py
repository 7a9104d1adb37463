"""Refine a release: monotone, smooth, merged, rounded, without what drowns in the noise. It costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privlearn.explain.column_effects import effects
from privlearn.release.artifact import Release
from privlearn.release.refinement import Flatten, Merge, Monotone, Round, Smooth, Step


def refine(
    release: Release,
    *,
    merge: Mapping[str, Sequence[str]] | None = None,
    smooth: Mapping[str, int] | None = None,
    monotone: Mapping[str, str] | None = None,
    flatten: Sequence[str] = (),
    zero_noise: bool = False,
    digits: int | None = None,
) -> Release:
    """A release with changed coefficients that points to its origin; computed from the release alone, and so free.

    Steps are taken in the order of the parameters.

    Parameters
    ----------
    release : Release
    merge : dict of column to values
        Values of a list that count as one from now on; for a centred model up to the norm of rows beyond its radius,
        in which they still differ a little.
    smooth : dict of column to int
        Each value of an ordered column becomes the mean of so many to either side.
    monotone : dict of column to {"increasing", "decreasing"}
        The nearest effect that never turns back.
    flatten : list of columns
        They say nothing any more.
    zero_noise : bool, default=False
        Flatten every column that drowns: whose effect is no larger than what errors alone would show on average.
    digits : int, optional
        Round all coefficients to so many digits after the point.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, refine
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> model = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, schema=census_schema(), random_state=0)
    >>> release = model.fit(simulated_census(5_000, 0)).release_
    >>> refined = refine(release, monotone={"education_years": "increasing"}, digits=3)
    >>> refined.origin.digest == release.digest
    True
    """
    steps: list[Step] = [
        *(Merge(column, tuple(values)) for column, values in (merge or {}).items()),
        *(Smooth(column, reach) for column, reach in (smooth or {}).items()),
        *(Monotone(column, direction) for column, direction in (monotone or {}).items()),
        *(Flatten(column) for column in flatten),
    ]
    if zero_noise:
        drowned = [effect.name for effect in effects(release.origin) if effect.importance <= effect.noise]
        steps += [Flatten(column) for column in drowned if column not in flatten]
    if digits is not None:
        steps.append(Round(digits))
    return release.refined(steps)
