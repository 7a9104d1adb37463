"""Why a released model says what it says of one row: what each column adds to its score.

Public, where the row is: reads released numbers and that row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.errors import InvalidParameter
from privlearn.explain.bands import bounds_of
from privlearn.explain.uncertainty import Uncertainty
from privlearn.planning.stand_in import stand_in_table
from privlearn.release.artifact import Release
from privlearn.release.encoders import Encoder, base_of, encoded, feature_columns
from privlearn.release.model import Model, RegressionModel

LEVEL = 0.95
MOST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column adds to the scores of some rows.

    Attributes
    ----------
    names : list of str
        Columns, pairs of columns where the model has them ("age x hours"), and the intercept, which differs a little
        from row to row, since rows are divided by their norms.
    parts : array of shape (rows, names)
        Each column's own, less what it adds to a usual row.
    noise : array of the same shape, or None
        How far noise may have moved a part, each with probability 0.95; ``None`` where its law is not known.
    base : float
        The score of a usual row: the mean over made-up rows of the schema; of plain arrays, a row of zeros.
    scores : array of shape (rows,)
        ``base + parts.sum(axis=1)``: the decision function; of more classes ``label``'s; of a regression the number
        before it is clamped to the target's bounds.
    label : object
        The class that the score speaks for; ``None`` for a regression.
    """

    names: list[str]
    parts: Array
    noise: Array | None
    base: float
    scores: Array
    label: Any

    def __str__(self) -> str:
        return "\n\n".join(self.told(row) for row in range(len(self.scores)))

    def told(self, row: int) -> str:
        """One row's contributions in words, the largest first."""
        about = "" if self.label is None else f" for {self.label}"
        lines = [f"score{about} {self.scores[row]:+.3f} = {self.base:+.3f} (a usual row)"]
        width = max(map(len, self.names))
        for place in np.argsort(-np.abs(self.parts[row]), kind="stable"):
            noise = "" if self.noise is None else f"  noise up to {self.noise[row, place]:.3f}"
            lines.append(f"  {self.names[place]:<{width}} {self.parts[row, place]:+.3f}{noise}")
        return "\n".join(lines)


def contributions(release: Release, X: Any, label: Any = None) -> Contributions:
    """What each column adds to the score of each row; their sum is the score.

    Parameters
    ----------
    release : Release
        Linear: without a kernel.
    X : table or array
        Rows as `predict` takes them, at most 1,000.
    label : object, optional
        Of more than two classes: whose score.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, contributions
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> people = simulated_census(5_000, 0)
    >>> fitted = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, schema=census_schema()).fit(people)
    >>> told = contributions(fitted.release_, people.slice(0, 1))
    >>> bool(abs(told.base + told.parts[0].sum() - fitted.decision_function(people.slice(0, 1))[0]) < 1e-9)
    True
    """
    model = release.model
    against, chosen = _score(model, label)
    width, offset = _units(model)
    owners = feature_columns(model.encoder)
    usual = _usual_row(model.encoder)
    moved = width * (_rows(model.encoder, X) - usual)
    names = list(dict.fromkeys(owners))
    belongs = [[columns == name for columns in owners] for name in names]
    weights = against @ model.coefficients
    parts = np.column_stack([(moved * own) @ weights for own in belongs])
    base = float(offset + width * usual @ weights)
    noise = _noise(release, [np.asarray(np.kron(against, moved * own)) for own in belongs])
    shown = [" x ".join(name) or "intercept" for name in names]
    return Contributions(shown, parts, noise, base, base + parts.sum(axis=1), chosen)


def _rows(encoder: Encoder, X: Any) -> Array:
    blocks = [sparse.csr_array(block).toarray() for block in encoded(encoder, X)]
    rows = np.vstack([np.empty((0, encoder.dimension)), *blocks])
    if not 1 <= len(rows) <= MOST_ROWS:
        raise InvalidParameter(f"give 1 to {MOST_ROWS} rows to explain, not {len(rows)}")
    return rows


def _usual_row(encoder: Any) -> Array:
    """Public: the mean of made-up rows of the schema; of plain arrays, a row of zeros."""
    base: Any = base_of(encoder)
    made_up = (
        stand_in_table(base.schema) if isinstance(base, SchemaEncoder) else np.zeros((1, base.n_features))
    )
    return np.asarray(encoder.encode(made_up).mean(axis=0)).ravel()


def _score(model: Model, label: Any) -> tuple[Array, Any]:
    """What the score is, as a combination of the rows of coefficients; and the class that it speaks for."""
    if isinstance(model, RegressionModel):
        return np.ones(1), None
    classes = model.classes.tolist()
    if len(classes) == 2:
        return np.array([1.0] if len(model.coefficients) == 1 else [-1.0, 1.0]), classes[1]
    if label not in classes:
        raise InvalidParameter(f"say whose score: label={' or '.join(map(repr, classes))}")
    return np.eye(len(classes))[classes.index(label)], label


def _units(model: Model) -> tuple[float, float]:
    """How much a score of 1 is, and where a score of 0 lies."""
    if not isinstance(model, RegressionModel):
        return 1.0, 0.0
    lower, upper = bounds_of(model)
    return (upper - lower) / 2.0, (upper + lower) / 2.0


def _noise(release: Release, functions: list[Array]) -> Array | None:
    try:
        uncertainty = Uncertainty(release, None, "privacy")
    except InvalidParameter:
        return None
    return np.column_stack([uncertainty.half_widths(part, LEVEL) for part in functions])
