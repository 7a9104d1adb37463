"""Evaluations from end to end: what is counted, what is charged, what is refused, on every kind of model."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from privlearn import (
    BudgetExceeded,
    DataError,
    Evaluation,
    Guarantee,
    InteractivePredictor,
    InvalidParameter,
    KernelLearner,
    Ledger,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    evaluate,
    verify,
)
from privlearn.audit import epsilon_bound
from privlearn.data import census_schema, simulated_census
from privlearn.errors import SchemaError
from privlearn.guarantee import RELATIONS
from privlearn.randomness import SeededRandomness
from privlearn.statistics.evaluation import page_part, read_cells, subject_of, write_page
from privlearn.statistics.evaluation.layout import evaluation_layout, groups_of
from privlearn.statistics.evaluation.metrics import area

pytestmark = pytest.mark.filterwarnings("ignore::privlearn.NothingRecorded")
SCHEMA = census_schema()
ALARM = 1e-6


@pytest.fixture(scope="module")
def release() -> Release:
    model = PrivateLogisticRegression(schema=SCHEMA, epsilon=1.0, delta=1e-6, random_state=0)
    return model.fit(simulated_census(5000, seed=1)).release_


@pytest.fixture(scope="module")
def test_rows() -> pa.Table:
    return simulated_census(6000, seed=2)


def labels_of(table: pa.Table) -> Any:
    return np.array(table["income"].to_pylist()) == "high"


def test_without_noise_it_is_what_the_records_say(release: Release, test_rows: pa.Table) -> None:
    found = evaluate(release, test_rows, epsilon=math.inf, by=["sex", "occupation"])
    scores, labels = release.model.predict_proba(test_rows)[:, 1], labels_of(test_rows)  # type: ignore[union-attr]
    wrong = (scores > 0.5) != labels
    assert found["error"].value == pytest.approx(wrong.mean())
    assert found["auc"].value == pytest.approx(roc_auc_score(labels, scores), abs=0.002)
    for result in found.groups:
        here = np.array(test_rows[result.column].to_pylist()) == result.group
        assert result.records == here.sum()
        assert result.rates["error"].value == pytest.approx(wrong[here].mean())
        assert result.rates["false positive rate"].value == pytest.approx(
            (scores > 0.5)[here & ~labels].mean()
        )
    assert not found.certificate.is_private


def test_with_noise_it_is_near(release: Release, test_rows: pa.Table) -> None:
    found = evaluate(release, test_rows, epsilon=1.0, by="sex", random_state=0)
    exact = evaluate(release, test_rows, epsilon=math.inf, by="sex")
    assert found["accuracy"].value == pytest.approx(exact["accuracy"].value, abs=0.02)
    assert found["auc"].value == pytest.approx(exact["auc"].value, abs=0.03)
    assert found["accuracy"].lower < exact["accuracy"].value < found["accuracy"].upper
    assert "sex = female" in str(found)


def exact_tables(release: Release, table: pa.Table, guarantee: Guarantee, schema: Schema = SCHEMA) -> Any:
    assert schema.target is not None
    subject, groups = subject_of(release, None, schema.target, None), groups_of(schema, ["sex", "region"])
    counted, weights, persons = read_cells(subject, schema, groups, table)
    plan = evaluation_layout(subject, schema, groups, guarantee, 1000)
    return counted.tables(plan, weights), persons


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out", "add_remove"])
def test_one_record_moves_each_table_as_the_theorem_says(release: Release, neighbours: str) -> None:
    table, guarantee = simulated_census(60, seed=3), Guarantee(1.0, 0.0, neighbours)
    others = simulated_census(60, seed=4)
    tables, _ = exact_tables(release, table, guarantee)
    relation, farthest = RELATIONS[neighbours], 0.0
    for place in range(60):
        rest = [table.slice(0, place), table.slice(place + 1)]
        new = [others.slice(place, 1)] if neighbours == "replace_one" else []
        moved, _ = exact_tables(release, pa.concat_tables([*rest, *new]), guarantee)
        for one, other in zip(tables, moved, strict=True):
            assert np.abs(one - other).sum() <= relation.gradients
            farthest = max(farthest, float(np.linalg.norm(one - other)))
    assert farthest == pytest.approx(relation.counts)


def test_areas_are_corrected_for_the_noise_that_moved_counts_share(
    release: Release, test_rows: pa.Table
) -> None:
    found = evaluate(release, test_rows, epsilon=0.2, delta=1e-6, random_state=0)
    table = found._table(0)
    assert table.cell_noise.covariance == pytest.approx(-(found._deviation(0) ** 2) / table.noisy.size)
    assert found["auc"].value == pytest.approx(float(area(table.counts, table.cell_noise)))
    assert found["auc"].value != pytest.approx(float(area(table.counts)), abs=1e-7)


def test_a_person_of_many_rows_counts_once(release: Release) -> None:
    schema = SCHEMA.model_copy(update={"person": "who"})
    table = simulated_census(90, seed=5).append_column("who", [np.repeat(np.arange(30), 3)])
    tables, persons = exact_tables(release, table, Guarantee(1.0), schema)
    assert persons == 30
    for exact in tables:
        assert exact.sum() == pytest.approx(30.0, abs=1e-3)
        assert exact.sum() <= 30.0
    without, _ = exact_tables(release, table.slice(3), Guarantee(1.0), schema)
    for one, other in zip(tables, without, strict=True):
        assert np.abs(one - other).sum() <= 1.0
    plain = evaluate(release, table, schema=schema, epsilon=math.inf)
    assert plain.tables[0].sum() == pytest.approx(30.0, abs=1e-3)
    found = evaluate(release, table, schema=schema, epsilon=1.0)
    assert found.certificate.records == 30
    assert "persons" in found.certificate.properties
    assert f"{found.certificate.records} persons" in str(found)
    assert "records" not in page_part(found)


def test_the_noise_has_the_law_that_the_certificate_states(release: Release) -> None:
    """With secure bits, table by table; so many that a wrong law passes in fewer than one run of 10^12."""
    rows = simulated_census(1000, seed=8)
    exact, _ = exact_tables(release, rows, Guarantee(0.5))
    found = [evaluate(release, rows, epsilon=0.5, by=["sex", "region"]) for _ in range(300)]
    for place, scale in enumerate(found[0].certificate.mechanism.scales):
        drawn = np.concatenate([each.tables[place].ravel() - exact[place] for each in found])
        for factor, fits in ((1.0, True), (0.5, False), (2.0, False)):
            law = stats.laplace(scale=factor * scale)
            assert bool(stats.kstest(drawn, law.cdf).pvalue > ALARM) is fits


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budgets.db", "census", Guarantee(1.0, 1e-5))


def test_it_is_charged_before_it_is_counted(release: Release, test_rows: pa.Table, ledger: Ledger) -> None:
    evaluate(release, test_rows, epsilon=0.4, delta=1e-6, ledger=ledger)
    assert ledger.statement().spent.epsilon == 0.4
    assert ledger.statement().entries[-1].purpose == "evaluate: a release"
    with pytest.raises(BudgetExceeded):
        evaluate(release, test_rows, epsilon=0.7, ledger=ledger)
    assert ledger.statement().spent.epsilon == 0.4


BAD: dict[str, tuple[dict[str, Any], Any, str]] = {
    "no target": ({"drop": ["income"]}, DataError, "income"),
    "no column of a group": ({"drop": ["sex"], "by": "sex"}, DataError, "sex"),
    "a column without groups": ({"by": "age"}, InvalidParameter, "not a column with a list of values"),
    "a column twice": ({"by": ["sex", "sex"]}, InvalidParameter, "occurs twice"),
    "scores that are not finite": ({"scores": [0.5] * 99 + [math.nan]}, DataError, "not finite"),
    "too few scores": ({"scores": [0.5] * 99}, DataError, "one score for each row"),
    "scores and a model": (
        {"scores": [0.5] * 100, "keep": True},
        InvalidParameter,
        "either a model or scores",
    ),
    "no price": ({"epsilon": 0.0}, InvalidParameter, "epsilon"),
    "a weak promise": ({"epsilon": 21.0}, InvalidParameter, "hardly private"),
    "other classes": (
        {"target": {"classes": ["low", "middle", "high"]}},
        InvalidParameter,
        "differ from those of the schema",
    ),
    "a number for classes": ({"target": {"lower": 0, "upper": 9}}, InvalidParameter, "predicts classes, but"),
    "no expected number": ({"neighbours": "add_remove"}, InvalidParameter, "expected_records"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_and_nothing_is_charged(case: str, release: Release, ledger: Ledger) -> None:
    changes, kind, message = BAD[case]
    settings: dict[str, Any] = {"epsilon": 0.1, "ledger": ledger, "schema": SCHEMA} | changes
    rows = simulated_census(100, seed=6).drop_columns(settings.pop("drop", []))
    if "target" in settings:
        target = {"name": "income"} | settings.pop("target")
        settings["schema"] = Schema.from_dict(SCHEMA.to_dict() | {"target": target})
    model = release if settings.pop("keep", "scores" not in settings) else None
    with pytest.raises(kind, match=message):
        evaluate(model, rows, **settings)
    assert ledger.statement().entries == ()


def test_a_schema_of_one_class_cannot_be_written() -> None:
    with pytest.raises(SchemaError):
        Schema.from_dict(SCHEMA.to_dict() | {"target": {"name": "income", "classes": ["low"]}})


def test_a_schema_must_be_there(release: Release) -> None:
    with pytest.raises(InvalidParameter, match="schema is missing"):
        evaluate(None, simulated_census(10, seed=1), scores=[0.5] * 10, epsilon=1.0)
    untargeted = SCHEMA.model_copy(update={"target": None})
    with pytest.raises(SchemaError, match="no target"):
        evaluate(release, simulated_census(10, seed=1), schema=untargeted, epsilon=1.0)


def test_a_fitted_model_is_its_release(test_rows: pa.Table) -> None:
    model = PrivateLogisticRegression(schema=SCHEMA, epsilon=1.0, delta=1e-6, random_state=0)
    model.fit(simulated_census(500, seed=1))
    found = [evaluate(given, test_rows, epsilon=1.0, random_state=0) for given in (model, model.release_)]
    assert found[0].digest == found[1].digest


def test_a_model_of_arrays_is_measured_by_its_scores() -> None:
    X, y = np.linspace(0.0, 1.0, 200)[:, np.newaxis], np.arange(200) % 2
    model = PrivateLogisticRegression(
        column_bounds=[(0, 1)], classes=[0, 1], epsilon=1.0, random_state=0
    ).fit(X, y)
    with pytest.raises(InvalidParameter, match=r"trained on arrays.*Pass its scores"):
        evaluate(model, {"y": y}, epsilon=1.0)
    schema = SCHEMA.to_dict() | {"target": {"name": "y", "classes": [0, 1]}}
    found = evaluate(None, {"y": y}, scores=model.predict_proba(X)[:, 1], schema=schema, epsilon=1.0)
    assert found.whom == "records"


def test_scores_of_several_classes_are_a_matrix() -> None:
    y = np.arange(600) % 3
    scores = np.full((600, 3), 0.1) + 0.7 * np.eye(3)[(y + (np.arange(600) < 150)) % 3]
    schema = SCHEMA.to_dict() | {"target": {"name": "y", "classes": [0, 1, 2]}}
    found = evaluate(None, {"y": y}, scores=scores, schema=schema, epsilon=20.0)
    assert found["accuracy"].value == pytest.approx(0.75, abs=0.02)
    with pytest.raises(DataError, match="one score for each row and class"):
        evaluate(None, {"y": y}, scores=scores[:, :2], schema=schema, epsilon=1.0)


def test_what_only_rows_could_tell_is_not_refused(release: Release) -> None:
    """One class alone, and a group that nobody is in: refusing would tell, so the numbers say "too noisy"."""
    rows = simulated_census(3000, seed=7)
    few = rows.filter(pa.array(~labels_of(rows) & (np.array(rows["sex"].to_pylist()) == "male")))
    found = evaluate(release, few, epsilon=1.0, by="sex", random_state=0)
    by_group = {result.group: result for result in found.groups}
    assert by_group["female"].too_noisy
    assert not by_group["male"].too_noisy
    assert found["recall"].upper - found["recall"].lower > 0.2 or not found["recall"].is_known
    assert found.to_dict()["groups"][0]["too_noisy"]


def test_models_of_scikit_learn(test_rows: pa.Table) -> None:
    frame = test_rows.slice(0, 500).to_pandas()  # rows are asked about one by one
    numbers = frame[["age", "hours", "education_years"]]
    for model in (LogisticRegression(max_iter=1000), LinearSVC()):
        fitted = model.fit(numbers, frame["income"])
        settings: dict[str, Any] = {"epsilon": 10.0, "accept_weak_privacy": True, "random_state": 0}
        found = evaluate(_on_numbers(fitted), frame, schema=SCHEMA, **settings)
        said = fitted.predict(numbers)
        assert found["accuracy"].value == pytest.approx(np.mean(said == frame["income"]), abs=0.02)
        assert found["auc"].value > 0.6
        assert "learnt from them without privacy" in found.certificate.to_dict()["covers"]


def _on_numbers(model: Any) -> Any:
    """Return a fitted model that picks its columns."""

    class Picking:
        classes_ = model.classes_

        def predict(self, rows: Any) -> Any:
            return model.predict(rows[["age", "hours", "education_years"]])

    name = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    method = getattr(model, name)
    setattr(Picking, name, lambda self, rows: method(rows[["age", "hours", "education_years"]]))
    return Picking()


def test_many_rows_of_a_foreign_model_are_slow_and_the_warning_names_scores(
    test_rows: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privlearn.statistics.evaluation.subject.MANY_ROWS", 10)
    frame = test_rows.slice(0, 40).to_pandas()
    model = LogisticRegression().fit(frame[["age", "hours", "education_years"]], frame["income"])
    evaluate(_on_numbers(model), frame[:10], schema=SCHEMA, epsilon=1.0)
    with pytest.warns(UserWarning, match="each row is scored alone.*scores=") as warned:
        evaluate(_on_numbers(model), frame, schema=SCHEMA, epsilon=1.0)
    # The number of rows may be private.
    assert not any("40" in str(warning.message) for warning in warned)


def test_a_column_of_scores(release: Release, test_rows: pa.Table) -> None:
    scores = release.model.predict_proba(test_rows)[:, 1]  # type: ignore[union-attr]
    exact = evaluate(release, test_rows, epsilon=math.inf)
    table = test_rows.append_column("score", [scores])
    for given in ("score", scores):
        found = evaluate(None, table, scores=given, schema=SCHEMA, epsilon=math.inf)
        assert found["auc"].value == exact["auc"].value
    margins = evaluate(None, table, scores=4 * scores - 2, score_bound=2.0, schema=SCHEMA, epsilon=math.inf)
    assert margins["accuracy"].value == exact["accuracy"].value
    assert margins["auc"].value == pytest.approx(exact["auc"].value, abs=0.002)
    assert "log-loss" not in margins.numbers


def test_a_page_shows_the_first_groups_of_many() -> None:
    towns = [f"town {place:02}" for place in range(60)]
    schema = Schema.from_dict(
        {
            "name": "clinic",
            "columns": {"town": {"type": "category", "values": towns}},
            "target": {"name": "ill", "classes": ["no", "yes"]},
        }
    )
    table = {"town": towns * 20, "ill": ["no", "yes"] * 600}
    found = evaluate(
        None, table, scores=np.linspace(0.0, 1.0, 1200), schema=schema, by=["town"], epsilon=math.inf
    )
    page = write_page(found)
    assert len(found.groups) == 60
    assert "town = town 49" in page
    assert "town 50" not in page
    assert "Only the first 50 of 60 values of town are shown; the file has all." in page


def test_a_support_vector_machine(test_rows: pa.Table) -> None:
    model = PrivateSVC(schema=SCHEMA, epsilon=1.0, delta=1e-6, random_state=0)
    model.fit(simulated_census(5000, seed=1))
    found = evaluate(model.release_, test_rows, epsilon=math.inf)
    assert found["accuracy"].value == pytest.approx(model.score(test_rows, test_rows["income"].to_pylist()))
    exact = roc_auc_score(labels_of(test_rows), model.decision_function(test_rows))
    assert found["auc"].value == pytest.approx(exact, abs=0.003)


def test_a_session_is_not_asked_about_private_records(tmp_path: Path) -> None:
    """Its later answers could depend on what was asked: those of PINP do."""
    rows = simulated_census(300, seed=3)
    learner = KernelLearner(schema=SCHEMA, regularization=0.1, kernel="linear").fit(rows)
    with (
        InteractivePredictor(learner, Guarantee(5.0, 1e-6), state=tmp_path / "state") as session,
        pytest.raises(InvalidParameter, match="a session cannot be evaluated"),
    ):
        evaluate(session, rows, schema=SCHEMA, epsilon=math.inf)


def three_classes() -> tuple[Schema, pa.Table]:
    source = np.random.default_rng(9)
    place = source.integers(0, 3, 6000)
    x = source.normal(place, 0.7)
    schema = Schema.from_dict({
        "name": "flowers",
        "columns": {
            "x": {"type": "number", "lower": -3, "upper": 5},
            "side": {"type": "category", "values": ["left", "right"]},
        },
        "target": {"name": "kind", "classes": ["a", "b", "c"]},
    })  # fmt: skip
    table = {"x": x, "side": np.where(x > 1, "right", "left"), "kind": np.array(["a", "b", "c"])[place]}
    return schema, pa.table(table)


def test_several_classes() -> None:
    schema, table = three_classes()
    model = PrivateLogisticRegression(schema=schema, epsilon=3.0, delta=1e-6, random_state=0)
    model.fit(table.slice(0, 3000))
    test = table.slice(3000)
    exact = evaluate(model.release_, test, epsilon=math.inf, by="side")
    said = model.predict(test)
    assert exact["accuracy"].value == pytest.approx(np.mean(said == test["kind"].to_pylist()))
    probabilities = model.predict_proba(test)
    for place, label in enumerate("abc"):
        true = roc_auc_score(np.array(test["kind"].to_pylist()) == label, probabilities[:, place])
        assert exact.per_class[label]["auc"].value == pytest.approx(true, abs=0.01)
    assert len(exact.confusion) == 3
    found = evaluate(model.release_, test, epsilon=2.0, by="side", random_state=0)
    assert found["accuracy"].value == pytest.approx(exact["accuracy"].value, abs=0.05)
    with pytest.raises(InvalidParameter, match="two classes"):
        found.best_threshold()


def test_a_regression() -> None:
    source = np.random.default_rng(10)
    x = source.uniform(0, 10, 8000)
    schema = Schema.from_dict({
        "name": "heights",
        "columns": {
            "x": {"type": "number", "lower": 0, "upper": 10},
            "side": {"type": "category", "values": ["left", "right"]},
        },
        "target": {"name": "y", "lower": 0, "upper": 100},
    })  # fmt: skip
    table = pa.table(
        {"x": x, "side": np.where(x > 5, "right", "left"), "y": 8 * x + source.normal(10, 5, 8000)}
    )
    model = PrivateRegressor(schema=schema, epsilon=5.0, delta=1e-6, random_state=0).fit(table.slice(0, 4000))
    test = table.slice(4000)
    truth = np.clip(test["y"].to_numpy(), 0, 100)
    residual = model.predict(test) - truth
    exact = evaluate(model.release_, test, epsilon=math.inf, by="side")
    assert exact["mean absolute error"].value == pytest.approx(np.abs(residual).mean(), rel=0.01)
    assert exact["R2"].value == pytest.approx(1 - np.mean(residual**2) / truth.var(), abs=0.005)
    assert exact.residual_quantiles[0.5].value == pytest.approx(np.median(residual), abs=0.7)
    assert {result.group for result in exact.groups} == {"left", "right"}
    found = evaluate(model.release_, test, epsilon=2.0, by="side", random_state=0)
    assert found["R2"].lower < exact["R2"].value < found["R2"].upper
    assert found.curves == {}
    assert found.confusion == []
    linear = LinearRegression().fit(x[:100, None], table["y"].to_numpy()[:100])
    guessed = linear.predict(x[4000:, None])
    other = evaluate(None, test, scores=guessed, schema=schema, epsilon=2.0, random_state=0)
    assert other["R2"].value > 0.5


def test_the_number_of_records_may_be_private(release: Release, test_rows: pa.Table) -> None:
    found = evaluate(
        release, test_rows, epsilon=1.0, neighbours="add_remove", expected_records=5000, random_state=0
    )
    assert found.certificate.records == 5000
    assert found["accuracy"].lower < found["accuracy"].value < found["accuracy"].upper
    assert "How many records there are is covered too" in found.certificate.to_dict()["covers"]


def test_it_is_read_back_and_verified(release: Release, test_rows: pa.Table, tmp_path: Path) -> None:
    found = evaluate(release, test_rows, epsilon=0.5, delta=1e-6, by="sex")
    path = tmp_path / "e.privlearn"
    found.save(path)
    again = Evaluation.load(path)
    assert again.to_bytes() == found.to_bytes()
    assert str(again) == str(found)
    proven = verify(path)
    assert proven.is_private
    assert proven.recomputed <= proven.claimed == Guarantee(0.5, 1e-6)


def test_a_seed_is_not_private(release: Release, test_rows: pa.Table) -> None:
    found = evaluate(release, test_rows, epsilon=0.5, random_state=1)
    assert not found.certificate.is_private
    assert found.to_bytes() == evaluate(release, test_rows, epsilon=0.5, random_state=1).to_bytes()


def test_an_empty_table_is_counted_where_the_number_of_records_is_private(release: Release) -> None:
    """Refusing it would tell that nobody is there."""
    settings: dict[str, Any] = {"epsilon": 1.0, "neighbours": "add_remove", "expected_records": 1000}
    settings["random_state"] = 0
    found = evaluate(release, simulated_census(5, seed=2).slice(0, 0), by="sex", **settings)
    assert not found["accuracy"].is_known
    assert all(result.too_noisy for result in found.groups)
    page = page_part(found)
    assert "ROC curve: too noisy" in page
    assert "false positive rate</text>" not in page


def test_accuracy_stands_next_to_that_of_a_constant(release: Release, test_rows: pa.Table) -> None:
    found = evaluate(release, test_rows, epsilon=math.inf)
    labels = labels_of(test_rows)
    assert found.numbers_with_baseline["accuracy of a constant"].value == pytest.approx(
        1.0 - labels.mean(), abs=1e-3
    )
    assert f"accuracy of a constant      {found.most_frequent}" in str(found)
    assert "accuracy of a constant" in page_part(found)


@pytest.mark.parametrize(("delta", "columns"), [(0.0, ["sex"]), (1e-2, ["sex", "region", "occupation"])])
def test_an_audit_finds_no_more_than_is_promised(release: Release, delta: float, columns: list[str]) -> None:
    """Whole evaluations of two neighbours, 1,500 times each; with a quarter of the noise the audit would find out."""
    assert SCHEMA.target is not None
    guarantee = Guarantee(2.0, delta)
    subject, groups = subject_of(release, None, SCHEMA.target, None), groups_of(SCHEMA, columns)
    table, other = simulated_census(40, seed=3), simulated_census(40, seed=11)
    neighbours = [table, pa.concat_tables([table.slice(1), other.slice(0, 1)])]
    randomness = SeededRandomness(4)

    def runs(noise: float) -> list[Any]:
        outputs = []
        for rows in neighbours:
            counted, weights, persons = read_cells(subject, SCHEMA, groups, rows)
            plan = evaluation_layout(subject, SCHEMA, groups, guarantee, persons)
            mechanism = dataclasses.replace(plan.mechanism, noise_scale=noise * plan.mechanism.noise_scale)
            exact = counted.tables(plan, weights)
            outputs.append(np.array([np.concatenate(mechanism.run(exact, randomness)) for _ in range(1500)]))
        return outputs

    assert epsilon_bound(*runs(1.0), delta=delta).epsilon <= 2.0
    assert epsilon_bound(*runs(0.25), delta=delta).epsilon > 2.0


@pytest.mark.parametrize(
    ("learner", "count"),  # rows of kernels are asked one by one, which takes its time
    [
        (PrivateLogisticRegression(schema=SCHEMA, epsilon=math.inf), 502),
        (PrivateSVC(schema=SCHEMA, epsilon=math.inf, kernel="rbf", fourier_pairs=40), 130),
        (PrivateSVC(schema=SCHEMA, epsilon=math.inf, kernel="rbf", public_points="schema"), 130),
    ],
    ids=["linear", "pairs", "points"],
)
def test_a_score_depends_on_its_own_row_to_the_last_bit(learner: Any, count: int) -> None:
    """Else one record more would move others across the edge of a bin."""
    rows = simulated_census(count, seed=4)
    assert SCHEMA.target is not None
    subject = subject_of(learner.fit(rows).release_, None, SCHEMA.target, None)
    together = subject.outputs(rows)
    for few in (1, 3, 7, count - 1):
        assert np.array_equal(subject.outputs(rows.slice(0, few)), together[:few])


def test_scores_that_are_no_probabilities() -> None:
    rows = simulated_census(100, seed=4)
    with pytest.raises(DataError, match="score_bound"):
        evaluate(None, rows, scores=np.full(100, 1.5), schema=SCHEMA, epsilon=1.0)
