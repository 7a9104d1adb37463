"""The coordinator's end of Flower: a SuperLink in this process, open to the plan's parties and to nobody else.

`flower-superlink` also serves an interface that starts and stops anybody's apps; on a coordinator that would let a
stranger run code here. Served here is only Flower's Fleet interface, under TLS, for nodes whose keys are in the plan.
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
from privlearn.listening import check_certificate, listen
from privlearn.multiparty.run.conversation import identity_of
from privlearn.multiparty.run.identity import check_dates
from privlearn.multiparty.run.joint_plan import JointPlan

_START_SECONDS = 30.0


class RejoiningState(InMemoryLinkState):
    """Flower's state, for nodes that come and go.

    A node may come again whose process ended without taking leave: Flower itself takes it for present until its last
    heartbeat is old, and refuses its new process so long. And a node's answer counts also when it has left since:
    Flower would report it unavailable, and lose the last words of whoever goes at once.
    """

    def activate_node(self, node_id: int, heartbeat_interval: float) -> bool:
        with self.lock:
            self.deactivate_node(node_id)
            return bool(super().activate_node(node_id, heartbeat_interval))

    def replies(self, message_ids: Iterable[str]) -> list[Message]:
        """The envelopes of what nodes answered to these messages."""
        with self.lock:
            answers = map(self.message_ins_id_to_message_res_id.get, message_ids)
            return [self.message_res_store[answer] for answer in answers if answer is not None]


class LinkGrid(InMemoryGrid):
    """Flower's grid over the state of a SuperLink in the same process; objects travel as its nodes expect them."""

    def __init__(self, state_factory: Any, task: int) -> None:
        super().__init__(state_factory)
        self._task = task

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """The messages' ids, in order; an empty one for a message that no node will get."""
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
        """Whole replies to these messages; one whose parts are still on their way comes with a later call."""
        self.state.acknowledge_task_heartbeat(self._task)
        state = cast(RejoiningState, self.state)
        whole = map(self._inflated, state.replies(message_ids))
        arrived = [reply for reply in whole if reply is not None]
        self.withdraw(reply.metadata.reply_to_message_id for reply in arrived)
        return arrived

    def withdraw(self, message_ids: Iterable[str]) -> None:
        """No node shall get these any more: their time is over."""
        self.state.delete_messages(message_ins_ids=set(message_ids))

    def connections(self) -> dict[int, str]:
        """Which nodes are here, and since when: a node that was started again has another moment."""
        self.state.acknowledge_task_heartbeat(self._task)
        here = self.state.get_node_info(statuses=[NodeStatus.ONLINE])
        return {node.node_id: str(node.last_activated_at) for node in here}

    def _inflated(self, reply: Message) -> Message | None:
        """None if parts are missing; what cannot be read never becomes whole, and its sender counts as silent."""
        id = reply.metadata.message_id
        try:
            tree = self.state.object_store.get_object_tree(id)
            names = [branch.object_id for branch in iterate_object_tree(tree)]
            found = {name: self.state.get_object(self.run.run_id, name) for name in names}
            contents = {name: content for name, content in found.items() if content}
            whole: Any = inflate_object_from_contents(id, contents) if len(contents) == len(found) else None
        except Exception:  # whatever Flower raises at what a party made up must not end the run
            return None
        if not isinstance(whole, Message):
            return None
        # what a party wrote inside must not claim to answer another message than Flower's envelope says
        return whole if whole.metadata.reply_to_message_id == reply.metadata.reply_to_message_id else None


class FlowerLink:
    """A SuperLink with one run and one node for each party of the plan.

    Attributes
    ----------
    nodes : list of int
        The parties' node numbers, in the plan's order.
    """

    def __init__(self, plan: JointPlan) -> None:
        self._app = create_app()
        self._app.state.enable_supernode_auth = True  # no node may register itself
        factory = self._app.state.linkstate_factory
        state: Any = RejoiningState(factory.federation_manager, factory.objectstore_factory.store())
        factory.state_instance = state
        self.nodes = [_add_node(state, plan, name) for name in plan.parties]
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
        """Accept the parties' connections as long as the block lasts."""
        check_certificate(certificate, key, "make them with `privlearn identity coordinator --host HOST`")
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
                raise InvalidParameter(f"cannot serve on {host}:{port}: try another port")
            time.sleep(0.02)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(timeout=5.0)


def _add_node(state: Any, plan: JointPlan, name: str) -> int:
    key = identity_of(plan, name).node_key()
    public = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return int(state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, public, 0, name=name))


def _fleet_only(app: Any) -> Any:
    """The application without any path but the nodes'."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not scope["path"].startswith("/v1/fleet/"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    return served
