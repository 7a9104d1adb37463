"""privlearn train: from a table and a schema to a release file."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privlearn.cli.options import (
    NUMBER,
    AcceptWeakPrivacy,
    ChargedDataset,
    ChargedLedger,
    ExpectedRecords,
    Force,
    Gamma,
    KernelName,
    LossName,
    ModelName,
    Neighbouring,
    Note,
    PartName,
    SchemaFile,
    TableFile,
    check_room,
    check_writable,
    number_or_word,
    open_ledger,
    part_of,
    plain_number,
    say_what_is_left,
)
from privlearn.cli.schema import show_purchase
from privlearn.cli.terminal import LateProgress, warn
from privlearn.cli.train.cluster import (
    ClusterAddress,
    ClusterCa,
    ClusterCertificate,
    ClusterKey,
    check_cluster,
    rows_on,
)
from privlearn.cli.train.search import (
    PublicValidation,
    Searched,
    SearchMethod,
    as_search,
    check_search,
    read_grid,
    say_what_was_chosen,
)
from privlearn.errors import InvalidParameter, PrivlearnError

if TYPE_CHECKING:
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.schema.schema import Schema
    from privlearn.guarantee import Guarantee
    from privlearn.ledger.ledger import Ledger
    from privlearn.release.artifact import Release
    from privlearn.release.certificate import Certificate
    from privlearn.splitting import BudgetPlan


DEFAULT_SPLIT = "bounds=0.1,fit=0.9"

Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="SHARES",
        help="How epsilon and delta are divided where the schema marks parts to buy.",
        show_default=DEFAULT_SPLIT,
    ),
]


def budget_plan(draft: SchemaDraft, split: str | None, total: Guarantee, *, searched: bool) -> BudgetPlan:
    """How the total is divided; all of it goes to the model if there is nothing to buy."""
    from privlearn.splitting import BudgetSplit

    if draft.is_complete:
        if split is not None:
            raise InvalidParameter(
                "--split pays for what the schema marks to buy: nothing is marked in this one"
            )
        return BudgetSplit().of(total)
    plan = BudgetSplit.parse(split or DEFAULT_SPLIT).of(total)
    if plan.split.bounds == 0:
        raise InvalidParameter(f"the schema marks parts to buy: give them a share, --split {DEFAULT_SPLIT}")
    if plan.split.selection and not searched:
        raise InvalidParameter(f"a share for selection goes with --search: write --split {DEFAULT_SPLIT}")
    return plan


def buy(learner: Any, rows: Any, draft: SchemaDraft, plan: BudgetPlan, expected: int | None) -> Schema:
    """The complete schema, once it is sure that the model can be trained and paid for, too.

    ``learner`` has the draft's stand-in for a schema, and expects so many records where their number is private.
    """
    from privlearn.data.encode.encoder import SchemaEncoder
    from privlearn.discovery import discover
    from privlearn.guarantee import check_strength

    check_room(learner.ledger, plan.total)
    if learner.random_state is None:  # what is bought counts in the model's certificate, too
        counted = SchemaEncoder(learner.schema).person_weights(rows)[1]
        records = plan.total.relation.total(counted, expected)
        check_strength(plan.total, records, learner.accept_weak_privacy)
    learner.rehearse(rows)  # whatever would stop the training must stop it before anything is bought
    typer.echo(f"The budget is divided like this:\n{plan}")
    price = plan.guarantee("bounds")
    bought = discover(
        rows,
        draft,
        epsilon=price.epsilon,
        delta=price.delta,
        neighbours=price.neighbours,
        expected_records=expected,
        ledger=learner.ledger,
        accept_weak_privacy=learner.accept_weak_privacy,
        random_state=learner.random_state,
    )
    show_purchase(draft, bought)
    return bought


def train(
    table: TableFile,
    schema: SchemaFile,
    epsilon: Annotated[
        float, typer.Option(**NUMBER, help="Privacy loss; inf: no privacy.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The release file to write.", show_default=False)],
    delta: Annotated[float, typer.Option(**NUMBER, help="Above 0 (say 1e-6) it buys Gaussian noise.")] = 0.0,
    target: Annotated[
        str | None, typer.Option(help="Column to predict; must be the schema's target.", show_default=False)
    ] = None,
    model: ModelName = None,
    loss: LossName = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="For svm: buy probabilities of two classes as well.")
    ] = False,
    kernel: KernelName = "linear",
    gamma: Gamma = "auto",
    degree: Annotated[int, typer.Option(help="Of the polynomial kernel.")] = 3,
    coef0: Annotated[float, typer.Option(**NUMBER, help="Of the polynomial kernel.")] = 1.0,
    public_points: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Unlabelled public rows like those to be predicted: landmarks for any kernel. "
            "The word schema: made up from it.",
            show_default=False,
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
    neighbours: Neighbouring = "replace_one",
    expected_records: ExpectedRecords = None,
    regularization: Annotated[str, typer.Option(help="auto, or a number above 0.")] = "auto",
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=WEIGHT",
            help="Public: what errors on a class weigh; may be given several times.",
            show_default="the schema's",
        ),
    ] = None,
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="A constant term.")] = True,
    search: Searched = None,
    search_method: SearchMethod = "auto",
    public_validation: PublicValidation = None,
    split: Split = None,
    ledger: ChargedLedger = None,
    dataset: ChargedDataset = None,
    part: PartName = None,
    note: Note = None,
    accept_weak_privacy: AcceptWeakPrivacy = False,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY.pem", help="Sign with this Ed25519 key.", show_default=False)
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the cells of a large table go while it is learnt from, in a nameless file.",
            show_default="the one for temporary files",
        ),
    ] = None,
    cluster: ClusterAddress = None,
    cluster_ca: ClusterCa = None,
    cluster_cert: ClusterCertificate = None,
    cluster_key: ClusterKey = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests only: the release says 'not private'.", show_default=False)
    ] = None,
    force: Force = False,
) -> None:
    """Train a classifier or a regression and write a release file that may leave.

    Everything is checked before the ledger is charged, and the file is written
    only after the charge is durable. Where the schema has the word buy instead of
    a bound or a list, that is bought first, with a share of epsilon.

    \b
    Example:
      privlearn train census.csv --schema census.schema.yaml \\
        --epsilon 1 --delta 1e-6 --out income.privlearn
    """
    from privlearn.data.encode.packed_cells import spill_to
    from privlearn.data.schema.draft import SchemaDraft
    from privlearn.data.sources.files import open_records
    from privlearn.data.sources.passes import watch_passes
    from privlearn.estimators.by_name import make_estimator, model_for
    from privlearn.guarantee import Guarantee
    from privlearn.release.verification import read_private_key

    check_writable(out, force)
    draft = SchemaDraft.load(schema)
    description = draft.stand_in
    _check_target(description, target)
    grid = read_grid(search, public_validation)
    key = None if sign is None else read_private_key(sign)
    budget = open_ledger(
        ledger, dataset, description.name, out=out, note=note, part=part_of(table, part, description)
    )
    total = Guarantee(epsilon, delta, neighbours)
    total.relation.check_expected(expected_records)
    plan = budget_plan(draft, split, total, searched=search is not None)
    learning = plan.guarantee("selection", "fit")
    settings: dict[str, Any] = {
        "epsilon": learning.epsilon,
        "delta": learning.delta,
        "neighbours": neighbours,
        "expected_records": expected_records,
        "loss": loss,
        "mechanism": mechanism,
        "noise": noise,
        "calibration": calibration,
        "regularization": number_or_word(regularization),
        "fit_intercept": intercept,
        **_weights(class_weight, description),
        "accept_weak_privacy": accept_weak_privacy,
        "random_state": seed,
    }
    kernel_settings = {"kernel": kernel, "gamma": number_or_word(gamma), "degree": degree, "coef0": coef0}
    kernel_settings["public_points"] = _public_rows(public_points, description)
    pem = (cluster_ca, cluster_cert, cluster_key)
    check_cluster(cluster, pem, only_trained=draft.is_complete and not grid)
    with (
        LateProgress(f"reading {table}") as progress,
        watch_passes(progress.tell("training")),
        spill_to(cache),
        ExitStack() as connected,
    ):
        settings |= {"schema": description, "ledger": budget, "progress": _shown(progress)}
        chosen = model_for(description) if model is None else model
        estimator = make_estimator(chosen, settings | kernel_settings, probability=probability)
        check_search(estimator, grid, search_method)
        rows: Any = (
            open_records(table, description)
            if cluster is None
            else connected.enter_context(rows_on(cluster, pem, table))
        )
        learner = as_search(estimator, grid, search_method, public_validation, description)
        if not draft.is_complete:
            progress.describe("buying")
            description = buy(learner, rows, draft, plan, expected_records)
            estimator.set_params(schema=description)
            learner = as_search(estimator, grid, search_method, public_validation, description)
        progress.describe("training")
        release: Release = learner.fit(rows).release_
    (release if key is None else release.signed(key)).save(out, overwrite=True)
    _report(release.certificate, description, out, budget)
    if not grid:
        _warn_of_noise(estimator, release.certificate)
    typer.echo(f"Next: privlearn verify {out}")


def _check_target(schema: Schema, target: str | None) -> None:
    if schema.target is None:
        raise InvalidParameter(
            "the schema has no target: add `target:` with its name and its classes or bounds"
        )
    if target is not None and target != schema.target.name:
        raise InvalidParameter(
            f"--target {target} is not the schema's target, {schema.target.name}: "
            "leave --target out, or change the schema"
        )


def _weights(given: list[str] | None, schema: Schema) -> dict[str, Any]:
    """The weights of classes as an estimator takes them, if there are any."""
    if not given:
        return {}
    if schema.target is None or not schema.target.classes:
        raise InvalidParameter("--class-weight is for classes, and the target is a number: leave it out")
    from privlearn.data.schema.labels import by_class

    pairs = [text.rpartition("=") for text in given]
    try:
        weights = {label: plain_number(weight) for label, _, weight in pairs}
        return {"class_weight": by_class(weights, schema.target.classes)}
    except ValueError as error:
        raise InvalidParameter(f"--class-weight: {error}") from None


def _public_rows(path: str | None, schema: Schema) -> Any:
    """The public points; they need no target and no person."""
    if path is None or path == "schema":
        return None if path is None else "schema"
    from privlearn.data.sources.files import read_table

    return read_table(path, schema.model_copy(update={"target": None, "person": None}))


def _shown(progress: LateProgress) -> Any:
    def show(problem: int, problems: int, iteration: int) -> None:
        of_several = f"class {problem + 1} of {problems}, " if problems > 1 else ""
        progress.describe(f"training: {of_several}step {iteration}")

    return show


def _report(certificate: Certificate, schema: Schema, out: Path, ledger: Ledger | None) -> None:
    counted = "" if certificate.guarantee.relation.count_is_public else "an expected "
    task = certificate.mechanism.task
    whom = "persons" if task.averaged else "records"
    typer.echo(f"Wrote {out}: trained on {counted}{task.total} {whom} of {schema.name!r}.")
    typer.echo(f"Promise: {certificate.guarantee}. {certificate.guarantee.in_words()}")
    if certificate.meaning:
        typer.echo(f"Meaning: {certificate.meaning.in_words()}")
    say_what_was_chosen(certificate)
    if certificate.adds_up:
        typer.echo(f"Together with what was bought of the schema: {certificate.together}.")
    if certificate.guarantee.is_private and not certificate.secure:
        warn("NOT PRIVATE: --seed makes the noise known. Leave it out for data of people.")
    elif not certificate.is_private:
        warn("NOT PRIVATE: epsilon is infinite. Do not let this file out.")
    elif certificate.weakness:
        warn(f"This promise is {certificate.weakness}.")
    say_what_is_left(ledger, promised=certificate.is_private)


def _warn_of_noise(estimator: Any, certificate: Certificate) -> None:
    """Public: what `privlearn plan` says of so many records, if it is nothing good; no row is read."""
    from privlearn.planning.forecast import MEANING
    from privlearn.planning.planner import plan

    if not certificate.guarantee.is_private:
        return
    estimator.set_params(ledger=None, progress=None)
    with suppress(PrivlearnError):  # there are mechanisms that no plan is made for
        verdict = plan(estimator, certificate.mechanism.task.total).verdict
        if verdict != "clear":
            warn(f"`privlearn plan` says of this, from public numbers alone: {MEANING[verdict]}")
