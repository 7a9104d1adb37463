"""Flower's ServerApp and ClientApp: the conversation of a run as Flower messages.

A message is of type ``query.<stage>`` and holds one record with the stage's byte strings; so does its reply, or it
holds a refusal's reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from privlearn.errors import TooFewParties
from privlearn.multiparty.run.conversation import Parts, Stage, Tell
from privlearn.multiparty.run.party_run import PartyRun

_RECORD = "privlearn"
_POLL_SECONDS = 0.05
_FAREWELL_SECONDS = 5.0


def client_app(run: PartyRun) -> ClientApp:
    """The party's app: hands every stage to its run, which decides what is answered."""
    app = ClientApp()
    for stage in Stage:
        app.query(stage.value)(_answering(run, stage))
    return app


def server_app(work: Callable[[Grid], None]) -> ServerApp:
    """The coordinator's app: ``work`` talks to the parties through the grid."""
    app = ServerApp()

    @app.main()  # type: ignore[untyped-decorator, unused-ignore]
    def main(grid: Grid, context: Context) -> None:
        work(grid)

    return app


class FlowerExchange:
    """Carries a stage to every party and its answers back.

    A party that was silent in the stage before is asked again, but nobody waits for it: it may return when it can.

    Parameters
    ----------
    grid : Grid
    nodes : list of int
        The parties' node numbers, in the plan's order.
    names : list of str
    wait : float
        Seconds until all parties must have connected.
    patience : float
        Seconds that a party has for an answer.
    tell : callable
    """

    def __init__(
        self, grid: Grid, nodes: list[int], names: list[str], wait: float, patience: float, tell: Tell
    ) -> None:
        self._grid = grid
        self._nodes = nodes
        self._names = names
        self._wait = wait
        self._patience = patience
        self._tell = tell
        self._silent: set[int] = set()

    def __call__(self, stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        if stage is Stage.PLAN:
            self._await_everybody()
        seconds = _FAREWELL_SECONDS if stage is Stage.STOP else self._patience
        messages = [self._message(stage, self._nodes[party], own, seconds) for party, own in parts.items()]
        sent = {id: party for id, party in zip(self._grid.push_messages(messages), parts, strict=True) if id}
        replies = self._collect(sent, time.monotonic() + seconds)
        self._silent = set(parts) - set(replies)
        return replies

    def _collect(self, sent: Mapping[str, int], deadline: float) -> dict[int, Parts | str]:
        waiting, replies = dict(sent), {}
        while not set(waiting.values()) <= self._silent and time.monotonic() < deadline:
            for message in self._grid.pull_messages(list(waiting)):
                replies[waiting.pop(message.metadata.reply_to_message_id)] = read_reply(message)
            time.sleep(_POLL_SECONDS)
        return {party: reply for party, reply in replies.items() if reply is not None}

    def _message(self, stage: Stage, node: int, parts: Parts, seconds: float) -> Message:
        content = RecordDict({_RECORD: ConfigRecord({"parts": list(parts)})})
        return Message(content, node, f"query.{stage}", ttl=seconds)

    def _await_everybody(self) -> None:
        deadline = time.monotonic() + self._wait
        missing: list[str] = []
        while time.monotonic() < deadline:
            present = set(self._grid.get_node_ids())
            absent = [
                name for name, node in zip(self._names, self._nodes, strict=True) if node not in present
            ]
            if not absent:
                return
            if absent != missing:
                self._tell(f"Waiting for {', '.join(absent)}.")
                missing = absent
            time.sleep(_POLL_SECONDS)
        raise TooFewParties(f"{', '.join(missing)} did not connect within {self._wait:.0f} seconds")


def _answering(run: PartyRun, stage: Stage) -> Callable[[Message, Context], Message]:
    def answer(message: Message, context: Context) -> Message:
        reply = run.reply(stage, read_parts(message))
        fields: dict[str, Any] = {"refused": reply} if isinstance(reply, str) else {"parts": reply}
        return Message(RecordDict({_RECORD: ConfigRecord(fields)}), reply_to=message)

    return answer


def read_parts(message: Message) -> Parts:
    """The byte strings in a message; none if it holds anything else."""
    record = message.content.get(_RECORD) if message.has_content() else None
    parts = record.get("parts") if isinstance(record, ConfigRecord) else None
    if isinstance(parts, list) and all(isinstance(part, bytes) for part in parts):
        return [part for part in parts if isinstance(part, bytes)]
    return []


def read_reply(message: Message) -> Parts | str | None:
    """A party's byte strings or its refusal; None for Flower's own report that nothing came."""
    if not message.has_content():
        return None
    record = message.content.get(_RECORD)
    refused = record.get("refused") if isinstance(record, ConfigRecord) else None
    if isinstance(refused, str):
        return "".join(filter(str.isprintable, refused))[:500]
    return read_parts(message)
