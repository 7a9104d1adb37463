"""A plan is for what fit would run, and says what it must."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import (
    Guarantee,
    InvalidParameter,
    KernelLearner,
    Ledger,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Schema,
    plan,
)
from privlearn.data import SchemaEncoder, census_schema
from privlearn.estimators.forecast import MAX_LOST, Plan, reference_problem, stand_in_table, table

PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
ARRAYS: dict[str, Any] = {"norm_bound": 2.0, "classes": [0, 1]}
EVERYTHING = Schema.from_dict(
    {
        "name": "everything",
        "columns": {
            "age": {"type": "number", "lower": 0, "upper": 120},
            "wealth": {"type": "number", "lower": -10, "upper": 1e6, "scale": "log", "encoding": "linear"},
            "town": {"type": "category", "values": ["here", "there", "elsewhere"]},
            "member": {"type": "category", "values": [True, False]},
            "letter": {"type": "text", "features": 64},
        },
        "person": "id",
        "target": {"name": "answer", "classes": [1, 2, 3]},
    }
)


def census_plan(rows: int = 3000, **settings: Any) -> Plan:
    return plan(PrivateLogisticRegression(**{"schema": census_schema()} | PROMISE | settings), rows)


POINTS = np.random.default_rng(1).normal(size=(60, 3))
MODELS = {
    "logistic": (PrivateLogisticRegression(**PROMISE, **ARRAYS), 3),
    "pure": (PrivateLogisticRegression(epsilon=1.0, **ARRAYS), 3),
    "laplace": (PrivateLogisticRegression(epsilon=1.0, calibration="rbht", **ARRAYS), 3),
    "zero_out": (PrivateLogisticRegression(**PROMISE, neighbours="zero_out", **ARRAYS), 3),
    "weighted": (PrivateLogisticRegression(**PROMISE, class_weight={1: 4.0}, **ARRAYS), 3),
    "hinge": (PrivateSVC(**PROMISE, loss="hinge", **ARRAYS), 3),
    "fourier": (PrivateSVC(**PROMISE, kernel="rbf", fourier_pairs=20, **ARRAYS), 3),
    "landmarks": (PrivateSVC(**PROMISE, kernel="polynomial", public_points=POINTS, **ARRAYS), None),
    "function_release": (
        PrivateSVC(**PROMISE, kernel="rbf", public_points=POINTS, mechanism="function_release", **ARRAYS),
        None,
    ),
    "multinomial": (
        PrivateLogisticRegression(**PROMISE, loss="multinomial", norm_bound=2.0, classes=[0, 1]),
        3,
    ),
    "regression": (PrivateRegressor(**PROMISE, norm_bound=2.0, target_bounds=(0.0, 10.0)), 3),
}


class TestWhatFitWouldRun:
    @pytest.mark.parametrize("name", MODELS)
    def test_the_mechanism_is_that_of_a_fit(self, name: str) -> None:
        estimator, columns = MODELS[name]
        rng = np.random.default_rng(0)
        rows, answers = rng.normal(size=(200, 3)), rng.integers(0, 2, size=200)
        fitted = type(estimator)(**estimator.get_params() | {"random_state": 0}).fit(rows, answers)
        assert plan(estimator, 200, columns).mechanism == fitted.certificate_.mechanism

    def test_also_for_a_table_with_a_person_column(self) -> None:
        estimator = PrivateLogisticRegression(**PROMISE, schema=EVERYTHING, loss="multinomial")
        fitted = type(estimator)(**estimator.get_params() | {"random_state": 0}).fit(_people(90))
        assert plan(estimator, 45).mechanism == fitted.certificate_.mechanism

    def test_several_classes_are_several_problems(self) -> None:
        estimator = PrivateLogisticRegression(epsilon=1.0, norm_bound=1.0, classes=[0, 1, 2])
        assert plan(estimator, 500, 4).mechanism.task.problems == 1
        planned = plan(estimator.set_params(loss="logistic"), 500, 4)
        assert planned.mechanism.task.problems == 3
        assert "3 problems" in table(planned)

    def test_the_estimator_and_the_ledger_are_left_alone(self, tmp_path: Any) -> None:
        ledger = Ledger.create(tmp_path / "budgets.db", "people", Guarantee(2.0, 1e-5))
        estimator = PrivateLogisticRegression(**PROMISE, **ARRAYS, ledger=ledger)
        plan(estimator, 1000, 3)
        assert not [name for name in vars(estimator) if name.endswith("_")]
        assert ledger.statement().spent.epsilon == 0

    def test_a_regression_speaks_in_units_of_its_target(self) -> None:
        """Of its public bounds, where records are too few to estimate a spread."""
        bounds = [(0.0, 2.0), (0.0, 2000.0)]
        small, large = (
            plan(PrivateRegressor(**PROMISE, norm_bound=1.0, target_bounds=b), 90, 5) for b in bounds
        )
        assert not large.in_spreads
        for quantity in ("noise", "worst_case", "margin"):
            assert getattr(large, quantity) == pytest.approx(1000.0 * getattr(small, quantity))
        assert large.ratio == pytest.approx(small.ratio)

    def test_or_of_its_spread(self) -> None:
        wide = plan(PrivateRegressor(**PROMISE, norm_bound=1.0, target_bounds=(0.0, 1e6)), 9000, 5)
        assert wide.in_spreads
        assert 0.3 < wide.margin < 1.0
        assert "in spreads of the target" in str(wide)
        target = {"name": "cost", "lower": 0, "upper": 1_000_000, "typical": 5000, "spread": 3000}
        columns = {"a": {"type": "number", "lower": 0, "upper": 1}}
        schema = Schema.from_dict({"name": "stays", "columns": columns, "target": target})
        stated = plan(PrivateRegressor(**PROMISE, schema=schema), 9000)
        assert not stated.in_spreads
        assert 0.3 * 3000 < stated.margin < 3000


class TestMoreHelps:
    """Up to the records for which the solver's default tolerance is fine enough."""

    @pytest.mark.parametrize("name", MODELS)
    def test_more_records(self, name: str) -> None:
        planned = plan(MODELS[name][0], 100, MODELS[name][1])
        ratios = [planned.at(rows=rows).ratio for rows in (30, 100, 300, 1000, 3000, 10_000)]
        assert all(less < more for more, less in itertools.pairwise(ratios))

    @pytest.mark.parametrize("name", MODELS)
    def test_more_epsilon(self, name: str) -> None:
        planned = plan(MODELS[name][0], 1000, MODELS[name][1])
        ratios = [planned.at(epsilon=epsilon).ratio for epsilon in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)]
        assert all(less < more for more, less in itertools.pairwise(ratios))

    def test_the_noise_never_exceeds_the_worst_case(self) -> None:
        for rows, epsilon in itertools.product((10, 1000, 100_000), (0.01, 1.0, 10.0)):
            planned = census_plan(rows, epsilon=epsilon)
            assert planned.noise <= planned.worst_case


class TestTheSmallest:
    @pytest.mark.parametrize("verdict", MAX_LOST)
    def test_number_of_records_turns_the_verdict(self, verdict: str) -> None:
        planned = census_plan(epsilon=0.5)
        rows = planned.smallest_rows(verdict)
        assert rows is not None
        assert planned.at(rows=rows).verdict == verdict
        assert planned.at(rows=int(0.98 * rows)).verdict != verdict

    @pytest.mark.parametrize("verdict", MAX_LOST)
    def test_epsilon_turns_the_verdict(self, verdict: str) -> None:
        planned = census_plan(rows=20_000)
        epsilon = planned.smallest_epsilon(verdict)
        assert epsilon is not None
        assert planned.at(epsilon=epsilon).verdict == verdict
        assert planned.at(epsilon=0.98 * epsilon).verdict != verdict

    def test_it_does_not_depend_on_what_was_asked(self) -> None:
        few, many = census_plan(10).smallest_rows(), census_plan(10**6).smallest_rows()
        assert few == many

    def test_there_may_be_none(self) -> None:
        hopeless = plan(PrivateLogisticRegression(**PROMISE, regularization=10.0, **ARRAYS), 5, 50)
        assert hopeless.smallest_epsilon("clear") is None
        assert "no epsilon up to 100 is enough" in str(hopeless)

    def test_verdicts_have_names(self) -> None:
        with pytest.raises(InvalidParameter, match="clear, noisy"):
            census_plan().smallest_rows("drowned")


class TestWhatIsSaid:
    def test_a_drowned_signal_is_a_warning_with_a_way_out(self) -> None:
        told = str(census_plan(200, epsilon=0.1))
        assert "DROWNED" in told
        assert "Do not spend budget" in told
        assert "Smallest that is not drowned" in told
        assert "Smallest that is clear" in told

    def test_a_clear_one_says_how_much_less_would_do(self) -> None:
        planned = census_plan(50_000)
        assert planned.verdict == "clear"
        assert str(planned).count("Smallest that is") == 1

    def test_levers_are_forecasts_that_lose_less(self) -> None:
        content = census_schema().to_dict()
        for column in content["columns"].values():
            if column["type"] == "number":
                column["knots"] = 16
        few = census_plan(2000, delta=0.0, epsilon=0.5, schema=content)
        levers = dict(few.levers())
        names = ["epsilon 1", "8,000 records", "delta 1e-06", "zero_out, whose neighbours lack a record"]
        assert list(levers) == [*names, "4 knots in each column"]
        assert all(other.lost < few.lost for other in levers.values())
        assert levers["epsilon 1"].lost == few.at(epsilon=1.0).lost
        assert levers[names[3]].mechanism.guarantee.neighbours == "zero_out"
        assert levers["4 knots in each column"].features < few.features
        assert f"{levers['delta 1e-06'].lost:.0%} with delta 1e-06" in str(few)
        assert "with delta" not in str(census_plan(2000, epsilon=0.5))
        assert "with delta" not in str(census_plan(2000, delta=0.0, noise="norm_gamma"))

    def test_a_rare_class_loses_more(self) -> None:
        model = PrivateLogisticRegression(**PROMISE, schema=census_schema())
        rare, even = (plan(model, 3000, rate=rate) for rate in (0.02, 0.4))
        assert rare.lost > 1.5 * even.lost
        assert rare.lost == pytest.approx(plan(model, 3000, rate=0.98).lost)
        content = census_schema().to_dict()
        content["target"]["rate"] = 0.02
        stated = PrivateLogisticRegression(**PROMISE, schema=Schema.from_dict(content))
        assert plan(stated, 3000).gains[0].plain_quality == pytest.approx(rare.gains[0].plain_quality)
        with pytest.raises(InvalidParameter, match="rate must lie between 0 and 1"):
            plan(model, 3000, rate=2.0)

    def test_numbers_in_units_of_wide_bounds_may_lose_everything(self) -> None:
        """Few records: neither centre nor spread can be estimated, and bounds may be far too wide."""
        bounded = PrivateRegressor(epsilon=0.5, delta=1e-6, norm_bound=1.0, target_bounds=(0.0, 1e6))
        few, many = (plan(bounded, rows, 40) for rows in (1200, 50_000))
        assert (few.in_spreads, many.in_spreads) == (False, True)
        assert few.lost > 1.0
        assert few.gains[0].lost < 0.8
        assert few.verdict == "drowned"
        assert few.at(rows=50_000).gains == many.gains

    def test_a_signal_loses_more_the_weaker_it_is(self) -> None:
        for model, columns in (MODELS["logistic"], MODELS["regression"]):
            strong, typical, weak = plan(model, 2000, columns).gains
            assert strong.lost < typical.lost < weak.lost
            assert strong.quality > typical.quality > weak.quality
            assert typical.quality < typical.plain_quality

    def test_the_range_covers_signals_directions_and_noise(self) -> None:
        for model, columns in (MODELS["logistic"], MODELS["regression"]):
            few, many = (plan(model, rows, columns) for rows in (60, 2000))
            for planned in (few, many):
                low, high = planned.quality_range
                assert 0.0 <= low <= max(planned.gains[-1].quality, 0.0)
                assert planned.gains[0].quality <= high <= 1.0
            assert few.quality_range[0] < many.quality_range[0]
        assert few.quality_range[0] == 0.0  # worse than a constant

    def test_more_knots_are_named(self) -> None:
        few, many = census_plan(2000, epsilon=0.4), census_plan(200_000)
        assert few.fine_knots is None
        assert "knots  " not in str(few)
        assert many.fine_knots == 16
        assert "they add detail and noise" in str(many)
        assert plan(MODELS["regression"][0], 10**6, 3).fine_knots is None

    def test_numbers_are_plain_json(self) -> None:
        told = json.loads(json.dumps(census_plan().to_dict()))
        assert told["verdict"] == "noisy"
        assert told["quality"]["expected"] < told["quality"]["without_privacy"]
        assert told["smallest_rows"]["noisy"] < told["rows"] < told["smallest_rows"]["clear"]


class TestRefusals:
    @pytest.mark.parametrize("rows", [0, -5, 2.5, True, 10**13])
    def test_rows(self, rows: Any) -> None:
        with pytest.raises(InvalidParameter, match="rows must be a whole number"):
            census_plan(rows)

    @pytest.mark.parametrize("columns", [0, -1, 1.5, 10**6])
    def test_columns(self, columns: Any) -> None:
        with pytest.raises(InvalidParameter, match="columns must be a whole number"):
            plan(PrivateLogisticRegression(**PROMISE, **ARRAYS), 100, columns)

    def test_rows_that_nobody_described(self) -> None:
        with pytest.raises(InvalidParameter, match="columns=20"):
            plan(PrivateLogisticRegression(**PROMISE, **ARRAYS), 100)

    def test_rows_that_were_described_twice(self) -> None:
        with pytest.raises(InvalidParameter, match="Leave out columns"):
            plan(PrivateLogisticRegression(**PROMISE, schema=census_schema()), 100, 5)

    def test_what_fit_would_refuse(self) -> None:
        with pytest.raises(InvalidParameter, match="classes"):
            plan(PrivateLogisticRegression(**PROMISE, norm_bound=1.0), 100, 5)
        with pytest.raises(InvalidParameter, match="does not fit"):
            plan(PrivateSVC(**PROMISE, loss="hinge", mechanism="objective", **ARRAYS), 100, 5)

    def test_nothing_to_plan(self) -> None:
        with pytest.raises(InvalidParameter, match="finite epsilon"):
            census_plan(epsilon=math.inf)
        with pytest.raises(InvalidParameter, match="takes an estimator"):
            plan(KernelLearner(), 100, 5)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="mechanism='tdil' has no forecast"):
            plan(PrivateSVC(**PROMISE, mechanism="tdil", **ARRAYS), 100, 5)


def test_stand_ins_fit_their_schema() -> None:
    people = stand_in_table(EVERYTHING)
    rows = SchemaEncoder(EVERYTHING).encode(people)
    assert rows.shape[0] == people.num_rows
    assert set(people["town"].to_pylist()) == {"here", "there", "elsewhere"}
    assert np.ptp(people["age"]) > 60
    assert np.min(people["wealth"]) < 0 < 1e4 < np.max(people["wealth"])


def test_an_ordinary_problem_is_the_optimum_of_its_loss() -> None:
    """The logistic loss finds the log-odds themselves, a regression its signal."""
    model, regression = (
        estimator.prepare(np.zeros((2, 1)), answers, private=True).task.loss
        for estimator, answers in (
            (PrivateLogisticRegression(**PROMISE, **ARRAYS), [0, 1]),
            (PrivateRegressor(**PROMISE, norm_bound=1.0, target_bounds=(0, 1)), [0, 1]),
        )
    )
    assert reference_problem(model).margin == pytest.approx(2.0)
    assert reference_problem(regression).margin == pytest.approx(0.3)
    assert 0 < reference_problem(model).curvature < 0.25


def _people(count: int) -> pa.Table:
    """Persons with two rows each."""
    rows = stand_in_table(EVERYTHING).slice(0, count).drop_columns("id")
    answers = rows["age"].to_numpy().astype(int) % 3 + 1
    return rows.append_column("id", pa.array(np.arange(count) // 2)).append_column(
        "answer", pa.array(answers)
    )


def test_bounds_per_column_say_how_many_there_are() -> None:
    model = PrivateLogisticRegression(
        epsilon=1.0, delta=1e-6, column_bounds=[(18, 110), (115, 165)], classes=[0, 1]
    )
    assert plan(model, rows=8000).verdict in ("clear", "noisy", "drowned")
