"""Measure a model on private records: noisy counts of its scores, charged and certified (docs/theory/evaluation.md).

The order is that of every statistic: read and check all rows, compute the public layout, reserve the cost, count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.budget.charge import Budget
from privlearn.budget.composition import Cost
from privlearn.data.encoding.row_weights import WeightColumns
from privlearn.data.parts import part_of, without_part
from privlearn.data.schema.schema import Schema, SchemaLike
from privlearn.data.sources.read_columns import read_block
from privlearn.data.sources.row_source import RowSource, read_each
from privlearn.data.sources.schema_columns import refuse_unclear_persons
from privlearn.data.sources.table import as_source, column_names
from privlearn.errors import InvalidParameter
from privlearn.guarantee import Guarantee
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.counts_file import CountsCertificate
from privlearn.statistics.evaluation.evaluation import Evaluation
from privlearn.statistics.evaluation.layout import Groups, evaluation_layout, groups_of
from privlearn.statistics.evaluation.scored_rows import ScoredRows
from privlearn.statistics.evaluation.subject import Subject, release_of, schema_of, subject_of
from privlearn.statistics.layout import CountsLayout, CountsRequest

_NOT_COVERED = (
    " Not covered: the model. A release or session has its own guarantee, and if it learnt from the same records both "
    "costs add up; a model that learnt from them without privacy may reveal what these counts do not."
)


def evaluate(
    model: Any,
    table: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    by: str | Sequence[str] | None = None,
    schema: SchemaLike | None = None,
    scores: Any = None,
    score_bound: float | None = None,
    neighbours: str = "replace_one",
    expected_records: int | None = None,
    ledger: Budget | None = None,
    accept_weak_privacy: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Evaluation:
    """Return the accuracy, curves and group errors of a model on private records, with intervals, for one charge.

    Scores are counted in bins, by class, with noise in every cell; everything else follows from the noisy counts at no
    further cost. The records should not be those that the model learnt from.

    Parameters
    ----------
    model : Release, or fitted model of privlearn or scikit-learn
        ``None`` if ``scores`` are given. A scikit-learn model, or a model with a kernel, is called with one row at a
        time, so that no score depends on the other rows. That takes some milliseconds each: for many rows, pass
        ``scores``.
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, with the schema's target; also as returned by `open_records` for files of any size.
    epsilon : float
        Privacy loss of the whole evaluation.
    delta : float, default=0.0
        A value above 0 makes many groups or classes more accurate.
    by : str or list of str, optional
        Columns with listed values: report the errors of each of their groups too.
    schema : Schema, optional
        Public description of the table; by default the release's.
    scores : str or array, optional
        A column of scores from elsewhere, or its name in the table: probabilities of the second class, or predicted
        numbers. With ``score_bound`` they may be any scores, above 0 for the second class.
    score_bound : float, optional
        Public: scores that are not probabilities are clipped to this size; by default 2.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: the approximate number of records, or persons, from public knowledge.
    ledger : Ledger, optional
        Budget to charge: that of the records that are counted.
    accept_weak_privacy : bool, default=False
        Required for an epsilon above 20 or a delta of at least 1/n.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure random bits. Other values are for tests; the certificate then states "not private".

    Returns
    -------
    Evaluation

    Raises
    ------
    DataError
        If the table or the scores do not fit; nothing has been charged then.

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn.data.datasets import census_schema, simulated_census
    >>> rows = simulated_census(20_000, seed=1)
    >>> guess = np.full(20_000, 0.2)
    >>> result = evaluate(None, rows, scores=guess, schema=census_schema(), epsilon=0.5, random_state=0)
    >>> 0.4 < result["auc"].value < 0.6
    True
    """
    guarantee, randomness = Guarantee(epsilon, delta, neighbours), randomness_from(random_state)
    request = CountsRequest(guarantee, expected_records, ledger, accept_weak_privacy, randomness)
    model = release_of(model)
    schema = schema_of(model, schema)
    assert schema.target is not None
    subject = subject_of(model, scores, schema.target, score_bound)
    groups = groups_of(schema, by)
    part, table = part_of(table), without_part(table)
    if scores is not None and not isinstance(scores, str) and isinstance(table, RowSource | Iterator):
        raise InvalidParameter("these rows are read in blocks. Pass the name of their column of scores.")
    rows, weights, persons = read_cells(subject, schema, groups, table)
    layout = evaluation_layout(subject, schema, groups, request.guarantee, request.total(persons))
    cost, total = Cost(request.guarantee, layout.mechanism.renyi), layout.mechanism.records
    charge = request.charge(cost, total, schema, part, f"evaluate: {subject.title}")
    return charge.pay_for(lambda: measure(layout, schema, rows, weights, request.randomness))


def read_cells(
    subject: Subject, schema: Schema, groups: Groups, table: Any
) -> tuple[ScoredRows, Array | None, int]:
    """PRIVATE: return the rows to count, their weights, and the number of records or persons.

    A row that does not fit is an error here, on the holder's own screen and before anything is charged.
    """
    rows, weighing = ScoredRows(subject, schema, groups), WeightColumns(schema)

    def read(block: Any) -> None:
        rows.add(block)
        if weighing.names:
            weighing.add(read_block(block, weighing.names, schema))

    # A table in memory is passed on as it is: a scikit-learn model expects rows of the type it was fitted with.
    source = as_source(table) if isinstance(table, RowSource | Iterator) else None
    refuse_unclear_persons(schema, column_names(table if source is None else source))
    if source is None:
        read(table)
    else:
        for _ in read_each(source, read):
            pass
    weights = weighing.result(len(rows))
    return rows, weights.counted, weights.count


def measure(
    layout: CountsLayout, schema: Schema, rows: ScoredRows, weights: Array | None, randomness: Randomness
) -> Evaluation:
    """Touch the data: count the rows, add the noise of the layout, and return the certified result."""
    tables = layout.add_noise(rows.tables(layout, weights), randomness)
    return Evaluation(tables, layout.about, certify(layout, schema, randomness))


def certify(layout: CountsLayout, schema: Schema, randomness: Randomness) -> CountsCertificate:
    """Return the certificate of an evaluation's tables."""
    return layout.certify(schema, randomness, evaluated=layout.about["of"], not_covered=_NOT_COVERED)
