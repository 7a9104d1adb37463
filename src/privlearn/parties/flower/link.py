"""The coordinator's end of Flower: a SuperLink in this process, open to the parties of the agreement only.

`flower-superlink` also serves an interface to start and stop apps, with which a stranger could run code on the
coordinator's machine. Here only Flower's Fleet interface is served, over TLS, for nodes with keys in the agreement.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import uvicorn
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, SUPERLINK_NODE_ID
from flwr.server.superlink.linkstate import InMemoryLinkState
from flwr.serverapp import ServerApp
from flwr.supercore.constant import NOOP_FEDERATION_ID, NodeStatus, TaskType
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import InMemoryGrid
from flwr.superlink.main import create_app

from privlearn.errors import InvalidParameter
from privlearn.parties.listening import check_certificate, listen
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.conversation import identity_of
from privlearn.parties.run.identity import check_dates

_START_SECONDS = 30.0


class RejoiningState(InMemoryLinkState):
    """Flower's state, for nodes that restart.

    A node whose process was killed may reconnect at once: Flower considers it present until its last heartbeat is old,
    and refuses its new process until then. And a node's reply counts even if the node has left since: Flower would
    report it as unavailable and lose the last reply of a node that disconnects.
    """

    def activate_node(self, node_id: int, heartbeat_interval: float) -> bool:
        """Connect a node, even if an earlier process of it did not disconnect."""
        with self.lock:
            self.deactivate_node(node_id)
            return bool(super().activate_node(node_id, heartbeat_interval))

    def replies(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the envelopes of the replies to these messages."""
        with self.lock:
            answers = map(self.message_ins_id_to_message_res_id.get, message_ids)
            return [self.message_res_store[answer] for answer in answers if answer is not None]


class LinkGrid(InMemoryGrid):
    """Flower's grid over the state of a SuperLink in the same process, with objects in the form that nodes expect."""

    def __init__(self, state_factory: Any, task: int) -> None:
        super().__init__(state_factory)
        self._task = task

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Return the messages' ids, in order; an empty one for a message that could not be stored."""
        return [self._push(message) for message in messages]

    def _push(self, message: Message) -> str:
        run = self.run.run_id
        with no_object_id_recompute():
            message.metadata.__dict__["_message_id"] = message.object_id
            objects, tree = get_all_nested_objects(message), get_object_tree(message)
            session = self.state.start_session(run)
            bare = remove_content_from_message(message)
            stored, missing = self.state.store_message_and_object_tree(bare, tree, session)
            for name in missing:
                self.state.store_object(run, session, name, objects[name].deflate())
        return str(message.metadata.message_id) if stored else ""

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the complete replies to these messages; a later call returns those that are still incomplete."""
        self.state.acknowledge_task_heartbeat(self._task)
        state = cast(RejoiningState, self.state)
        replies = map(self._inflate, state.replies(message_ids))
        arrived = [reply for reply in replies if reply is not None]
        self.withdraw(reply.metadata.reply_to_message_id for reply in arrived)
        return arrived

    def withdraw(self, message_ids: Iterable[str]) -> None:
        """Delete messages, so that no node receives them any more."""
        self.state.delete_messages(message_ins_ids=set(message_ids))

    def connections(self) -> dict[int, str]:
        """Return the connected nodes with the time of their connection, which changes when a node restarts."""
        self.state.acknowledge_task_heartbeat(self._task)
        online = self.state.get_node_info(statuses=[NodeStatus.ONLINE])
        return {node.node_id: str(node.last_activated_at) for node in online}

    def _inflate(self, reply: Message) -> Message | None:
        """Return the complete reply; None if parts are missing or malformed, so that its sender counts as silent."""
        id = reply.metadata.message_id
        try:
            tree = self.state.object_store.get_object_tree(id)
            names = [branch.object_id for branch in iterate_object_tree(tree)]
            objects = {name: self.state.get_object(self.run.run_id, name) for name in names}
            contents = {name: content for name, content in objects.items() if content}
            whole: Any = inflate_object_from_contents(id, contents) if len(contents) == len(objects) else None
        except Exception:  # errors of Flower about a malformed reply must not end the run
            return None
        if not isinstance(whole, Message):
            return None
        # the message inside must answer the same message as Flower's envelope
        return whole if whole.metadata.reply_to_message_id == reply.metadata.reply_to_message_id else None


class FlowerLink:
    """A SuperLink with one run and one node for each party of the agreement.

    ``nodes``: the parties' node numbers, in the agreement's order.
    """

    def __init__(self, agreement: Agreement) -> None:
        self._app = create_app()
        self._app.state.enable_supernode_auth = True  # no node may register itself
        factory = self._app.state.linkstate_factory
        state: Any = RejoiningState(factory.federation_manager, factory.objectstore_factory.store())
        factory.state_instance = state
        self.nodes = [_add_node(state, agreement, name) for name in agreement.parties]
        run = state.create_run(
            "privlearn/multiparty", "1", "", {}, NOOP_FEDERATION_ID, None, NOOP_FLWR_AID, TaskType.SERVER_APP
        )
        (self._run,) = state.get_run_info(run_ids=[run])
        task = self._run.primary_task_id
        state.claim_task(task)
        state.activate_task(task)
        self._grid = LinkGrid(factory, task)
        self._grid.set_run(self._run)
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = task, run, SUPERLINK_NODE_ID

    def run(self, app: ServerApp) -> None:
        """Run the ServerApp in this thread, to its end."""
        context = Context(self._run.run_id, SUPERLINK_NODE_ID, {}, RecordDict(), {}, self._run.series_id)
        app(self._grid, context)

    @contextmanager
    def serving(self, host: str, port: int, certificate: Path, key: Path) -> Iterator[None]:
        """Accept the parties' connections until the end of the block."""
        check_certificate(certificate, key, "create them with `privlearn identity coordinator --host HOST`")
        check_dates(certificate)
        listener = listen(host, port)
        config = uvicorn.Config(
            _fleet_only(self._app),
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ws="none",
            log_level="critical",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise InvalidParameter(f"cannot serve on {host}:{port}. Try another port")
            time.sleep(0.02)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(timeout=5.0)


def _add_node(state: Any, agreement: Agreement, name: str) -> int:
    key = identity_of(agreement, name).node_key()
    public = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return int(state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, public, 0, name=name))


def _fleet_only(app: Any) -> Any:
    """Return the application restricted to the paths of nodes."""

    async def restricted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/v1/fleet/"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    return restricted
