"""Buying bounds and lists: what is bought, what it costs, what is refused for free, and what models then certify."""

from __future__ import annotations

import dataclasses
import json
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privlearn import (
    BudgetExceeded,
    DataError,
    Guarantee,
    InvalidParameter,
    Ledger,
    LedgerError,
    PrivateLogisticRegression,
    PrivateRegressor,
    Release,
    Schema,
    SchemaDraft,
    VerificationError,
    discover,
    verify,
)
from privlearn.data import simulated_census
from privlearn.errors import SchemaError
from privlearn.mechanisms.statistics.quantile import candidates
from privlearn.release import Certificate, base_of

ROWS = 6000
CENSUS = simulated_census(ROWS, seed=1)
NUMBERS = {name: {"type": "number", "lower": "estimate", "upper": "estimate"} for name in ("age", "hours")}
OCCUPATION = {"occupation": {"type": "category", "values": "estimate"}}
CLASSES = {"name": "income", "classes": "estimate"}


def drafted(columns: dict[str, Any] | None = None, **more: Any) -> SchemaDraft:
    return SchemaDraft.from_dict({"name": "census", "columns": columns or NUMBERS | OCCUPATION, **more})


def bought(draft: SchemaDraft | None = None, table: Any = CENSUS, **settings: Any) -> Schema:
    seed = None if "ledger" in settings else 0  # a ledger takes secure noise only
    price = {"epsilon": 1.0, "delta": 1e-6, "random_state": seed} | settings
    return discover(table, draft or drafted(target=CLASSES), **price)


def test_bounds_values_and_classes() -> None:
    schema = bought()
    age: Any = schema.columns["age"]
    assert 17 < age.lower < 27
    assert 68 < age.upper < 91
    assert schema.columns["occupation"].values == (  # type: ignore[union-attr]
        "craft", "farming", "health", "management", "office", "services", "trade",
    )  # fmt: skip
    assert schema.target is not None
    assert schema.target.classes == ("high", "low")


def test_rare_values_and_labels_are_not_listed() -> None:
    few = np.arange(ROWS) < 3
    occupations, incomes = (np.array(CENSUS[name].to_pylist()) for name in ("occupation", "income"))
    table = CENSUS.set_column(4, "occupation", [np.where(few, "spy", occupations)])
    table = table.set_column(7, "income", [np.where(few, "secret", incomes)])
    schema = bought(table=table)
    text = json.dumps(schema.to_dict())
    assert "spy" not in text
    assert "secret" not in text
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(table)
    assert list(model.classes_) == ["high", "low"]


def test_rows_whose_label_is_not_listed_weigh_nothing() -> None:
    """Their cells could be anything: the model is the same."""
    schema = bought(random_state=3)
    odd = CENSUS.slice(0, 400)
    strange = odd.set_column(7, "income", [["rare"] * 400])
    shifted = strange.set_column(0, "age", [[90] * 400])
    settings: dict[str, Any] = {"epsilon": np.inf, "schema": schema, "regularization": 0.01}
    fits = [
        PrivateLogisticRegression(**settings).fit(pa.concat_tables([CENSUS, more])).coefficients_
        for more in (strange, shifted)
    ]
    assert fits[0] == pytest.approx(fits[1], abs=1e-6)
    counted = PrivateLogisticRegression(**settings).fit(pa.concat_tables([CENSUS, odd])).coefficients_
    assert np.abs(fits[0] - counted).max() > 1e-3


def test_the_receipt_states_the_price_and_its_constants() -> None:
    (receipt,) = bought(epsilon=0.9, delta=1e-5, neighbours="zero_out").private_bounds
    assert receipt.guarantee == Guarantee(0.9, 1e-5, "zero_out")
    assert receipt.bounds == ("age lower", "age upper", "hours lower", "hours upper")
    assert receipt.anchors == 4
    assert receipt.lists == ("occupation", "income")
    assert receipt.records == ROWS
    assert not receipt.secure


def test_order_of_rows_does_not_matter_and_lists_are_sorted() -> None:
    turned = CENSUS.take(np.arange(ROWS)[::-1])
    assert bought().to_dict() == bought(table=turned).to_dict()


def test_one_row_a_person_counts() -> None:
    """A person of a thousand rows moves nothing further than a person of one."""
    people = pa.table({"id": np.arange(ROWS), "age": CENSUS["age"]})
    crowd = pa.table({"id": [0] * 5000, "age": [10**6] * 5000})
    draft = drafted({"age": NUMBERS["age"]}, person="id")
    age: Any = bought(draft, pa.concat_tables([people, crowd])).columns["age"]
    assert age.upper < 91
    assert bought(draft, pa.concat_tables([people, crowd])).private_bounds[0].records == ROWS


def test_several_rows_a_person_cost_accuracy() -> None:
    once = bought(drafted({"age": NUMBERS["age"]}), epsilon=1.0, delta=0.0)
    often = bought(drafted({"age": NUMBERS["age"]}, rows_per_person=8), epsilon=1.0, delta=0.0)
    ages: list[Any] = [schema.columns["age"] for schema in (once, often)]
    widths = [age.upper - age.lower for age in ages]
    assert widths[1] < widths[0]  # further inside, since more rows must lie beyond
    assert often.private_bounds[0].rows_per_person == 8


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (["x", "y"] * 3000, ("x", "y")),
        ([7, 30] * 3000, (7, 30)),
        ([7.0, 30.0, None] * 2000, (7, 30)),
        ([7, 30, 2**53 + 1] * 2000, (7, 30)),
        (pa.array(["x", "y"] * 3000).dictionary_encode(), ("x", "y")),
    ],
    ids=["text", "whole numbers", "floats with gaps", "beyond floats", "dictionary"],
)
def test_lists_have_the_declared_type(column: Any, values: tuple[Any, ...]) -> None:
    mark = "estimate" if isinstance(values[0], str) else "estimate whole numbers"
    draft = drafted({"code": {"type": "category", "values": mark, "missing": "zero"}})
    schema = bought(draft, pa.table({"code": column}))
    assert schema.columns["code"].values == values  # type: ignore[union-attr]
    assert [type(value) for value in schema.columns["code"].values] == [type(value) for value in values]  # type: ignore[union-attr]


@pytest.mark.parametrize("column", [[7, 30] * 3000, [True, False] * 3000, [7, "x"] * 3000])
def test_a_column_of_another_type_is_refused_before_it_is_paid_for(column: list[Any]) -> None:
    draft = drafted({"code": {"type": "category", "values": "estimate", "missing": "zero"}})
    with pytest.raises(DataError, match="estimate whole numbers"):
        bought(draft, {"code": column})


def test_a_table_with_identifiers_needs_a_word_about_persons() -> None:
    table = {"age": [20.0] * 6000, "patient_nbr": range(6000)}
    with pytest.raises(SchemaError, match="person: patient_nbr"):
        bought(drafted({"age": NUMBERS["age"]}), table)


def test_a_number_to_predict() -> None:
    draft = drafted({"age": NUMBERS["age"]}, target={"name": "hours", "lower": 0, "upper": "estimate"})
    schema = bought(draft)
    assert schema.target is not None
    assert schema.target.lower == 0
    assert 50 < (schema.target.upper or 0) < 75
    PrivateRegressor(epsilon=1.0, delta=1e-6, schema=schema, random_state=0).fit(CENSUS)


def test_missing_cells_follow_the_rule() -> None:
    gaps = {"age": [None if place % 2 else place % 70 + 20.0 for place in range(ROWS)]}
    with pytest.raises(DataError, match="missing"):
        bought(drafted({"age": NUMBERS["age"]}), gaps)
    age: Any = bought(drafted({"age": NUMBERS["age"] | {"missing": "zero"}}), gaps).columns["age"]
    assert 20 <= age.lower < 30
    assert 80 < age.upper <= 90


def test_cells_of_any_size() -> None:
    cells = np.where(np.arange(ROWS) % 3 == 0, 1.7e308, np.where(np.arange(ROWS) % 3 == 1, -1.7e308, np.inf))
    age: Any = bought(drafted({"age": NUMBERS["age"]}), {"age": cells}).columns["age"]
    assert np.isfinite(age.upper - age.lower)


def test_bounds_are_candidates_or_at_a_distance_from_one() -> None:
    """Nothing of a cell's own digits leaves: from a public origin a bound is a public candidate."""
    table = {"age": np.random.default_rng(0).normal(50, 10, ROWS)}
    draft = drafted({"age": {"type": "number", "lower": 0, "upper": "estimate"}})
    age: Any = bought(draft, table).columns["age"]
    assert age.upper in candidates()[0]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "b.db", "census", Guarantee(2.0, 1e-5))


def test_the_ledger_is_charged_once_for_everything(ledger: Ledger) -> None:
    bought(ledger=ledger)
    (entry,) = ledger.statement().entries
    assert (entry.state, entry.amount.epsilon, entry.amount.delta) == ("committed", 1.0, 1e-6)
    assert entry.purpose == "discover: 4 bounds, 2 lists"
    assert entry.schema_digest == drafted(target=CLASSES).digest


def test_a_budget_too_small_buys_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded):
        bought(ledger=ledger, epsilon=3.0)
    assert ledger.statement().entries == ()


def test_a_crash_while_buying_wastes_and_never_overspends(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privlearn.mechanisms.statistics.discovery.frequent", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bought(ledger=ledger)
    (entry,) = ledger.statement().entries
    assert entry.state == "reserved"
    assert ledger.statement().left.epsilon == 1.0


def test_renyi_ledgers_take_bounds_but_no_lists(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "r.db", "census", Guarantee(2.0, 1e-5), composition="renyi")
    bought(drafted(NUMBERS), ledger=ledger, epsilon=0.5)
    with pytest.raises(LedgerError, match="composition='basic'"):
        bought(ledger=ledger, epsilon=0.5)
    assert len(ledger.statement().entries) == 1


CANARY = "Xylophon-7364518209"
COMPLETE = {"age": {"type": "number", "lower": 0, "upper": 100}}
BAD = {
    "nothing marked": ({"draft": drafted(COMPLETE)}, InvalidParameter, "nothing is marked"),
    "no epsilon": ({"epsilon": 0.0}, InvalidParameter, "epsilon"),
    "infinite epsilon": ({"epsilon": np.inf}, InvalidParameter, "finite epsilon"),
    "lists without delta": ({"delta": 0.0}, InvalidParameter, "needs delta > 0"),
    "relation": ({"neighbours": "add_remove"}, InvalidParameter, "neighbours"),
    "too few rows": ({"table": CENSUS.slice(0, 50)}, InvalidParameter, "give noise only"),
    "no rows": ({"table": CENSUS.slice(0, 0)}, DataError, "no rows"),
    "no column": ({"table": CENSUS.drop_columns(["age"])}, DataError, "'age' is missing"),
    "no target": ({"table": CENSUS.drop_columns(["income"])}, DataError, "'income' is missing"),
    "text as number": ({"table": CENSUS.set_column(0, "age", [[CANARY] * ROWS])}, DataError, "age"),
    "dates as values": (
        {"table": CENSUS.set_column(4, "occupation", pa.array([0] * ROWS, pa.date32()))},
        DataError,
        "date32",
    ),
    "missing label": (
        {"table": CENSUS.set_column(7, "income", [[None, CANARY] * (ROWS // 2)])},
        DataError,
        "missing",
    ),
    "unlisted value in a public list": (
        {
            "draft": drafted(NUMBERS | {"sex": {"type": "category", "values": ["female", "male"]}}),
            "table": CENSUS.set_column(6, "sex", [[CANARY] * ROWS]),
        },
        DataError,
        "sex",
    ),
    "ledger of another relation": ({"neighbours": "zero_out"}, LedgerError, "zero_out"),
}


@pytest.mark.parametrize(("settings", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_costs_nothing_and_shows_nothing(
    settings: dict[str, Any], error: type[Exception], message: str, ledger: Ledger
) -> None:
    with pytest.raises(error, match=message) as caught:
        bought(**settings, ledger=ledger)
    assert ledger.statement().entries == ()
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.fixture(scope="module")
def trained() -> PrivateLogisticRegression:
    schema = discover(CENSUS, drafted(target=CLASSES), epsilon=1.0, delta=1e-6)
    return PrivateLogisticRegression(epsilon=0.5, delta=1e-6, schema=schema).fit(CENSUS)


def test_certificates_tell_what_the_schema_cost(trained: PrivateLogisticRegression, tmp_path: Path) -> None:
    certificate = trained.certificate_
    assert certificate.guarantee == Guarantee(0.5, 1e-6)
    assert certificate.together == Guarantee(1.5, 2e-6)
    assert certificate.is_private
    assert "with the estimated schema" in str(certificate)
    assert "(epsilon = 1.5, delta = 2e-06)" in str(certificate)
    assert "estimated of the schema from the records is not public" in certificate.to_dict()["covers"]
    trained.release_.save(tmp_path / "m.privlearn")
    proven = verify(tmp_path / "m.privlearn")
    assert proven.is_private
    assert proven.certificate.together == Guarantee(1.5, 2e-6)
    encoder = Release.load(tmp_path / "m.privlearn").model.encoder
    assert getattr(base_of(encoder), "schema", None) == trained.schema


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.5},
        {"delta": 1e-9},
        {"quantile_epsilon": 0.9},
        {"noise_scale": 1.0},
        {"threshold": 20.0},
        {"rows_per_person": 2},
        {"anchors": 40},
        {"secure": False},
        {"randomness": "dice"},
        {"bounds": []},
        {"noise_scale": None},
    ],
    ids=lambda change: "-".join(change),
)
def test_changed_receipts_are_found(change: dict[str, Any], trained: PrivateLogisticRegression) -> None:
    record = json.loads(json.dumps(trained.certificate_.to_dict()))
    assert Certificate.from_dict(record).together == Guarantee(1.5, 2e-6)
    record["encoding"]["private_bounds"][0] |= change
    with pytest.raises(VerificationError):
        Certificate.from_dict(record)


def test_a_seeded_purchase_makes_the_model_not_private() -> None:
    model = PrivateLogisticRegression(epsilon=0.5, delta=1e-6, schema=bought()).fit(CENSUS)
    assert model.certificate_.secure
    assert not model.certificate_.is_private
    assert str(model.certificate_).startswith("NOT PRIVATE")


def test_other_neighbours_are_refused() -> None:
    schema = bought(neighbours="zero_out")
    with pytest.raises(InvalidParameter, match="Set neighbours='zero_out' here as well"):
        PrivateLogisticRegression(epsilon=0.5, delta=1e-6, schema=schema).fit(CENSUS)
    more = schema.to_dict()
    more["columns"]["age"]["upper"] = "estimate"
    with pytest.raises(InvalidParameter, match="Set neighbours='zero_out' here as well"):
        discover(CENSUS, SchemaDraft(more), epsilon=0.5, delta=1e-6)


def test_a_receipt_of_other_neighbours_is_refused(trained: PrivateLogisticRegression) -> None:
    record = json.loads(json.dumps(trained.certificate_.to_dict()))
    record["encoding"]["private_bounds"][0]["neighbours"] = "zero_out"
    with pytest.raises(VerificationError, match="Set neighbours='zero_out' here as well"):
        Certificate.from_dict(record)


OF_PATIENTS = CENSUS.append_column("patient", pa.array(range(len(CENSUS))))
OF_PERSONS = {"rows_per_person": 1, "person": "patient"}
OF_ROWS = {"rows_per_person": 3, "person": False}


@pytest.mark.parametrize(
    ("receipt", "people", "fits"),
    [
        (OF_ROWS, {"rows_per_person": 3}, True),
        (OF_ROWS, {}, True),
        (OF_ROWS, {"rows_per_person": 4}, False),
        (OF_ROWS, {"person": "patient"}, False),
        (OF_PERSONS, {"person": "patient"}, True),
        (OF_PERSONS, {"person": "household"}, False),
        (OF_PERSONS, {}, False),
    ],
)
def test_a_receipt_protects_the_people_of_its_schema(
    receipt: dict[str, Any], people: dict[str, Any], fits: bool
) -> None:
    content = bought().to_dict()
    content["private_bounds"][0] |= receipt
    if fits:
        assert Schema.from_dict(content | people).to_dict()["private_bounds"] == content["private_bounds"]
        return
    with pytest.raises(SchemaError, match="Use the receipt's values; or remove the receipt"):
        Schema.from_dict(content | people)


def test_a_purchase_says_whether_it_counted_persons() -> None:
    assert bought().private_bounds[0].person is False
    draft = drafted({"age": NUMBERS["age"]}, person="patient")
    assert discover(OF_PATIENTS, draft, epsilon=1.0).private_bounds[0].person == "patient"


@pytest.mark.parametrize("people", [{"rows_per_person": 2}, {"person": "patient"}])
def test_a_certificate_of_other_people_than_its_receipts_is_refused(
    people: dict[str, Any], trained: PrivateLogisticRegression
) -> None:
    receipts = trained.certificate_.subject["private_bounds"]
    schema = Schema.from_dict(bought().to_dict() | people | {"private_bounds": []})
    model = PrivateLogisticRegression(epsilon=0.5, delta=1e-6, schema=schema).fit(OF_PATIENTS)
    certificate = model.certificate_
    added = dataclasses.replace(certificate, subject={**certificate.subject, "private_bounds": receipts})
    with pytest.raises(VerificationError, match="or remove the receipt"):
        Certificate.from_dict(json.loads(json.dumps(added.to_dict())))
