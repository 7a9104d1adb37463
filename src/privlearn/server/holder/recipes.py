"""Learners that a data set offers: their settings in the holder's file, and the estimators made from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, field_validator

from privlearn.data.schema.public import PublicModel
from privlearn.data.schema.schema import Schema
from privlearn.errors import SchemaError
from privlearn.features.kernels import check_kernel_name
from privlearn.guarantee import Guarantee

if TYPE_CHECKING:
    from privlearn.estimators.kernel_learner import KernelLearner


SessionMechanism = Literal["model", "function_release", "pinp"]
"""How a session answers: from a private model that stays on the server, or from an exact kernel machine."""
SESSION_MECHANISMS: tuple[SessionMechanism, ...] = get_args(SessionMechanism)

Positive = Annotated[float, Field(gt=0, strict=True)]


class Recipe(PublicModel):
    """The settings of a learner without its guarantee, named like the options of `privlearn train`.

    Parameters
    ----------
    model : {"logistic", "svm", "regression"}
    loss : str, optional
        By default the model's own.
    kernel : str, default="linear"
        ``linear``, ``rbf``, ``laplacian``, ``cauchy``, ``polynomial``, or one that an extension registers; those
        without Fourier features need public points, or a session that answers from a kernel machine.
    gamma : float or "auto", default=1.0
        Parameter of the kernel, as in scikit-learn; ``"auto"`` computes it from the schema, for "rbf".
    degree, coef0
        Parameters of the kernel, as in scikit-learn.
    regularization : float or "auto", default="auto"
    intercept : bool, default=True
    probability : bool, default=False
        For ``svm``: also release a private calibration to probabilities.
    """

    model: Literal["logistic", "svm", "regression"]
    loss: StrictStr | None = None
    kernel: Annotated[StrictStr, AfterValidator(check_kernel_name)] = "linear"
    gamma: Literal["auto"] | Positive = 1.0
    degree: Annotated[StrictInt, Field(ge=1)] = 3
    coef0: Annotated[float, Field(ge=0, strict=True)] = 1.0
    regularization: Literal["auto"] | float = "auto"
    intercept: StrictBool = True
    probability: StrictBool = False

    @field_validator("regularization", mode="before")
    @classmethod
    def _is_automatic_or_positive(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value != "auto" and not (number and value > 0):
            raise ValueError('must be "auto" or a number above 0')
        return value

    @property
    def kernel_settings(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}


def default_recipes(schema: Schema) -> dict[str, Recipe]:
    """Return the learners of a data set for which the holder lists none."""
    if schema.target is None:
        raise SchemaError("the schema has no target. Add target: with its name and its classes or bounds")
    if schema.target.bounds is not None:
        return {"regression": Recipe(model="regression")}
    return {"logistic": Recipe(model="logistic"), "svm": Recipe(model="svm")}


def estimator(
    recipe: Recipe,
    schema: Schema,
    guarantee: Guarantee,
    *,
    expected_records: int | None = None,
    public_points: Any = None,
) -> Any:
    """Return the unfitted estimator of a release, or of a session that answers from a private model.

    ``expected_records`` is needed where the number of records is private. ``public_points`` are the analyst's
    unlabelled rows: landmarks, for any kernel.
    """
    from privlearn.estimators.by_name import make_estimator  # late: reading settings must stay fast

    settings = {
        **guarantee.to_dict(),
        "expected_records": expected_records,
        "loss": recipe.loss,
        "regularization": recipe.regularization,
        "fit_intercept": recipe.intercept,
        "schema": schema,
    }
    settings |= recipe.kernel_settings | {"public_points": public_points}
    return make_estimator(recipe.model, settings, probability=recipe.probability)


def kernel_learner(recipe: Recipe, schema: Schema, guarantee: Guarantee) -> KernelLearner:
    """Return the unfitted exact kernel machine of a session that answers by function release or PINP."""
    from privlearn.estimators.kernel_learner import KernelLearner

    loss = "logistic" if recipe.model == "logistic" and recipe.loss is None else recipe.loss
    return KernelLearner(
        **recipe.kernel_settings,
        loss=loss,
        regularization=recipe.regularization,
        guarantee=guarantee,
        schema=schema,
        fit_intercept=recipe.intercept,
    )
