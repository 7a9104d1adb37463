"""`privlearn train`: train a model on a private table and write a release file."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.arrays import ArrayOptions
from privlearn.cli.charging import RelatedCharging, check_budget, open_part, print_balance
from privlearn.cli.options import (
    NUMBER,
    Delta,
    Gamma,
    KernelName,
    LossName,
    ModelName,
    RowsFile,
    SigningKey,
    check_writable,
    number_or_word,
    parse_number,
    print_guarantee,
    read_signing_key,
    require_delta,
)
from privlearn.cli.schema import show_private_bounds
from privlearn.cli.terminal import LateProgress, warn
from privlearn.cli.train.options import (
    ClusterAddress,
    ClusterCa,
    ClusterCertificate,
    ClusterKey,
    PublicValidation,
    SearchGrid,
    SearchMethod,
    as_search,
    check_cluster,
    check_search,
    print_selection,
    read_grid,
    rows_on,
)
from privlearn.errors import InvalidParameter, PrivlearnError

if TYPE_CHECKING:
    from privlearn.budget.ledger import Ledger
    from privlearn.budget.split import StageBudgets
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.schema.schema import Schema
    from privlearn.guarantee import Guarantee
    from privlearn.release.artifact import Release
    from privlearn.release.certificate import Certificate


DEFAULT_SPLIT = "bounds=0.1,fit=0.9"

Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="SHARES",
        help="Shares of epsilon and delta, if the schema marks bounds or lists with the word estimate.",
        show_default=DEFAULT_SPLIT,
    ),
]


def split_budget(
    draft: SchemaDraft, split: str | None, total: Guarantee, *, has_search: bool
) -> StageBudgets:
    """Return how the total is divided; the model gets all of it if the schema is complete."""
    from privlearn.budget.split import BudgetSplit

    if draft.is_complete:
        if split is not None:
            raise InvalidParameter(
                "--split divides the budget between the schema and the model, but this schema is complete. Omit it."
            )
        return BudgetSplit().of(total)
    shares = BudgetSplit.parse(split or DEFAULT_SPLIT).of(total)
    if shares.split.bounds == 0:
        raise InvalidParameter(
            f"the schema marks bounds or lists. Give them a share: --split {DEFAULT_SPLIT}"
        )
    if shares.split.selection and not has_search:
        raise InvalidParameter(f"a share for selection needs --search. Write --split {DEFAULT_SPLIT}")
    return shares


def complete_schema(
    learner: Any, rows: Any, draft: SchemaDraft, shares: StageBudgets, expected: int | None
) -> Schema:
    """Return the complete schema, after checking that the model can be trained and charged, too.

    ``learner`` has the draft's stand-in for a schema; ``expected`` is the public number of records, if needed.
    """
    from privlearn.data.encoding.encoder import SchemaEncoder
    from privlearn.guarantee import check_strength
    from privlearn.statistics.discovery import discover

    check_budget(learner.ledger, shares.total)
    if learner.random_state is None:  # the model's certificate will state the total of both
        counted = SchemaEncoder(learner.schema).person_weights(rows)[1]
        records = shares.total.relation.total(counted, expected)
        check_strength(shares.total, records, learner.accept_weak_privacy)
    learner.rehearse(rows)  # an error that would stop the training must occur before the first charge
    typer.echo(f"Shares of the budget:\n{shares}")
    guarantee = shares.guarantee("bounds")
    schema = discover(
        rows,
        draft,
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        neighbours=guarantee.neighbours,
        expected_records=expected,
        ledger=learner.ledger,
        accept_weak_privacy=learner.accept_weak_privacy,
        random_state=learner.random_state,
    )
    show_private_bounds(draft, schema)
    return schema


def train(
    table: RowsFile,
    epsilon: Annotated[float, typer.Option(**NUMBER, help="Privacy loss; inf: no privacy.")],
    out: Annotated[Path, typer.Option(help="The release file to write.")],
    schema: Annotated[
        Path | None, typer.Option(help="The table's public description: .yaml or .json.", show_default=False)
    ] = None,
    delta: Delta = None,
    target: Annotated[
        str | None, typer.Option(help="Column to predict; must be the schema's target.")
    ] = None,
    model: ModelName = None,
    loss: LossName = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="For svm: also estimate probabilities of two classes.")
    ] = False,
    kernel: KernelName = "linear",
    gamma: Gamma = "auto",
    degree: Annotated[int, typer.Option(help="Degree of the polynomial kernel.")] = 3,
    coef0: Annotated[float, typer.Option(**NUMBER, help="Constant of the polynomial kernel.")] = 1.0,
    public_points: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Unlabelled public rows like those to predict: landmarks for any kernel. "
            "The word schema: drawn from it.",
        ),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help="auto, objective or output; kernels: function_release, tddl, tddl_norm, tdil, tdil_jt13."
        ),
    ] = "auto",
    noise: Annotated[str, typer.Option(help="auto, gaussian, norm_gamma or laplace.")] = "auto",
    calibration: Annotated[str, typer.Option(help="tight, or a paper's: cms11, rbht, ra12.")] = "tight",
    regularization: Annotated[str, typer.Option(help="auto, or a number above 0.")] = "auto",
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=WEIGHT",
            help="Public weight of errors on a class; may be repeated.",
            show_default="the schema's",
        ),
    ] = None,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="A constant term.")] = True,
    search: SearchGrid = None,
    search_method: SearchMethod = "auto",
    public_validation: PublicValidation = None,
    split: Split = None,
    sign: SigningKey = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Directory for the cells of a large table during training, in an unnamed file.",
            show_default="the directory for temporary files",
        ),
    ] = None,
    cluster: ClusterAddress = None,
    cluster_ca: ClusterCa = None,
    cluster_cert: ClusterCertificate = None,
    cluster_key: ClusterKey = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before charging for a model that noise would drown.")
    ] = False,
    *,
    arrays: ArrayOptions,
    charging: RelatedCharging,
) -> None:
    """Train a classifier or a regression and write a release file that may be shared.

    Everything is checked before the ledger is charged, and the file is written
    only after the charge is durable. Where the schema has the word estimate instead of
    a bound or a list, that is estimated first, with a share of epsilon.

    \b
    Example:
      privlearn train census.csv --schema census.schema.yaml \\
        --epsilon 1 --delta 1e-6 --out income.privlearn
      privlearn train digits.npz --features scattering --image-shape 28x28 \\
        --classes 0..9 --epsilon 3 --delta 1e-5 --out digits.privlearn
    """
    from privlearn.data.sources.passes import spill_to, watch_passes
    from privlearn.estimators.by_name import make_estimator, model_for
    from privlearn.guarantee import Guarantee

    check_writable(out, charging.force)
    total = Guarantee(epsilon, require_delta(delta, epsilon), charging.neighbours)
    for_tables = {
        "--target": target,
        "--public-points": public_points,
        "--public-validation": public_validation,
        "--split": split,
        "--part": charging.part,
        "--cluster": cluster,
    }
    draft = arrays.draft(schema, charging.dataset or Path(table).stem, for_tables)
    description = draft.stand_in
    _check_target(description, target)
    grid = read_grid(search, public_validation)
    key = read_signing_key(sign)
    budget, part = charging.open_budget(table, description, out)
    total.relation.check_expected(charging.expected_records)
    shares = split_budget(draft, split, total, has_search=search is not None)
    guarantee = shares.guarantee("selection", "fit")
    settings: dict[str, Any] = {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "loss": loss,
        "mechanism": mechanism,
        "noise": noise,
        "calibration": calibration,
        "regularization": number_or_word(regularization),
        "fit_intercept": intercept,
        **_class_weights(class_weight, description),
        **charging.safeguards,
    }
    kernel_settings = {"kernel": kernel, "gamma": number_or_word(gamma), "degree": degree, "coef0": coef0}
    kernel_settings["public_points"] = _public_rows(public_points, description)
    pem = (cluster_ca, cluster_cert, cluster_key)
    check_cluster(cluster, pem, only_trained=draft.is_complete and not grid)
    with (
        LateProgress(f"reading {table}") as progress,
        watch_passes(progress.follow("training")),
        spill_to(cache),
        ExitStack() as connections,
    ):
        name = model_for(description) if model is None else model
        settings |= arrays.settings(description, name)
        settings |= {"ledger": budget, "progress": _step_reporter(progress)}
        estimator = make_estimator(name, settings | kernel_settings, probability=probability)
        check_search(estimator, grid, search_method)
        rows: tuple[Any, ...]
        if arrays.features is not None:
            rows = arrays.read(table)
        elif cluster is None:
            rows = (open_part(table, description, part),)
        else:
            rows = (connections.enter_context(rows_on(cluster, pem, table, part)),)
        learner = as_search(estimator, grid, search_method, public_validation, description)
        if not grid:
            estimator.before_charge = _forecast_check(estimator, progress, yes)
        if not draft.is_complete:
            progress.describe("estimating bounds")
            description = complete_schema(learner, rows[0], draft, shares, charging.expected_records)
            estimator.set_params(schema=description)
            learner = as_search(estimator, grid, search_method, public_validation, description)
        progress.describe("training")
        release: Release = learner.fit(*rows).release_
    (release if key is None else release.signed(key)).save(out, overwrite=True)
    _report(release.certificate, description, out, budget)
    typer.echo(f"Next: privlearn verify {out}")


def _check_target(schema: Schema, target: str | None) -> None:
    if schema.target is None:
        raise InvalidParameter("the schema has no target. Add `target:` with name and classes or bounds.")
    if target is not None and target != schema.target.name:
        raise InvalidParameter(
            f"--target {target} is not the schema's target, {schema.target.name}. "
            "Omit --target, or change the schema."
        )


def _class_weights(options: list[str] | None, schema: Schema) -> dict[str, Any]:
    """Return the estimator's setting for the weights of classes; empty without --class-weight."""
    if not options:
        return {}
    if schema.target is None or not schema.target.classes:
        raise InvalidParameter("--class-weight is for classes, but the target is a number. Omit it.")
    from privlearn.data.schema.target import by_class

    pairs = [text.rpartition("=") for text in options]
    try:
        weights = {label: parse_number(weight) for label, _, weight in pairs}
        return {"class_weight": by_class(weights, schema.target.classes)}
    except ValueError as error:
        raise InvalidParameter(f"--class-weight: {error}") from None


def _public_rows(path: str | None, schema: Schema) -> Any:
    """Return the public points, which need no target and no person."""
    if path is None or path == "schema":
        return None if path is None else "schema"
    from privlearn.data.sources.files import read_table

    return read_table(path, schema.model_copy(update={"target": None, "person": None, "weight": None}))


def _step_reporter(progress: LateProgress) -> Any:
    def report(problem: int, problems: int, iteration: int) -> None:
        of_several = f"class {problem + 1} of {problems}, " if problems > 1 else ""
        progress.describe(f"training: {of_several}step {iteration}")

    return report


def _report(certificate: Certificate, schema: Schema, out: Path, ledger: Ledger | None) -> None:
    expected = "" if certificate.guarantee.relation.count_is_public else "an expected "
    task = certificate.mechanism.task
    typer.echo(f"Wrote {out}: trained on {expected}{task.total} {certificate.count_noun} of {schema.name!r}.")
    print_guarantee(certificate)
    print_selection(certificate)
    if certificate.private_bounds:
        typer.echo(f"Together with the private bounds of the schema: {certificate.together}.")
    print_balance(ledger, is_private=certificate.is_private)


def _forecast_check(estimator: Any, progress: LateProgress, is_confirmed: bool) -> Callable[[int], None]:
    """Return a check before the first charge: report what a forecast advises, and ask if noise would drown it.

    Public: reads no row. Where no terminal can answer, training goes on after the warning.
    """
    from privlearn.estimators.forecast.fit_forecast import plan
    from privlearn.estimators.forecast.forecast import advice, lever_lines

    def check(records: int) -> None:
        unfitted = copy.copy(estimator)
        unfitted.before_charge = estimator.before_charge = unfitted.ledger = unfitted.progress = None
        if not unfitted.make_guarantee().is_private:
            return
        with suppress(PrivlearnError):  # some mechanisms have no forecast
            forecast = plan(unfitted, records)
            lines = lever_lines(forecast) if forecast.verdict == "clear" else advice(forecast)
            if not lines:
                return
            with progress.paused():
                warn("Forecast of `privlearn plan`, from public numbers alone: " + "\n".join(lines))
                is_asked = forecast.verdict == "drowned" and not is_confirmed and sys.stdin.isatty()
                if is_asked and not typer.confirm("Charge the budget all the same?"):
                    raise typer.Abort

    return check
