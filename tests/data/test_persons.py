"""A table that may hold several rows per person makes training ask, by the names of its columns alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from privlearn import PrivateLogisticRegression
from privlearn.data import Schema
from privlearn.data.encoding.column_cells import people
from privlearn.data.sources import looks_like_identifier, refuse_unclear_persons
from privlearn.errors import SchemaError

IDENTIFIERS = [
    "id",
    "ID",
    "_id",
    "uuid",
    "encounter_id",
    "hadm_id",
    "patient_nbr",
    "patientNbr",
    "PatientID",
    "patientid",
    "patient",
    "patients",
    "person",
    "subject",
    "customer",
    "customerNo",
    "SSN",
    "nhs_number",
    "NHSNumber",
    "mrn",
    "account",
    "account_no",
    "user_id",
    "member_number",
    "student-key",
    *(
        "pid",
        "PATID",
        "patnum",
        "pat_id",
        "SUBJID",
        "USUBJID",
        "case_no",
        "CaseNo",
        "encounter",
        "NHS_number",
    ),
    *("hospital_number", "studynr", "record_id", "ID_Patient", "nino", "Pseudonym", "Pat.-Nr.", "PatNr"),
    *(
        "Fallnr",
        "Fallnummer",
        "PatientenID",
        "Patientennummer",
        "personnr",
        "KVNR",
        "SVNR",
        "Versichertennummer",
    ),
    *(
        "Studiennummer",
        "Probandennummer",
        "numéro_patient",
        "IPP",
        "num dossier",
        "N° de dossier",
        "id_paciente",
    ),
    *("NHC", "DNI", "numeroHistoriaClinica", "nº expediente"),
]
OTHERS = [
    "age",
    "sex",
    "income",
    "paid",
    "grid",
    "valid",
    "covid",
    "member",
    "user",
    "customer_age",
    "patient_age",
    "person_weight",
    "native-country",
    "education-num",
    "marital-status",
    "zip_code",
    "number",
    "code",
    "y",
    *(
        "rapid",
        "lipid",
        "pidgin",
        "case",
        "Fallzahl",
        "falls",
        "n_patients",
        "number_of_subjects",
        "hospital",
    ),
    *("hospital_code", "length_of_encounter", "stay", "study", "Alter", "Kundenalter", "path_no", "spat_nr"),
]


@pytest.mark.parametrize("name", [*IDENTIFIERS, "Anon Student Id"])
def test_names_of_identifiers(name: str) -> None:
    assert looks_like_identifier(name)


@pytest.mark.parametrize("name", [*OTHERS, "", "number of patients seen"])
def test_names_of_other_columns(name: str) -> None:
    assert not looks_like_identifier(name)


def stated(**more: Any) -> Schema:
    return Schema.from_dict(
        {
            "name": "t",
            "columns": {"age": {"type": "number", "lower": 0, "upper": 120}},
            "target": {"name": "ill", "classes": [0, 1]},
            **more,
        }
    )


class Unread:
    """A column whose cells nobody may look at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


TABLE: dict[str, Any] = {"age": [30, 40] * 50, "ill": [0, 1] * 50, "patient_nbr": Unread()}


def test_training_asks_without_reading_cells() -> None:
    learner = PrivateLogisticRegression(schema=stated(), epsilon=1.0, delta=1e-6)
    with pytest.raises(SchemaError, match=r"`person: patient_nbr`.*`one_row_per_person: true`"):
        learner.fit(TABLE)


def test_an_answer_is_enough() -> None:
    schema = stated(one_row_per_person=True)
    PrivateLogisticRegression(schema=schema, epsilon=1.0, delta=1e-6).fit(TABLE)
    refuse_unclear_persons(stated(person="patient_nbr"), TABLE)
    refuse_unclear_persons(stated(rows_per_person=3), TABLE)


@pytest.mark.parametrize("column", [{"type": "number", "lower": 0, "upper": 9}, {"type": "text"}])
def test_a_feature_may_be_an_identifier(column: dict[str, Any]) -> None:
    listed = {"columns": {"age": {"type": "number", "lower": 0, "upper": 120}, "patient_nbr": column}}
    with pytest.raises(SchemaError, match="`person: patient_nbr`"):
        refuse_unclear_persons(stated(**listed), TABLE)
    refuse_unclear_persons(stated(**listed, one_row_per_person=True), TABLE)


def test_a_feature_with_listed_values_is_no_question() -> None:
    refuse_unclear_persons(
        stated(columns={"patient": {"type": "category", "values": ["in", "out"]}}), ["patient", "ill"]
    )
    refuse_unclear_persons(stated(), ["age", "ill", "ward"])


def test_rows_to_predict_raise_no_question() -> None:
    model = PrivateLogisticRegression(schema=stated(), epsilon=1.0, delta=1e-6)
    model.fit({name: TABLE[name] for name in ("age", "ill")})
    assert len(model.predict({"age": [30], "patient_nbr": [1]})) == 1


def test_a_schema_that_says_nothing_keeps_its_digest() -> None:
    assert "one_row_per_person" not in stated().to_dict()
    assert (
        stated(one_row_per_person=True).digest != stated().digest == stated(one_row_per_person=False).digest
    )


def test_scientific_notation_is_one_person() -> None:
    """A directory may mix the spellings of two programs: "1e+05" and "100000"."""
    person, names = people(pa.array(["1e+05", "100000", "1.5e1", "15", "1.25e1", "12E"]), "column 'id'")
    assert person.tolist() == [0, 0, 1, 1, 2, 3]
    assert names == ["100000", "15", "1.25e1", "12E"]


@pytest.mark.parametrize(
    "spellings",
    [
        ["1000", "\u0661\u0660\u0660\u0660", "\uff11\uff10\uff10\uff10", "1000\u00a0", "\ufeff1000", "1e3"],
        ["Zoe\u0308", "Zo\u00eb", " Zo\u00eb ", "Zo\u200b\u00eb"],
        ["\ufb01sh", "fish", "\u3000fish"],
    ],
    ids=["digits", "letters", "ligatures"],
)
def test_spellings_of_one_identifier_are_one_person(spellings: list[str]) -> None:
    """Other digits, no-break and invisible characters, composed letters: whoever has two must not count twice."""
    assert people(pa.array(spellings), "column 'id'")[0].tolist() == [0] * len(spellings)
    assert people(pa.array([*spellings, "fisH"]), "column 'id'")[0][-1] == 1
