"""Row weights of the schema reach a cluster, several holders, sessions and a server, and the noise follows the cap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest
from distributed import Client
from typer.testing import CliRunner

from privlearn import Description, KernelLearner, PrivateLogisticRegression, Release, Schema, estimate
from privlearn.cli import app
from privlearn.data import write_table
from privlearn.export.report import ReleaseProperties, write_report
from privlearn.parties import JointTraining, train_together
from privlearn.release import verify_bytes
from privlearn.server.holder import Catalog, Owner
from privlearn.statistics.regression import forecast_widths
from tests.support.served import Served, serving

CAP = 4
SETTINGS: dict[str, Any] = {
    "name": "survey",
    "columns": {name: {"type": "number", "lower": -1, "upper": 1} for name in "ab"},
    "target": {"name": "y", "classes": ["no", "yes"]},
}
WEIGHED: dict[str, Any] = {"weight": {"column": "w", "upper": CAP}}
PANEL: dict[str, Any] = {"person": "id", **WEIGHED}
SHARES: dict[str, Any] = {"person": "id", "weight": {"column": "w"}}
ROLES = {"rows": WEIGHED, "panel": PANEL, "shares": SHARES}
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


def schema_of(**roles: Any) -> Schema:
    return Schema.from_dict(SETTINGS | {"one_row_per_person": "person" not in roles} | roles)


def survey(rows: int, seed: int) -> pa.Table:
    """Weights are correlated with the classes, so that a way that forgot them would learn another function."""
    source = np.random.default_rng(seed)
    a, b = source.uniform(-1.0, 1.0, (2, rows))
    yes = a + 0.5 * source.normal(size=rows) > 0
    weights = np.where(yes, source.integers(0, 7, rows), 1)  # some beyond the cap, some 0
    return pa.table(
        {"a": a, "b": b, "y": np.where(yes, "yes", "no"), "w": weights, "id": source.permutation(rows) // 3}
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    quiet = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(quiet),
        Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
    ):
        yield client


@pytest.mark.parametrize("roles", ROLES.values(), ids=ROLES)
@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_a_cluster_learns_what_memory_does(client: Client, roles: dict[str, Any], epsilon: float) -> None:
    table, settings = survey(900, 1), PROMISE | {"epsilon": epsilon, "random_state": 3}
    model = PrivateLogisticRegression(**settings, schema=schema_of(**roles))
    here = model.fit(table)
    there = PrivateLogisticRegression(**settings, schema=schema_of(**roles))
    there.fit(dd.from_pandas(table.to_pandas(), npartitions=3, sort=False))
    assert there.certificate_.mechanism.task == here.certificate_.mechanism.task
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-5, atol=1e-7)


SIZES = {"north": 400, "south": 600}


def joint(**settings: Any) -> JointTraining:
    return JointTraining.from_dict({"parties": SIZES, "epsilon": 1.0, "delta": 1e-5, **settings})


@pytest.mark.parametrize("algorithm", ["descent", "aggregation"])
def test_holders_pay_for_the_cap(algorithm: str) -> None:
    plain = joint(schema=schema_of(), algorithm=algorithm).mechanism.task
    weighed = joint(schema=schema_of(**WEIGHED), algorithm=algorithm).mechanism.task
    assert weighed.gradient_sensitivity == CAP * plain.gradient_sensitivity
    assert joint(schema=schema_of(**PANEL), algorithm=algorithm).mechanism.task.max_weight == CAP
    assert joint(schema=schema_of(**SHARES), algorithm=algorithm).mechanism.task.max_weight == 1


def test_one_row_moves_a_holders_answer_by_at_most_the_cap() -> None:
    agreement = joint(schema=schema_of(**WEIGHED))
    task, table = agreement.mechanism.task, survey(SIZES["north"], 2)
    number = agreement.mechanism.kinds.index("gradients")
    question = agreement.mechanism.question(number, np.zeros((task.problems, task.dimension)))
    answers = []
    for label in ("no", "yes"):
        heavy = pa.table({"a": [1.0], "b": [1.0], "y": [label], "w": [10**6], "id": [-1]}).cast(table.schema)
        answers.append(agreement.read_party("north", pa.concat_tables([table[1:], heavy])).answer(question))
    moved = float(np.linalg.norm(answers[0] - answers[1]))
    assert 0.4 * task.gradient_sensitivity < moved <= task.gradient_sensitivity


def test_several_holders_learn_from_weights() -> None:
    tables = {name: survey(size, place) for place, (name, size) in enumerate(SIZES.items())}
    shares = []
    for roles in ({}, WEIGHED):
        agreement = joint(schema=schema_of(**roles), epsilon=200.0, accept_weak_privacy=True)
        release = train_together(agreement, tables, random_state=0)
        shares.append(float(np.mean(release.model.predict(survey(500, 9)) == "yes")))
    assert shares[1] > shares[0] + 0.05  # rows of the second class weigh three times as much


def test_a_session_pays_for_the_cap() -> None:
    learners = [
        KernelLearner(schema=schema_of(**roles), regularization=0.1) for roles in ({}, WEIGHED, SHARES)
    ]
    tasks = [learner.fit(survey(300, 4)).freeze().kernel_task("replace_one") for learner in learners]
    plain, weighed, shares = (task.task.minimiser_sensitivity for task in tasks)
    assert weighed == pytest.approx(CAP * plain)
    assert shares == pytest.approx(3 * plain)  # a hundred persons of three rows


def test_a_regression_counts_weights_in_units_of_their_mean() -> None:
    table = survey(6000, 6)
    plain, weighed = (schema_of(person="id", **roles) for roles in ({}, WEIGHED))
    estimates = estimate(table, weighed, "y ~ a", epsilon=4.0, delta=1e-6, random_state=0)
    weights = np.clip(table["w"].to_numpy(), 0, CAP)
    assert estimates.complete == pytest.approx(weights.sum() / 3.0, rel=0.1)
    assert f"persons of 2,000, weighted by w, at most {CAP}\n" in estimates.summary()
    widths = [forecast_widths("y ~ a", schema, 2000, epsilon=4.0, delta=1e-6) for schema in (plain, weighed)]
    assert widths[1].half_width > 1.5 * widths[0].half_width


@pytest.mark.parametrize(
    ("roles", "on_card", "inspected"),
    [
        (WEIGHED, "A row weighs its w, cut at 4", "w, at most 4"),
        (PANEL, "A person weighs the mean over their rows of w, cut at 4", "w, at most 4"),
        (SHARES, "their rows in proportion to w", "w, in proportion within each person"),
    ],
    ids=ROLES,
)
def test_a_card_and_inspect_state_the_weights(
    roles: dict[str, Any], on_card: str, inspected: str, tmp_path: Path
) -> None:
    model = PrivateLogisticRegression(**PROMISE, random_state=0, schema=schema_of(**roles)).fit(
        survey(600, 5)
    )
    assert on_card in write_report(ReleaseProperties(model.release_), "model-card")
    model.release_.save(tmp_path / "m.privlearn")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m.privlearn")]).output
    assert f"Rows are weighted by {inspected}." in shown


def owner_of(folder: Path) -> Owner:
    write_table(survey(600, 5), folder / "clinic.csv")
    Schema.from_dict(schema_of(**PANEL).to_dict() | {"name": "clinic"}).save(folder / "clinic.schema.yaml")
    (folder / "owner.toml").write_text(
        """
[datasets.clinic]
table = "clinic.csv"
schema = "clinic.schema.yaml"
epsilon = 50.0
delta = 1e-4
training_seconds = 0.01
[datasets.clinic.learners.logistic]
model = "logistic"
[analysts.alice]
clinic = { epsilon = 25.0, delta = 5e-5 }
[analysts.bob]
clinic = { epsilon = 25.0, delta = 5e-5 }
"""
    )
    return Owner.load(folder / "owner.toml")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(owner_of(tmp_path_factory.mktemp("survey"))) as running:
        yield running


def content_of(served: Served, kind: str, **request: Any) -> bytes:
    result = served.train(kind, delta=1e-6, **request)
    content: bytes = served.alice.get(f"/v1/results/{result}/content").content
    assert verify_bytes(content).is_private
    return content


def test_a_server_trains_and_counts_with_weights(served: Served) -> None:
    release = Release.from_bytes(content_of(served, "release", learner="logistic"))
    assert release.certificate.task.row_weight_bound == CAP
    assert release.certificate.count_noun == "persons"
    described = Description.from_bytes(content_of(served, "describe", epsilon=20.0))
    assert described.about["weight"]["upper"] == CAP
    weights = np.clip(survey(600, 5)["w"].to_numpy(), 0, CAP)
    counted = sum(estimate.value for estimate in described["y"].counts)
    assert counted == pytest.approx(
        weights.sum() / 3.0, abs=120
    )  # the mean weight of each person's three rows


def test_a_server_reports_persons(tmp_path: Path) -> None:
    assert Catalog(owner_of(tmp_path)).find("clinic").size == "200 persons"
