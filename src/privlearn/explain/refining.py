"""`refine`: make a release monotone, smooth, merged or rounded, or drop effects below the noise, at no cost."""

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
    """Return a release with changed coefficients that refers to its origin; computed from the release alone.

    Steps are applied in the order of the parameters.

    Parameters
    ----------
    release : Release
    merge : dict of column to values
        Values of a list to treat as one; in a centred model, rows beyond its radius still differ a little.
    smooth : dict of column to int
        Replace the effect at each value of an ordered column by the mean over this many values to either side.
    monotone : dict of column to {"increasing", "decreasing"}
        Replace the effect by the nearest monotone one.
    flatten : list of columns
        Remove the effects of these columns.
    zero_noise : bool, default=False
        Flatten every column whose effect is no larger than errors alone would show on average.
    digits : int, optional
        Round all coefficients to this many digits after the point.

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
        below_noise = [effect.name for effect in effects(release.origin) if effect.importance <= effect.noise]
        steps += [Flatten(column) for column in below_noise if column not in flatten]
    if digits is not None:
        steps.append(Round(digits))
    return release.refined(steps)
