"""`PrivateGridSearch`: private choice of hyperparameters, with scikit-learn's protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from privlearn.budget.charge import Budget, Charge
from privlearn.data.parts import part_of, require_public, without_part
from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, preview, whole_number
from privlearn.estimators.estimator import PrivateEstimator
from privlearn.estimators.fit import charge_of
from privlearn.estimators.scikit_learn import BaseEstimator, check_callers, check_is_fitted
from privlearn.estimators.selection.candidates import Candidates, Parameters, candidates_of, to_json
from privlearn.estimators.selection.methods import Method, partition, public_tuning, score_on_all
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.mechanism import ReleaseMechanism
from privlearn.mechanisms.search.search import SearchResult
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.artifact import Release
from privlearn.release.certificate import SearchCertificate
from privlearn.release.encoders import describe_encoding

Chosen = tuple[PrivateEstimator, Parameters, Release]
"""The best estimator, its parameters and its release."""

METHODS = ("auto", "every_candidate", "random_stopping", "partition")


class PrivateGridSearch(BaseEstimator):
    """Choose hyperparameters and fit, all under one guarantee that is charged once.

    You may not need it: the estimators' ``regularization="auto"`` costs nothing and is hard to beat
    (docs/how-to/tuning.md). Candidates are compared by their mistakes (for a regression, by absolute errors).

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With its schema, or its other public declarations. Its guarantee is replaced by the search's.
    param_grid : dict of lists, or list of such dicts
        Candidates, from public knowledge: any parameter except the guarantee and the description of the table.
    epsilon, delta, neighbours
        Guarantee of the whole search: choice, revealed score and model together. See `Guarantee`. With ``add_remove``
        the estimator has ``expected_records``, and the score is a share of these.
    method : {"auto", "every_candidate", "random_stopping", "partition"}, default="auto"
        ``"every_candidate"``: fit each candidate once on all records, with its part of epsilon, and release the best
        with its noisy score. ``"random_stopping"``: the same with random candidates, a random number of times, which
        leaves more for each if they are many. ``"auto"``: the first for few candidates, the second for many.
        ``"partition"`` (CMS11 Algorithm 4): a part of the records for each candidate with the whole epsilon, and one
        more part to choose by; it reveals no score.
    expected_trials : int, optional
        For ``"random_stopping"``; six times the number of candidates by default. More trials find the best candidate
        more reliably, and leave less epsilon for each.
    public_validation : (X, y), or a table if there is a schema, optional
        Public rows like the records. The choice is then made on them, for any ``method``, and costs nothing: only
        the chosen candidate is fitted on the records, with the whole epsilon.
    ledger : Ledger, optional
        Budget to charge, once, before the data is used.
    accept_weak_privacy : bool, default=False
        As for the estimators.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests and experiments, and the release is marked "not private".

    Attributes
    ----------
    best_params_ : dict
    best_estimator_ : estimator
        Fitted; to predict, the search itself will do.
    best_score_ : float or None
        1 minus the share of mistakes, or minus the mean absolute error as a part of the target's range:
        noise included, on the records that were trained on, and flattering, since it is the best of several. With
        ``public_validation`` the error expected from the public rows. ``None`` with ``"partition"``.
    cv_results_ : dict
        The candidates, as ``"params"``. Their scores are private: only the best one's is paid for.
    certificate_ : SearchCertificate
        The whole procedure, with every candidate's constants.
    release_ : Release

    Examples
    --------
    >>> import numpy as np
    >>> from privlearn import PrivateGridSearch, PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = PrivateLogisticRegression(norm_bound=3.0, classes=[0, 1], mechanism="output")
    >>> search = PrivateGridSearch(model, {"regularization": [0.003, 0.03]}, epsilon=2.0, delta=1e-6)
    >>> bool(search.fit(X, y).score(X, y) > 0.8)
    True
    >>> print(search.certificate_.guarantee)
    (epsilon = 2, delta = 1e-06)-differential privacy, neighbours: replace_one
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        param_grid: Any,
        *,
        epsilon: float,
        delta: float = 0.0,
        neighbours: str = "replace_one",
        method: str = "auto",
        expected_trials: int | None = None,
        public_validation: Any = None,
        ledger: Budget | None = None,
        accept_weak_privacy: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.method = method
        self.expected_trials = expected_trials
        self.public_validation = public_validation
        self.ledger = ledger
        self.accept_weak_privacy = accept_weak_privacy
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PrivateGridSearch:
        """Check and calibrate everything, charge the ledger once, then choose and fit.

        Parameters
        ----------
        X, y, sample_weight
            As for the estimator's own ``fit``.
        """
        charge, choose = self._prepare_charge(X, y, sample_weight)
        best, self.best_params_, release = charge.pay_for(choose)
        best.publish(release)
        self.best_estimator_ = best
        self.cv_results_ = {"params": candidates_of(self.estimator, self.param_grid)}
        result: Any = release.certificate.mechanism
        error = result.error
        self.best_score_ = None if error is None else 1.0 - error
        self.certificate_, self.release_ = best.certificate_, best.release_
        return self

    def rehearse(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Do everything that `fit` does before it charges the ledger, and raise what would stop it."""
        self._prepare_charge(X, y, sample_weight)[0].check()

    def _prepare_charge(self, X: Any, y: Any, sample_weight: Any) -> tuple[Charge, Callable[[], Chosen]]:
        """Return what `fit` costs, and the function that touches the data once the ledger is charged."""
        guarantee = self._make_guarantee()
        parameters = candidates_of(self.estimator, self.param_grid)
        randomness = randomness_from(self.random_state)
        if randomness.secure:
            check_callers(charging=self.ledger is not None)
        estimators = [self._candidate(candidate) for candidate in parameters]
        candidates = Candidates(estimators, parameters, without_part(X, y), y, sample_weight)
        method = self._select_method(candidates, parameters, guarantee, randomness)

        def choose() -> Chosen:
            outcome = method.run()
            result = SearchResult(
                method.search, tuple(map(to_json, parameters)), outcome.chosen, outcome.error
            )
            model = candidates.work(outcome.chosen).model(
                outcome.coefficients, cast(ReleaseMechanism, result.fit)
            )
            certificate = SearchCertificate.issue(result, randomness, describe_encoding(model.encoder))
            return estimators[outcome.chosen], parameters[outcome.chosen], Release(model, certificate)

        return charge_of(self, method.search, method.search.records, randomness, part_of(X)), choose

    @property
    def schema(self) -> Schema | None:
        """Return the estimator's schema."""
        return self.estimator.schema

    @property
    def classes_(self) -> Any:
        """Return the classifier's declared labels."""
        return self._best().classes_

    @property
    def n_features_in_(self) -> int:
        return self._best().n_features_in_  # type: ignore[no-any-return]

    def predict(self, X: Any) -> Any:
        """Return the best estimator's prediction for each row."""
        return self._best().predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the best estimator's probability of each class."""
        return self._best().predict_proba(X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the best estimator's scores."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the best estimator's score; on private rows it reveals something that no ledger counts."""
        return self._best().score(X, y)  # type: ignore[no-any-return]

    def _make_guarantee(self) -> Guarantee:
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        if not guarantee.is_private:
            raise InvalidParameter("epsilon = inf needs no private search. Use scikit-learn's GridSearchCV")
        check_method(self.method)
        if self.expected_trials is not None:
            whole_number(self.expected_trials, "expected_trials")
        return guarantee

    def _candidate(self, parameters: Parameters) -> PrivateEstimator:
        """Return an estimator with a candidate's parameters; objects are shared, since estimators only store them."""
        guarantee = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}
        settings = self.estimator.get_params(deep=False) | guarantee | parameters
        if "centre" in settings:  # all candidates are judged on the same rows
            if settings["centre"] is True or "centre" in parameters:
                raise InvalidParameter(
                    "a search does not centre rows. Leave centre out, here and in param_grid"
                )
            settings["centre"] = False
        if settings.get("probability"):
            raise InvalidParameter(
                "a search does not estimate probabilities. Leave probability out, here and in param_grid"
            )
        candidate = type(self.estimator)(**settings)
        candidate.releases_statistics = False  # all candidates are judged on the same targets
        return candidate

    def _select_method(
        self,
        candidates: Candidates,
        parameters: list[Parameters],
        guarantee: Guarantee,
        randomness: Randomness,
    ) -> Method:
        if self.public_validation is not None:
            rows = require_public(self.public_validation, "public_validation")
            X, y = rows if isinstance(rows, tuple) else (rows, None)
            estimators = [self._candidate(candidate) for candidate in parameters]
            weights = None if self.estimator.max_weight is None else 1.0
            for estimator in estimators:  # so that their columns have the same resolution as the records'
                estimator.stands_for = candidates.work(0).rows.total
            public = Candidates(estimators, parameters, X, y, weights)
            return public_tuning(candidates, guarantee, randomness, public)
        if self.method == "partition":
            return partition(candidates, guarantee, randomness)
        return score_on_all(candidates, guarantee, randomness, self.method, self.expected_trials)

    def _best(self) -> Any:
        """Return the best estimator, of the type that was tuned."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def check_method(method: object) -> None:
    """Raise InvalidParameter for an unknown method."""
    if method not in METHODS:
        raise InvalidParameter(f"method must be {' or '.join(map(repr, METHODS))}, not {preview(method)}")
