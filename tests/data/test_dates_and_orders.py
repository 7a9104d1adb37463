"""Columns of dates and of ordered values: read alike from whatever holds them, refused without quoting a cell."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privlearn.data import Schema, SchemaDraft, SchemaEncoder, check_table, open_records
from privlearn.data.encoding.column_cells import days
from privlearn.data.schema import schema_template
from privlearn.data.sources import parse_csv
from privlearn.errors import DataError, SchemaError
from tests.support.rows import dense

LOWER, UPPER = datetime.date(1950, 1, 1), datetime.date(2050, 12, 31)
DATES = st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), min_size=1, max_size=6)


def encoder(**column: Any) -> SchemaEncoder:
    return SchemaEncoder(Schema.from_dict({"name": "t", "columns": {"x": column}}), fit_intercept=False)


@given(DATES)
def test_a_date_is_the_number_of_its_days(dates: list[datetime.date]) -> None:
    counted = [(day - LOWER).days for day in dates]
    as_dates = encoder(type="date", lower=str(LOWER), upper=str(UPPER)).encode({"x": dates})
    as_numbers = encoder(type="number", lower=0, upper=(UPPER - LOWER).days).encode({"x": counted})
    np.testing.assert_allclose(dense(as_dates), dense(as_numbers), atol=1e-12)


@given(DATES, st.times())
def test_every_form_of_a_date_is_the_same_day(dates: list[datetime.date], time: datetime.time) -> None:
    wanted = days(pa.array(dates), "x").tobytes()
    times = [datetime.datetime.combine(day, time) for day in dates]
    forms: list[Any] = [
        pa.array(times),
        pa.array([str(day) for day in dates]),
        pa.array([moment.isoformat() for moment in times]),
        pa.array(dates).cast(pa.date64()),
        pa.array([str(day) for day in dates]).dictionary_encode(),
        pl.Series(dates).to_arrow(),
        pa.array(pd.Series(pd.to_datetime([str(day) for day in dates]))),
    ]
    assert {days(form, "x").tobytes() for form in forms} == {wanted}


def test_a_time_counts_for_the_day_of_its_own_clock() -> None:
    late = datetime.datetime(2001, 2, 3, 23, 30)
    zone = pa.timestamp("us", "America/New_York")
    local = pa.compute.assume_timezone(pa.array([late]), "America/New_York")
    assert local.type == zone
    assert days(local, "x") == days(pa.array([late.date()]), "x")


@pytest.mark.parametrize("cell", ["2001-02-30", "2001-13-01", "3 May 2001", "", 20010203, True, 1.5])
def test_what_is_no_date_is_refused_without_being_quoted(cell: Any) -> None:
    with pytest.raises(DataError, match=r"column 'x' (holds|has missing cells)") as caught:
        encoder(type="date", lower="1950-01-01", upper="2050-12-31").encode({"x": [cell]})
    assert str(cell) not in str(caught.value) or cell == ""
    assert caught.value.__context__ is None


def test_gaps_follow_the_rule() -> None:
    settings = {"type": "date", "lower": "1950-01-01", "upper": "2050-12-31"}
    with pytest.raises(DataError, match="missing cells"):
        encoder(**settings).encode({"x": [None, "2001-02-03"]})
    assert not dense(encoder(**settings, missing="zero").encode({"x": [None, "2001-02-03"]}))[0].any()


def test_a_csv_file_spells_its_dates() -> None:
    schema = Schema.from_dict(
        {"name": "t", "columns": {"x": {"type": "date", "lower": "1950-01-01", "upper": "2050-12-31"}}}
    )
    table = parse_csv(b"x\n2001-02-03\n1999-12-31\n", schema)
    assert days(table["x"], "x").tolist() == [11356.0, 10956.0]


@given(st.permutations(["never", "seldom", "often", "always"]), st.lists(st.integers(0, 3), min_size=1))
def test_an_order_is_a_number_from_one_end_to_the_other(order: list[str], places: list[int]) -> None:
    ordered = encoder(type="ordinal", values=order).encode({"x": [order[place] for place in places]})
    numbered = encoder(type="number", lower=0, upper=3, knots=4).encode({"x": places})
    np.testing.assert_allclose(dense(ordered), dense(numbered), atol=1e-12)


def test_unlisted_values_follow_the_rule() -> None:
    with pytest.raises(DataError, match="does not list"):
        encoder(type="ordinal", values=["low", "high"]).encode({"x": ["huge"]})
    lenient = encoder(type="ordinal", values=["low", "high"], unknown="zero")
    assert not dense(lenient.encode({"x": ["huge"]})).any()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"type": "date", "lower": "2000-01-01", "upper": "1999-01-01"}, "before upper"),
        ({"type": "date", "lower": None, "upper": "1999-01-01"}, "still empty"),
        ({"type": "date", "lower": 3, "upper": "1999-01-01"}, "must be a date"),
        ({"type": "ordinal", "values": ["low"]}, "at least two"),
        ({"type": "ordinal", "values": ["low", 3]}, "of one type"),
        ({"type": "number", "lower": 0, "upper": 48, "period": 24}, "shorter than"),
        ({"type": "number", "lower": 0, "upper": 24, "period": 24, "scale": "log"}, "no long tail"),
    ],
)
def test_settings_that_make_no_sense_are_refused(column: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"name": "t", "columns": {"x": column}})


@pytest.mark.parametrize(
    "column",
    [
        {"type": "date", "lower": "estimate", "upper": "2020-01-01"},
        {"type": "ordinal", "values": "estimate"},
        {"type": "number", "lower": 0, "upper": "estimate", "period": 24},
    ],
)
def test_dates_and_orders_cannot_be_bought(column: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="cannot be estimated privately"):
        SchemaDraft.from_dict({"name": "t", "columns": {"x": column}})


def test_a_period_brings_its_bounds() -> None:
    column: Any = Schema.from_dict({"name": "t", "columns": {"x": {"type": "number", "period": 24}}}).columns[
        "x"
    ]
    assert (column.lower, column.upper) == (0.0, 24.0)


FORMS = {
    "dd.mm.yyyy": ["31.01.2020", "31.1.2020", " 31.01.2020 10:30"],
    "dd/mm/yyyy": ["31/01/2020", "31/1/2020T10:30:00Z"],
    "mm/dd/yyyy": ["01/31/2020", "1/31/2020"],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_stated_form_of_dates_is_read_besides_the_usual_one(form: str, tmp_path: Path) -> None:
    columns = {"x": {"type": "date", "lower": str(LOWER), "upper": str(UPPER)}}
    plain = Schema.from_dict({"name": "t", "columns": columns})
    schema = Schema.from_dict({"name": "t", "file": {"dates": form}, "columns": columns})
    wanted = dense(SchemaEncoder(plain).encode({"x": ["2020-01-31"]}))
    for text in ["2020-01-31", *FORMS[form]]:
        np.testing.assert_array_equal(dense(SchemaEncoder(schema).encode({"x": [text]})), wanted)
        (tmp_path / "t.csv").write_text(f'x,y\n"{text}",1\n')
        (block,) = open_records(tmp_path / "t.csv", schema).blocks()
        assert block.column("x").to_pylist() == [datetime.date(2020, 1, 31)]
    refused = ["31.02.2020", "2020.01.31", "32/01/2020", "13/13/2020", "31.01.20", "31-01-2020", "1.31.2020"]
    others = [texts[0] for other, texts in FORMS.items() if other != form]
    for text in [*refused, *others]:
        with pytest.raises(DataError, match="not dates") as refusal:
            SchemaEncoder(schema).encode({"x": [text]})
        assert text not in str(refusal.value)


def test_templates_and_checks_name_the_form_of_dates(tmp_path: Path) -> None:
    for number, (text, form) in enumerate(
        [("31.1.2020", "dd.mm.yyyy"), ("31/01/2020", "dd/mm/yyyy"), ("1/31/2020", "mm/dd/yyyy")]
    ):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"day;y\n{text};1\n02/02/2020;1\n" if "/" in text else f"day;y\n{text};1\n")
        template = schema_template(path)
        assert f'dates: "{form}"' in template
        assert "type: date" in template
        columns = {"day": {"type": "date", "lower": str(LOWER), "upper": str(UPPER)}}
        schema = Schema.from_dict({"name": "t", "file": {"delimiter": ";"}, "columns": columns})
        (finding,) = (finding for finding in check_table(path, schema).findings if finding.column == "day")
        assert finding.stops
        assert f"file: {{dates: {form}}}" in finding.what
    (tmp_path / "unclear.csv").write_text("day;y\n02/03/2020;1\n")
    assert "dates:" not in schema_template(tmp_path / "unclear.csv").partition("name:")[2]


def test_a_time_of_day_is_its_hours_where_the_period_is_a_day() -> None:
    hours = {"type": "number", "lower": 0, "upper": 24, "period": 24}
    known = encoder(**hours)
    times = [datetime.time(14, 30), datetime.time(7, 15, 30, 123_457), datetime.time(0)]
    numbers = [14.5, (7 * 3600 + 15 * 60 + 30.123457) / 3600, 0.0]
    wanted = dense(known.encode({"x": numbers}))
    for cells in (times, pa.array(times), [time.isoformat() for time in times], pd.Series(times)):
        np.testing.assert_allclose(dense(known.encode({"x": cells})), wanted, atol=1e-15)
    texts = ["14:30", "07:15:30.123457", "00:00"]
    np.testing.assert_array_equal(
        dense(known.encode({"x": texts})), dense(known.encode({"x": pa.array(times)}))
    )
    np.testing.assert_array_equal(dense(known.encode({"x": ["14:30"]})), wanted[:1])
    for text in ("24:00", "7:15", "14.30 h", "14:60"):
        with pytest.raises(DataError, match="not numbers"):
            known.encode({"x": [text]})
    with pytest.raises(DataError):
        encoder(type="number", lower=0, upper=24).encode({"x": ["14:30"]})
