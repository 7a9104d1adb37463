"""Papers say what the files say: promises with their limits, open fields left open, nothing that is not public."""

from __future__ import annotations

import json
import re
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import norm

from privlearn import InvalidParameter, Ledger, Release, evaluate
from privlearn.accounting import GaussianCurve
from privlearn.data import SchemaEncoder
from privlearn.export.report import FORMATS, OPEN, REPORTS, ReleaseProperties, write_report
from privlearn.guarantee import Guarantee
from privlearn.release import LinearModel, meaning_of
from tests.support.export_cases import ILL, dirty_table, exported_releases, raw_table, schema_for, with_model
from tests.support.release_files import release_file


@pytest.fixture(scope="module")
def private() -> ReleaseProperties:
    return ReleaseProperties(Release.load(release_file("logistic")))


@pytest.fixture(scope="module")
def measured() -> ReleaseProperties:
    release = exported_releases()["two"]
    table = raw_table(800, seed=3)
    table["ill"] = np.where(table.age > 60, "yes", "no")
    found = evaluate(release, table, epsilon=3.0, by=["job"], random_state=0)
    return ReleaseProperties(release, found)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "file", ["logistic", "regression", "search", "private_bounds", "fourier", "parties_descent", "weighted"]
)
def test_every_paper_of_every_release(name: str, form: str, file: str) -> None:
    text = write_report(ReleaseProperties(Release.load(release_file(file))), name, form)
    assert "None" not in text
    if form == "json":
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize("name", REPORTS)
def test_the_promise_stands_in_each(name: str, private: ReleaseProperties) -> None:
    text = write_report(private, name, "json")
    assert "1e-06" in text or "multiplied by at most 3.16" in text
    assert OPEN in text


@pytest.mark.parametrize("name", REPORTS)
def test_nothing_is_promised_where_the_noise_was_seeded(name: str) -> None:
    facts = ReleaseProperties(exported_releases()["two"])
    assert facts.parameters == {}
    text = write_report(facts, name, "md")
    assert "Nothing is guaranteed" in text
    assert "epsilon = 5" not in text


def test_model_card_has_front_matter_and_numbers(measured: ReleaseProperties) -> None:
    text = write_report(measured, "model-card", "md")
    metadata = yaml.safe_load(text.split("---\n")[1])
    assert metadata["pipeline_tag"] == "tabular-classification"
    (result,) = metadata["model-index"][0]["results"]
    assert {"accuracy", "auc"} <= {metric["type"] for metric in result["metrics"]}
    assert measured.accuracy["auc"] in text


def test_registry_entry_is_yaml_with_the_registry_s_fields(private: ReleaseProperties) -> None:
    entry = yaml.safe_load(write_report(private, "registry", "md").split("```\n")[1])
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert entry["deployment"]["model"]["model_name"] == "Central"
    assert entry == json.loads(write_report(private, "registry", "json"))
    assert set(entry["assumed"]) == {"deployment.model", "deployment.privacy_loss.privacy_unit", "tier"}
    for path in entry["assumed"]:
        reduce(getitem, path.split("."), entry)  # it names a field that is there


def test_sacro_gets_proven_bounds_and_no_attack(private: ReleaseProperties) -> None:
    """SACRO-ML's review counts an entry with an experiment logger as an attack that was run."""
    text = write_report(private, "sacro")  # JSON by default
    assert "attack_experiment_logger" not in text
    record = json.loads(text)
    assert record["model_name"] not in ("SVC", "KNeighborsClassifier")  # rejected at once: they store rows
    assert {"dataset_name", "features", "model_params", "n_samples", "safemodel"} <= set(record)
    (entry,) = (part for name, part in record.items() if name.startswith("proven_bounds_"))
    bounds = entry["metadata"]["global_metrics"]
    assert bounds["epsilon"] == 1.0
    assert bounds["TPR@0.001_upper_bound"] < bounds["TPR@0.01_upper_bound"] < bounds["Advantage_upper_bound"]
    assert 0.5 < bounds["AUC_upper_bound"] < 0.5 + bounds["Advantage_upper_bound"]


def test_bounds_of_a_gaussian_are_those_of_the_normal_distribution() -> None:
    meaning = meaning_of(Guarantee(1.0, 1e-6), GaussianCurve(0.5))
    assert meaning is not None
    assert meaning.advantage == pytest.approx(2.0 * norm.cdf(0.25) - 1.0, rel=1e-9)
    exact = norm.cdf(0.5 / np.sqrt(2.0))
    assert exact <= meaning.area <= exact + 0.002


def test_the_opinion_page_draws_no_conclusion(private: ReleaseProperties) -> None:
    text = write_report(private, "edpb", "html")
    assert "extracted from the model" in text
    assert "area under the curve at most 0." in text
    assert f"small enough to be insignificant here: {OPEN}" in text


def test_several_holders_are_not_central() -> None:
    facts = ReleaseProperties(Release.load(release_file("parties_descent")))
    assert '"model_name": "Distributed"' in write_report(facts, "registry", "json")


def test_an_evaluation_of_another_model_is_refused(measured: ReleaseProperties) -> None:
    with pytest.raises(InvalidParameter, match="another model"):
        ReleaseProperties(exported_releases()["centred"], measured.evaluation)


def test_a_ledger_is_told_of_only_when_given(private: ReleaseProperties, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budgets.db", "clinic", Guarantee(4.0, 1e-5))
    assert "epsilon = 4" not in write_report(private, "ethics")
    told = write_report(ReleaseProperties(private.release, budget=ledger.statement()), "ethics")
    assert "(epsilon = 4, delta = 1e-05)" in told


def test_names_cannot_become_markup() -> None:
    schema = schema_for(ILL | {"name": "<script>alert(1)</script> | ```x\n# heading"})
    encoder, labels = SchemaEncoder(schema), np.array(["no", "yes"])
    model = LinearModel(encoder, np.zeros((1, encoder.dimension)), labels, "logistic")
    facts = ReleaseProperties(with_model(exported_releases()["two"], model))
    for name in REPORTS:
        assert "<script>" not in write_report(facts, name, "html")
        plain = re.split("`{3,}\n", write_report(facts, name, "md"))[0::2]
        assert not any("<script>" in part or "\n# heading" in part for part in plain)


def test_dirty_rows_are_not_in_any_paper(measured: ReleaseProperties) -> None:
    assert "astronaut" in dirty_table(50).to_string()
    assert all("astronaut" not in write_report(measured, name, "json") for name in REPORTS)


def test_a_threshold_chosen_later_has_error_rates_of_its_own(measured: ReleaseProperties) -> None:
    found = measured.evaluation
    assert found is not None
    edge = float(found.edges[np.argmin(np.abs(found.edges - 0.2))])
    decided = ReleaseProperties(measured.release.decided_by(found.decision(threshold=edge), found), found)
    assert decided.numbers["accuracy"] == found.numbers_at(edge)["accuracy"] != found["accuracy"]
    assert decided.numbers["recall"].value > found["recall"].value
    assert decided.numbers["auc"] == found["auc"]
    for name in ("ethics", "model-card", "checklist"):
        text = write_report(decided, name)
        assert str(found["accuracy"]) not in text
        assert str(decided.numbers["accuracy"]) in text
        assert "another threshold" in text


def test_within_a_bin_no_error_rate_is_known(measured: ReleaseProperties) -> None:
    found = measured.evaluation
    assert found is not None
    within = float(found.edges[3:5].mean())
    decision = found.decision(threshold=within, calibrate=True)
    decided = ReleaseProperties(measured.release.decided_by(decision, found), found)
    assert set(decided.numbers) == {"auc", "share of the second class"}
    told = write_report(decided, "ethics")
    assert "are unknown for it" in told
    assert "their losses are unknown" in told


def test_accuracy_stands_beside_that_of_the_simplest_answer(measured: ReleaseProperties) -> None:
    found = measured.evaluation
    assert found is not None
    assert found.most_frequent is not None
    share = found["share of the second class"].value
    assert found.most_frequent.value == pytest.approx(max(share, 1.0 - share), abs=0.01)
    assert f"always predicting the most frequent class: {found.most_frequent}" in write_report(
        measured, "checklist"
    )
    assert str(found.most_frequent) in write_report(measured, "ethics")
