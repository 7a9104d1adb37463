"""Measure a model on private records: a few noisy tables, charged and certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privlearn.arrays import Array
from privlearn.data.encode.column_cells import codes
from privlearn.data.encode.encoder import SchemaEncoder, from_unit
from privlearn.data.schema.columns import Target
from privlearn.data.schema.schema import Schema, SchemaLike, with_purchases
from privlearn.data.sources.files import refuse_unclear_persons
from privlearn.data.sources.table import as_table, column_names
from privlearn.evaluation.evaluation import Evaluation
from privlearn.evaluation.plan import EvaluationPlan, Groups, groups_of, plan_evaluation
from privlearn.evaluation.subject import Subject, check_outputs, schema_of, subject_of
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.ledger.composition import Cost
from privlearn.mechanisms.statistics.counts import NoisyCounts, count
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.archive import digest_of, json_bytes
from privlearn.release.counts_file import CountsCertificate

_NOT_COVERED = (
    " Not covered: the model. A release or session has its own promise, and if it learnt from the same records both "
    "costs add up; a model that learnt from them without privacy may tell what these counts do not."
)

Cell = NDArray[np.int64]


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
    model : Release, or fitted model of scikit-learn
        ``None`` if ``scores`` are given. A model of scikit-learn, or one with a kernel, is asked about one row at a
        time, so that no score depends on the other rows.
    table : pandas, polars or pyarrow table, or dict of arrays
        The private rows, with the schema's target.
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
    schema = schema_of(model, schema)
    assert schema.target is not None
    subject = subject_of(model, scores, schema.target, score_bound)
    groups = groups_of(schema, by)
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


class Counted:
    """PRIVATE: what the rows are counted by: labels or targets, scores, and groups; negative where there is none."""

    def __init__(self, target: Target, answers: Any, outputs: Array, groups: list[Cell]) -> None:
        self.target = target
        self.answers = answers
        self.outputs = outputs
        self.groups = groups

    def cells(self, plan: EvaluationPlan) -> list[Cell]:
        """In which cell of each table a row is; -1 for none."""
        if not self.target.classes:
            main, each = self._residuals(plan)
        elif len(self.target.classes) == 2:
            main, each = self._scores(plan)
        else:
            main, each = self._classes(plan)
        size = plan.mechanism.cells[len(main) :]
        places = [
            np.where((group < 0) | (each < 0), -1, group * (cells // len(plan.about["by"][name])) + each)
            for group, name, cells in zip(self.groups, plan.about["by"], size, strict=True)
        ]
        return [*main, *places]

    def _scores(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        bins = len(plan.edges) - 1
        said = (self.outputs > plan.about["threshold"]).astype(np.int64)
        known = self.answers >= 0
        score = np.where(known, self.answers * bins + binned(self.outputs, plan.edges), -1)
        return [score], np.where(known, 2 * self.answers + said, -1)

    def _classes(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        bins, count_of = len(plan.edges) - 1, self.outputs.shape[1]
        said, known = np.argmax(self.outputs, axis=1), self.answers >= 0
        confused = np.where(known, self.answers * count_of + said, -1)
        curves = [
            np.where(known, (self.answers == place) * bins + binned(self.outputs[:, place], plan.edges), -1)
            for place in range(count_of)
        ]
        return [confused, *curves], np.where(known, (said != self.answers).astype(np.int64), -1)

    def _residuals(self, plan: EvaluationPlan) -> tuple[list[Cell], Cell]:
        residual = binned(self.outputs - self.answers, plan.edges)
        return [residual, binned(self.answers, np.array(plan.about["target_edges"]))], residual


def binned(values: Array, edges: Array) -> Cell:
    """The bin of each number; one on an edge is in the lower bin, one beyond all edges in the last."""
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64)


def read_cells(
    subject: Subject, schema: Schema, groups: Groups, table: Any
) -> tuple[Counted, Array | None, int]:
    """PRIVATE: the rows as they will be counted, their weights, and the number of records or persons.

    Whatever does not fit is an error now, on the holder's own screen; nothing has been paid.
    """
    target = schema.target
    assert target is not None
    encoder = SchemaEncoder(schema)
    refuse_unclear_persons(schema, column_names(table))
    column = as_table(table, [target.name]).column(0)
    answers: Any
    if target.classes:
        answers = encoder.encode_labels(column)
    else:
        assert target.bounds is not None
        answers = from_unit(encoder.encode_targets(column), target.bounds)
    outputs = check_outputs(subject.outputs(table), len(answers), target, probable=subject.is_probability)
    places = [
        codes(as_table(table, [name]).column(0), values, f"column {name!r}")
        for name, values in groups.items()
    ]
    weights, persons = (None, len(answers)) if schema.person is None else encoder.person_weights(table)
    return Counted(target, answers, outputs, places), weights, persons


def run_plan(
    plan: EvaluationPlan, schema: Schema, counted: Counted, weights: Array | None, randomness: Randomness
) -> Evaluation:
    """Touch the data: count, add the noise that was planned, and write the certificate."""
    sizes = plan.mechanism.cells
    exact = [count(cell, size, weights) for cell, size in zip(counted.cells(plan), sizes, strict=True)]
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
