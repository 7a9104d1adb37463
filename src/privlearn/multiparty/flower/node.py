"""A party's end of Flower: a SuperNode in this process that runs its own ClientApp and no other.

`flower-supernode` runs the app that the SuperLink hands it. Here the SuperLink is the coordinator, which no party
trusts with its rows, and so least of all with code: whatever app a run names is ignored, and the installed one
answers. Rows and keys stay in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.clientapp import ClientApp
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_pull_object_fn_protobuf,
    make_push_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    inflate_object_from_contents,
    pull_objects,
    push_objects,
)
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from privlearn.errors import ProtocolError
from privlearn.multiparty.run.identity import Identity

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 0.5
_HEARTBEAT_SECONDS = 600.0
"""How long the coordinator takes a node for present that says nothing: longer than any one answer."""


class FlowerNode:
    """A connection to the coordinator's SuperLink, over TLS and authenticated on both sides.

    Parameters
    ----------
    address : str
        Host and port.
    certificate : Path
        The coordinator's certificate, or that of the authority which signed it.
    identity : Identity
    """

    def __init__(self, address: str, certificate: Path, identity: Identity) -> None:
        private = identity.node_key()
        self._public = public_key_to_bytes(private.public_key())
        self._client = FleetHttpClient.from_server_address(
            address,
            insecure=False,
            root_certificates=certificate.read_bytes(),
            interceptors=[
                RuntimeVersionHttpInterceptor(component_name="SuperNode"),
                NodeAuthHttpInterceptor(private, private.public_key()),
            ],
        )
        self._node = Node()

    @contextmanager
    def connected(self, wait: float) -> Iterator[None]:
        """Present at the coordinator's as long as the block lasts."""
        try:
            self._activate(time.monotonic() + wait)
            yield
        finally:
            with suppress(httpx.HTTPError):  # if the coordinator is gone, there is nobody to take leave of
                self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))
            self._client.close()

    def serve(self, app: ClientApp, finished: Callable[[], bool], patience: float) -> None:
        """Let the app answer, message by message, until it has finished or the coordinator is silent too long."""
        last_heard = last_beat = time.monotonic()
        while not finished():
            if time.monotonic() - last_heard > patience:
                raise ProtocolError(f"the coordinator has been silent for {patience:.0f} seconds: stopped")
            try:
                if time.monotonic() - last_beat > _HEARTBEAT_SECONDS / 10:
                    self._beat()
                    last_beat = time.monotonic()
                if (message := self._receive()) is not None:
                    self._send(app(message, self._context(message)))
                    last_heard = time.monotonic()
                    continue
            except (httpx.HTTPError, ObjectPullError, ObjectPushError):
                pass  # lost on the way, or too late: the coordinator goes on without this answer
            time.sleep(_POLL_SECONDS)

    def _activate(self, deadline: float) -> None:
        request = ActivateNodeRequest(public_key=self._public, heartbeat_interval=_HEARTBEAT_SECONDS)
        while True:
            try:
                self._node = Node(node_id=self._client.ActivateNode(request).node_id)
                return
            except httpx.HTTPStatusError:
                raise ProtocolError(
                    "the coordinator does not know this party's key: its plan is another one"
                ) from None
            except httpx.TransportError as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise ProtocolError(
                        "the coordinator's certificate is not the one in `certificate`, or not for this address"
                    ) from None
                if time.monotonic() > deadline:
                    raise ProtocolError(
                        "the coordinator cannot be reached: is `coordinator` its host and port?"
                    ) from None
                time.sleep(_RETRY_SECONDS)

    def _beat(self) -> None:
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=_HEARTBEAT_SECONDS)
        self._client.SendNodeHeartbeat(request)

    def _context(self, message: Message) -> Context:
        return Context(message.metadata.run_id, self._node.node_id, {}, RecordDict(), {})

    def _receive(self) -> Message | None:
        response = self._client.PullMessages(PullMessagesRequest(node=self._node))
        if not response.messages_list:
            return None
        metadata = message_from_proto(response.messages_list[0]).metadata
        names = [branch.object_id for branch in iterate_object_tree(response.message_object_trees[0])]
        pull = make_pull_object_fn_protobuf(self._client.PullObject, self._node, metadata.run_id)
        message: Any = inflate_object_from_contents(metadata.message_id, pull_objects(names, pull))
        message.metadata.__dict__["_message_id"] = metadata.message_id
        self._client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(
                node=self._node, run_id=metadata.run_id, message_object_id=metadata.message_id
            )
        )
        return message  # type: ignore[no-any-return]

    def _send(self, reply: Message) -> None:
        with no_object_id_recompute():
            reply.metadata.__dict__["_message_id"] = reply.object_id
            objects, tree = get_all_nested_objects(reply), get_object_tree(reply)
            response = self._client.PushMessages(
                PushMessagesRequest(
                    node=self._node,
                    messages_list=[message_to_proto(remove_content_from_message(reply))],
                    message_object_trees=[tree],
                    clientapp_runtime_list=[0.0],
                )
            )
            push = make_push_object_fn_protobuf(
                self._client.PushObject, self._node, reply.metadata.run_id, response.session_id
            )
            push_objects(objects, push, object_ids_to_push=set(response.objects_to_push))
