"""Public: the sums that estimates are computed from, their shares of the budget, and how wide intervals will be.

The sums are released one after the other (docs/theory/inference.md):

    counts of each variable, the outcome and the exposure      where rows are centred, and their scale
    score, information               several approximate rounds of Fisher scoring; one for linear models
    counts of residuals              where residuals are cut
    score, information, moments      the last round, from which estimates and intervals follow
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privlearn.accounting import gaussian_ratio
from privlearn.data.schema.columns import CategoryColumn, NumberColumn, OrdinalColumn
from privlearn.data.schema.schema import Schema
from privlearn.data.schema.target import Target
from privlearn.errors import InvalidParameter, did_you_mean
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.statistics.locations import Grid
from privlearn.mechanisms.statistics.scoring import COUNTS, MATRIX, VECTOR, NoisyScoring
from privlearn.statistics.description.layout import described_columns
from privlearn.statistics.layout import CountsLayout, counted_records, weight_of
from privlearn.statistics.regression.design import (
    NORM,
    Design,
    Levels,
    Numbers,
    comparisons,
    design_from_dict,
    design_of,
    read_variable,
)
from privlearn.statistics.regression.families import FAMILIES, Family, family_of
from privlearn.statistics.regression.formula import Formula, Variable, parse_formula
from privlearn.statistics.regression.histograms import grid_between

KIND = "estimates"
CELLS = 48
OUTCOME_CELLS = 64
RESIDUAL_EDGES = tuple(2.0 ** (step / 2.0) for step in range(-12, 11))
"""Sizes of residuals between which they are counted, in units of the outcome's spread."""

_SHARES = {"round": 0.055, "residuals": 0.02, "moments": 0.08}
"""Shares of the squared ratio; the last score has the rest. A round has half of its share for each sum."""
_MIN_TABLES, _MAX_TABLES = 0.05, 0.2
"""Share of all histograms: as much as keeps the noise in sums of cells below `_QUANTILE_NOISE` of the records."""
_QUANTILE_NOISE = 0.06
_MIN_INFORMATION, _MAX_INFORMATION = 0.12, 0.35
"""Share of the last information: as much as makes it `_AMPLE` times as large as its noise."""
_AMPLE = 4.0

_MIN_CUT, _MAX_CUT = 3.0, 8.0
"""Residuals are cut at a multiple of their deviation: the more records, the larger, since noise grows with it."""

TYPICAL_RATE = 0.2
"""Share of a logistic outcome's second class, for a forecast that is not given one."""
_TYPICAL_INFORMATION = {"logistic": 0.64, "ordinal": 0.32, "linear": 0.95, "poisson": 0.55}
"""Mean information of a record over its bound: for a rate of 0.2, residuals cut at 3 deviations, the mean count.

Half as much for ordinal outcomes: columns that mark one of several levels are negatively correlated."""
_TYPICAL_RESIDUAL = {
    "logistic": TYPICAL_RATE * (1.0 - TYPICAL_RATE),
    "ordinal": TYPICAL_RATE * (1.0 - TYPICAL_RATE),
    "linear": 1.0,
    "poisson": 1.0,
}
_TYPICAL_INFLATION = 1.5
"""Variance inflation of a coefficient by the correlation of its term with the others."""
_MIN_STRENGTH = 3.0
"""Least ratio of the expected information to the spectral norm of its noise for which an estimate is offered: in the
weakest direction of terms with correlation 0.5 between neighbours the information is a third of its mean."""


@dataclass(frozen=True)
class ModelRequest:
    """The model to estimate: its formula, parsed and checked against the schema before any row is read."""

    formula: str
    family: Family
    outcome: Mapping[str, Any]
    design: Design
    exposure: Numbers | None
    rate: float = TYPICAL_RATE

    @property
    def outcome_grid(self) -> Grid:
        """Return the cells of the outcome's histogram; one for each class or level."""
        return grid_of_outcome(self.outcome)


def grid_of_outcome(outcome: Mapping[str, Any]) -> Grid:
    """Return the cells of the outcome's histogram; one for each class or level."""
    if "classes" in outcome:
        return grid_between(0.0, 1.0, len(outcome.get("levels", (0, 1))))
    return grid_between(outcome["lower"], outcome["upper"], OUTCOME_CELLS)


def grid_of_variable(variable: Numbers) -> Grid:
    """Return the cells of the histogram of a variable of numbers."""
    return grid_between(variable.lower, variable.upper, CELLS)


def read_request(formula: str, schema: Schema, family: str | None, exposure: str | None) -> ModelRequest:
    """Return the model that a formula and a schema describe; raise InvalidParameter for one that is not offered."""
    parsed = parse_formula(formula)
    if schema.rows_per_person > 1:
        raise InvalidParameter(
            "persons have several rows, and no column names the person. State person: COLUMN in the schema: "
            "intervals must know which rows belong together."
        )
    outcome, chosen = _read_outcome(parsed, schema, family)
    offset = None
    if exposure is not None:
        if chosen.name != "poisson":
            raise InvalidParameter("an exposure belongs to counts. Set family='poisson' or omit it.")
        variable = read_variable(Variable(exposure, "log"), described_columns(schema), parsed.outcome)
        assert isinstance(variable, Numbers)  # of a list of values, log() is refused
        offset = variable
    design = design_of(parsed, schema)
    if chosen.outcome == "levels":
        design = design.with_thresholds(outcome["name"], outcome["levels"])
    target = schema.target
    stated = target.rate if target is not None and target.name == outcome["name"] else None
    return ModelRequest(formula, chosen, outcome, design, offset, stated or TYPICAL_RATE)


def _read_outcome(formula: Formula, schema: Schema, family: str | None) -> tuple[dict[str, Any], Family]:
    """Return the public description of the outcome, and the family: by default the one for its kind."""
    columns, name = described_columns(schema), formula.outcome
    if name not in columns:
        raise InvalidParameter(f"the schema has no column {name!r}{did_you_mean(name, columns)}")
    column = columns[name]
    outcome: dict[str, Any] = {"name": name}
    if isinstance(column, OrdinalColumn) or (isinstance(column, CategoryColumn) and family == "ordinal"):
        outcome |= _read_levels(name, column, schema.target)
    elif isinstance(column, CategoryColumn):
        outcome |= _read_classes(name, column, schema.target)
    elif isinstance(column, NumberColumn):
        outcome |= {"lower": column.lower, "upper": column.upper}
    else:
        raise InvalidParameter(
            f"{name!r} is neither a number nor a list of classes or levels. Use another outcome."
        )
    kind = "classes" if "event" in outcome else "levels" if "levels" in outcome else "number"
    chosen = family_of(family or {"classes": "logistic", "levels": "ordinal", "number": "linear"}[kind])
    if chosen.outcome != kind:
        suitable = " or ".join(name for name, one in FAMILIES.items() if one.outcome == kind)
        raise InvalidParameter(f"family={chosen.name!r} does not fit the outcome {name!r}. Use {suitable}.")
    if chosen.name == "poisson" and outcome["lower"] < 0:
        raise InvalidParameter(f"counts are at least 0. Raise the lower bound of {name!r} in the schema.")
    return outcome, chosen


def _read_classes(name: str, column: CategoryColumn, target: Target | None) -> dict[str, Any]:
    """Return reference and event of an outcome with two classes, and the class of each label."""
    labels, classes = _read_labels(name, column, target)
    if len(labels) != 2:
        raise InvalidParameter(
            f"{name!r} has {len(labels)} classes, and a logistic model explains two. If they are in order, from the "
            "lowest to the highest, use family='ordinal'. Otherwise merge classes in the schema (merge: {...}), and "
            "estimate one comparison at a time."
        )
    return {"reference": labels[0], "event": labels[1], "classes": classes}


def _read_levels(name: str, column: CategoryColumn | OrdinalColumn, target: Target | None) -> dict[str, Any]:
    """Return the levels of an outcome from the lowest to the highest, and the level of each label."""
    labels, classes = _read_labels(name, column, target)
    if len(labels) == 2:
        raise InvalidParameter(f"{name!r} has two levels. Use family='logistic', which is the same model.")
    return {"levels": labels, "classes": classes}


def _read_labels(
    name: str, column: CategoryColumn | OrdinalColumn, target: Target | None
) -> tuple[list[str], list[int]]:
    """Return the classes of an outcome, and the class of each label of its column."""
    if target is not None and target.name == name:
        return list(map(str, target.classes)), target.class_indices
    return list(map(str, column.values)), list(range(len(column.values)))


def regression_layout(
    request: ModelRequest, schema: Schema, guarantee: Guarantee, records: int
) -> CountsLayout:
    """Return the sums to release, with the mechanism that is calibrated for them."""
    counted = round(counted_records(schema, records))
    sums = _sums_of(request, guarantee, counted)
    mechanism = NoisyScoring.of_sums(guarantee, records, [sum[1:] for sum in sums])
    about = {
        "kind": KIND,
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        "formula": request.formula,
        "family": request.family.name,
        "outcome": dict(request.outcome),
        "exposure": None if request.exposure is None else request.exposure.to_dict(),
        "design": request.design.to_dict(),
        "cut": cut_of(mechanism, counted, request.design.dimension) if request.family.is_cut else None,
        "sums": [name for name, *_ in sums],
        "shapes": [[size] for *_, size, _ in sums],
        "counted": counted,
        **weight_of(schema),
    }
    return CountsLayout(about, mechanism)


def has_sums_of_model(about: Mapping[str, Any], guarantee: Guarantee) -> bool:
    """Return whether a file's sums, design and formula are those of its family and outcome."""
    design, outcome, exposure = design_from_dict(about["design"]), about["outcome"], about["exposure"]
    offset = None if exposure is None else Numbers(**exposure)
    request = ModelRequest(about["formula"], family_of(about["family"]), outcome, design, offset)
    formula, levels, thresholds = parse_formula(request.formula), outcome.get("levels"), design.thresholds
    columns = {variable.column for term in formula.terms for variable, _ in term.powers}
    sums = _sums_of(request, guarantee, about["counted"])
    return (
        list(zip(about["sums"], about["shapes"], strict=True))
        == [(name, [size]) for name, _, size, _ in sums]
        and formula.outcome == outcome["name"]
        and columns == {variable.column for variable in design.column_variables}
        and (levels is not None) == (request.family.outcome == "levels")
        and (thresholds and thresholds.values) == (levels and comparisons(levels))
    )


def _sums_of(request: ModelRequest, guarantee: Guarantee, records: int) -> list[tuple[str, str, int, float]]:
    """Return name, kind, size and share of each sum; the shares follow from public numbers."""
    dimension = request.design.dimension
    entries = dimension * (dimension + 1) // 2
    tables = [
        len(variable.values) if isinstance(variable, Levels) else CELLS
        for variable in request.design.column_variables
    ]
    tables += [request.outcome_grid.cells, *([] if request.exposure is None else [CELLS])]
    of_tables, of_information = _flexible_shares(request, guarantee, records, len(tables))
    sums = [("counts", COUNTS, cells, of_tables / len(tables)) for cells in tables]
    half = _SHARES["round"] / 2.0
    for _ in range(request.family.rounds):
        sums += [("score", VECTOR, dimension, half), ("information", MATRIX, entries, half)]
    if request.family.is_cut:
        sums.append(("residuals", COUNTS, len(RESIDUAL_EDGES) + 1, _SHARES["residuals"]))
    rest = 1.0 - math.fsum(share for *_, share in sums) - of_information - _SHARES["moments"]
    return [
        *sums,
        ("score", VECTOR, dimension, rest),
        ("information", MATRIX, entries, of_information),
        ("moments", MATRIX, entries, _SHARES["moments"]),
    ]


def _flexible_shares(
    request: ModelRequest, guarantee: Guarantee, records: int, tables: int
) -> tuple[float, float]:
    """Return the shares of the histograms and of the last information, which small tables need more of."""
    if not guarantee.is_private or guarantee.delta == 0.0:  # refused by the calibration
        return _MIN_TABLES, _MIN_INFORMATION
    ratio = gaussian_ratio(guarantee.epsilon, guarantee.delta)
    noise = guarantee.relation.counts / ratio * math.sqrt(CELLS) / 2.0
    of_tables = tables * (noise / (_QUANTILE_NOISE * records)) ** 2
    dimension = request.design.dimension
    information = records * _TYPICAL_INFORMATION[request.family.name] / (NORM * dimension)
    spectral = guarantee.relation.moments / ratio * math.sqrt(2.0 * dimension)
    of_information = (_AMPLE * spectral / information) ** 2
    return (
        float(np.clip(of_tables, _MIN_TABLES, _MAX_TABLES)),
        float(np.clip(of_information, _MIN_INFORMATION, _MAX_INFORMATION)),
    )


def cut_of(mechanism: NoisyScoring, counted: int, dimension: int) -> float:
    """Return the multiple of their deviation at which residuals are cut: noise then adds a quarter to the variance."""
    noise = mechanism.scales[-3] * math.sqrt(NORM * dimension / counted)
    return float(np.clip(0.5 / max(noise, 1e-9), _MIN_CUT, _MAX_CUT))


def _rarity(layout: CountsLayout, rate: float) -> float:
    """Return the variance of a logistic outcome over that at the typical rate; 1 for other families."""
    is_logistic = layout.about["family"] == "logistic"
    return rate * (1.0 - rate) / _TYPICAL_RESIDUAL["logistic"] if is_logistic else 1.0


def strength(layout: CountsLayout, rate: float = TYPICAL_RATE) -> float:
    """Return the expected information over the spectral norm of its noise."""
    mechanism, dimension = layout.mechanism, len(layout.about["design"]["products"])
    information = layout.about["counted"] * _TYPICAL_INFORMATION[layout.about["family"]] / (NORM * dimension)
    noise = mechanism.scales[-2] * math.sqrt(2.0 * dimension)
    return information * _rarity(layout, rate) / noise if noise else math.inf


def expected_ratio(layout: CountsLayout, rate: float = TYPICAL_RATE) -> float:
    """Return the expected width of an interval over its width without privacy."""
    mechanism, dimension = layout.mechanism, len(layout.about["design"]["products"])
    residual = _TYPICAL_RESIDUAL[layout.about["family"]] / (layout.about["cut"] or 1.0) ** 2
    moments = layout.about["counted"] * residual * _rarity(layout, rate) / (NORM * dimension)
    return math.sqrt(1.0 + _TYPICAL_INFLATION * mechanism.scales[-3] ** 2 / moments)


def expected_error(layout: CountsLayout, rate: float = TYPICAL_RATE) -> float:
    """Return the expected standard error without privacy, for one standard deviation of a number."""
    information = _TYPICAL_RESIDUAL[layout.about["family"]] * _rarity(layout, rate)
    return math.sqrt(_TYPICAL_INFLATION / (layout.about["counted"] * information))


def is_readable(layout: CountsLayout, rate: float = TYPICAL_RATE) -> bool:
    """Return whether the information is expected to stand out from its noise."""
    return strength(layout, rate) >= _MIN_STRENGTH


def check_strength(layout: CountsLayout, count_noun: str, rate: float) -> None:
    """Raise InvalidParameter, before anything is charged, where the noise would leave nothing to read.

    ``rate`` is the share of an outcome's second class that the schema states, or a typical one.
    """
    if not is_readable(layout, rate):
        dimension, mechanism = len(layout.about["design"]["products"]), layout.mechanism
        records = mechanism.records * _MIN_STRENGTH / strength(layout, rate)
        raise InvalidParameter(
            f"{dimension} coefficients are too many for {mechanism.records:,} {count_noun} at epsilon = "
            f"{mechanism.guarantee.epsilon:g}: noise would hide them. Use fewer terms, a larger epsilon, or about "
            f"{math.ceil(records):,} {count_noun}."
        )
