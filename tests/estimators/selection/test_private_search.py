"""PrivateGridSearch: bad grids cost nothing, one charge for everything, a certificate that anybody recomputes."""

from __future__ import annotations

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from privlearn import (
    BudgetExceeded,
    Certificate,
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    PrivateGridSearch,
    PrivateLogisticRegression,
    PrivateRegressor,
    PrivateSVC,
    Release,
    Schema,
    VerificationError,
    verify,
)
from privlearn.data import SchemaEncoder, census_schema, simulated_census
from privlearn.estimators import ClassTargets, Fit
from privlearn.estimators.selection import Candidates, split_persons
from privlearn.mechanisms.search import SearchResult, scatter_rows, split_rows
from privlearn.randomness import SeededRandomness
from privlearn.release import SearchCertificate, read_certificate

WAYS: dict[str, dict[str, Any]] = {
    "every_candidate": {"method": "every_candidate"},
    "random_stopping": {"method": "random_stopping"},
    "partition": {"method": "partition"},
    "public": {"public_validation": True},
}
GRID = {"regularization": [0.01, 0.1, 1.0]}


def records(count: int = 600, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(count, 2))
    return X, (X @ [2.0, -1.0] + 0.3 * rng.normal(size=count) > 0).astype(int)


def classifier(**parameters: Any) -> PrivateLogisticRegression:
    settings: dict[str, Any] = {"norm_bound": 1.5, "classes": [0, 1], "mechanism": "output"} | parameters
    return PrivateLogisticRegression(**settings)


def search(grid: Any = GRID, estimator: Any = None, **settings: Any) -> PrivateGridSearch:
    if settings.get("public_validation") is True:
        settings["public_validation"] = records(60, seed=1)
    seed = None if "ledger" in settings else 0  # a ledger takes secure noise only
    usual: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-4, "random_state": seed}
    return PrivateGridSearch(classifier() if estimator is None else estimator, grid, **usual | settings)


def searched(model: PrivateGridSearch) -> Any:
    """Return the search in the certificate."""
    mechanism = model.certificate_.mechanism
    assert isinstance(mechanism, SearchResult)
    return mechanism


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.db", "census", Guarantee(10.0, 1e-3))


BAD_GRIDS = {
    "empty": ({}, "empty"),
    "empty list": ([], "empty"),
    "no values": ({"regularization": []}, "empty"),
    "one value": ({"regularization": [0.1]}, "fit it directly"),
    "NaN": ({"regularization": [0.1, math.nan]}, "NaN"),
    "twice": ({"regularization": [0.1, 0.1]}, "twice"),
    "twice, arrays": ({"public_points": [np.ones((2, 2)), np.ones((2, 2))]}, "twice"),
    "unknown": ({"depth": [1.0, 2.0]}, "no parameter 'depth'"),
    "epsilon": ({"epsilon": [0.1, 1.0]}, "as a whole"),
    "delta": ({"delta": [1e-6, 1e-5]}, "as a whole"),
    "ledger": ({"ledger": [None, None]}, "as a whole"),
    "schema": ({"schema": [None, None]}, "Give it to the estimator"),
    "classes": ({"classes": [[0, 1], [1, 0]]}, "Give it to the estimator"),
    "a word": ({"loss": "hinge"}, "list of values"),
    "a number": ({"regularization": 0.1}, "list of values"),
    "not a grid": (3.0, "dict of lists"),
    "list of numbers": ([0.1, 1.0], "dict of lists"),
    "negative": ({"regularization": [-1.0, 1.0]}, "regularization must be"),
    "infinite": ({"regularization": [math.inf, 1.0]}, "regularization must be"),
}


@pytest.mark.parametrize("case", BAD_GRIDS)
@pytest.mark.parametrize("way", WAYS)
def test_bad_grids_say_why_and_cost_nothing(case: str, way: str, ledger: Ledger) -> None:
    grid, words = BAD_GRIDS[case]
    before = Path(ledger.store).read_bytes()
    estimator = PrivateSVC(kernel="rbf", norm_bound=1.5, classes=[0, 1]) if "arrays" in case else None
    with pytest.raises(InvalidParameter, match=words):
        search(grid, estimator, ledger=ledger, **WAYS[way]).fit(*records(60))
    assert Path(ledger.store).read_bytes() == before


@pytest.mark.parametrize("way", ["every_candidate", "random_stopping", "partition"])
def test_more_candidates_than_records(way: str, ledger: Ledger) -> None:
    before = Path(ledger.store).read_bytes()
    grid = {"regularization": list(range(1, 8))}
    with pytest.raises(DataError, match="fewer"):
        search(grid, ledger=ledger, **WAYS[way]).fit(*records(6))
    assert Path(ledger.store).read_bytes() == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "cross_validation"}, "method must be"),
        ({"epsilon": math.inf, "delta": 0.0}, "GridSearchCV"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"expected_trials": 0}, "expected_trials"),
        ({"expected_trials": 2.5}, "expected_trials"),
        ({"random_state": "secret"}, "random_state"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        search(**settings).fit(*records(60))


def test_the_estimator_keeps_no_books_of_its_own(ledger: Ledger) -> None:
    for own in ({"ledger": ledger}, {"random_state": 1}):
        with pytest.raises(InvalidParameter, match="not to its estimator"):
            search(estimator=classifier(**own)).fit(*records(60))
    with pytest.raises(InvalidParameter, match="privlearn's estimators"):
        search(estimator="a model").fit(*records(60))


@pytest.mark.parametrize(
    ("delta", "count", "name"),
    [
        (0.0, 4, "every_candidate"),
        (0.0, 5, "random_stopping"),
        (1e-4, 5, "every_candidate"),
        (1e-4, 20, "random_stopping"),
    ],
)
def test_auto_tries_few_candidates_once_and_many_at_random(delta: float, count: int, name: str) -> None:
    grid = {"regularization": [0.01 * 2.0**place for place in range(count)]}
    model = search(grid, delta=delta, epsilon=1.0).fit(*records(60))
    assert searched(model).search.name == name


def test_few_public_rows_are_refused() -> None:
    with pytest.raises(DataError, match="at least 10 rows"):
        search(public_validation=records(9)).fit(*records(60))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_one_charge_and_a_release_that_verifies(
    way: str, delta: float, ledger: Ledger, tmp_path: Path
) -> None:
    model = search(delta=delta, ledger=ledger, random_state=None, **WAYS[way]).fit(*records())
    entries = [entry.state for entry in ledger.statement().entries]
    assert entries == ["committed"]
    assert ledger.statement().spent.epsilon == 4.0
    assert model.best_params_ in [{"regularization": value} for value in GRID["regularization"]]
    assert (model.best_score_ is None) == (way == "partition")
    path = tmp_path / "model.privlearn"
    model.release_.save(path)
    proven = verify(path)
    assert proven.is_private
    assert proven.claimed == Guarantee(4.0, delta)
    assert proven.recomputed <= proven.claimed
    read = Release.load(path)
    assert isinstance(read.certificate, SearchCertificate)
    assert read.certificate.mechanism.search.name == way
    assert np.array_equal(read.model.predict(records()[0]), model.predict(records()[0]))
    assert "candidates" in str(model.certificate_)


def test_the_ledger_is_charged_before_the_first_trial(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[float] = []
    run = Fit.run
    monkeypatch.setattr(
        Fit,
        "run",
        lambda self, *a: (charged.append(ledger.statement().reserved.epsilon), run(self, *a))[1],
    )
    search(ledger=ledger).fit(*records())
    assert charged
    assert set(charged) == {4.0}


def test_what_does_not_fit_is_not_run(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fit, "run", lambda *_: pytest.fail("the records were used"))
    with pytest.raises(BudgetExceeded):
        search(ledger=ledger, epsilon=20.0).fit(*records())


def test_a_renyi_ledger_takes_every_way(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "renyi.db", "census", Guarantee(20.0, 1e-3), composition="renyi")
    for settings in WAYS.values():
        search(ledger=ledger, epsilon=1.0, **settings).fit(*records())
    assert 0 < ledger.statement().spent.epsilon < 20.0


def test_the_validation_part_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record in exactly one training part, or in the part that all candidates are compared on."""
    X, y = records(101)
    X[:, 0] = np.linspace(-1, 1, len(X))
    trained: list[set[float]] = []
    scored: list[set[float]] = []

    def seen(work: Fit) -> set[float]:
        return set(np.round(np.asarray(work.rows.features)[:, 0], 9).tolist())

    run, count = Fit.run, Fit.mistakes
    monkeypatch.setattr(Fit, "run", lambda self, *a: (trained.append(seen(self)), run(self, *a))[1])
    monkeypatch.setattr(Fit, "mistakes", lambda self, c: (scored.append(seen(self)), count(self, c))[1])
    search(method="partition").fit(X, y)
    assert len(trained) == len(scored) == 3
    assert scored[0] == scored[1] == scored[2]
    parts = [*trained, scored[0]]
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(X)
    assert sorted(map(len, parts)) == [25, 25, 25, 26]


def test_persons_with_several_rows() -> None:
    """Without a person column a person could be in several parts: refused; random stopping counts all rows."""
    table = simulated_census(400, seed=0)
    schema = Schema.from_dict(census_schema().to_dict() | {"rows_per_person": 2})
    model = PrivateLogisticRegression(schema=schema)
    with pytest.raises(InvalidParameter, match="person: COLUMN"):
        search(estimator=model, method="partition").fit(table)
    tuned = search(estimator=model).fit(table)
    mechanism = searched(tuned).search
    assert math.isclose(mechanism.score_ratio, 2.0 / mechanism.score_noise_scale, rel_tol=1e-6)


@pytest.mark.parametrize("split", [split_rows, scatter_rows])
def test_all_rows_of_a_person_are_in_one_part(split: Any) -> None:
    owner = np.random.default_rng(0).integers(0, 30, 200)
    X, y = records(200)
    rows = dataclasses.replace(classifier().prepare(X, y, private=True).rows, persons=owner)
    parts = split_persons(rows, 4, split, SeededRandomness(1))
    assert sorted(np.concatenate(parts).tolist()) == list(range(200))
    members = [set(owner[part].tolist()) for part in parts]
    assert sum(map(len, members)) == len(set(owner.tolist()))
    if split is split_rows:
        assert max(map(len, members)) - min(map(len, members)) <= 1


def test_persons_are_counted_in_a_partition() -> None:
    table = simulated_census(400, seed=0).append_column("who", pa.array(np.arange(400) // 4))
    declared = {
        name: value for name, value in census_schema().to_dict().items() if name != "one_row_per_person"
    }
    model = PrivateLogisticRegression(schema=Schema.from_dict(declared | {"person": "who"}))
    mechanism = searched(search(estimator=model, method="partition").fit(table)).search
    assert mechanism.records == 100
    assert sorted({candidate.task.total for candidate in mechanism.candidates}) in ([25], [25, 26], [24, 25])


class TestMistakes:
    def work(self, estimator: Any, X: Any, y: Any) -> Fit:
        return estimator.prepare(X, y, private=True)

    def test_they_are_those_of_the_released_model(self) -> None:
        X, y = records(300)
        labels = np.array(["a", "b", "c"])[y + (X[:, 1] > 0.5)]
        for estimator, answers in (
            (classifier(), y),
            (classifier(classes=["a", "b", "c"]), labels),
            (classifier(classes=["a", "b", "c"], loss="multinomial"), labels),
            (PrivateSVC(kernel="rbf", public_points=X[:20], norm_bound=1.5, classes=[0, 1]), y),
        ):
            work = self.work(estimator, X, answers)
            mechanism = work.calibrate(Guarantee(5.0, 1e-4))
            work = work.apply_statistics(mechanism, SeededRandomness(1))
            coefficients = work.run(mechanism, SeededRandomness(0))
            wrong = int(np.sum(work.model(coefficients, mechanism).predict(X) != answers))
            assert work.mistakes(coefficients) == wrong > 0

    def test_of_a_regression_they_are_parts_of_its_range(self) -> None:
        X, _ = records(300)
        target = 10.0 * X[:, 0] + 3.0
        work = self.work(PrivateRegressor(norm_bound=1.5, target_bounds=(-5, 15)), X, target)
        mechanism = work.calibrate(Guarantee(5.0, 1e-4))
        work = work.apply_statistics(mechanism, SeededRandomness(1))
        coefficients = work.run(mechanism, SeededRandomness(0))
        errors = np.abs(work.model(coefficients, mechanism).predict(X) - np.clip(target, -5, 15)) / 20.0
        assert math.isclose(work.mistakes(coefficients), errors.sum(), rel_tol=1e-4)

    @pytest.mark.parametrize("rows", [1, 3, 7])
    def test_a_record_or_an_averaged_person_counts_at_most_one(self, rows: int) -> None:
        X, y = records(rows)
        work = self.work(classifier(), X, y)
        weighted = work.on(dataclasses.replace(work.rows, person_weights=np.full(rows, 1.0 / rows), total=1))
        always_wrong = np.zeros((1, 3))
        always_wrong[0, -1] = 1.0
        negative = ClassTargets(np.zeros(rows, dtype=np.int64), np.array([0, 1]))
        averaged = weighted.on(dataclasses.replace(weighted.rows, targets=negative))
        assert 0.999 < averaged.mistakes(always_wrong) <= 1.0
        assert work.on(dataclasses.replace(work.rows, targets=negative)).mistakes(always_wrong) == rows


class TestReading:
    def test_rows_are_read_once_for_candidates_that_read_alike(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reads: list[str] = []
        prepare = PrivateLogisticRegression.prepare
        monkeypatch.setattr(
            PrivateLogisticRegression,
            "prepare",
            lambda self, *a, **k: (reads.append(""), prepare(self, *a, **k))[1],
        )
        model = search().fit(*records())
        assert len(reads) == 1
        assert model.best_estimator_.n_features_in_ == model.n_features_in_ == 2
        reads.clear()
        search({"fit_intercept": [True, False]}).fit(*records())
        assert len(reads) >= 2

    def test_a_part_is_its_rows(self) -> None:
        X, y = records(30)
        shop = Candidates([classifier()], [{}], X, y)
        part = shop.work(0).take(np.array([3, 5]))
        assert part.rows.total == 2
        assert np.array_equal(part.rows.targets.answers, y[[3, 5]])
        assert np.array_equal(part.rows.features, shop.work(0).rows.features[[3, 5]])


class TestEstimators:
    """Linear, kernels and regression; delegation; scikit-learn's protocol."""

    def test_classifier(self) -> None:
        X, y = records()
        model = search(grid={"regularization": ["auto", 0.1], "fit_intercept": [True, False]}).fit(X, y)
        assert is_classifier(model)
        assert model.score(X, y) > 0.8
        assert model.predict_proba(X).shape == (len(X), 2)
        assert model.decision_function(X).shape == (len(X),)
        assert model.classes_.tolist() == [0, 1]
        assert len(searched(model).parameters) == 4

    def test_kernel(self) -> None:
        X, y = records()
        estimator = PrivateSVC(
            norm_bound=1.5, classes=[0, 1], kernel="rbf", fourier_pairs=20, mechanism="output"
        )
        grid = [{"gamma": [0.5, 2.0]}, {"kernel": ["linear"], "loss": ["hinge", "huber_hinge"]}]
        for settings in WAYS.values():
            model = search(grid, estimator, **settings).fit(X, y)
            assert model.score(X, y) > 0.7
            assert not hasattr(model, "predict_proba")
            Release.from_bytes(model.release_.to_bytes())

    def test_regression(self) -> None:
        X, _ = records()
        y = 10.0 * X[:, 0] + 3.0
        estimator = PrivateRegressor(norm_bound=1.5, target_bounds=(-10, 15), mechanism="output")
        model = search({"regularization": [0.01, 0.3]}, estimator, epsilon=10.0).fit(X, y)
        assert is_regressor(model)
        assert model.score(X, y) > 0.2
        assert model.best_score_ is not None
        assert 0.6 < model.best_score_ < 1.1

    def test_tables(self) -> None:
        table = simulated_census(600, seed=0)
        estimator = PrivateLogisticRegression(schema=census_schema(), mechanism="output")
        public = simulated_census(100, seed=1)
        model = search({"regularization": [0.003, 0.03]}, estimator, public_validation=public).fit(table)
        assert model.score(table) > 0.5
        assert searched(model).search.public_rows == 100

    def test_public_rows_are_spread_as_finely_as_many_more_records(self) -> None:
        estimator = PrivateLogisticRegression(schema=census_schema())
        public = simulated_census(300, seed=1)
        chosen = search({"regularization": [0.003, 0.03]}, estimator, public_validation=public)
        model = chosen.fit(simulated_census(20_000, seed=0))
        encoder = model.release_.model.encoder
        assert isinstance(encoder, SchemaEncoder)
        assert not encoder.resolution.is_centred
        assert model.score(public) > 0.7

    def test_objective_perturbation_is_calibrated_candidate_by_candidate(self) -> None:
        model = search({"regularization": [0.01, 1.0]}, classifier(mechanism="objective")).fit(*records())
        slack, none = searched(model).search.candidates
        assert slack.guarantee.epsilon < none.guarantee.epsilon
        assert model.certificate_.mechanism.spends() <= Guarantee(4.0, 1e-4)

    def test_seeded_searches_repeat_and_say_so(self) -> None:
        for settings in WAYS.values():
            one, other = (search(**settings).fit(*records()) for _ in range(2))
            assert np.array_equal(one.best_estimator_.coefficients_, other.best_estimator_.coefficients_)
            assert not one.certificate_.is_private
            assert "NOT PRIVATE" in str(one.certificate_)

    def test_clone(self) -> None:
        model = search(method="partition").fit(*records())
        twin = clone(model)
        assert twin.get_params()["method"] == "partition"
        assert not hasattr(twin, "best_estimator_")

    def test_good_candidates_win(self) -> None:
        """With much epsilon every way finds the one sensible candidate."""
        X, y = records(2000)
        grid = {"class_weight": [{0: 50.0, 1: 1.0}, None, {0: 1.0, 1: 50.0}]}
        for settings in WAYS.values():
            model = search(grid, epsilon=20.0, expected_trials=30, **settings).fit(X, y)
            assert model.best_params_ == {"class_weight": None}
            assert model.score(X, y) > 0.8

    @pytest.mark.parametrize("weights", [None, {1: 2.0}])
    def test_a_candidate_without_weights_has_the_schema_s(self, weights: Any) -> None:
        """Whatever the candidate before it gave the same rows."""
        schema = Schema.from_dict(
            {
                "name": "t",
                "columns": {"x": {"type": "number", "lower": -1, "upper": 1}},
                "target": {"name": "y", "classes": [0, 1], "weights": weights or {}},
            }
        )
        X, y = records()
        given = ({0: 50.0}, None)
        models = [
            PrivateLogisticRegression(epsilon=1.0, schema=schema, class_weight=weight) for weight in given
        ]
        shop = Candidates(
            models, [{"class_weight": weight} for weight in given], {"x": X[:, 0], "y": y}, None
        )
        assert [shop.work(place).rows.targets.weight_bound for place in (0, 1)] == [
            50.0,
            2.0 if weights else 1.0,
        ]


class TestCertificate:
    def record(self, way: str, delta: float = 1e-4) -> dict[str, Any]:
        return search(delta=delta, random_state=None, **WAYS[way]).fit(*records()).certificate_.to_dict()

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("delta", [0.0, 1e-4])
    def test_it_reads_back(self, way: str, delta: float) -> None:
        record = self.record(way, delta)
        again = read_certificate(record)
        assert again.to_dict() == record
        assert again.is_private
        assert type(again) is SearchCertificate
        assert isinstance(again.chosen, Certificate)

    @pytest.mark.parametrize("way", WAYS)
    def test_less_noise_in_any_candidate_is_refused(self, way: str) -> None:
        record = self.record(way)
        for place in range(3):
            forged = copy.deepcopy(record)
            forged["search"]["candidates"][place]["constants"]["noise_scale"] *= 0.99
            with pytest.raises(VerificationError):
                read_certificate(forged)

    @pytest.mark.parametrize(
        ("way", "name", "factor"),
        [
            ("partition", "selection_epsilon", 1.01),
            ("every_candidate", "score_noise_scale", 0.9),
            ("every_candidate", "order", 2.0),
            ("random_stopping", "score_noise_scale", 0.9),
            ("random_stopping", "expected_trials", 2),
            ("random_stopping", "order", 1.5),
            ("random_stopping", "inner_order", 6.0),
        ],
    )
    def test_consistent_forgeries_of_the_search_are_refused(self, way: str, name: str, factor: float) -> None:
        record = self.record(way)
        record["constants"][name] *= factor
        if name == "score_noise_scale":
            record["constants"]["score_ratio"] = 1.0 / record["constants"][name] + 2.0**-44
        with pytest.raises(VerificationError, match="less than the claim"):
            read_certificate(record)

    @pytest.mark.parametrize("way", WAYS)
    def test_contradictions_are_refused(self, way: str) -> None:
        record = self.record(way)
        for change in (
            lambda r: r["search"].update(chosen=3),
            lambda r: r["search"].update(chosen=(r["search"]["chosen"] + 1) % 3),
            lambda r: r["theorem"].update(mechanism="luck"),
            lambda r: r["claim"].update(epsilon=3.9),
            lambda r: r["search"]["candidates"][0]["claim"].update(neighbours="zero_out"),
            lambda r: r.update(covers="nothing"),
        ):
            forged = copy.deepcopy(record)
            change(forged)
            with pytest.raises(VerificationError):
                read_certificate(forged)

    def test_nothing_tells_how_many_trials_there_were(self) -> None:
        model = search(random_state=None, method="random_stopping", expected_trials=3).fit(*records())
        assert "trials" not in " ".join(vars(model)).replace("expected_trials", "")
        assert model.certificate_.to_dict()["constants"]["expected_trials"] == 3
