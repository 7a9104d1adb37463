"""A loss, a mechanism, a kernel, a relation: each defined here, registered by one call, goes through the product."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from privlearn import (
    Guarantee,
    InteractivePredictor,
    KernelLearner,
    PrivateLogisticRegression,
    PrivateSVC,
    Release,
    plan,
    verify,
)
from privlearn.audit import audit_mechanism
from privlearn.data import census_schema, simulated_census
from privlearn.errors import InvalidParameter
from privlearn.features import KERNELS, ProductKernel, ShiftInvariantKernel, kernel_from_name, register_kernel
from privlearn.guarantee import RELATIONS, Relation, register_relation
from privlearn.mechanisms import MECHANISMS, OutputPerturbation, register_mechanism
from privlearn.solvers import LOSSES, HuberHinge, loss_from_dict, loss_from_name
from privlearn.solvers.losses import LossArgument, choose_loss, register_loss
from tests.support.cli_support import Run


@dataclass(frozen=True)
class GentleHinge(HuberHinge):
    """A margin loss half as steep as the Huber hinge."""

    name: ClassVar[str] = "gentle_hinge"
    argument: ClassVar[LossArgument] = "margin"
    link: ClassVar[str] = "none"
    lipschitz: ClassVar[float] = 0.5

    @property
    def smoothness(self) -> float:
        return super().smoothness / 2.0

    def value(self, z: Any) -> Any:
        return super().value(z) / 2.0

    def first_derivative(self, z: Any) -> Any:
        return super().first_derivative(z) / 2.0

    def second_derivative(self, z: Any) -> Any:
        return super().second_derivative(z) / 2.0


@dataclass(frozen=True)
class Cautious(OutputPerturbation):
    """Output perturbation with twice the noise that is needed."""

    name: ClassVar[str] = "cautious"
    title: ClassVar[str] = "cautious output perturbation"
    is_default: ClassVar[bool] = False

    @classmethod
    def calibrate(cls, *told: Any, points: int | None = None) -> Any:
        least: Any = super().calibrate(*told, points=points)
        return dataclasses.replace(least, noise_scale=2.0 * least.noise_scale)


@dataclass(frozen=True)
class ExponentialKernel(ProductKernel):
    """exp(<x, z> - 1): a sum of powers, whose slope on the unit ball is at most 1."""

    name: ClassVar[str] = "exponential"  # type: ignore[misc]
    bound: ClassVar[float] = 1.0  # type: ignore[misc]

    def rounding(self, dimension: int) -> float:
        return 2.0 * self.product_rounding(dimension)

    def _of_products(self, products: Any) -> Any:
        return np.exp(products - 1.0)


LABEL = Relation(  # the logistic loss's two slopes at one score differ by 1
    name="change_label",
    change="given another label",
    replaces=True,
    gradients=1,
    moments=1.0,
    counts=2.0**0.5,
    replacing=2,
    count_is_public=True,
)


@pytest.fixture(autouse=True)
def _guests() -> Iterator[None]:
    register_loss(GentleHinge)
    register_mechanism(Cautious)
    register_kernel(ExponentialKernel)
    register_relation(LABEL)
    yield
    del LOSSES[GentleHinge.name], MECHANISMS[Cautious.name]
    del KERNELS[ExponentialKernel.name], RELATIONS[LABEL.name]


def through(model: Any, path: Path) -> Any:
    """Fit, save, verify, load, predict; the fitted model's certificate."""
    people = simulated_census(1000, seed=1)
    model.fit(people)
    model.release_.save(path)
    proven = verify(path)
    assert proven.is_private
    assert proven.recomputed <= proven.claimed
    assert np.array_equal(Release.load(path).model.predict(people), model.predict(people))
    assert plan(model, rows=1000).mechanism == model.certificate_.mechanism
    return proven.certificate


def test_a_loss(tmp_path: Path) -> None:
    model = PrivateSVC(epsilon=1.0, delta=1e-6, schema=census_schema(), loss="gentle_hinge")
    certificate = through(model, tmp_path / "guest.privlearn")
    assert certificate.task.loss == GentleHinge()
    steeper = PrivateSVC(epsilon=1.0, delta=1e-6, schema=census_schema(), loss="huber_hinge")
    asked = plan(steeper, rows=1000).mechanism
    assert certificate.task.gradient_sensitivity == asked.task.gradient_sensitivity / 2.0


def test_a_mechanism(tmp_path: Path) -> None:
    schema = census_schema()
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, mechanism="cautious")
    certificate = through(model, tmp_path / "guest.privlearn")
    assert "cautious output perturbation" in str(certificate)
    assert certificate.mechanism.spends().delta < 1e-8  # with twice the noise
    assert audit_mechanism("cautious", runs=200).passed


def test_a_kernel(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"kernel": "exponential", "schema": census_schema()}
    points = simulated_census(40, seed=2).drop_columns(["income"])
    model = PrivateSVC(**settings, epsilon=1.0, delta=1e-6, public_points=points)
    assert "exponential" in str(through(model, tmp_path / "guest.privlearn"))
    promise = Guarantee(1.0, 1e-6)
    learner = KernelLearner(**settings, guarantee=promise).read(simulated_census(300, seed=1))
    with InteractivePredictor(learner, promise, state=tmp_path / "guest.session") as session:
        assert len(session.predict(points)) == 40
        assert "exponential" in json.dumps(session.certificate.to_dict())


def test_a_relation(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epsilon": 6.0, "delta": 1e-6, "schema": census_schema()}
    model = PrivateLogisticRegression(**settings, neighbours="change_label")
    certificate = through(model, tmp_path / "guest.privlearn")
    assert "another label" in certificate.guarantee.in_words()
    alone = plan(PrivateLogisticRegression(**settings), rows=1000).mechanism
    assert certificate.task.gradient_sensitivity == alone.task.gradient_sensitivity / 2.0


def test_in_the_shell(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privlearn.data import write_table

    write_table(simulated_census(1000, seed=1), tmp_path / "census.csv")
    write_table(simulated_census(40, seed=2).drop_columns(["income"]), tmp_path / "points.csv")
    census_schema().save(tmp_path / "census.yaml")
    kernel = ("--model", "svm", "--kernel", "exponential", "--public-points", tmp_path / "points.csv")
    for name, words in {
        "loss": ("--model", "svm", "--loss", "gentle_hinge"),
        "mechanism": ("--mechanism", "cautious"),
        "kernel": kernel,
        "relation": ("--neighbours", "change_label"),
    }.items():
        out = tmp_path / f"{name}.privlearn"
        trained = run(
            "train", tmp_path / "census.csv", "--schema", tmp_path / "census.yaml",
            "--epsilon", 5, "--delta", 1e-6, "--out", out, *words,
        )  # fmt: skip
        assert trained.code == 0, trained.stderr
        assert "consistent and private" in run("verify", out).stdout
        assert json.loads(run("inspect", out, "--json").stdout)
        assert run("audit", out).code == 0
        known: dict[str, Any] = REGISTERS[name]
        with monkeypatch.context() as without:
            without.delitem(known, (guest := list(known)[-1]))
            for command in ("verify", "inspect"):
                told = run(command, out)
                assert told.code == 1
                said = " ".join(told.stderr.split())
                assert f"the {name} {guest!r} is not known here" in said
                assert "privlearn --extension MODULE" in said
    assert run("audit", "cautious", "--runs", 200).code == 0


REGISTERS: dict[str, Any] = {
    "loss": LOSSES,
    "mechanism": MECHANISMS,
    "kernel": KERNELS,
    "relation": RELATIONS,
}


@dataclass(frozen=True)
class SlopedHinge(GentleHinge):
    """A guest with a parameter of its own, which a file must not lose."""

    name: ClassVar[str] = "sloped_hinge"
    depth: float = 2.0

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "width": self.width, "depth": self.depth}


def test_what_a_guest_must_say() -> None:
    with pytest.raises(InvalidParameter, match="does not define link"):
        register_loss(type("Silent", (), {"name": "silent", "argument": "margin"}))
    with pytest.raises(InvalidParameter, match="more than one record"):
        dataclasses.replace(LABEL, name="family", gradients=6)
    with pytest.raises(InvalidParameter, match="already"):
        register_relation(dataclasses.replace(LABEL, moments=0.5))
    register_relation(LABEL)  # a module that is imported again
    register_kernel(ExponentialKernel)
    with pytest.raises(InvalidParameter, match="Call register_kernel"):
        kernel_from_name(type("Foreign", (ExponentialKernel,), {"name": "foreign"})())
    register_loss(SlopedHinge)
    try:
        assert loss_from_dict(SlopedHinge(depth=3.0).to_dict()) == SlopedHinge(depth=3.0)
    finally:
        del LOSSES[SlopedHinge.name]


LIES: dict[str, dict[str, Any]] = {
    "lipschitz = 0.5 fails at the argument -1e": {
        "first_derivative": lambda self, z: 10.0 * HuberHinge.first_derivative(self, z)
    },
    "smoothness = 0.05": {"smoothness": 0.05},
    "must be margin or residual": {"argument": "classes"},
}


@pytest.mark.parametrize("said", LIES)
def test_a_loss_whose_facts_are_wrong_is_not_registered(said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        register_loss(type("Lying", (GentleHinge,), {"name": "lying", **LIES[said]}))
    assert "lying" not in LOSSES


def test_a_loss_whose_facts_are_wrong_with_other_parameters_is_not_made() -> None:
    class Narrow(GentleHinge):
        name = "narrow"
        smoothness = 0.5  # that of width 0.5

    register_loss(Narrow)
    try:
        for make in (loss_from_name, lambda *facts: loss_from_dict({"name": facts[0], "width": facts[1]})):
            assert make("narrow", 0.5) == Narrow(0.5)
            with pytest.raises(InvalidParameter, match=r"smoothness = 0\.5 fails"):
                make("narrow", 0.05)
        with pytest.raises(InvalidParameter, match=r"smoothness = 0\.5 fails"):
            choose_loss(Narrow(0.05), lambda kind: True, "logistic")
    finally:
        del LOSSES["narrow"]


KERNEL_FACTS: dict[str, dict[str, Any]] = {
    "does not define bound. Add them": {"name": "mute", "rounding": ExponentialKernel.rounding,
                                                      "_of_products": ExponentialKernel._of_products},
    "'Mute' does not define name, bound, _of_products, rounding": {},
}  # fmt: skip


@pytest.mark.parametrize("said", KERNEL_FACTS)
def test_a_kernel_without_its_facts_is_not_registered(said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        register_kernel(type("Mute", (ProductKernel,), KERNEL_FACTS[said]))
    with pytest.raises(InvalidParameter, match="does not define _gram, frequencies\\."):
        register_kernel(type("Mute", (ShiftInvariantKernel,), {"name": "mute"}))
    assert "mute" not in KERNELS


def test_the_shell_takes_an_extension(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_guests.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    monkeypatch.chdir(tmp_path)
    run("--extension", "my_guests", "bounds", "--help")
    assert (tmp_path / "imported").exists()
    missing = run("--extension", "no_such_guests", "bounds")
    assert missing.code == 2
    assert "PYTHONPATH" in missing.stderr
