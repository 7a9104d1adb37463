"""kill -9 at random moments of `privlearn train`: a crash may waste budget, never overspend or forget it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privlearn import Guarantee, Ledger, Release
from tests.support.cli_support import Census

EPSILON = 0.125  # sums of it are exact
FITS_IN_A_BUDGET = 4
RUNS_A_BUDGET = 8  # more than fit, so that the limit is met as well


class ForkServer:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, arguments: list[str], kill_after: float | None) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"arguments": arguments, "kill_after": kill_after}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


class Holder:
    """A folder with one ledger and the releases that were charged to it."""

    def __init__(self, census: Census, name: str) -> None:
        self.census = census
        self.folder = census / name
        self.folder.mkdir()
        Ledger.create(self.store, "census", Guarantee(FITS_IN_A_BUDGET * EPSILON))

    @property
    def store(self) -> Path:
        return self.folder / "budgets.db"

    def arguments(self, name: str) -> list[str]:
        words = [
            "train",
            self.census.table,
            "--schema",
            self.census.schema,
            "--epsilon",
            EPSILON,
            "--delta",
            0,
        ]
        words += ["--ledger", self.store, "--out", self.folder / f"{name}.privlearn"]
        return [str(word) for word in words]

    def check(self) -> tuple[int, int, int]:
        """Numbers of reservations, of commits and of releases, after checking that they agree."""
        statement = Ledger.open(self.store, "census").statement()
        releases = [
            Release.load(path) for path in self.folder.glob("*.privlearn")
        ]  # whole, or it would not load
        released = sum(release.certificate.guarantee.epsilon for release in releases)
        counted = statement.spent.epsilon + statement.reserved.epsilon
        assert statement.spent.epsilon >= released
        assert counted <= statement.total.epsilon
        assert statement.left.epsilon == statement.total.epsilon - counted
        committed = sum(entry.state == "committed" for entry in statement.entries)
        return len(statement.entries), committed, len(releases)


def _crash(census: Census, server: ForkServer, kills: int) -> dict[str, int]:
    """Kill that many runs, more if none of them had come far; what each left behind, by how far it had come."""
    warm_up = Holder(census, "warm-up")
    longest = max(server.run(warm_up.arguments(f"m{index}"), None)["seconds"] for index in range(3))
    assert warm_up.check() == (3, 3, 3)
    dice = random.Random(kills)
    seen = dict.fromkeys(("nothing", "reserved", "committed", "released", "over budget"), 0)
    holder, before, killed, runs = warm_up, (0, 0, 0), 0, 0
    while killed < kills or killed == seen["nothing"]:
        assert killed < 20 * kills, "no run comes as far as a reservation"
        if runs % RUNS_A_BUDGET == 0:
            holder, before = Holder(census, f"holder-{runs}"), (0, 0, 0)
        usual = (1 + killed // kills) * longest  # a machine that has become busy needs more time
        moment = dice.triangular(0.0, 1.1 * usual, usual)  # most of a run is reading, which changes nothing
        answer = server.run(holder.arguments(f"m{runs}"), moment)
        runs += 1
        after = holder.check()
        reserved, committed, released = (new - old for new, old in zip(after, before, strict=True))
        before = after
        if answer["killed"]:
            killed += 1
            assert 1 >= reserved >= committed >= released >= 0
            seen[("nothing", "reserved", "committed", "released")[reserved + committed + released]] += 1
        elif answer["code"] == 0:
            assert (reserved, committed, released) == (1, 1, 1)
        else:
            assert (answer["code"], reserved) == (1, 0)
            assert after[0] == FITS_IN_A_BUDGET
            seen["over budget"] += 1
    return seen


def test_killed_at_random_moments(census: Census, server: ForkServer) -> None:
    _crash(census, server, 12)  # asserts after every run


@pytest.mark.slow
def test_killed_at_200_random_moments(census: Census, server: ForkServer) -> None:
    seen = _crash(census, server, 200)
    print(seen)
    assert all(seen[stage] > 0 for stage in ("nothing", "reserved", "over budget"))
