"""Lost connections, restarts, clocks and certificates: the cause is told, and the run goes on where it can."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from privlearn.errors import InvalidParameter, ProtocolError
from privlearn.parties.run import Parts, Stage, proposal, write_certificate
from privlearn.parties.run import identity as identities
from privlearn.parties.run.identity import check_dates
from tests.parties.test_flower_link import Link
from tests.support.run_cases import IDENTITIES, Wire, agreement_of

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")
pytestmark = pytest.mark.filterwarnings("default")  # Flower's and its dependencies' own

AGREEMENT = agreement_of()
SIGN = proposal(AGREEMENT, bytes(32))


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    made = Link(tmp_path)
    with made.flower.serving("127.0.0.1", made.port, made.certificate, made.key):
        yield made


class North:
    """The party north in a thread, at a link's address."""

    def __init__(self, link: Link) -> None:
        from privlearn.parties.flower.node import FlowerNode

        self.told: list[str] = []
        self.run = Wire(AGREEMENT).parties["north"]
        self.node = FlowerNode(link.address, link.certificate, IDENTITIES["north"], self.told.append)
        self.thread = threading.Thread(target=self._take_part, daemon=True)
        self.thread.start()

    def _take_part(self) -> None:
        from privlearn.parties.flower import client_app

        with self.node.connection(wait=60.0):
            self.node.serve(
                client_app(self.run), lambda: self.run.finished, lambda: self.run.progress, timeout=120.0
            )

    def end(self, link: Link) -> None:
        assert link.ask(Stage.STOP, [b"enough"]) == {0: []}
        self.thread.join(timeout=60.0)
        assert self.run.stopped == "enough"


def test_a_party_that_ended_without_taking_leave_comes_again(link: Link) -> None:
    """Flower would take it for present for twenty minutes, and refuse it so long."""
    from privlearn.parties.flower.node import FlowerNode

    killed = FlowerNode(link.address, link.certificate, IDENTITIES["north"])
    killed._node = killed._request_node()
    killed._client.close()
    north = North(link)
    (reply,) = link.ask(Stage.AGREEMENT, SIGN).values()
    assert len(reply[0]) == 64
    north.end(link)


def test_a_message_lost_with_a_process_reaches_its_next_one(link: Link) -> None:
    from privlearn.parties.flower.node import FlowerNode

    killed = FlowerNode(link.address, link.certificate, IDENTITIES["north"])
    killed._node = killed._request_node()
    answers: dict[int, Parts | str] = {}
    asking = threading.Thread(target=lambda: answers.update(link.ask(Stage.AGREEMENT, SIGN)))
    asking.start()
    while killed._receive() is None:
        pass
    killed._client.close()
    north = North(link)
    asking.join(timeout=60.0)
    assert len(answers[0][0]) == 64
    north.end(link)


def test_a_party_finds_a_coordinator_that_was_started_again(tmp_path: Path) -> None:
    first = Link(tmp_path)
    with first.flower.serving("127.0.0.1", first.port, first.certificate, first.key):
        north = North(first)
        (signed,) = first.ask(Stage.AGREEMENT, SIGN).values()
    while not north.told:
        pass
    first.flower = type(first.flower)(AGREEMENT)  # as a new process makes it: it knows no node yet
    with first.flower.serving("127.0.0.1", first.port, first.certificate, first.key):
        assert first.ask(Stage.AGREEMENT, SIGN) == {0: signed}  # the same run: the same sign-off
        assert north.told[0].startswith("Waiting: the coordinator cannot be reached")
        north.end(first)


@pytest.mark.parametrize(("hours", "words"), [(-2, "7200 seconds ahead of"), (2, "7200 seconds behind")])
def test_a_party_whose_clock_goes_wrong_goes_by_the_coordinator_s(
    link: Link, monkeypatch: pytest.MonkeyPatch, hours: int, words: str
) -> None:
    from privlearn.parties.flower import node

    class Wrong(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> Any:
            return datetime.now(zone) + timedelta(hours=hours)

    monkeypatch.setattr(node, "datetime", Wrong)
    north = North(link)
    assert len(link.ask(Stage.AGREEMENT, SIGN)[0][0]) == 64
    # A busy machine may take seconds between the two readings of the clock.
    assert words in re.sub(r"\b7[12]\d\d\b", "7200", north.told[0])
    north.end(link)


def expired(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    class LongAgo(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> Any:
            return datetime.now(UTC) - timedelta(days=400)

    with monkeypatch.context() as patched:
        patched.setattr(identities, "datetime", LongAgo)
        write_certificate(folder / "old.crt", folder / "old.key", ["127.0.0.1"])
    return folder / "old.crt", folder / "old.key"


def test_a_certificate_that_has_expired_is_named_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privlearn.parties.flower import link as links
    from privlearn.parties.flower.node import FlowerNode

    served = Link(tmp_path)
    certificate, key = expired(tmp_path, monkeypatch)
    with (
        pytest.raises(InvalidParameter, match="not today"),
        served.flower.serving("127.0.0.1", served.port, certificate, key),
    ):
        pass
    monkeypatch.setattr(links, "check_dates", lambda certificate: None)
    with (
        served.flower.serving("127.0.0.1", served.port, certificate, key),
        pytest.raises(ProtocolError, match="certificate has expired or is not valid yet"),
        FlowerNode(served.address, certificate, IDENTITIES["north"]).connection(wait=0.0),
    ):
        pass
    check_dates(served.certificate)


def test_a_silent_coordinator_is_left_with_the_cause(tmp_path: Path) -> None:
    from privlearn.parties.flower import client_app
    from privlearn.parties.flower.node import FlowerNode

    served, north = Link(tmp_path), Wire(AGREEMENT).parties["north"]
    node = FlowerNode(served.address, served.certificate, IDENTITIES["north"])
    with served.flower.serving("127.0.0.1", served.port, served.certificate, served.key):
        node._node = node._request_node()
    with pytest.raises(ProtocolError, match=r"no progress for 1 seconds \(the coordinator cannot be reached"):
        node.serve(client_app(north), lambda: north.finished, lambda: north.progress, timeout=1.0)


def test_a_needed_party_is_waited_for_longer(link: Link) -> None:
    """A stage that would fail without it does not end with `timeout`."""
    answers: dict[int, Parts | str] = {}
    asking = threading.Thread(target=lambda: answers.update(link.ask(Stage.QUESTION, [], timeout=0.0)))
    asking.start()
    north = North(link)
    asking.join(timeout=60.0)
    assert "has signed no run" in answers[0]
    assert "has signed no run" in str(north.run.stopped)
