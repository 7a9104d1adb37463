"""Measure a model on private records: a few noisy tables, charged and certified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from privlearn.arrays import Array
from privlearn.data.encode.encoder import weights_of_persons
from privlearn.data.schema.purchases import with_purchases
from privlearn.data.schema.schema import Schema, SchemaLike
from privlearn.data.sources.files import refuse_unclear_persons
from privlearn.data.sources.row_source import RowSource, joined, read_each
from privlearn.data.sources.table import as_source, as_table, column_names
from privlearn.errors import InvalidParameter
from privlearn.evaluation.counted_rows import CountedRows
from privlearn.evaluation.evaluation import Evaluation
from privlearn.evaluation.plan import EvaluationPlan, Groups, groups_of, plan_evaluation
from privlearn.evaluation.subject import Subject, released, schema_of, subject_of
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.statistics.counts import NoisyCounts
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate

_NOT_COVERED = (
    " Not covered: the model. A release or session has its own promise, and if it learnt from the same records both "
    "costs add up; a model that learnt from them without privacy may tell what these counts do not."
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
    """How good a model is on private records: accuracy, curves and intervals for one price.

    Scores are counted in bins, by class, with noise in every cell; everything else follows from the noisy counts and
    costs nothing more. The records should not be those that the model learnt from.

    Parameters
    ----------
    model : Release, or fitted model of privlearn or scikit-learn
        ``None`` if ``scores`` are given. A model of scikit-learn, or one with a kernel, is asked about one row at a
        time, so that no score depends on the other rows.
    table : pandas, polars or pyarrow table, dict of arrays, or RowSource
        The private rows, with the schema's target; also as `open_records` makes them of files, however large.
    epsilon : float
        The price of all of it.
    delta : float, default=0.0
        Above 0 it makes many groups or classes more accurate.
    by : str or list of str, optional
        Columns of listed values: errors for each of their groups too.
    schema : Schema, optional
        What is public about the table; by default the release's.
    scores : str or array, optional
        A column of scores from elsewhere, or its name in the table: probabilities of the second class, or predicted
        numbers. With ``score_bound`` they are any scores, above 0 for the second class.
    score_bound : float, optional
        Public: scores that are no probabilities are told apart up to this size; by default 2.
    neighbours : {"replace_one", "zero_out", "add_remove"}, default="replace_one"
    expected_records : int, optional
        With ``add_remove``: how many records, or persons, there are about, from public knowledge.
    ledger : Ledger, optional
        Budget to charge: that of the records that are counted.
    accept_weak_privacy : bool, default=False
        The word that an epsilon above 20 or a delta of at least 1/n needs.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests, and the certificate says "not private".

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
    >>> found = evaluate(None, rows, scores=guess, schema=census_schema(), epsilon=0.5, random_state=0)
    >>> 0.4 < found["auc"].value < 0.6
    True
    """
    guarantee, randomness = Guarantee(epsilon, delta, neighbours), randomness_from(random_state)
    guarantee.relation.check_expected(expected_records)
    model = released(model)
    schema = schema_of(model, schema)
    assert schema.target is not None
    subject = subject_of(model, scores, schema.target, score_bound)
    groups = groups_of(schema, by)
    if scores is not None and not isinstance(scores, str) and isinstance(table, RowSource | Iterator):
        raise InvalidParameter("the rows come in blocks: give the name of their column of scores")
    counted, weights, persons = read_cells(subject, schema, groups, table)
    plan = plan_evaluation(
        subject, schema, groups, guarantee, guarantee.relation.total(persons, expected_records)
    )
    charge = Charge(
        ledger=ledger,
        cost=Cost(guarantee, plan.mechanism.renyi),
        promise=with_purchases(guarantee, schema.bought),
        records=plan.mechanism.records,
        purpose=f"evaluate: {subject.title}",
        schema_digest=schema.digest,
        secure=randomness.secure,
        accept_weak_privacy=accept_weak_privacy,
    )
    return charge.pay_for(lambda: run_plan(plan, schema, counted, weights, randomness))


def read_cells(
    subject: Subject, schema: Schema, groups: Groups, table: Any
) -> tuple[CountedRows, Array | None, int]:
    """PRIVATE: the rows as they will be counted, their weights, and the number of records or persons.

    Whatever does not fit is an error now, on the holder's own screen; nothing has been paid.
    """
    counted, owner = CountedRows(subject, schema, groups), []

    def read(block: Any) -> None:
        counted.add(block)
        if schema.person is not None:
            owner.append(as_table(block, [schema.person]))

    # a table stays as it is: a model of scikit-learn is asked about rows of its own kind
    source = as_source(table) if isinstance(table, RowSource | Iterator) else None
    refuse_unclear_persons(schema, column_names(table if source is None else source))
    if source is None:
        read(table)
    else:
        for _ in read_each(source, read):
            pass
    rows = len(counted)
    if schema.person is None:
        return counted, None, rows
    return counted, *weights_of_persons(joined(owner).column(0), schema.person)


def run_plan(
    plan: EvaluationPlan, schema: Schema, counted: CountedRows, weights: Array | None, randomness: Randomness
) -> Evaluation:
    """Touch the data: count, add the noise that was planned, and write the certificate."""
    exact = counted.tables(plan, weights)
    noisy = plan.mechanism.run(exact, randomness)
    tables = [table.reshape(shape) for table, shape in zip(noisy, plan.shapes, strict=True)]
    return Evaluation(tables, plan.about, certified(plan.about, plan.mechanism, schema, randomness))


def certified(
    about: Mapping[str, Any], mechanism: NoisyCounts, schema: Schema, randomness: Randomness
) -> CountsCertificate:
    """Of an evaluation's tables."""
    subject = {
        "evaluated": about["of"],
        "dataset": schema.name,
        "schema_sha256": schema.digest,
        **({"bought": schema.to_dict()["bought"]} if schema.bought else {}),
        "about_sha256": digest_of(json_bytes(about)),
        "persons": schema.person is not None,
        "not_covered": _NOT_COVERED,
    }
    return CountsCertificate.issue(mechanism, randomness, subject)
