"""What each odd text means, written out: docs/reference/cells.md in examples."""

from __future__ import annotations

import math
from typing import Any

import pytest

from privlearn.data.schema import CellRules, UnreadableCell

REFUSED = "refused"
NUMBERS: dict[str, Any] = {
    "5": 5.0,
    "+5": 5.0,
    "-09": -9.0,
    " 5": 5.0,
    "5\t": 5.0,
    "\u00a05": 5.0,
    "5.": 5.0,
    ".5": 0.5,
    "1e3": 1e3,
    "1e400": math.inf,
    "-1e400": -math.inf,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "true": 1.0,
    "FALSE": 0.0,
    **dict.fromkeys(
        ["", " ", "NA", " NA", "null", "#N/A", "nan", "NAN", "-nan", "-9", "-9.0", "-09", "k.A."]
    ),
    **dict.fromkeys(
        ["5_0", "\u0665", "\u00bd", "0x10", "1e", "e5", "5,0", "1,000", "nan(x)", "na", "5%"], REFUSED
    ),
}
DATES: dict[str, Any] = {
    **dict.fromkeys(
        ["2010-05-05", " 2010-05-05", "2010-05-05T10:00", "2010-05-05 23:59:59.5+02:00"], 14734.0
    ),
    "0001-01-01": -719162.0,
    "NA": None,
    "": None,
    "1900-01-01": None,
    "1900-01-01T00:00Z": None,
    **dict.fromkeys(
        ["20100505", "2010-W18-3", "2010-5-5", "2010-02-30", "0000-01-01", "10000-01-01"], REFUSED
    ),
    **dict.fromkeys(
        ["2010-05-05T", "2010-05-05Tabc", "2010-05-05 24:00", "05.05.2010", "2010/05/05"], REFUSED
    ),
}
TRUTHS: dict[str, Any] = {
    "true": 1.0,
    "tRue": 1.0,
    "FALSE": 0.0,
    "1": 1.0,
    "0": 0.0,
    "1.0": 1.0,
    " true": 1.0,
    "NA": None,
    **dict.fromkeys(["yes", "t", "2", "on", "tru\u0435"], REFUSED),
}
TEXTS: dict[str, Any] = {
    "a": "a",
    " a": " a",
    "NA": "NA",
    "null": None,
    "": None,
    " ": " ",
    "k.A.": None,
    "na": "na",
}
CASES = [
    *((CellRules("number", codes=("-9", "k.A.")), *case) for case in NUMBERS.items()),
    *((CellRules("whole"), *case) for case in (("7.0", 7.0), ("01", 1.0), ("true", REFUSED), ("x", REFUSED))),
    *((CellRules("date", codes=("1900-01-01",)), *case) for case in DATES.items()),
    *((CellRules("truth"), *case) for case in TRUTHS.items()),
    *((CellRules("text", codes=("k.A.",), listed=("a", "NA")), *case) for case in TEXTS.items()),
    *((CellRules("text", trim=True), *case) for case in ((" a\u00a0", "a"), (" ", None), (" NA ", None))),
    *(
        (CellRules("number", decimal=","), *case)
        for case in (("4,5", 4.5), ("4.500", REFUSED), ("1,0,0", REFUSED))
    ),
    *(
        (CellRules("number", decimal=",", codes=("99.9",)), *case)
        for case in (("99,9", None), ("99,90", None))
    ),
]


@pytest.mark.parametrize(("rules", "text", "value"), CASES)
def test_a_text_means_what_the_page_says(rules: CellRules, text: str, value: Any) -> None:
    try:
        found = rules.read(text)
    except UnreadableCell:
        assert value is REFUSED
    else:
        assert (type(found), found) == (type(value), value)
