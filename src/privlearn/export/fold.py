"""From a release to its scorecard: each coefficient is multiplied into the piece of the encoding it belongs to.

Nothing is added to what the release holds. Where a bin begins is found in the raw numbers, by bisection with the
encoder's own functions, so that no other program's logarithm can put a cell into the bin beside.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from privlearn._version import __version__
from privlearn.arrays import Array, margin
from privlearn.data.encode.arrays import ArrayEncoder
from privlearn.data.encode.centred import CentredEncoder
from privlearn.data.encode.column_features import group_of
from privlearn.data.encode.encoder import SchemaEncoder
from privlearn.data.encode.positions import Ordered, Places, ends_of, is_cyclic, knots_of, positions
from privlearn.data.encode.resolution import Resolution
from privlearn.data.encode.resolved_rows import ResolvedRows
from privlearn.data.encode.slots import Cells, coarse_pieces
from privlearn.data.schema.columns import CategoryColumn, DateColumn, NumberColumn, OrdinalColumn, TextColumn
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter
from privlearn.export.reading import codes_told, file_form
from privlearn.export.scorecard import (
    Amounts,
    Axis,
    Centring,
    Classes,
    Curve,
    Grid,
    ListInput,
    Map,
    NumberInput,
    Scorecard,
    Slope,
    Table,
)
from privlearn.mechanisms.statistics.score_odds import MIDDLES
from privlearn.release.archive import json_bytes
from privlearn.release.artifact import Release
from privlearn.release.encoders import base_of
from privlearn.release.model import LinearModel, Model, RegressionModel

Listed = CategoryColumn | OrdinalColumn


def scorecard(release: Release) -> Scorecard:
    """The release as tables and curves."""
    model, weights = release.model, _weights(release.model)
    encoder = model.encoder
    if not isinstance(encoder, SchemaEncoder | ArrayEncoder | CentredEncoder):
        raise InvalidParameter(
            "this model has a kernel's features, which belong to no column, and only linear models are exported: "
            "predict with Release.load(path).model.predict(table)"
        )
    centring, constant = None, np.zeros(len(weights))
    if isinstance(encoder, CentredEncoder):
        centring, constant, weights = _centring(encoder, weights)
        encoder = encoder.base
    folded = (
        _fold_arrays(encoder, weights)
        if isinstance(encoder, ArrayEncoder)
        else _fold_schema(encoder, weights)
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
    """What is done to the rows, the constants, and weights without constants with the mean as one row more."""
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
    """One row per score; two classes have one, the second one's less the first one's."""
    rows = model.coefficients
    if isinstance(model, LinearModel) and len(model.classes) == 2 and len(rows) == 2:
        return rows[1:] - rows[:1]
    return rows


def _about(release: Release) -> dict[str, Any]:
    """Where an export comes from, for its comments: all of it is in the release."""
    schema = getattr(base_of(release.model.encoder), "schema", None)
    certificate = release.certificate
    return {
        "dataset": None if schema is None else schema.name,
        "target": None if schema is None or schema.target is None else schema.target.name,
        "missing": codes_told(schema),
        "promise": str(certificate.with_alike),
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
    """Of certain ones a number beyond all scores."""
    if probability in (0.0, 1.0):
        return math.copysign(sys.float_info.max, probability - 0.5)
    return math.log(probability) - math.log1p(-probability)


def _fold_arrays(encoder: ArrayEncoder, weights: Array) -> dict[str, Any]:
    """Plain arrays: numbers are measured by the norm bound."""
    names = [f"x[{place}]" for place in range(encoder.n_features)]
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
    columns = encoder.schema.columns
    texts = [name for name, column in columns.items() if isinstance(column, TextColumn)]
    if texts:
        raise InvalidParameter(
            f"column {texts[0]!r} is text, whose hashed words no export reads: predict with "
            "Release.load(path).model.predict(table)"
        )
    left, resolution = _Left(weights), encoder.resolution
    fine: tuple[Grid, ...] = ()
    share = 1.0
    coarse = tuple(_coarse(name, column, left, resolution) for name, column in columns.items())
    if resolution is not None:
        resolved = ResolvedRows(encoder.schema, resolution, encoder.fit_intercept)
        fine, share = tuple(_fine(encoder.schema, resolution, resolved.shares, left)), resolved.shares[-1]
    return {
        "inputs": tuple(_input(name, column) for name, column in columns.items()),
        "coarse": coarse,
        "fine": fine,
        "intercept": _row(left.take(1)[0] if encoder.fit_intercept else np.zeros(len(weights))),
        "constant": np.zeros(len(weights)),
        "constant_square": float(encoder.fit_intercept),
        "share": share,
        "factor": margin(encoder.dimension),
        "least": 0.0,
    }


class _Left:
    """Weights that no piece has taken yet; features stand in the order of the pieces."""

    def __init__(self, weights: Array) -> None:
        self._weights, self._start = weights.T, 0

    def take(self, width: int) -> Array:
        """Of the next features: one row each, one column per score."""
        self._start += width
        return self._weights[self._start - width : self._start]


def _input(name: str, column: Any) -> NumberInput | ListInput:
    told: dict[str, Any] = {"description": None, "unit": None} | column.model_dump(
        include={"description", "unit"}
    )
    settings: dict[str, Any] = {}
    match column:
        case NumberColumn():
            settings = {"scale": column.scale, "period": column.period}
            lower, upper = column.lower, column.upper
        case DateColumn():
            lower, upper = ends_of(column)
        case _:
            return ListInput(
                name=name, values=column.values, missing=column.missing, unknown=column.unknown, **told
            )
    return NumberInput(
        type=column.type, name=name, lower=lower, upper=upper, missing=column.missing, **settings, **told
    )


def _coarse(name: str, column: Any, left: _Left, resolution: Resolution | None) -> Table | Curve:
    if isinstance(column, Listed):
        features = _features_of_values(name, column, resolution)
        scores = features @ left.take(features.shape[1])
        return Table(column=name, scores=_rows(scores), squares=_row(np.square(features).sum(axis=1)))
    cyclic, knots = is_cyclic(column), 0 if column.encoding == "linear" else knots_of(column)
    hats = left.take(knots)
    centred = knots > 0 and resolution is None
    trend = left.take(2 if cyclic else 1)
    return Curve(
        column=name,
        cyclic=cyclic,
        hats=_rows(hats - hats.mean(axis=0) if centred else hats),
        line=() if cyclic else _row(trend[0]),
        waves=_rows(trend) if cyclic else (),
        square=float(cyclic) - (1.0 / knots if centred else 0.0),  # hats less their mean are shorter by that
    )


def _features_of_values(name: str, column: Any, resolution: Resolution | None) -> Array:
    """The encoder's own features of each value of a list, one row each."""
    cells = _places_of_values(column)
    if resolution is None:
        group: Any = group_of(name, column)
        features = np.empty((len(cells), group.width))
        group.expand(cells, features)
        return features
    parts = []
    for piece in coarse_pieces(name, column):
        part = np.zeros((len(cells), piece.width))
        for place, value in piece.slots({name: Cells(cells, np.ones(len(cells), dtype=np.bool_))}):
            part[np.arange(len(cells)), place] += value
        parts.append(part)
    return np.hstack(parts)


def _places_of_values(column: Any) -> Any:
    """A list's values as the encoder keeps them: numbers of values, or positions of those that have an order."""
    if isinstance(column, OrdinalColumn):
        return positions(column, np.arange(len(column.values), dtype=np.float64))
    return np.arange(len(column.values) + (column.unknown == "other"))


def _fine(schema: Schema, resolution: Resolution, shares: Sequence[float], left: _Left) -> Iterator[Grid]:
    """Fine bins, then pairs; each kind's share is divided equally."""
    ordered = {
        name: column for name, column in schema.columns.items() if not isinstance(column, CategoryColumn)
    }
    bins = {name: resolution.bins_of(column) for name, column in ordered.items()}  # type: ignore[arg-type]
    single = [{name: size} for name, size in bins.items() if size]
    sizes = {name: resolution.grid_of(column) for name, column in schema.columns.items()}  # type: ignore[arg-type]
    paired = [{name: sizes[name] for name in pair} for pair in resolution.pairs_of(schema)]
    for kind, share in zip((single, paired), shares, strict=False):
        for cut in kind:
            square = share / len(kind)
            weights = left.take(math.prod(cut.values())) * math.sqrt(square)
            axes = tuple(_axis(name, schema.columns[name], size) for name, size in cut.items())
            yield Grid(axes=axes, scores=_rows(weights), square=square)


def _axis(name: str, column: Any, size: int) -> Axis:
    if isinstance(column, Listed):
        places = _places_of_values(column)
        found = Cells(places, np.ones(len(places), dtype=np.bool_)).bins(size)
        return Axis(column=name, size=size, places=tuple(found.tolist()))
    starts = _starts(column, size)
    places = [0, *(place % size for place in range(1, len(starts) + 1))]
    return Axis(column=name, size=size, starts=_row(starts), places=tuple(places))


def _starts(column: Ordered, size: int) -> Array:
    """The least number that lies in each bin after the first, or beyond: found by halving, to the last bit."""
    lower, upper = ends_of(column)
    last = int(_bins(column, np.array([upper]), size)[0])
    wanted = np.arange(1, last + 1)
    below, above = np.full(last, lower), np.full(last, upper)
    while True:
        middle = below + (above - below) / 2.0
        if np.all((middle <= below) | (middle >= above)):
            return above
        reached = _bins(column, middle, size) >= wanted
        above, below = np.where(reached, middle, above), np.where(reached, below, middle)


def _bins(column: Ordered, cells: Array, size: int) -> Places:
    """The encoder's bins, counted on where a period ends and the first begins again."""
    found = Cells(positions(column, cells), np.ones(len(cells), dtype=np.bool_)).bins(size)
    period = getattr(column, "period", None)
    if period is None:
        return found
    return np.where((cells - ends_of(column)[0]) / period >= 1.0, size, found)


def _row(numbers: Any) -> tuple[float, ...]:
    return tuple(np.asarray(numbers, dtype=np.float64).tolist())


def _rows(numbers: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, numbers.tolist()))
