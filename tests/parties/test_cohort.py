from __future__ import annotations

import pytest

from privlearn.errors import InvalidParameter
from privlearn.parties import Cohort


def test_who_is_counted_on() -> None:
    cohort = Cohort(parties=9, dropouts=2, colluding=2)
    assert (cohort.threshold, cohort.honest) == (7, 5)


@pytest.mark.parametrize(
    ("parties", "dropouts", "colluding"), [(1, 0, 0), (1001, 0, 1), (2, 0, 2), (5, -1, 1), (5, 1, -1)]
)
def test_promises_that_cannot_be_kept_are_refused(parties: int, dropouts: int, colluding: int) -> None:
    with pytest.raises(InvalidParameter):
        Cohort(parties, dropouts, colluding)


@pytest.mark.parametrize(
    ("parties", "dropouts", "colluding", "instead"),
    [
        (3, 1, 1, "Set dropouts = 0: dropouts = 1 needs 4 parties"),
        (5, 2, 1, "Set dropouts = 1: dropouts = 2 needs 8 parties"),
        (20, 5, 3, "Set dropouts = 3: dropouts = 5 needs 34 parties"),
        (1000, 40, 1, "Set dropouts = 31: dropouts = 40 needs 1642 parties"),
    ],
)
def test_a_refused_cohort_is_told_what_to_take_instead(
    parties: int, dropouts: int, colluding: int, instead: str
) -> None:
    with pytest.raises(InvalidParameter, match=instead):
        Cohort(parties, dropouts, colluding)
    allowed = int(instead.split()[3].rstrip(":"))
    assert Cohort(parties, allowed, colluding).honest == parties - allowed - colluding
    with pytest.raises(InvalidParameter):
        Cohort(parties, allowed + 1, colluding)
