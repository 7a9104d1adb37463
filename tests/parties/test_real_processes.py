"""Party processes and a coordinator's, over TLS, from the shell: to the end, and when one of them is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privlearn.parties import JointTraining
from privlearn.release import verify
from tests.support.process_cases import Site
from tests.support.run_cases import SIZES, TABLES

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    settings: dict[str, Any] = request.param
    made = Site(tmp_path, **settings)
    yield made
    made.end()


def check_logs_hold_no_cell(site: Site) -> None:
    screens = "".join(site.log(name) for name in site.processes)
    for table in TABLES.values():
        incomes = {str(value) for value in table["capital_income"].to_pylist() if value and value > 1000}
        assert incomes
        assert not any(income in screens for income in incomes)


@pytest.mark.parametrize(
    "site", [{"dropouts": 1, "colluding": 0, "accept_curious_parties": True, "rounds": 4}], indirect=True
)
def test_a_killed_party_changes_nothing_but_the_noise_if_the_plan_allows_it(site: Site) -> None:
    site.coordinator_timeout_seconds = 10  # so long it waits for the one that was killed
    site.start()
    site.await_line("west", "Answered question 2")
    site.processes["west"].kill()
    assert site.exit_code("coordinator") == 0, site.log("coordinator")
    assert [site.exit_code(name) for name in ("north", "south")] == [0, 0]
    proven = verify(site.folder / "plan.privlearn")
    assert (proven.recomputed.epsilon, proven.is_private) == (2.0, True)
    assert proven.certificate.mechanism.task.total == sum(SIZES.values())
    released = (site.folder / "plan.privlearn").read_bytes()
    assert all((site.folder / f"{name}.privlearn").read_bytes() == released for name in ("north", "south"))
    log = site.log("coordinator")
    assert "2 of 3 parties" in log.split("All 3 parties signed")[1]
    assert "Question 5 of 5" in log
    assert "epsilon so far 2 of 2" in log
    towards = JointTraining.load(site.folder / "plan.toml").towards_a_party
    assert towards is not None
    assert [site.spent(name) for name in SIZES] == [towards.epsilon] * 3  # what another party may learn
    check_logs_hold_no_cell(site)


@pytest.mark.slow  # test_coordinator_run.py loses parties in one process
@pytest.mark.parametrize("site", [{"dropouts": 0, "rounds": 4}], indirect=True)
def test_killed_beyond_the_plan_the_run_stops_cleanly(site: Site) -> None:
    site.coordinator_wait_seconds = 45
    site.start()
    site.await_line("west", "Answered question 2")
    site.processes["west"].terminate()
    assert site.exit_code("coordinator") == 1
    assert site.exit_code("west") == 128 + signal.SIGTERM
    assert "error: 2 parties answered; 3 are needed: The sum stays closed" in site.log("coordinator")
    for name in ("north", "south"):
        assert site.exit_code(name) == 1
        assert "error: the run was stopped: 2 parties answered" in site.log(name)
        assert not (site.folder / f"{name}.privlearn").exists()
    for name in SIZES:  # however it ended, the party's screen says what it cost
        assert "of 5 questions: epsilon" in site.log(name)
        assert "The ledger charges the whole agreement" in site.log(name)
        assert "Budget of" in site.log(name)
    assert not (site.folder / "plan.privlearn").exists()
    check_logs_hold_no_cell(site)


@pytest.mark.slow
@pytest.mark.parametrize("site", [{"rounds": 3}], indirect=True)
def test_a_party_beyond_its_limits_never_connects_and_the_others_keep_their_budget(site: Site) -> None:
    settings = site.folder / "west.toml"
    settings.write_text(settings.read_text().replace("max_epsilon = 4.0", "max_epsilon = 1.0"))
    site.start()
    assert site.exit_code("west") == 2
    assert "above this party's max_epsilon" in site.log("west")
    site.await_line("coordinator", "Waiting for west")
    site.processes["coordinator"].send_signal(signal.SIGTERM)
    assert site.exit_code("coordinator") == 128 + signal.SIGTERM
    assert "the run is suspended" in site.log("coordinator")
    assert "nothing was charged" not in site.log("coordinator")
    site.start_one("coordinator", "--end")
    assert site.exit_code("coordinator") == 0, site.log("coordinator")
    for name in ("north", "south"):
        assert site.exit_code(name) == 1
        assert site.spent(name) == 0.0
