"""Real runs whose processes are killed at random moments and started again, and what must hold at their end."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privlearn.budget import CompositionName
from privlearn.guarantee import Guarantee
from privlearn.release import Release, verify
from tests.support.forked import child_context
from tests.support.process_cases import Site
from tests.support.run_cases import SIZES, agreement_of

ROUNDS = 6
PROCESSES = ("coordinator", *SIZES)
RENYI_BUDGET = Guarantee(20.0, 1e-4)


@dataclass(frozen=True)
class Ending:
    """How a run ended: ``release``, or the coordinator's last words; and who was killed after which line of its."""

    release: bool
    words: str
    kills: tuple[str, ...]


class ForkedSite(Site):
    """Processes that a fork server starts: no less real, and there at once, so that many runs can be tried."""

    wait_seconds = 60

    def _process(self, arguments: list[str], log: Path) -> Any:
        return ForkedCommand(self.folder, arguments, log)


class ForkedCommand:
    """A process with the methods of `subprocess.Popen` that a `Site` needs."""

    def __init__(self, folder: Path, arguments: list[str], log: Path) -> None:
        log.touch()
        self._process = child_context().Process(target=_command, args=(str(folder), arguments, str(log)))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        assert self._process.exitcode is not None, "a process does not end"
        return self._process.exitcode


def _command(folder: str, arguments: list[str], log: str) -> None:
    from privlearn.cli import main

    screen = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(screen, 1)
    os.dup2(screen, 2)
    os.chdir(folder)
    code = 0
    try:
        main(arguments)
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    sys.stdout.flush()
    os._exit(code)


def killed_run(folder: Path, seed: int) -> Ending:
    """Run once with one or two kills, each followed by a new start, and check what must hold."""
    draw = random.Random(seed)
    composition: CompositionName = "renyi" if draw.random() < 0.75 else "basic"
    dropouts = draw.choice((0, 1))
    agreement = {
        "dropouts": dropouts,
        "colluding": 0 if dropouts else 1,
        "accept_curious_parties": bool(dropouts),
        "rounds": ROUNDS,
    }
    budget = RENYI_BUDGET if composition == "renyi" else Guarantee(4.0, 1e-5)
    site = ForkedSite(folder, composition, budget, **agreement)
    try:
        site.start()
        kills = tuple(_kill_somebody(site, draw) for _ in range(draw.choice((1, 1, 2))))
        for name in PROCESSES:
            site.exit_code(name)
        _check(site, composition, len(agreement_of(**agreement).mechanism.kinds))
    finally:
        site.end()
    log = site.log("coordinator")
    return Ending((folder / "plan.privlearn").exists(), log.splitlines()[-1], kills)


def _kill_somebody(site: Site, draw: random.Random) -> str:
    """Kill a process at a random moment: a random time after a random line of the coordinator's screen."""
    lines = draw.randrange(2, ROUNDS + 4)
    deadline = time.monotonic() + 120.0
    while _lines(site) < lines and time.monotonic() < deadline and _running(site, "coordinator"):
        time.sleep(0.01)
    time.sleep(draw.random() * 0.5)
    victim = draw.choice(PROCESSES)
    if _running(site, victim):
        site.kill(victim)
        time.sleep(draw.random() * 2.0)
        site.start_one(victim)
    return f"{victim} after {_lines(site)} lines"


def _lines(site: Site) -> int:
    return site.log("coordinator").count("\n")


def _running(site: Site, name: str) -> bool:
    return site.processes[name].poll() is None


def _check(site: Site, composition: CompositionName, questions: int) -> None:
    """A release that verifies or an error in words, on every screen; and ledgers that hold what was asked."""
    screens = {name: site.log(name) for name in PROCESSES}
    released = site.folder / "plan.privlearn"
    if released.exists():
        verify(released)
    else:
        assert "error: " in screens["coordinator"], screens
    assert "Traceback" not in "".join(screens.values()), screens
    said = set(map(int, re.findall(r"Question (\d+) of", screens["coordinator"])))
    asked = min(questions, len(said) + 1)  # the last may have been asked and not opened
    for name in SIZES:
        told = re.findall(r"Answered (\d+) of|No question was answered", screens[name])
        assert told, screens
        _check_ledger(site, name, composition, asked)


def _check_ledger(site: Site, name: str, composition: CompositionName, asked: int) -> None:
    entries = site.statement(name).entries
    states = [entry.state for entry in entries]
    assert "reserved" not in states, (name, states)
    paid = states.count("committed")
    answered = set(re.findall(r"Answered question (\d+) of", site.log(name)))
    in_sums = _sums_with(site, name)
    if composition == "basic":
        assert paid == (1 if answered or in_sums else paid) <= 1, (name, states)
        return
    # a process that is killed may have paid for one answer and not have said so
    kills = site.log(name).count("Continues the run")
    assert len(answered | in_sums) <= paid <= min(asked, len(answered) + kills), (name, states, answered)


def _sums_with(site: Site, name: str) -> set[str]:
    """Return the questions whose opened sum includes this party, according to the release."""
    released = site.folder / "plan.privlearn"
    if not released.exists():
        return set()
    run = Release.load(released).run
    assert run is not None
    return {str(number + 1) for number, names in enumerate(run.sums) if name in names}
