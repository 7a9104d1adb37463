"""Fold a release into a scorecard: each coefficient is multiplied into its piece of the encoding.

A scorecard contains nothing that the release does not. The start of each bin is found in the raw numbers, by bisection
with the encoder's own functions, so that another program's logarithm cannot put a cell into a neighbouring bin.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privlearn._version import __version__
from privlearn.arrays import Array, margin
from privlearn.data.encoding.arrays import ArrayEncoder, CentredEncoder
from privlearn.data.encoding.encoder import SchemaEncoder
from privlearn.data.encoding.feature_groups import ColumnCells, coarse_features, is_cyclic, knots_of
from privlearn.data.encoding.readers import ends_of, positions
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, Ordered, OrdinalColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.export.scorecard import (
    Amounts,
    Axis,
    Centring,
    Classes,
    Curve,
    FileForm,
    Grid,
    ListInput,
    Map,
    NumberInput,
    Scorecard,
    Slope,
    Table,
    Words,
)
from privlearn.mechanisms.statistics.score_counts import MIDDLES
from privlearn.release.archive import json_bytes
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of, reads_columns
from privlearn.release.model import LinearModel, Model, RegressionModel

ListColumn = CategoryColumn | OrdinalColumn


def scorecard(release: Release) -> Scorecard:
    """Return the release as tables and curves."""
    model, weights = release.model, _weights(release.model)
    encoder = model.encoder
    if not reads_columns(encoder):
        raise InvalidParameter(
            "this model has a kernel or a feature map, and only models of columns can be exported. "
            "Predict with Release.load(path).model.predict(table)."
        )
    centring, constant = None, _constants(model)
    if isinstance(encoder, CentredEncoder):
        centring, constants, weights = _centring(encoder, weights)
        constant = constant + constants
        encoder = encoder.base
    folded = (
        _fold_arrays(encoder, weights)
        if isinstance(encoder, ArrayEncoder)
        else _fold_schema(cast(SchemaEncoder, encoder), weights)
    )
    constant = constant + folded.pop("constant")[: len(constant)]
    return Scorecard(
        about=_about(release),
        outcome=_outcome(model),
        centring=centring,
        constant=_row(constant),
        file=file_form(getattr(encoder, "schema", None)),
        **folded,
    )


def _centring(encoder: CentredEncoder, weights: Array) -> tuple[Centring, Array, Array]:
    """Return the centring, the constants, and the weights without constants with the mean as one more row."""
    features = len(encoder.mean)
    moved = np.zeros((len(weights) + 1, encoder.dimension))
    moved[:, :features] = np.vstack([weights[:, :features], encoder.mean])
    centring = Centring(
        offsets=_row(moved[:-1, :features] @ encoder.mean),
        mean_square=float(encoder.mean @ encoder.mean),
        radius=encoder.radius,
        stretch=encoder.stretch,
    )
    return centring, weights[:, features:].sum(axis=1) * encoder.constant, moved


def _weights(model: Model) -> Array:
    """Return one row per score; two classes have one score, that of the second less that of the first."""
    rows = model.coefficients * model.stretches[:, np.newaxis]
    if isinstance(model, LinearModel) and len(model.classes) == 2 and len(rows) == 2:
        return rows[1:] - rows[:1]
    return rows


def _constants(model: Model) -> Array:
    """Return what is added to each score of `_weights`."""
    constants = model.constants
    if isinstance(model, LinearModel) and len(model.classes) == 2 and len(constants) == 2:
        return constants[1:] - constants[:1]
    return constants


def _about(release: Release) -> dict[str, Any]:
    """Return the origin of an export, for its comments; all of it is in the release."""
    schema = getattr(base_of(release.model.encoder), "schema", None)
    certificate = release.certificate
    return {
        "dataset": None if schema is None else schema.name,
        "target": None if schema is None or schema.target is None else schema.target.name,
        "guarantee": str(certificate.together),
        "private": certificate.is_private,
        "release_sha256": release.digest,
        "certificate_sha256": hashlib.sha256(json_bytes(certificate.to_dict())).hexdigest(),
        "made_with": f"privlearn {__version__}",
    }


def _outcome(model: Model) -> Classes | Amounts:
    if isinstance(model, RegressionModel):
        return Amounts(bounds=tuple(map(tuple, np.atleast_2d(model.target_bounds).tolist())))
    labels, decision = model.classes.tolist(), model.decision
    link: Any = model.link
    if len(labels) > 2:
        return Classes(labels=labels, link=link)
    cut = model.threshold if model.link == "none" else _log_odds(model.threshold)
    calibration = None
    if decision is not None and decision.scores:
        calibration = Map(x=decision.scores, y=decision.probabilities)
    return Classes(
        labels=labels,
        link="none" if model.link == "none" else "logistic",
        threshold=cut,
        log_odds=None if model.log_odds is None else Map(x=_row(MIDDLES), y=_row(model.log_odds)),
        calibration=calibration,
    )


def _log_odds(probability: float) -> float:
    """Return the log-odds; for probabilities 0 and 1 a number beyond all scores."""
    if probability in (0.0, 1.0):
        return math.copysign(sys.float_info.max, probability - 0.5)
    return math.log(probability) - math.log1p(-probability)


def _fold_arrays(encoder: ArrayEncoder, weights: Array) -> dict[str, Any]:
    """Return the parts of a scorecard for plain arrays, whose numbers are divided by the norm bound."""
    names = [f"x[{index}]" for index in range(encoder.n_features)]
    slopes, constant = encoder.unscale(weights)
    unit = 1.0 / encoder.clip_bound
    factor = encoder.per_unit / unit
    return {
        "inputs": tuple(
            NumberInput(type="number", name=name, lower=None, upper=None, missing="refuse") for name in names
        ),
        "coarse": tuple(
            Slope(column=name, scores=_row(slope / factor), square=unit**2)
            for name, slope in zip(names, slopes.T, strict=True)
        ),
        "fine": (),
        "intercept": _row(np.zeros(len(weights))),
        "constant": np.asarray(constant),
        "constant_square": 0.0,
        "share": 1.0,
        "factor": factor,
        "least": 1.0,
    }


def _fold_schema(encoder: SchemaEncoder, weights: Array) -> dict[str, Any]:
    schema, layout, left = encoder.schema, encoder.layout, _RemainingWeights(weights)
    indicated = [name for name, column in schema.columns.items() if column.missing == "indicator"]
    if indicated:
        raise InvalidParameter(
            f"{', '.join(indicated)}: columns with missing: indicator cannot be exported. "
            "Predict with Release.load(path).model.predict(table)."
        )
    starts = {group.name: (start, group.width) for start, group in layout.texts}
    columns = {name: column for name, column in encoder.columns.items() if name not in starts}
    codes = {name: encoder.schema.file.codes_of(name) for name in schema.columns}
    coarse = []
    for name, column in encoder.columns.items():
        if name in columns:
            coarse.append(_coarse(name, column, left, layout.is_centred))
        elif layout.is_centred:  # in the order of the columns, else after the fine features
            left.take(starts[name][1])
    fine = tuple(_fine(encoder, left))
    if not layout.is_centred:
        left.take(sum(width for _, width in starts.values()))
    return {
        "inputs": tuple(_input(name, column, codes[name]) for name, column in columns.items()),
        "texts": tuple(
            Words(
                name=name,
                codes=codes[name],
                scores=_rows(weights.T[start : start + width]),
                **schema.columns[name].model_dump(include={"description", "missing"}),
            )
            for name, (start, width) in starts.items()
        ),
        "coarse": tuple(coarse),
        "fine": fine,
        "intercept": _row(left.take(1)[0] if encoder.fit_intercept else np.zeros(len(weights))),
        "constant": np.zeros(len(weights)),
        "constant_square": float(encoder.fit_intercept),
        "share": layout.coarse_share,
        "factor": margin(encoder.dimension),
        "least": 0.0,
    }


class _RemainingWeights:
    """Weights that no piece has taken yet; features are in the order of the pieces."""

    def __init__(self, weights: Array) -> None:
        self._weights, self._start = weights.T, 0

    def take(self, width: int) -> Array:
        """Return the weights of the next features, of shape (width, scores)."""
        self._start += width
        return self._weights[self._start - width : self._start]


def _input(name: str, column: Any, codes: tuple[str, ...]) -> NumberInput | ListInput:
    shared: dict[str, Any] = column.model_dump(include={"description", "unit", "missing"})
    shared |= {"name": name, "codes": codes}
    match column:
        case NumberColumn():
            lower, upper = column.lower, column.upper
            shared |= {"scale": column.scale, "period": column.period}
        case DateColumn():
            lower, upper = ends_of(column)
        case _:
            return ListInput(values=column.values, unknown=column.unknown, **shared)
    return NumberInput(type=column.type, lower=lower, upper=upper, **shared)


def _coarse(name: str, column: Any, left: _RemainingWeights, is_centred: bool) -> Table | Curve:
    if isinstance(column, ListColumn):
        features = _features_of_values(name, column, is_centred)
        scores = features @ left.take(features.shape[1])
        return Table(column=name, scores=_rows(scores), squares=_row(np.square(features).sum(axis=1)))
    cyclic, knots = is_cyclic(column), 0 if column.encoding == "linear" else knots_of(column)
    hats = left.take(knots)
    centred = knots > 0 and is_centred
    trend = left.take(2 if cyclic else 1)
    return Curve(
        column=name,
        cyclic=cyclic,
        hats=_rows(hats - hats.mean(axis=0) if centred else hats),
        line=() if cyclic else _row(trend[0]),
        waves=_rows(trend) if cyclic else (),
        square=float(cyclic) - (1.0 / knots if centred else 0.0),  # hats less their mean are shorter by that
    )


def _features_of_values(name: str, column: Any, is_centred: bool) -> Array:
    """Return the encoder's features of each value of a list, of shape (values, width)."""
    cells = ColumnCells.of(_encoded_values(column))
    groups = coarse_features(name, column)
    parts = [np.empty((len(cells.values), group.width)) for group in groups]
    for group, part in zip(groups, parts, strict=True):
        group.write(cells, part, is_centred)
    return np.hstack(parts)


def _encoded_values(column: Any) -> Any:
    """Return a list's values as the encoder stores them: indices, or positions of ordered values."""
    if isinstance(column, OrdinalColumn):
        return positions(column, np.arange(len(column.values), dtype=np.float64))
    return np.arange(len(column.values) + (column.unknown == "other"))


def _fine(encoder: SchemaEncoder, left: _RemainingWeights) -> Iterator[Grid]:
    """Yield the grids of fine bins, then those of pairs; each kind's share is divided equally."""
    layout, columns = encoder.layout, encoder.schema.columns
    for groups, share in ((layout.bins, layout.bin_share), (layout.pairs, layout.pair_share)):
        for _, group in groups:
            square = share / len(groups)
            weights = left.take(group.width) * math.sqrt(square)
            axes = tuple(_axis(name, columns[name], size) for name, size in group.bins)
            yield Grid(axes=axes, scores=_rows(weights), square=square)


def _axis(name: str, column: Any, size: int) -> Axis:
    if isinstance(column, ListColumn):
        bins = ColumnCells.of(_encoded_values(column)).bins(size)
        return Axis(column=name, size=size, bins=tuple(bins.tolist()))
    starts = _starts(column, size)
    indices = [0, *(index % size for index in range(1, len(starts) + 1))]
    return Axis(column=name, size=size, starts=_row(starts), bins=tuple(indices))


def _starts(column: Ordered, size: int) -> Array:
    """Return the smallest number in each bin after the first, or beyond: exact, by bisection."""
    lower, upper = ends_of(column)
    last = int(_bins(column, np.array([upper]), size)[0])
    targets = np.arange(1, last + 1)
    below, above = np.full(last, lower), np.full(last, upper)
    while True:
        middle = below + (above - below) / 2.0
        if np.all((middle <= below) | (middle >= above)):
            return above
        reached = _bins(column, middle, size) >= targets
        above, below = np.where(reached, middle, above), np.where(reached, below, middle)


def _bins(column: Ordered, cells: Array, size: int) -> NDArray[Any]:
    """Return the encoder's bins; those after the end of a period get the index ``size`` instead of 0."""
    bins = ColumnCells.of(positions(column, cells)).bins(size)
    period = getattr(column, "period", None)
    if period is None:
        return bins
    return np.where((cells - ends_of(column)[0]) / period >= 1.0, size, bins)


def file_form(schema: Schema | None) -> FileForm:
    """Return the part of the schema's `file` that describes CSV files."""
    if schema is None:
        return FileForm()
    return FileForm(**schema.file.model_dump(include=set(FileForm.model_fields)))


def _row(numbers: Any) -> tuple[float, ...]:
    return tuple(np.asarray(numbers, dtype=np.float64).tolist())


def _rows(numbers: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, numbers.tolist()))
