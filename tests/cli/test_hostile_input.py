"""Tables that do not fit: a clear error or a correct fit, no cell in any message, the ledger unchanged on error."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from privlearn import Ledger
from privlearn.data import simulated_census, write_table
from tests.support.cli_support import Census, Run

CANARY = "7364518209"
CANARY_TEXT = "Xylophon-Quirk"
HEADER = "age,hours,education_years,capital_income,occupation,region,sex,income"
ROW = "40,38,12,0,office,north,female,low"


def _lines(*rows: str, header: str = HEADER) -> str:
    return "\n".join([header, *[ROW] * 30, *rows, ROW.replace("low", "high")]) + "\n"


REFUSED = {
    "NaN": _lines(f"nan,{CANARY},12,0,office,north,female,low"),
    "empty cell": _lines(f",{CANARY},12,0,office,north,female,low"),
    "text for a number": _lines(f"{CANARY_TEXT},38,12,0,office,north,female,low"),
    "unknown category": _lines(f"40,38,12,0,{CANARY_TEXT},north,female,low"),
    "unseen label": _lines(f"40,38,12,0,office,north,female,{CANARY_TEXT}"),
    "missing label": _lines(f"{CANARY},38,12,0,office,north,female,"),
    "ragged line": _lines(f"40,{CANARY_TEXT}"),
    "duplicate column": _lines(f"{ROW},{CANARY}", header=f"{HEADER},age"),
    "missing column": _lines(header=HEADER.replace("hours", "minutes")),
    "no header": "\n".join([f"{CANARY},38,12,0,{CANARY_TEXT},north,female,low"] * 9),
    "zero rows": f"{HEADER}\n",
    "empty file": "",
    "not text": "\x00\xff" * 50,
}
FITTED = {
    "infinity": _lines("inf,-inf,12,0,office,north,female,low"),
    "a billion": _lines(f"1e9,{CANARY},12,-1e9,office,north,female,low"),
    "one class only": "\n".join([HEADER, *[ROW] * 30]),
    "one row": f"{HEADER}\n{ROW}\n",
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_refused(content: str, budgeted: Census, train: Run) -> None:
    before = budgeted.ledger.read_bytes()
    budgeted.table.write_text(content, encoding="latin-1")
    told = train("--epsilon", 1, "--ledger", budgeted.ledger)
    assert told.code == 1
    assert told.stderr.startswith("error: ")
    assert "defect" not in told.stderr
    _no_canary(told.told)
    assert budgeted.ledger.read_bytes() == before
    assert not (budgeted / "income.privlearn").exists()


@pytest.mark.parametrize("content", FITTED.values(), ids=FITTED)
def test_fitted(content: str, budgeted: Census, train: Run, run: Run) -> None:
    budgeted.table.write_text(content)
    told = train("--epsilon", 1, "--ledger", budgeted.ledger)
    assert told.code == 0
    _no_canary(told.told)
    assert run("verify", budgeted / "income.privlearn").code == 0
    assert Ledger.open(budgeted.ledger, "census").statement().spent.epsilon == 1


@pytest.mark.parametrize("command", ["predict", "compare", "schema"])
def test_other_commands_keep_cells_to_themselves(command: str, census: Census, train: Run, run: Run) -> None:
    train("--epsilon", 1)
    for name, content in REFUSED.items():
        table = census / "hostile.csv"
        table.write_text(content, encoding="latin-1")
        arguments: dict[str, tuple[object, ...]] = {
            "predict": (census / "income.privlearn", table, "--out", census / "out"),
            "compare": (table, "--schema", census.schema, "--out", census / "out"),
            "schema": (table,),
        }
        told = run(command, *arguments[command])
        if not (command == "schema" and name == "no header"):  # its first line may well be taken for names
            _no_canary(told.told)
        assert "defect" not in told.stderr, name
        (census / "out").unlink(missing_ok=True)


HOSTILE_CELLS: dict[str, pa.Array] = {
    "nested": pa.array([[int(CANARY)]] * 400),
    "dates": pa.array([int(CANARY)] * 400, pa.timestamp("s")),
    "bytes": pa.array([CANARY_TEXT.encode()] * 400),
    "null type": pa.nulls(400),
}


@pytest.mark.parametrize("cells", HOSTILE_CELLS.values(), ids=HOSTILE_CELLS)
def test_parquet_with_wrong_types(cells: pa.Array, budgeted: Census, run: Run) -> None:
    table = simulated_census(400, seed=1).set_column(0, "age", cells)
    write_table(table, budgeted / "census.parquet")
    before = budgeted.ledger.read_bytes()
    told = run(
        "train", budgeted / "census.parquet", "--schema", budgeted.schema, "--epsilon", 1, "--delta", 0,
        "--ledger", budgeted.ledger, "--out", budgeted / "income.privlearn",
    )  # fmt: skip
    assert told.code == 1
    assert "age" in told.stderr
    _no_canary(told.told)
    assert budgeted.ledger.read_bytes() == before


DEFECTS: dict[str, Callable[[], Exception]] = {
    "library error": lambda: RuntimeError(f"cannot convert {CANARY_TEXT}"),
    "key error": lambda: KeyError(CANARY_TEXT),
    "system error": lambda: OSError(5, "Input/output error", "census.csv"),
}


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_unexpected_errors_show_no_message_and_no_locals(
    defect: Callable[[], Exception], train: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        private_row = CANARY  # a traceback with locals would show it
        raise defect() from ValueError(private_row)

    monkeypatch.setattr("privlearn.data.sources.files.open_records", broken)
    told = train("--epsilon", 1)
    assert told.code == 1
    assert told.stderr.startswith("error: ")
    _no_canary(told.told)


def _no_canary(text: str) -> None:
    assert CANARY not in text
    assert CANARY_TEXT not in text
