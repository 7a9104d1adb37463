"""From a table to a release, and back to its promise."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from privlearn import Ledger, Release
from privlearn.data import SchemaEncoder, simulated_census, write_table
from tests.support.cli_support import Census, Run

NOT_PRIVATE = 3


def test_schema_template_loads_once_filled_in(census: Census, run: Run) -> None:
    told = run("schema", census.table)
    assert told.code == 0
    template = yaml.safe_load(told.stdout)
    assert list(template["columns"]) == ["age", "hours", "education_years", "capital_income",
                                         "occupation", "region", "sex", "income"]  # fmt: skip
    assert template["columns"]["age"]["lower"] is None
    assert run("schema", census.table, "--out", census / "template.yaml").code == 0
    assert (census / "template.yaml").read_text() == told.stdout


def test_existing_schema_is_not_overwritten(census: Census, run: Run) -> None:
    before = census.schema.read_text()
    told = run("schema", census.table, "--out", census.schema)
    assert told.code == 2
    assert "--force" in told.stderr
    assert census.schema.read_text() == before


class Terminal(io.StringIO):
    """Standard input of a person at a terminal."""

    def isatty(self) -> bool:
        return True


def test_trained_release_verifies(census: Census, train: Run, run: Run) -> None:
    told = train("--target", "income", "--epsilon", 1, "--delta", "1e-6")
    assert told.code == 0
    assert "epsilon = 1, delta = 1e-06" in told.stdout
    assert f"privlearn verify {census / 'income.privlearn'}" in told.stdout
    verified = run("verify", census / "income.privlearn")
    assert verified.code == 0
    assert "consistent and private" in verified.stdout
    assert "replace_one" in verified.stdout


def test_a_signal_that_drowned_is_said_to_have(train: Run) -> None:
    told = train("--epsilon", "0.01", "--seed", 0)
    assert told.code == 0
    assert "Forecast of `privlearn plan`, from public numbers alone: DROWNED" in told.stderr
    clear = train("--epsilon", 20, "--delta", "1e-6", "--seed", 0, out="clear.privlearn")
    assert clear.code == 0
    assert "DROWNED" not in clear.told


@pytest.mark.parametrize(("arguments", "answer", "code"), [((), "n", 1), ((), "y", 0), (("--yes",), "n", 0)])
def test_a_terminal_is_asked_before_a_drowned_model_is_charged(
    arguments: tuple[str, ...],
    answer: str,
    code: int,
    budgeted: Census,
    train: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    ledger = ("--ledger", budgeted.ledger, "--dataset", "census")
    assert train("--epsilon", "0.01", "--delta", "1e-6", *ledger, *arguments).code == code
    spent = Ledger.open(budgeted.ledger, "census").statement().spent.epsilon
    assert spent == (0.0 if code else 0.01)
    assert (budgeted / "income.privlearn").exists() == (code == 0)


def test_options_reach_the_mechanism(census: Census, train: Run) -> None:
    told = train(
        "--model", "svm", "--loss", "smoothed_hinge", "--mechanism", "output", "--noise", "laplace", "--epsilon", 0.5,
        "--calibration", "rbht", "--neighbours", "zero_out", "--regularization", "0.25", "--no-intercept",
    )  # fmt: skip
    assert told.code == 0
    release = Release.load(census / "income.privlearn")
    mechanism = release.certificate.mechanism
    assert (mechanism.name, mechanism.noise, mechanism.calibration) == ("output", "laplace", "rbht")
    assert mechanism.task.loss.name == "smoothed_hinge"
    assert mechanism.task.neighbours == "zero_out"
    assert mechanism.task.regularization == 0.25
    assert release.certificate.guarantee.epsilon == 0.5
    assert isinstance(release.model.encoder, SchemaEncoder)
    assert release.model.encoder.fit_intercept is False


@pytest.mark.parametrize(
    "arguments", [("--epsilon", 1, "--seed", 0), ("--epsilon", "inf")], ids=["seed", "inf"]
)
def test_what_is_not_private_says_so(
    arguments: tuple[object, ...], census: Census, train: Run, run: Run
) -> None:
    trained = train(*arguments)
    assert trained.code == 0
    assert "NOT PRIVATE" in trained.stderr
    verified = run("verify", census / "income.privlearn")
    assert verified.code == NOT_PRIVATE
    assert "NOT PRIVATE" in verified.stderr
    assert "consistent and private" not in verified.told


def test_changed_byte_fails_verification(census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1)
    path = census / "income.privlearn"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    told = run("verify", path)
    assert told.code == 1
    assert told.stderr.startswith("error: ")
    assert run("verify", census / "absent.privlearn").code == 1


def test_signature(census: Census, train: Run, run: Run) -> None:
    ours, theirs = _key_pair(census.folder, "ours"), _key_pair(census.folder, "theirs")
    assert train("--epsilon", 1, "--sign", ours[0]).code == 0
    assert run("verify", census / "income.privlearn", "--signer", ours[1]).code == 0
    assert run("verify", census / "income.privlearn", "--signer", theirs[1]).code == 1
    assert run("verify", census / "income.privlearn", "--signer", ours[0]).code == 2


def test_unsigned_release_fails_an_asked_signature(census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1)
    assert (
        run("verify", census / "income.privlearn", "--signer", _key_pair(census.folder, "ours")[1]).code == 1
    )


def test_inspect(census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1)
    told = run("inspect", census / "income.privlearn", "--largest", 5)
    assert told.code == 0
    assert "objective perturbation" in told.stdout
    assert "capital_income: number from 0 to 1e+06, log scale" in told.stdout
    assert told.stdout.count("high") == 1 + 5  # the schema's classes, one row per coefficient
    certificate = json.loads(run("inspect", census / "income.privlearn", "--json").stdout)
    assert certificate["claim"] == {"epsilon": 1.0, "delta": 0.0, "neighbours": "replace_one"}


def test_ledger_is_charged(budgeted: Census, train: Run, run: Run) -> None:
    told = train("--epsilon", 0.5, "--delta", "1e-6", "--ledger", budgeted.ledger)
    assert told.code == 0
    assert "left epsilon 1.5" in told.stdout
    assert Ledger.open(budgeted.ledger, "census").statement().spent.epsilon == 0.5
    for shown in (
        run("budget", "--ledger", budgeted.ledger),
        run("budget", "show", "--ledger", budgeted.ledger),
    ):
        assert shown.code == 0
        assert "committed" in shown.stdout
        assert "0.5" in shown.stdout
    assert run("budget", "show", "census", "--ledger", budgeted.ledger).stdout == shown.stdout


def test_ledger_by_another_name(census: Census, train: Run, run: Run) -> None:
    run("budget", "create", "other", "--ledger", census.ledger, "--epsilon", 1, "--composition", "basic")
    assert train("--epsilon", 0.5, "--ledger", census.ledger).code == 1
    assert train("--epsilon", 0.5, "--ledger", census.ledger, "--dataset", "other").code == 0
    assert Ledger.open(census.ledger, "other").statement().spent.epsilon == 0.5


def test_exceeded_budget_writes_nothing(budgeted: Census, train: Run) -> None:
    before = budgeted.ledger.read_bytes()
    told = train("--epsilon", 2.5, "--ledger", budgeted.ledger)
    assert told.code == 1
    assert "left" in told.stderr
    assert not (budgeted / "income.privlearn").exists()
    assert budgeted.ledger.read_bytes() == before


def test_budget_is_created_once(budgeted: Census, run: Run) -> None:
    before = budgeted.ledger.read_bytes()
    assert run("budget", "create", "census", "--ledger", budgeted.ledger, "--epsilon", 9).code == 1
    assert run("budget", "create", "x", "--ledger", budgeted.ledger, "--epsilon", -1).code == 2
    assert budgeted.ledger.read_bytes() == before
    assert run("budget", "show", "--ledger", budgeted / "absent.db").code == 1


BAD_ARGUMENTS = {
    "another target": ("--epsilon", 1, "--target", "age"),
    "negative epsilon": ("--epsilon", -1),
    "epsilon that is no number": ("--epsilon", "nan"),
    "unknown model": ("--epsilon", 1, "--model", "forest"),
    "unknown noise": ("--epsilon", 1, "--noise", "pink"),
    "Gaussian noise without delta": ("--epsilon", 1, "--noise", "gaussian"),
    "regularization that is no number": ("--epsilon", 1, "--regularization", "strong"),
    "absent key": ("--epsilon", 1, "--sign", "absent.pem"),
    "unknown neighbours": ("--epsilon", 1, "--neighbours", "next_door"),
}


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_cost_nothing(arguments: tuple[object, ...], budgeted: Census, train: Run) -> None:
    before = budgeted.ledger.read_bytes()
    told = train(*arguments, "--ledger", budgeted.ledger)
    assert told.code == 2
    assert told.stderr.startswith("error: ")
    assert budgeted.ledger.read_bytes() == before
    assert not (budgeted / "income.privlearn").exists()


def test_dataset_without_ledger(train: Run) -> None:
    assert train("--epsilon", 1, "--dataset", "census").code == 2


UNWRITABLE = {"exists": "census.csv", "folder": ".", "absent folder": "absent/a", "long name": "a" * 245}


@pytest.mark.parametrize("out", UNWRITABLE.values(), ids=UNWRITABLE)
def test_output_is_checked_before_the_charge(out: str, budgeted: Census, train: Run) -> None:
    before = budgeted.ledger.read_bytes(), budgeted.table.read_bytes()
    told = train("--epsilon", 1, "--ledger", budgeted.ledger, out=out)
    assert told.code == 2
    assert (budgeted.ledger.read_bytes(), budgeted.table.read_bytes()) == before
    assert not list(budgeted.folder.glob(".*"))


def test_force_replaces(census: Census, train: Run) -> None:
    assert train("--epsilon", 1).code == 0
    assert train("--epsilon", 2).code == 2
    assert train("--epsilon", 2, "--force").code == 0
    assert Release.load(census / "income.privlearn").certificate.guarantee.epsilon == 2


def test_predictions(census: Census, train: Run, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    train("--epsilon", 1)
    model, out = census / "income.privlearn", census / "predictions.csv"
    whole = run("predict", model, census.new_rows, "--probabilities").stdout
    monkeypatch.setattr("privlearn.data.sources.row_source.BLOCK", 7)
    assert run("predict", model, census.new_rows, "--out", out, "--probabilities").code == 0
    lines, pieces = whole.splitlines(), out.read_text().splitlines()
    assert [line.split(",")[0] for line in pieces] == [line.split(",")[0] for line in lines]
    assert lines[0] == '"prediction","probability_low","probability_high"'
    assert len(lines) == 1 + 50
    for line in lines[1:]:
        label, low, high = line.split(",")
        assert float(low) + float(high) == pytest.approx(1.0)
        assert label == ('"high"' if float(high) > float(low) else '"low"')


def test_target_in_new_rows_is_not_read(census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1)
    rows = simulated_census(50, seed=2)
    garbled = rows.set_column(rows.column_names.index("income"), "income", [["?"] * 50])
    write_table(garbled, census / "garbled.csv")
    model = census / "income.privlearn"
    assert (
        run("predict", model, census / "garbled.csv").stdout == run("predict", model, census.new_rows).stdout
    )


def test_support_vector_machine_has_no_probabilities(census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1, "--model", "svm")
    assert run("predict", census / "income.privlearn", census.new_rows).code == 0
    assert run("predict", census / "income.privlearn", census.new_rows, "--probabilities").code == 2


def test_real_processes(census: Census) -> None:
    """The same through the operating system, where exit codes are for scripts."""
    model = census / "income.privlearn"
    privlearn = [sys.executable, "-m", "privlearn"]
    arguments = [
        "train",
        str(census.table),
        "--schema",
        str(census.schema),
        "--epsilon",
        "inf",
        "--out",
        str(model),
    ]
    assert subprocess.run([*privlearn, *arguments], check=False, capture_output=True).returncode == 0
    assert (
        subprocess.run([*privlearn, "verify", model], check=False, capture_output=True).returncode
        == NOT_PRIVATE
    )


def _key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public
