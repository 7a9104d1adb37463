from __future__ import annotations

import pytest

from privlearn.errors import InvalidParameter
from privlearn.multiparty.cohort import Cohort


def test_who_is_counted_on() -> None:
    cohort = Cohort(parties=3, dropouts=1)
    assert (cohort.threshold, cohort.honest, cohort.colluding_with_liar) == (2, 1, 0)
    assert Cohort(10, dropouts=2, colluding=3).colluding_with_liar == 3
    assert Cohort(10, dropouts=4, colluding=3).colluding_with_liar == 1


@pytest.mark.parametrize(
    ("parties", "dropouts", "colluding"),
    [(1, 0, 0), (1001, 0, 1), (4, 2, 0), (3, 1, 2), (2, 0, 2), (5, -1, 1), (5, 1, -1)],
)
def test_promises_that_cannot_be_kept_are_refused(parties: int, dropouts: int, colluding: int) -> None:
    with pytest.raises(InvalidParameter):
        Cohort(parties, dropouts, colluding)


@pytest.mark.parametrize("parties", range(2, 9))
def test_a_liar_who_says_different_things_to_different_parties_lacks_a_share(parties: int) -> None:
    """Every honest party gives one of the two shares of a vector's secrets, every colluding one both."""
    for dropouts in range((parties + 1) // 2):
        cohort = Cohort(parties, dropouts)
        helpers = cohort.colluding_with_liar
        assert (parties - helpers) + 2 * helpers < 2 * cohort.threshold
