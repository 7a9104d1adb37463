"""The column of row weights that a schema declares, with the public cap that prices them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, StrictStr, model_validator

from privlearn.data.schema.public import CompactModel, Rule

_LIKELY_MEAN = 50.0
"""An upper limit beyond this many times the default mean is taken for one of expansion weights."""

Positive = Annotated[float, Field(gt=0)]


class Weight(CompactModel):
    """Row weights as survey statisticians mean them: a row of weight 2 counts like two rows of weight 1.

    Each weight is clipped to [0, ``upper``], row by row. One person's weight is bounded by ``upper``, so the noise
    grows with ``upper / mean``.

    Parameters
    ----------
    column : str
    upper : float, optional
        Public cap. Only with ``person`` it may be left out: then the weights of a person's rows are divided by their
        sum, each person counts 1, and the weights cost nothing.
    mean : float, default=1
        Public, approximate mean of the weights; it need not be exact. Training divides the weights by it, so that
        regularization and forecasts refer to records of mean weight.
    missing : {"refuse", "zero"}, default="refuse"
        Rule for missing cells; ``zero`` gives such rows the weight 0.
    """

    column: Annotated[StrictStr, Field(min_length=1)]
    upper: Positive | None = None
    mean: Positive = 1.0
    missing: Rule = "refuse"

    _omitted: ClassVar[tuple[str, ...]] = ("upper", "mean", "missing")

    @model_validator(mode="after")
    def _mean_is_below_upper(self) -> Weight:
        if self.upper is None:
            if self.mean != 1.0:
                raise ValueError("mean: remove it: without upper, weights only divide each person's rows")
            return self
        if self.mean > self.upper:
            raise ValueError(f"mean ({self.mean:g}) must not exceed upper ({self.upper:g}): state their mean")
        if "mean" not in self.model_fields_set and self.upper > _LIKELY_MEAN:
            raise ValueError(
                f"upper ({self.upper:g}) is far above 1: state the approximate mean of the weights too, from public "
                "knowledge, such as mean: 1500 (population / records)"
            )
        return self

    @property
    def bound(self) -> float:
        """Return the largest weight of a record, or person, in units of the mean."""
        return 1.0 if self.upper is None else self.upper / self.mean
