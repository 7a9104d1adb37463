"""`privlearn audit`: check a mechanism, the samplers, a release or somebody's estimator."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import NUMBER, Neighbouring
from privlearn.cli.terminal import LateProgress
from privlearn.errors import InvalidParameter, PrivlearnError

if TYPE_CHECKING:
    from privlearn.audit import AuditReport

_MEASURABLE_DELTA = 0.01  # a delta that a few thousand runs can see; the theorems hold for each


def audit(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="A mechanism (objective, output, tddl, tddl_norm, tdil, tdil_jt13, histogram, noise_share, "
            "function_release, pinp), 'samplers', or a release file.",
            show_default=False,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="Instead: FACTORY(seed) returns an estimator with fit and coef_ or predict.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="What is promised.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(
            **NUMBER, help="What is promised: 0.01 for mechanisms, 0 for an estimator.", show_default=False
        ),
    ] = None,
    neighbours: Neighbouring = "replace_one",
    norm_bound: Annotated[
        float, typer.Option(**NUMBER, help="Longest row that the estimator was told of.", show_default=True)
    ] = 1.0,
    features: Annotated[int, typer.Option(help="Columns of the estimator's rows.")] = 1,
    labels: Annotated[str, typer.Option(help="Labels that the estimator was told of.")] = "0,1",
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbours.", min=64)] = 2000,
    confidence: Annotated[float, typer.Option(**NUMBER, help="Of the empirical bound.")] = 0.999,
    seed: Annotated[int, typer.Option(help="Of the generator that stands in for the secure one.")] = 0,
    everything: Annotated[bool, typer.Option("--all", help="List what passed, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that what promises privacy keeps the promise.

    A mechanism: replay on worst-case neighbours with frozen randomness, exact privacy curves by numerical
    integration, the law of the released noise, and an empirical lower bound on epsilon from many runs. An
    estimator: the empirical bound and whether noise is fresh and independent. A release: what its file shows.

    \b
    Exit codes:
      0  every check passed
      1  a check failed; the report says which and why
      2  the command was typed wrongly

    \b
    Example:
      privlearn audit objective
      privlearn audit samplers
      privlearn audit income.privlearn --json
      privlearn audit --estimator mymodels:make --epsilon 1 --norm-bound 5
    """
    from privlearn.guarantee import Guarantee

    if (target is None) == (estimator is None):
        raise InvalidParameter(
            "say what to audit: a mechanism (privlearn audit objective), samplers, a release file, "
            "or --estimator MODULE:FACTORY"
        )
    with LateProgress("auditing") as bar:
        common: dict[str, Any] = {"runs": runs, "confidence": confidence, "seed": seed}
        common["progress"] = bar.describe
        if estimator is not None:
            promise = Guarantee(epsilon, delta or 0.0, neighbours)
            facts = {"norm_bound": norm_bound, "n_features": features, "labels": _read_labels(labels)}
            report = _audit_estimator(estimator, promise, **facts, **common)
        else:
            promised = _MEASURABLE_DELTA if delta is None else delta
            report = _audit_target(
                str(target), {"epsilon": epsilon, "delta": promised, "neighbours": neighbours} | common
            )
    typer.echo(report.to_json() if as_json else report.describe(everything=everything))
    if not report.passed:
        raise typer.Exit(1)


def _audit_target(target: str, settings: dict[str, Any]) -> AuditReport:
    from privlearn.audit import audit_mechanism, audit_release, audit_samplers, audited

    if target in audited():
        return audit_mechanism(target, **settings)
    if target == "samplers":
        return audit_samplers(progress=settings["progress"])
    if not Path(target).exists():
        raise InvalidParameter(
            f"{target} is neither a file nor one of {', '.join(audited())}, samplers: see privlearn audit --help"
        )
    return audit_release(target)


def _audit_estimator(specification: str, promise: Any, **settings: Any) -> AuditReport:
    from privlearn.audit import audit_estimator

    make = _factory(specification)
    try:
        return audit_estimator(make, promise, **settings)
    except PrivlearnError:
        raise
    except Exception as error:  # its message can be shown: the tables are made up
        raise InvalidParameter(
            f"the estimator of {specification} failed with {type(error).__name__}: {error}"
        ) from error


def _factory(specification: str) -> Callable[[int], Any]:
    module, _, name = specification.partition(":")
    sys.path.insert(0, "")  # a module in the folder where the command is typed
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"--estimator needs MODULE:FACTORY, a function of a seed, such as mymodels:make ({error})"
        ) from None
    if not callable(found):
        raise InvalidParameter(f"{specification} is not a function of a seed")
    made: Callable[[int], Any] = found
    return made


def _read_labels(text: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    return [int(part) if part.lstrip("-").isdigit() else part for part in parts]
