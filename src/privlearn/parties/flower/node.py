"""A party's end of Flower: a SuperNode in this process that runs its own ClientApp and no other.

`flower-supernode` runs the app that the SuperLink sends. Here the SuperLink is the coordinator, which no party trusts
with its rows, so its code is not run: the app that a run names is ignored, and the installed one answers. Rows and keys
stay in this process.

If the coordinator is absent or restarts, `serve` reconnects, and reports what it waits for.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.clientapp import ClientApp
from flwr.common.constant import TIMESTAMP_HEADER
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
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
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
from flwr.supercore.interceptors.http.utils import add_headers
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.supernode.fleet_http_client import FleetHttpClient

from privlearn.errors import ProtocolError
from privlearn.parties.run.conversation import Report
from privlearn.parties.run.identity import Identity

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 0.5
_HEARTBEAT_SECONDS = 600.0
"""Time for which a silent node counts as present: longer than any one answer takes."""
_UNKNOWN_KEY = "the coordinator does not know this party's key: it has another agreement"
_MAX_SHIFT = timedelta(days=1)


class CoordinatorsClock:
    """An interceptor that signs a node's requests with the coordinator's time, since Flower checks them by that clock.

    Flower refuses requests whose time is 5 seconds ahead of the coordinator's clock or 305 behind, so a wrong clock
    would exclude a party. The signature gives access to Flower's interface for nodes only, and its receiver could use
    it elsewhere at once anyway: a coordinator that lies about the time gains nothing.
    """

    def __init__(self, identity: Identity) -> None:
        self._private = identity.node_key()
        self.public = public_key_to_bytes(self._private.public_key())
        self.shift = timedelta()

    def intercept(self, context: Any, call_next: Callable[[Any], httpx.Response]) -> httpx.Response:
        """Add the signature to a request; Flower's client calls this for each one."""
        timestamp = (datetime.now(UTC) + self.shift).isoformat()
        signature = sign_message(self._private, timestamp.encode("ascii"))
        headers = {
            FLEET_HTTP_PUBLIC_KEY_HEADER: b64encode(self.public).decode("ascii"),
            TIMESTAMP_HEADER: timestamp,
            FLEET_HTTP_SIGNATURE_HEADER: b64encode(signature).decode("ascii"),
        }
        add_headers(context.request, headers)
        return call_next(context)

    def follow(self, response: httpx.Response) -> timedelta | None:
        """Take the coordinator's time from a refusal; return the difference if it may have been the reason."""
        try:
            shift = parsedate_to_datetime(response.headers["Date"]) - datetime.now(UTC)
        except (KeyError, ValueError, TypeError):
            return None
        if abs(shift - self.shift) < timedelta(seconds=3) or abs(shift) > _MAX_SHIFT:
            return None
        self.shift = shift
        return shift


class FlowerNode:
    """A connection to the coordinator's SuperLink, over TLS and authenticated on both sides.

    ``address``: host and port. ``certificate``: the coordinator's certificate, or that of the authority which signed
    it. ``report``: called with what the party waits for.
    """

    def __init__(
        self, address: str, certificate: Path, identity: Identity, report: Report = lambda line: None
    ) -> None:
        self._clock = CoordinatorsClock(identity)
        self._report = report
        self._reported = ""
        self._client = FleetHttpClient.from_server_address(
            address,
            insecure=False,
            root_certificates=certificate.read_bytes(),
            interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperNode"), self._clock],
        )
        self._node = Node()

    @contextmanager
    def connection(self, wait: float) -> Iterator[None]:
        """Stay connected to the coordinator until the end of the block."""
        try:
            self._activate(time.monotonic() + wait)
            yield
        finally:
            with suppress(httpx.HTTPError):  # the coordinator may be gone already
                self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))
            self._client.close()

    def serve(
        self, app: ClientApp, finished: Callable[[], bool], progress: Callable[[], int], timeout: float
    ) -> None:
        """Let the app answer messages until it has finished, or until ``timeout`` seconds pass without progress.

        Only new steps of the run reset the timeout: a coordinator that repeats messages, or sends messages that are
        refused, cannot keep the party waiting with its budget reserved.
        """
        last_progress = last_beat = time.monotonic()
        steps = progress()
        while not finished():
            if progress() > steps:
                steps, last_progress = progress(), time.monotonic()
            if time.monotonic() - last_progress > timeout:
                because = f" ({self._reported})" if self._reported else ""
                raise ProtocolError(f"the run made no progress for {timeout:.0f} seconds{because}: stopped")
            try:
                if time.monotonic() - last_beat > _HEARTBEAT_SECONDS / 10:
                    self._beat()
                    last_beat = time.monotonic()
                if (message := self._receive()) is not None:
                    self._send(app(message, self._context(message)))
                    continue
                self._reported = ""
            except (ObjectPullError, ObjectPushError):
                pass  # lost on the way, or too late: the coordinator continues without this answer
            except httpx.HTTPStatusError:
                self._reconnect()
            except httpx.HTTPError as error:
                self._report_waiting(_cause(error))
            time.sleep(_POLL_SECONDS)

    def _reconnect(self) -> None:
        """Connect to a coordinator that was restarted and does not know this node's number yet."""
        try:
            self._node = self._request_node()
        except httpx.HTTPStatusError:
            self._report_waiting(_UNKNOWN_KEY)
        except httpx.HTTPError as error:
            self._report_waiting(_cause(error))

    def _activate(self, deadline: float) -> None:
        while True:
            try:
                self._node = self._request_node()
                return
            except httpx.HTTPStatusError:
                raise ProtocolError(_UNKNOWN_KEY) from None
            except httpx.TransportError as error:
                cause = _cause(error)
                if "certificate" in cause or time.monotonic() > deadline:
                    raise ProtocolError(cause) from None
                self._report_waiting(cause)
                time.sleep(_RETRY_SECONDS)

    def _request_node(self) -> Node:
        request = ActivateNodeRequest(public_key=self._clock.public, heartbeat_interval=_HEARTBEAT_SECONDS)
        try:
            return Node(node_id=self._client.ActivateNode(request).node_id)
        except httpx.HTTPStatusError as error:
            shift = self._clock.follow(error.response)
            if shift is None:
                raise
            seconds = shift.total_seconds()
            self._report(
                f"The coordinator's clock is {abs(seconds):.0f} seconds {'ahead of' if seconds > 0 else 'behind'} this "
                "machine's. Using the coordinator's; set the clock that is wrong."
            )
            return Node(node_id=self._client.ActivateNode(request).node_id)

    def _report_waiting(self, cause: str) -> None:
        """Report a cause once, until something else happens."""
        if cause != self._reported:
            self._report(f"Waiting: {cause}")
            self._reported = cause

    def _beat(self) -> None:
        """Tell the coordinator that this node is present."""
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=_HEARTBEAT_SECONDS)
        self._client.SendNodeHeartbeat(request)

    def _context(self, message: Message) -> Context:
        return Context(message.metadata.run_id, self._node.node_id, {}, RecordDict(), {})

    # Flower has no public way to set a message's id. Its own node sets it in the same place, and the extra pins its
    # minor version.

    def _receive(self) -> Message | None:
        """Return the next message with its content, confirmed to the coordinator; None if there is none."""
        response = self._client.PullMessages(PullMessagesRequest(node=self._node))
        if not response.messages_list:
            return None
        metadata = message_from_proto(response.messages_list[0]).metadata
        names = [branch.object_id for branch in iterate_object_tree(response.message_object_trees[0])]
        pull = make_pull_object_fn_protobuf(self._client.PullObject, self._node, metadata.run_id)
        message: Any = inflate_object_from_contents(metadata.message_id, pull_objects(names, pull))
        message.metadata.__dict__["_message_id"] = metadata.message_id
        run, name = metadata.run_id, metadata.message_id
        confirmed = ConfirmMessageReceivedRequest(node=self._node, run_id=run, message_object_id=name)
        self._client.ConfirmMessageReceived(confirmed)
        return message  # type: ignore[no-any-return]

    def _send(self, reply: Message) -> None:
        """Send a reply: first its metadata, then those of its objects that the coordinator asks for."""
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


def _cause(error: httpx.HTTPError) -> str:
    """Return why there is no connection, as far as the error shows."""
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" not in text:
        return "the coordinator cannot be reached. Check that `coordinator` is its host and port, and that it runs"
    if "expired" in text or "not yet valid" in text:
        return (
            "the coordinator's certificate has expired or is not valid yet. Compare this machine's clock with the "
            "certificate's dates; if they have passed, the coordinator needs a new one"
        )
    return "the coordinator's certificate is not the one in `certificate`, or not for this address"
