"""Which model: the options that several commands share, and the estimator that they mean."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from privlearn.errors import InvalidParameter

ModelName = Annotated[str, typer.Option("--model", help="logistic, svm or regression.")]
LossName = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="logistic, multinomial; svm: huber_hinge, smoothed_hinge, hinge; regression: huber, clipped_square.",
        show_default="the first",
    ),
]
KernelName = Annotated[
    str, typer.Option("--kernel", help="svm, regression: linear, rbf, laplacian, cauchy or polynomial.")
]
Gamma = Annotated[float, typer.Option("--gamma", help="Of the kernel, as in scikit-learn.")]


def make_estimator(model: str, settings: dict[str, Any], kernel_settings: dict[str, Any]) -> Any:
    """The estimator of that name; the second settings are for those that take a kernel."""
    from privlearn.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateSVC

    known = {"logistic": PrivateLogisticRegression, "svm": PrivateSVC, "regression": PrivateRegressor}
    if model not in known:
        raise InvalidParameter(f"--model must be {' or '.join(known)}, not {model}")
    if model != "logistic":
        return known[model](**settings, **kernel_settings)
    if kernel_settings["kernel"] != "linear" or kernel_settings.get("public_points") is not None:
        raise InvalidParameter("--kernel and --public-points go with --model svm or --model regression")
    return known[model](**settings)
