"""Flower's ServerApp and ClientApp: the messages of a run as Flower messages.

A message is of type ``query.<stage>`` and contains one record with the stage's byte strings. Its reply contains byte
strings too, or the reason of a refusal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from privlearn.errors import TooFewParties
from privlearn.parties.flower.link import LinkGrid
from privlearn.parties.run.conversation import Parts, Report, Stage
from privlearn.parties.run.party_run import PartyRun

_RECORD = "privlearn"
_POLL_SECONDS = 0.05
_FAREWELL_SECONDS = 30.0
"""Time to tell connected parties that the run was stopped; they would wait for an absent coordinator otherwise."""
_TTL_SECONDS = 2 * 86400.0
"""Lifetime of a message by the clocks of both sides, which may differ; unanswered messages are withdrawn earlier."""


def client_app(run: PartyRun) -> ClientApp:
    """Return the party's app, which hands every stage to its run."""
    app = ClientApp()
    for stage in Stage:
        app.query(stage.value)(_answering(run, stage))
    return app


def server_app(work: Callable[[Grid], None]) -> ServerApp:
    """Return the coordinator's app: ``work`` exchanges messages with the parties through the grid."""
    app = ServerApp()

    @app.main()  # type: ignore[untyped-decorator, unused-ignore]
    def main(grid: Grid, context: Context) -> None:
        work(grid)

    return app


class FlowerExchange:
    """Sends a stage's messages to the parties and collects their replies.

    A party that reconnects during a stage gets its message again. One that was silent in the stage before also gets
    the message, but the exchange does not wait for it. If a stage would fail without a party, the exchange waits
    longer, up to ``wait``.

    Parameters
    ----------
    grid : LinkGrid
    nodes : list of int
        The parties' node numbers, in the agreement's order.
    names : list of str
    needed : int
        Number of parties that a sum needs; the set-up needs all of them.
    wait : float
        Seconds until all parties must have connected, or a needed party must be back.
    timeout : float
        Seconds that a party has for an answer.
    report : callable
    """

    def __init__(
        self,
        grid: LinkGrid,
        nodes: list[int],
        names: list[str],
        needed: int,
        wait: float,
        timeout: float,
        report: Report,
    ) -> None:
        self._grid = grid
        self._nodes = nodes
        self._names = names
        self._needed = needed
        self._wait = wait
        self._timeout = timeout
        self._report = report
        self._begun = False
        self._silent: dict[int, str | None] = {}

    def __call__(self, stage: Stage, parts: Mapping[int, Parts]) -> Mapping[int, Parts | str]:
        if not self._begun and stage is not Stage.STOP:
            self._await_parties(stage)
            self._begun = True
        sent: dict[str, int] = {}
        reached: dict[int, str | None] = {}
        replies: dict[int, Parts | str] = {}
        missing: dict[int, str | None] = {}
        start = time.monotonic()
        while self._is_worth_waiting(stage, len(parts), replies, time.monotonic() - start):
            for party, since in self._since(set(parts) - set(replies)).items():
                if since is not None and reached.get(party) != since:  # new, or started again
                    sent |= self._push(stage, party, parts[party])
                reached[party] = since
            for message in self._grid.pull_messages(list(sent)):
                reply, party = read_reply(message), sent.pop(message.metadata.reply_to_message_id)
                if reply is not None:
                    replies[party] = reply
            missing = {party: since for party, since in reached.items() if party not in replies}
            absent = {(party, None) for party in parts if stage is Stage.STOP}
            if missing.items() <= self._silent.items() | absent:
                break
            time.sleep(_POLL_SECONDS)
        self._grid.withdraw(sent)
        self._silent = missing
        return replies

    def gather(self) -> None:
        """Wait until all parties have connected, at most half a minute."""
        start = time.monotonic()
        while time.monotonic() - start < min(self._wait, _FAREWELL_SECONDS):
            if None not in self._since(range(len(self._names))).values():
                return
            time.sleep(_POLL_SECONDS)

    def _is_worth_waiting(
        self, stage: Stage, sent: int, replies: Mapping[int, Parts | str], seconds: float
    ) -> bool:
        if stage is Stage.STOP:
            return seconds < _FAREWELL_SECONDS
        refused = sum(isinstance(reply, str) for reply in replies.values())
        would_fail = len(replies) - refused < self._min_parties(stage) <= sent - refused
        return seconds < self._timeout or (would_fail and seconds < self._wait)

    def _since(self, parties: Iterable[int]) -> dict[int, str | None]:
        """Return the time at which each party connected; None if it is not connected."""
        here = self._grid.connections()
        return {party: here.get(self._nodes[party]) for party in parties}

    def _push(self, stage: Stage, party: int, parts: Parts) -> dict[str, int]:
        content = RecordDict({_RECORD: ConfigRecord({"parts": list(parts)})})
        message = Message(content, self._nodes[party], f"query.{stage}", ttl=_TTL_SECONDS)
        return {id: party for id in self._grid.push_messages([message]) if id}

    def _await_parties(self, stage: Stage) -> None:
        """Wait for all parties; in a resumed run, wait only until the timeout for parties that the stage can miss."""
        start, missing = time.monotonic(), list[str]()
        while time.monotonic() < start + self._wait:
            since = self._since(range(len(self._names)))
            absent = [name for party, name in enumerate(self._names) if since[party] is None]
            enough = len(self._names) - len(absent) >= self._min_parties(stage)
            if not absent or (enough and time.monotonic() > start + self._timeout):
                return
            if absent != missing:
                self._report(f"Waiting for {', '.join(absent)}.")
                missing = absent
            time.sleep(_POLL_SECONDS)
        raise TooFewParties(f"{', '.join(missing)} did not connect within {self._wait:.0f} seconds")

    def _min_parties(self, stage: Stage) -> int:
        if stage in (Stage.QUESTION, Stage.SURVIVORS, Stage.RESULT):
            return self._needed
        return 0 if stage is Stage.RELEASE else len(self._names)


def _answering(run: PartyRun, stage: Stage) -> Callable[[Message, Context], Message]:
    def answer(message: Message, context: Context) -> Message:
        reply = run.reply(stage, read_parts(message))
        fields: dict[str, Any] = {"refused": reply} if isinstance(reply, str) else {"parts": reply}
        return Message(RecordDict({_RECORD: ConfigRecord(fields)}), reply_to=message)

    return answer


def read_parts(message: Message) -> Parts:
    """Return the byte strings in a message; an empty list if it contains anything else."""
    record = message.content.get(_RECORD) if message.has_content() else None
    parts = record.get("parts") if isinstance(record, ConfigRecord) else None
    if isinstance(parts, list) and all(isinstance(part, bytes) for part in parts):
        return [part for part in parts if isinstance(part, bytes)]
    return []


def read_reply(message: Message) -> Parts | str | None:
    """Return a party's byte strings or its refusal; None for Flower's own report of a missing reply."""
    if not message.has_content():
        return None
    record = message.content.get(_RECORD)
    refused = record.get("refused") if isinstance(record, ConfigRecord) else None
    if isinstance(refused, str):
        return "".join(filter(str.isprintable, refused))[:500]
    return read_parts(message)
