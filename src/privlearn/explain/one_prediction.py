"""`contributions`: what each column adds to a released model's score of single rows.

Computed where the rows are, from released numbers and those rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from privlearn.arrays import Array
from privlearn.data.encoding.arrays import CentredEncoder
from privlearn.data.encoding.encoder import SchemaEncoder, from_unit
from privlearn.errors import InvalidParameter
from privlearn.estimators.forecast.stand_ins import stand_in_table
from privlearn.explain.bands import bounds_of
from privlearn.explain.uncertainty import Uncertainty
from privlearn.release.artifact import Release
from privlearn.release.encoders import Encoder, base_of, encode_blocks, feature_columns
from privlearn.release.model import LinearModel, Model, RegressionModel

LEVEL = 0.95  # probability with which each bound of noise holds
MAX_ROWS = 1000  # explained in one call


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions of columns to the scores of some rows.

    Attributes
    ----------
    names : list of str
        Columns, pairs of columns where the model has them ("age x hours"), and the intercept, which differs a little
        from row to row, since rows are divided by their norms.
    parts : array of shape (rows, names)
        Each column's contribution, less that in ``base_row``.
    noise : array of the same shape, or None
        Bound on the error of each part due to noise, valid with probability 0.95 each; ``None`` if it is not known.
    base : float
        The score of the released mean where rows are centred; otherwise of the mean of synthetic rows of the schema,
        which depend on no person, or for plain arrays of a row of zeros.
    scores : array of shape (rows,)
        ``base + parts.sum(axis=1)``: the decision function; for several classes ``label``'s; for a regression the
        number before it is clamped to the target's bounds.
    label : object
        The class of the score; ``None`` for a regression.
    probabilities : array of shape (rows,), or None
        Probabilities of the class, where the model has any.
    base_row : str
        Description of the row whose score is ``base``.
    """

    names: list[str]
    parts: Array
    noise: Array | None
    base: float
    scores: Array
    label: Any
    probabilities: Array | None = None
    base_row: str = "a row of zeros"

    def __str__(self) -> str:
        return "\n\n".join(self.describe(row) for row in range(len(self.scores)))

    def describe(self, row: int) -> str:
        """Return one row's contributions as text, the largest first."""
        about = "" if self.label is None else f" for {self.label}"
        likely = "" if self.probabilities is None else f" (probability {self.probabilities[row]:.3f})"
        lines = [f"score{about} {self.scores[row]:+.3f}{likely} = {self.base:+.3f} ({self.base_row})"]
        width = max(map(len, self.names))
        for index in np.argsort(-np.abs(self.parts[row]), kind="stable"):
            noise = "" if self.noise is None else f"  noise up to {self.noise[row, index]:.3f}"
            lines.append(f"  {self.names[index]:<{width}} {self.parts[row, index]:+.3f}{noise}")
        return "\n".join(lines)


def contributions(release: Release, X: Any, label: Any = None) -> Contributions:
    """Return what each column adds to the score of each row; the sum is the score.

    Parameters
    ----------
    release : Release
        Linear: without a kernel.
    X : table or array
        Rows as `predict` takes them, at most 1,000.
    label : object, optional
        For more than two classes: the class whose score to explain.

    Examples
    --------
    >>> from privlearn import PrivateLogisticRegression, contributions
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> people = simulated_census(5_000, 0)
    >>> fitted = PrivateLogisticRegression(epsilon=3.0, delta=1e-6, schema=census_schema()).fit(people)
    >>> added = contributions(fitted.release_, people.slice(0, 1))
    >>> bool(abs(added.base + added.parts[0].sum() - fitted.decision_function(people.slice(0, 1))[0]) < 1e-9)
    True
    """
    model = release.model
    combination, score_label = _score(model, label)
    width, offset = _units(model)
    owners = feature_columns(model.encoder)
    base_row, typical = _typical_row(model.encoder)
    differences = width * (_rows(model.encoder, X) - typical)
    names = list(dict.fromkeys(owners))
    masks = [[columns == name for columns in owners] for name in names]
    weights = combination @ model.coefficients
    parts = np.column_stack([(differences * mask) @ weights for mask in masks])
    base = float(offset + width * typical @ weights)
    if isinstance(model, LinearModel):
        base += float(combination @ model.constants)
    noise = _noise(release, [np.asarray(np.kron(combination, differences * mask)) for mask in masks])
    titles = [" x ".join(name) or "intercept" for name in names]
    scores = base + parts.sum(axis=1)
    probabilities = _probabilities(model, X, score_label)
    return Contributions(titles, parts, noise, base, scores, score_label, probabilities, base_row)


def _probabilities(model: Model, X: Any, label: Any) -> Array | None:
    """Return the probabilities of a class that the model states; None if it has none."""
    if isinstance(model, RegressionModel) or not model.has_probabilities:
        return None
    return np.asarray(model.predict_proba(X)[:, model.classes.tolist().index(label)])


def _rows(encoder: Encoder, X: Any) -> Array:
    blocks = [sparse.csr_array(block).toarray() for block in encode_blocks(encoder, X)]
    rows = np.vstack([np.empty((0, encoder.dimension)), *blocks])
    if not 1 <= len(rows) <= MAX_ROWS:
        raise InvalidParameter(f"{len(rows)} rows cannot be explained at once. Pass 1 to {MAX_ROWS} rows.")
    return rows


def _typical_row(encoder: Any) -> tuple[str, Array]:
    """Public: return the released mean; else the mean of synthetic rows of the schema, or a row of zeros."""
    if isinstance(encoder, CentredEncoder):
        return "the mean row, as released", np.asarray(encoder.lift(encoder.mean[np.newaxis])).ravel()
    base: Any = base_of(encoder)
    if isinstance(base, SchemaEncoder):
        name, rows = "the mean of synthetic rows", stand_in_table(base.schema)
    else:
        name, rows = "a row of zeros", np.zeros((1, base.n_features))
    return name, np.asarray(encoder.encode(rows).mean(axis=0)).ravel()


def _score(model: Model, label: Any) -> tuple[Array, Any]:
    """Return the score as a combination of the rows of coefficients, and its class."""
    if isinstance(model, RegressionModel):
        return np.ones(1), None
    classes = model.classes.tolist()
    if len(classes) == 2:
        return np.array([1.0] if len(model.coefficients) == 1 else [-1.0, 1.0]), classes[1]
    if label not in classes:
        raise InvalidParameter(
            f"name the class whose score to explain: label={' or '.join(map(repr, classes))}"
        )
    return np.eye(len(classes))[classes.index(label)], label


def _units(model: Model) -> tuple[float, float]:
    """Return the width and the origin of the score, in the target's units."""
    if not isinstance(model, RegressionModel):
        return 1.0, 0.0
    lower, upper = bounds_of(model)
    origin = float(from_unit(model.constants, (lower, upper), clamp=False)[0])
    return float(model.stretches[0]) * (upper - lower) / 2.0, origin


def _noise(release: Release, functions: list[Array]) -> Array | None:
    try:
        uncertainty = Uncertainty(release, None, "privacy")
    except InvalidParameter:
        return None
    return np.column_stack([uncertainty.half_widths(part, LEVEL) for part in functions])
