"""Private grid search with scikit-learn's protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privlearn.data.schema.schema import Schema
from privlearn.errors import InvalidParameter, shown, whole_number
from privlearn.estimators.base import PrivateLinearModel
from privlearn.estimators.callers import check_callers
from privlearn.estimators.fitting import charge_of
from privlearn.estimators.scikit_learn import BaseEstimator, MetaEstimatorMixin
from privlearn.guarantee import Guarantee
from privlearn.ledger.charge import Budget, Charge
from privlearn.mechanisms.search.search import Searched
from privlearn.randomness import Randomness, randomness_from
from privlearn.release.artifact import Release
from privlearn.release.certificate import SearchCertificate
from privlearn.release.encoders import describe_encoding
from privlearn.selection.candidates import Candidates, Parameters, candidates_of, plain
from privlearn.selection.methods import Method, partition, public_tuning, scored_on_all

Chosen = tuple[PrivateLinearModel, Parameters, Release]
"""The best estimator, its parameters and its release."""

METHODS = ("auto", "every_candidate", "random_stopping", "partition")


class PrivateGridSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose hyperparameters and fit, all under one guarantee that is charged once.

    First ask whether you need it: the estimators' ``regularization="auto"`` costs nothing and is hard to beat
    (docs/how-to/tuning.md). Candidates are compared by their mistakes (for a regression, by absolute errors).

    Parameters
    ----------
    estimator : PrivateLogisticRegression, PrivateSVC or PrivateRegressor
        With its schema, or its other public declarations. The promise is the search's: its own is not used.
    param_grid : dict of lists, or list of such dicts
        Candidates, from public knowledge: any parameter except the promise and what the table's description says.
    epsilon, delta, neighbours
        What the whole search promises: choice, revealed score and model together. See `Guarantee`. With ``add_remove``
        the estimator has ``expected_records``, and the score is a share of these.
    method : {"auto", "every_candidate", "random_stopping", "partition"}, default="auto"
        ``"every_candidate"``: fit each candidate once on all records, with its part of epsilon, and release the best
        with its noisy score. ``"random_stopping"``: the same with random candidates, a random number of times, which
        leaves more for each if they are many. ``"auto"``: the first for few candidates, the second for many.
        ``"partition"`` (CMS11 Algorithm 4): a part of the records for each candidate with the whole epsilon, and one
        more part to choose by; it reveals no score.
    expected_trials : int, optional
        Of ``"random_stopping"``; six times the number of candidates by default. More trials find the best candidate
        more surely, and leave less epsilon for each.
    public_validation : (X, y), or a table if there is a schema, optional
        Public rows like the records. The choice is then made on them, whatever ``method``, and is free of charge: only
        the chosen candidate is fitted on the records, with the whole epsilon.
    ledger : Ledger, optional
        Budget to charge, once, before the data is used.
    accept_weak_privacy : bool, default=False
        As for the estimators.
    random_state : None, int or numpy generator, default=None
        ``None`` draws secure bits. Anything else is for tests and experiments, and the release says "not private".

    Attributes
    ----------
    best_params_ : dict
    best_estimator_ : estimator
        Fitted; to predict, the search itself will do.
    best_score_ : float or None
        1 minus the share of mistakes, or minus the mean absolute error as a part of the target's range:
        noise included, on the records that were trained on, and flattering, since it is the best of several. With
        ``public_validation`` what the public rows let expect. ``None`` with ``"partition"``.
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
        estimator: PrivateLinearModel,
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

    def fit(self, X: Any, y: Any = None) -> PrivateGridSearch:
        """Check and plan everything, charge the ledger once, then choose and fit.

        Parameters
        ----------
        X, y
            As for the estimator's own ``fit``.
        """
        charge, chosen = self._planned(X, y)
        best, self.best_params_, release = charge.pay_for(chosen)
        best.publish(release)
        self.best_estimator_ = best
        searched: Any = release.certificate.mechanism
        error = searched.error
        self.best_score_ = None if error is None else 1.0 - error
        self.certificate_, self.release_ = best.certificate_, best.release_
        return self

    def rehearse(self, X: Any, y: Any = None) -> None:
        """All that `fit` does before it charges the ledger: whatever would stop it, stops it here."""
        self._planned(X, y)[0].check()

    def _planned(self, X: Any, y: Any) -> tuple[Charge, Callable[[], Chosen]]:
        """What `fit` costs; and what touches the data then: the best estimator, its parameters and its release."""
        guarantee = self._promise()
        parameters = candidates_of(self.estimator, self.param_grid)
        randomness = randomness_from(self.random_state)
        if randomness.secure:
            check_callers()
        estimators = [self._candidate(candidate) for candidate in parameters]
        shop = Candidates(estimators, parameters, X, y)
        way = self._way(shop, parameters, guarantee, randomness)

        def chosen() -> Chosen:
            outcome = way.run()
            model = shop.work(outcome.chosen).model(outcome.coefficients)
            searched = Searched(way.search, tuple(map(plain, parameters)), outcome.chosen, outcome.error)
            certificate = SearchCertificate.issue(searched, randomness, describe_encoding(model.encoder))
            return estimators[outcome.chosen], parameters[outcome.chosen], Release(model, certificate)

        return charge_of(self, way.search, way.search.records, randomness), chosen

    @property
    def schema(self) -> Schema | None:
        """The estimator's."""
        return self.estimator.schema

    @property
    def classes_(self) -> Any:
        """The classifier's declared labels."""
        return self._best().classes_

    @property
    def n_features_in_(self) -> int:
        return self._best().n_features_in_  # type: ignore[no-any-return]

    def predict(self, X: Any) -> Any:
        """The best estimator's prediction for each row."""
        return self._best().predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The best estimator's probability of each class."""
        return self._best().predict_proba(X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The best estimator's scores."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The best estimator's score; on private rows a fact about them that no ledger has seen."""
        return self._best().score(X, y)  # type: ignore[no-any-return]

    def _promise(self) -> Guarantee:
        guarantee = Guarantee(self.epsilon, self.delta, self.neighbours)
        if not guarantee.is_private:
            raise InvalidParameter(
                "without privacy there is nothing to pay for: take scikit-learn's GridSearchCV"
            )
        check_method(self.method)
        if self.expected_trials is not None:
            whole_number(self.expected_trials, "expected_trials")
        return guarantee

    def _candidate(self, parameters: Parameters) -> PrivateLinearModel:
        """An estimator with a candidate's parameters; objects are shared, since estimators only store them."""
        promise = {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}
        settings = self.estimator.get_params(deep=False) | promise | parameters
        if "centre" in settings:  # all candidates are judged on the same rows
            if settings["centre"] is True or "centre" in parameters:
                raise InvalidParameter(
                    "a search does not centre rows: leave centre out, here and in param_grid"
                )
            settings["centre"] = False
        if settings.get("probability"):
            raise InvalidParameter(
                "a search does not buy probabilities: leave probability out, here and in param_grid"
            )
        return type(self.estimator)(**settings)

    def _way(
        self, shop: Candidates, parameters: list[Parameters], guarantee: Guarantee, randomness: Randomness
    ) -> Method:
        if self.public_validation is not None:
            given = self.public_validation
            X, y = given if isinstance(given, tuple) else (given, None)
            estimators = [self._candidate(candidate) for candidate in parameters]
            for estimator in estimators:  # so that their columns are spread as finely as the records'
                estimator.stands_for = shop.work(0).rows.total
            public = Candidates(estimators, parameters, X, y)
            return public_tuning(shop, guarantee, randomness, public)
        if self.method == "partition":
            return partition(shop, guarantee, randomness)
        return scored_on_all(shop, guarantee, randomness, self.method, self.expected_trials)

    def _best(self) -> Any:
        """The best estimator; which methods it has depends on the one that was tuned."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags


def check_method(method: object) -> None:
    if method not in METHODS:
        raise InvalidParameter(f"method must be {' or '.join(map(repr, METHODS))}, not {shown(method)}")
