"""Flower's two ends in one process: only the plan's parties get in, and only to what parties need."""

from __future__ import annotations

import hashlib
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from privlearn.cli import app
from privlearn.errors import InvalidParameter, ProtocolError, TooFewParties
from privlearn.parties.run import Identity, Parts, Stage, proposal, write_certificate
from tests.support.ports import free_port
from tests.support.run_cases import IDENTITIES, SIZES, Wire, agreement_of

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")
pytestmark = pytest.mark.filterwarnings("default")  # Flower's and its dependencies' own

AGREEMENT = agreement_of()


class Link:
    """A serving link on a free port, with its certificate."""

    def __init__(self, folder: Path) -> None:
        from privlearn.parties.flower import FlowerExchange, server_app
        from privlearn.parties.flower.link import FlowerLink

        self.certificate, self.key = folder / "link.crt", folder / "link.key"
        write_certificate(self.certificate, self.key, ["127.0.0.1"])
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.flower = FlowerLink(AGREEMENT)
        self.told: list[str] = []
        self._exchange, self._app = FlowerExchange, server_app

    def ask(
        self, stage: Stage, parts: Parts, wait: float = 60.0, timeout: float = 60.0
    ) -> dict[int, Parts | str]:
        """Send one stage to the party north alone."""
        answers: dict[int, Parts | str] = {}

        def work(grid: object) -> None:
            nodes, names = self.flower.nodes[:1], list(SIZES)[:1]
            exchange = self._exchange(grid, nodes, names, 1, wait, timeout, self.told.append)  # type: ignore[arg-type]
            answers.update(exchange(stage, {0: parts}))

        self.flower.run(self._app(work))
        return answers


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    made = Link(tmp_path)
    with made.flower.serving("127.0.0.1", made.port, made.certificate, made.key):
        yield made


def connect(link: Link, identity: Identity, certificate: Path | None = None) -> None:
    from privlearn.parties.flower.node import FlowerNode

    with FlowerNode(link.address, certificate or link.certificate, identity).connection(wait=0.0):
        pass


def test_a_party_answers_through_flower(link: Link) -> None:
    from privlearn.parties.flower import client_app
    from privlearn.parties.flower.node import FlowerNode

    north = Wire(AGREEMENT).parties["north"]
    node = FlowerNode(link.address, link.certificate, IDENTITIES["north"])

    def take_part() -> None:
        with node.connection(wait=60.0):
            node.serve(client_app(north), lambda: north.finished, lambda: north.progress, timeout=60.0)

    thread = threading.Thread(target=take_part)
    thread.start()
    (reply,) = link.ask(Stage.AGREEMENT, proposal(AGREEMENT, bytes(32))).values()
    assert len(reply[0]) == 64
    assert link.ask(Stage.QUESTION, []) == {
        0: "the coordinator's message has the wrong number of parts for its stage"
    }
    assert link.ask(Stage.STOP, [b"enough"]) == {0: []}
    thread.join(timeout=60.0)
    assert north.stopped == "enough"


@pytest.mark.parametrize("hostile", ["another reply", "garbage"])
def test_a_reply_that_flower_cannot_read_counts_as_silence(link: Link, hostile: str) -> None:
    from privlearn.parties.flower import client_app
    from privlearn.parties.flower.node import FlowerNode

    north = Wire(AGREEMENT).parties["north"]
    node = FlowerNode(link.address, link.certificate, IDENTITIES["north"])
    done = threading.Event()

    def send(reply: Any) -> None:
        _send_hostile(node, reply, hostile)
        done.set()

    node._send = send  # type: ignore[method-assign]

    with node.connection(wait=60.0):
        thread = threading.Thread(
            target=node.serve, args=(client_app(north), done.is_set, lambda: north.progress, 60.0)
        )
        thread.start()
        assert link.ask(Stage.AGREEMENT, proposal(AGREEMENT, bytes(32)), wait=5.0, timeout=5.0) == {}
        thread.join(timeout=60.0)
    assert done.is_set()


def _send_hostile(node: Any, reply: Any, hostile: str) -> None:
    """Pushes a reply that says inside that it answers another message, or whose inside is no message at all."""
    from flwr.app.message import remove_content_from_message
    from flwr.common.serde import message_to_proto
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from flwr.proto.message_pb2 import ObjectTree, PushObjectRequest
    from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

    answered = reply.metadata.reply_to_message_id
    reply.metadata.__dict__["_reply_to_message_id"] = "0" * 64
    objects = {name: content.deflate() for name, content in get_all_nested_objects(reply).items()}
    tree, name = get_object_tree(reply), reply.object_id
    if hostile == "garbage":
        content = b"Message  3\x00\xff\xff\xff"
        name = hashlib.sha256(content).hexdigest()
        objects, tree = {name: content}, ObjectTree(object_id=name)
    reply.metadata.__dict__["_reply_to_message_id"] = answered
    reply.metadata.__dict__["_message_id"] = name
    request = PushMessagesRequest(
        node=node._node,
        messages_list=[message_to_proto(remove_content_from_message(reply))],
        message_object_trees=[tree],
        clientapp_runtime_list=[0.0],
    )
    response = node._client.PushMessages(request)
    for name in response.objects_to_push:
        pushed = PushObjectRequest(
            node=node._node,
            run_id=reply.metadata.run_id,
            session_id=response.session_id,
            object_id=name,
            object_content=objects[name],
        )
        assert node._client.PushObject(pushed).stored


def test_strangers_and_other_certificates_are_refused(link: Link, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="does not know this party's key"):
        connect(link, Identity.generate())
    write_certificate(tmp_path / "other.crt", tmp_path / "other.key", ["127.0.0.1"])
    with pytest.raises(ProtocolError, match="certificate is not the one"):
        connect(link, IDENTITIES["north"], tmp_path / "other.crt")


def test_a_renewed_certificate_needs_no_new_plan(tmp_path: Path) -> None:
    made = Link(tmp_path)
    key, certificate, tls_key = (tmp_path / f"coordinator.{suffix}" for suffix in ("key", "crt", "tls.key"))
    IDENTITIES["coordinator"].write(key)
    certificate.write_bytes(made.certificate.read_bytes())
    before = key.read_bytes()
    asked = ["identity", "coordinator", "--host", "127.0.0.1", "--directory", str(tmp_path), "--renew"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert key.read_bytes() == before
    with made.flower.serving("127.0.0.1", made.port, certificate, tls_key):
        connect(made, IDENTITIES["north"], certificate)
        with pytest.raises(ProtocolError, match="certificate is not the one"):
            connect(made, IDENTITIES["north"])


def status(link: Link, path: str) -> int:
    trusted = ssl.create_default_context(cafile=link.certificate)
    header = {"Content-Type": "application/protobuf", "Accept": "application/protobuf"}
    request = urllib.request.Request(f"https://{link.address}{path}", data=b"", headers=header)
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.urlopen(request, context=trusted)
    answer.value.close()
    return answer.value.code


def test_nothing_is_served_but_what_nodes_need(link: Link) -> None:
    for path in ("/", "/docs", "/v1/control/start-run", "/v1/runtime/acquire-task", "/v1/health"):
        assert status(link, path) == 404
    assert status(link, "/v1/fleet/pull-messages") == 401  # there, but only for a node with its key


def test_an_absent_party_is_waited_for_and_then_named(link: Link) -> None:
    with pytest.raises(TooFewParties, match="north did not connect"):
        link.ask(Stage.AGREEMENT, [], wait=0.1)
    assert link.told == ["Waiting for north."]


def test_a_taken_port_and_a_wrong_key_are_told(link: Link, tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidParameter, match="cannot listen on"),
        link.flower.serving("127.0.0.1", link.port, link.certificate, link.key),
    ):
        pass
    write_certificate(tmp_path / "other.crt", tmp_path / "other.key", ["127.0.0.1"])
    with (
        pytest.raises(InvalidParameter, match="not a certificate and its key"),
        link.flower.serving("127.0.0.1", 0, link.certificate, tmp_path / "other.key"),
    ):
        pass


def test_a_party_whose_coordinator_is_silent_or_away_stops(link: Link, tmp_path: Path) -> None:
    from privlearn.parties.flower import client_app
    from privlearn.parties.flower.node import FlowerNode

    north = Wire(AGREEMENT).parties["north"]
    node = FlowerNode(link.address, link.certificate, IDENTITIES["north"])
    with node.connection(wait=60.0), pytest.raises(ProtocolError, match="made no progress for"):
        node.serve(client_app(north), lambda: north.finished, lambda: north.progress, timeout=0.3)
    away = FlowerNode(f"127.0.0.1:{free_port()}", link.certificate, IDENTITIES["north"])
    with pytest.raises(ProtocolError, match="cannot be reached"), away.connection(wait=0.0):
        pass


def test_a_coordinator_that_only_repeats_itself_does_not_keep_a_party(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages without end that are refused, or were answered before: the party's time runs out all the same."""
    from privlearn.parties.flower.node import FlowerNode

    node, clock, steps = FlowerNode(link.address, link.certificate, IDENTITIES["north"]), [0.0], [0]
    monkeypatch.setattr("privlearn.parties.flower.node.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("privlearn.parties.flower.node.time.sleep", lambda seconds: None)
    monkeypatch.setattr(node, "_beat", lambda: None)
    monkeypatch.setattr(node, "_context", lambda message: None)
    monkeypatch.setattr(node, "_send", lambda reply: None)
    received: list[object] = []

    def receive() -> object:
        clock[0] += 1.0
        received.append(object())
        steps[0] = min(len(received), 3)  # the first three bring the run forward
        return received[-1]

    monkeypatch.setattr(node, "_receive", receive)
    with pytest.raises(ProtocolError, match="the run made no progress for 10 seconds"):
        node.serve(lambda message, context: message, lambda: len(received) > 99, lambda: steps[0], 10.0)  # type: ignore[arg-type]
    assert len(received) == 14
