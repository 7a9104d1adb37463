"""Noise drawn ahead: every draw of the source is given once, in its order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privlearn.sessions.drawn_ahead import DrawnAhead


class Counted:
    """Gives 0, 1, 2, ... of each scale."""

    def __init__(self) -> None:
        self.given: dict[float, int] = {}

    def discrete_gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        start = self.given.get(scale, 0)
        self.given[scale] = start + size
        return np.arange(start, start + size, dtype=np.int64)


def test_each_draw_is_given_once() -> None:
    ahead = DrawnAhead(Counted())
    sizes = [1, 3, 64, 1, 200, 0, 7, 60]
    for scale in (2.0, 5.0):
        drawn = np.concatenate([ahead.discrete_gaussian(scale, size) for size in sizes])
        assert drawn.tolist() == list(range(sum(sizes)))


def test_the_source_is_asked_seldom() -> None:
    source = Counted()
    ahead = DrawnAhead(source)
    for _ in range(64):
        ahead.discrete_gaussian(2.0, 1)
    assert source.given == {2.0: 64}
