"""Defects of a server that others attack: bodies, heads, turns, quotas, clocks and workers."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import TRAININGS, Mutant

BOMBS = ("server/test_fairness.py",)
LINES = ("server/test_connections.py",)
SHARED_OUT = ("server/test_fair_share.py",)
WATCHED = ("server/test_watch.py",)
TRACED = ("server/test_telemetry.py",)
TOKENS = ("release/test_signatures.py", "server/test_signing_token.py")
PRESENT = ("budget/storage/test_presence.py",)

MUTANTS = [
    Mutant("connections: requests ahead of an answer are kept", "privlearn.server.http.connections:GuardedConnection.on_message_begin", "raise _Ahead", "pass", ("server/test_connections.py",)),
    Mutant("connections: endless trailers", "privlearn.server.http.connections:GuardedConnection.data_received", "self._in_body or self._timer is not None", "self._timer is not None", ("server/test_connections.py",)),
    Mutant("connections: half-sent bodies shut others out", "privlearn.server.http.connections:Connections.admit", "self.waiting or self.sending", "self.waiting", ("server/test_connections.py",)),
    Mutant("sessions: callers at once get past the limit", "privlearn.sessions.interactive:InteractivePredictor._admit", "len(self._known) + len(others)", "len(self._known)", ("sessions/test_interactive.py",)),
    Mutant("queue: a job without its line in the log", "privlearn.server.jobs.queue:submit", "record(connection, job)", "", ("server/test_service.py",)),
    Mutant("client: a lost answer is said to be none", "privlearn.client.connection:Connection.send", "unsure = _how_to_ask_again(headers or {})", "pass", ("client/test_lost_answers.py",)),
    Mutant("server: bodies weigh what they are long", "privlearn.server.http.media_types:memory_to_read", "needed += sum((size * piece.count(character) for character, size in characters.items()))", "", BOMBS),
    Mutant("server: every type of Arrow is read", "privlearn.server.http.arrow_streams:_plain_columns", "not any((is_plain(kind) for is_plain in _PLAIN))", "False", BOMBS),
    Mutant("server: strangers send large forms", "privlearn.server.http.limits:RequestLimit.__call__", "self._small", "1 << 30", BOMBS),
    Mutant("server: a head without an end", "privlearn.server.http.connections:GuardedConnection.data_received", "self._head > self.limits.head_bytes and (self._in_body or self._timer is not None)", "False", LINES),
    Mutant("server: half-sent requests shut others out", "privlearn.server.http.connections:Connections.admit", "self.count >= self.max_connections and (late := (self.waiting or self.sending))", "(late := None)", LINES),
    Mutant("server: one line has everything", "privlearn.server.http.capacity:FairShare._next", "own and own + amount > max(self.capacity // 2, 1)", "False", SHARED_OUT),
    Mutant("server: a place that is never given back", "privlearn.server.http.capacity:FairShare.acquire", "self._taken[name] -= amount", "", SHARED_OUT),
    Mutant("server: any number of long polls", "privlearn.server.http.capacity:Shared.waiting", "self._polls[name] >= self.limits.long_polls", "False", BOMBS),
    Mutant("server: points that nobody pays grow", "privlearn.server.service:Service._check_points", "new and before + new > maximum", "False", BOMBS),
    Mutant("server: the first analyst is always next", "privlearn.server.jobs.queue:RoundRobin.next", "self._served[name] = 1 + max(self._served.values(), default=0)", "", TRAININGS),
    Mutant("server: a revoked key's jobs run", "privlearn.server.jobs.queue:claim", "end_revoked(store)", "", TRAININGS),
    Mutant("server: a clock set back strands a job", "privlearn.server.jobs.queue:_free", "or_(jobs.c.lease < as_text(moment), jobs.c.lease > soon)", "jobs.c.lease < as_text(moment)", TRAININGS),
    Mutant("server: any number of jobs in a day", "privlearn.server.jobs.queue:_check_quota", "(connection.scalar(today) or 0) >= maximum", "False", TRAININGS),
    Mutant("server: leases by each machine's own clock", "privlearn.server.jobs.queue:_free", "clock(connection, store)", "now()", TRAININGS),
    Mutant("server: a format changed under a server", "privlearn.budget.storage.presence:Presence.keep", "all((part.format(connection) == part.newest for part in PARTS.values()))", "True", PRESENT),
    Mutant("server: an upgrade goes round running servers", "privlearn.budget.storage.presence:without_servers", "_try(connection, 'pg_try_advisory_lock') is False", "False", PRESENT),
    Mutant("server: ready with a full disk", "privlearn.server.watch:Watch._check", "self._disk()", "", WATCHED),
    Mutant("server: a dead worker stays dead", "privlearn.server.service:Service._check_workers", "worker.restart_if_dead()", "pass", WATCHED),
    Mutant("traces: any attribute is sent", "privlearn.server.telemetry:_bare", "{name: attributes[name] for name, fits in ATTRIBUTES.items() if name in attributes and fits(attributes[name])}", "{name: attributes[name] for name in attributes}", TRACED),
    Mutant("traces: any value is sent", "privlearn.server.telemetry:_bare", "name in attributes and fits(attributes[name])", "name in attributes", TRACED),
    Mutant("traces: any span is sent", "privlearn.server.telemetry:AllowlistExporter.export", "span.name in SPANS", "", TRACED),
    Mutant("traces: no fence", "privlearn.server.telemetry:AllowlistExporter.export", "[_bare(span) for span in spans if span.name in SPANS]", "spans", TRACED),
    Mutant("traces: what workers do is seen", "privlearn.server.telemetry:Telemetry._mark", "self.span(name) if get_current_span().is_recording() else nullcontext()", "self.span(name)", TRACED),
    Mutant("traces: in the clear", "privlearn.server.holder.external:_web_address", "not encrypted, not host", "not host", TRACED),
    Mutant("signature: its twin is taken", "privlearn.release.signatures:check_signature", "second > _ORDER // 2", "False", TOKENS),
    Mutant("signature: any algorithm", "privlearn.release.signatures:check_record", "record.get('algorithm') != (None if _is_ed25519(public_key) else P256)", "False", TOKENS),
    Mutant("signature: of anything", "privlearn.release.signatures:check_signature", "curve_key.verify(encode_dss_signature(first, second), content, ECDSA(SHA256()))", "", TOKENS),
    Mutant("token: a wrong PIN is tried again", "privlearn.server.holder.signing:TokenKey._session", "InvalidParameter('signing_token: the token refuses the PIN. Correct it first')", "TokenUnusable('signing_token: the token refuses the PIN. Correct it first')", TOKENS),
    Mutant("token: not tried when the server starts", "privlearn.server.service:Service.__init__", "self.signing_key.sign(b'a server starts')", "pass", TOKENS),
]  # fmt: skip
