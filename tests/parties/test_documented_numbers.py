"""Numbers that the pages on several holders print, computed again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scipy.optimize import brentq

from privlearn.data import census_schema
from privlearn.parties import JointTraining
from privlearn.release.signatures import WORDS
from tests.support.party_cases import hockey_stick, max_ratio

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = (DOCS / "tutorials" / "multiparty.md").read_text()
LINE = re.compile(
    r"Question (\d+) of (\d+) \((.*?)\): (\d+) of (\d+) parties; epsilon so far (\S+) of (\S+)\."
)


def test_the_tutorial_prints_what_its_plan_asks_and_costs() -> None:
    agreement = JointTraining(
        schema=census_schema(),
        parties={"north": 500, "south": 2500, "west": 700, "east": 900},
        epsilon=2.0,
        delta=1e-5,
        dropouts=1,
        colluding=1,
    )
    lines = LINE.findall(TUTORIAL)
    assert len(lines) == 5
    for number, questions, kind, present, parties, spent, promise in lines:
        mechanism = agreement.mechanism
        assert int(questions) == len(mechanism.kinds)
        assert mechanism.kinds[int(number) - 1] == kind.replace(" ", "_")
        assert int(present) == int(parties) == len(agreement.parties)
        assert spent == f"{mechanism.epsilon_after(int(number)):.3g}"
        assert float(promise) == agreement.guarantee.epsilon


@pytest.mark.parametrize("page", ["tutorials/multiparty.md"])
def test_printed_fingerprints_have_the_form_that_commands_print(page: str) -> None:
    (words,) = re.findall(r"pobos(?: [a-z]{5})+", (DOCS / page).read_text())
    assert len(words.split()) == WORDS >= 12


def test_somebody_with_two_parties_under_a_plan_for_one() -> None:
    """The ratio doubles: what epsilon is that at the same delta?"""
    (stated,) = re.findall(
        r"about \$\\varepsilon = ([\d.]+)\$ at the same", (DOCS / "theory" / "several-parties.md").read_text()
    )
    ratio = 2.0 * max_ratio(1.0, 1e-5)
    assert float(stated) == round(brentq(lambda epsilon: hockey_stick(epsilon, ratio) - 1e-5, 0.1, 20.0), 2)
