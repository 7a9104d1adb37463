"""Which model: the options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

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
