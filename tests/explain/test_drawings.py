"""Figures keep inside their frame, and name what they show."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from privlearn.explain import PairEffect, pair_figure

WARDS = ["east wing", "west wing", "outpatient department", "other"]


def drawn(first: list[Any], second: list[Any], most: float) -> str:
    grid = np.linspace(-most, most, len(first) * len(second)).reshape(len(first), len(second))
    return pair_figure(PairEffect(("ward", "dose"), (first, second), {None: grid}, 1.0, 0.5, 1.5), None)


def texts(figure: str) -> list[tuple[float, str, str]]:
    found = re.findall(r'<text x="([-0-9.]+)" y="[-0-9.]+" text-anchor="(\w+)"[^>]*>([^<]*)</text>', figure)
    return [(float(x), anchor, text) for x, anchor, text in found]


@pytest.mark.parametrize("most", [0.0123, 2.83, 123456.7])
@pytest.mark.parametrize("second", [[0.5, 1.5, 2.5], WARDS, [str(number) for number in range(40)]])
@pytest.mark.parametrize("first", [WARDS, [1234.5 * place for place in range(12)]])
def test_a_heat_map_s_words_stay_inside(first: list[Any], second: list[Any], most: float) -> None:
    figure = drawn(first, second, most)
    width = float(re.findall(r'viewBox="0 0 ([0-9.]+)', figure)[0])
    for x, anchor, text in texts(figure):
        length = 6.5 * len(text)
        left = {"start": x, "middle": x - length / 2, "end": x - length}[anchor]
        assert left >= -6.5, text
        assert left + length <= width + 6.5, text


def test_a_heat_map_names_every_listed_value_that_has_room() -> None:
    shown = [text for _, _, text in texts(drawn(WARDS, ["no", "yes"], 1.0))]
    assert {"no", "yes", "other"} <= set(shown)
    assert len([text for text in shown if text.startswith(("east", "west", "outp"))]) == 3
    assert {"+1", "+0.5", "0", "-0.5", "-1"} <= set(shown)
    many = [text for _, _, text in texts(drawn(WARDS, [str(place) for place in range(40)], 1.0))]
    assert {"0", "39"} <= set(many)
    assert "20" not in many
