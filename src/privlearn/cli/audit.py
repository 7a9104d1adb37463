"""`privlearn audit`: check a mechanism, the samplers, a release or any estimator."""

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

_MEASURABLE_DELTA = 0.01  # large enough for a few thousand runs to measure; the theorems hold for every delta


def audit(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]",
            help="A mechanism (objective, output, tddl, tddl_norm, tdil, tdil_jt13, histogram, noise_share, "
            "function_release, pinp), 'samplers', or a release file.",
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="Audit the estimator that FACTORY(seed) returns; it needs fit and coef_ or predict.",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Claimed epsilon.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(**NUMBER, help="Claimed delta.", show_default="0.01 for mechanisms, 0 for an estimator"),
    ] = None,
    neighbours: Neighbouring = "replace_one",
    norm_bound: Annotated[
        float, typer.Option(**NUMBER, help="Norm bound of the estimator's rows.", show_default=True)
    ] = 1.0,
    features: Annotated[int, typer.Option(help="Number of columns of the estimator's rows.")] = 1,
    labels: Annotated[str, typer.Option(help="Labels of the estimator.")] = "0,1",
    runs: Annotated[int, typer.Option(help="Runs on each of two neighbours.", min=64)] = 2000,
    confidence: Annotated[float, typer.Option(**NUMBER, help="Confidence of the empirical bound.")] = 0.999,
    seed: Annotated[int, typer.Option(help="Seed of the generator that replaces the secure one.")] = 0,
    everything: Annotated[bool, typer.Option("--all", help="Also list the checks that passed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check that a claimed guarantee holds.

    A mechanism: replay on worst-case neighbours with frozen randomness, exact privacy curves by numerical
    integration, the distribution of the released noise, and an empirical lower bound on epsilon from many runs. An
    estimator: the empirical bound, and whether noise is fresh and independent. A release: what its file reveals.

    \b
    Exit codes:
      0  every check passed
      1  a check failed; the report names it and the reason
      2  wrong command line

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
            "give one target: a mechanism (privlearn audit objective), samplers, a release file, "
            "or --estimator MODULE:FACTORY"
        )
    with LateProgress("auditing") as bar:
        settings: dict[str, Any] = {"runs": runs, "confidence": confidence, "seed": seed}
        settings["progress"] = bar.describe
        if estimator is not None:
            settings |= {"norm_bound": norm_bound, "n_features": features, "labels": _read_labels(labels)}
            report = _audit_estimator(estimator, Guarantee(epsilon, delta or 0.0, neighbours), **settings)
        else:
            claimed = _MEASURABLE_DELTA if delta is None else delta
            settings |= {"epsilon": epsilon, "delta": claimed, "neighbours": neighbours}
            report = _audit_target(str(target), settings)
    typer.echo(report.to_json() if as_json else report.describe(everything=everything))
    if not report.passed:
        raise typer.Exit(1)


def _audit_target(target: str, settings: dict[str, Any]) -> AuditReport:
    from privlearn.audit import audit_mechanism, audit_release, audit_samplers, mechanism_names

    if target in mechanism_names():
        return audit_mechanism(target, **settings)
    if target == "samplers":
        return audit_samplers(progress=settings["progress"])
    if not Path(target).exists():
        raise InvalidParameter(
            f"{target} is neither a file nor one of {', '.join(mechanism_names())}, samplers. "
            "See privlearn audit --help."
        )
    return audit_release(target)


def _audit_estimator(specification: str, guarantee: Any, **settings: Any) -> AuditReport:
    from privlearn.audit import audit_estimator

    make = _load_factory(specification)
    try:
        return audit_estimator(make, guarantee, **settings)
    except PrivlearnError:
        raise
    except Exception as error:  # its message can be printed, because the tables are simulated
        raise InvalidParameter(
            f"the estimator of {specification} failed with {type(error).__name__}: {error}"
        ) from error


def _load_factory(specification: str) -> Callable[[int], Any]:
    module, _, name = specification.partition(":")
    sys.path.insert(0, "")  # modules in the current directory
    try:
        factory: Callable[[int], Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"--estimator {specification} cannot be imported ({error}). Give MODULE:FACTORY, such as mymodels:make."
        ) from None
    if not callable(factory):
        raise InvalidParameter(f"{specification} is not callable. Give a function of a seed.")
    return factory


def _read_labels(text: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    return [int(part) if part.lstrip("-").isdigit() else part for part in parts]
