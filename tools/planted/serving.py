"""Defects of a server that others attack: bodies, heads, turns, quotas, clocks and workers."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import TRAININGS, Mutant

BOMBS = ("service/test_fairness.py",)
LINES = ("service/test_connections.py",)
SHARED_OUT = ("service/test_turns.py",)
WATCHED = ("service/test_watch.py",)
TRACED = ("service/test_telemetry.py",)
TOKENS = ("release/test_signatures.py", "service/test_signing_token.py")
PRESENT = ("storage/test_presence.py",)

MUTANTS = [
    Mutant("connections: requests ahead of an answer are kept", "service/http/connections.py", "            raise _Ahead  # the parser stops, and calls it a request that is not valid\n", "            pass\n", ("service/test_connections.py",)),
    Mutant("connections: endless trailers", "service/http/connections.py", "if self._head > self.limits.head_bytes and (self._in_body or self._timer is not None):", "if self._head > self.limits.head_bytes and self._timer is not None:", ("service/test_connections.py",)),
    Mutant("connections: half-sent bodies shut others out", "service/http/connections.py", "(late := self.waiting or self.sending)", "(late := self.waiting)", ("service/test_connections.py",)),
    Mutant("sessions: callers at once get past the limit", "sessions/interactive.py", "admit(new, len(self._known) + len(others))", "admit(new, len(self._known))", ("sessions/test_interactive.py",)),
    Mutant("queue: a job without its line in the log", "service/jobs/queue.py", "        record(connection, job)\n", "", ("service/test_service.py",)),
    Mutant("client: a lost answer is said to be none", "client/connection.py", "                unsure = _how_to_ask_again(headers or {})\n", "                pass\n", ("client/test_lost_answers.py",)),
    Mutant("server: bodies weigh what they are long", "service/http/media_types.py", "        needed += sum(size * piece.count(sign) for sign, size in signs.items())\n", "", BOMBS),
    Mutant("server: every type of Arrow is read", "service/http/arrow_streams.py", "if not any(is_plain(kind) for is_plain in _PLAIN):", "if False:", BOMBS),
    Mutant("server: strangers send large forms", "service/http/limits.py", 'scope["privlearn.body"] = self._small', 'scope["privlearn.body"] = 1 << 30', BOMBS),
    Mutant("server: a head without an end", "service/http/connections.py", "if self._head > self.limits.head_bytes and (self._in_body or self._timer is not None):", "if False:", LINES),
    Mutant("server: half-sent requests shut others out", "service/http/connections.py", "if self.count >= self.most and (late := self.waiting or self.sending):", "if late := None:", LINES),
    Mutant("server: one line has everything", "service/http/turns.py", "if own and own + amount > max(self.most // 2, 1):", "if False:", SHARED_OUT),
    Mutant("server: a place that is never given back", "service/http/turns.py", "            self._taken[name] -= amount\n            if not self._taken[name]:", "            if not self._taken[name]:", SHARED_OUT),
    Mutant("server: any number of long polls", "service/http/limits.py", "if self._polls[name] >= self.limits.long_polls:", "if False:", BOMBS),
    Mutant("server: points that nobody pays grow", "service/service.py", "if new and before + new > most:", "if False:", BOMBS),
    Mutant("server: the first analyst is always next", "service/jobs/queue.py", "        self._served[chosen] = 1 + max(self._served.values(), default=0)\n", "", TRAININGS),
    Mutant("server: a revoked key's jobs run", "service/jobs/queue.py", "    end_revoked(store)\n    with reading(", "    with reading(", TRAININGS),
    Mutant("server: a clock set back strands a job", "service/jobs/queue.py", "or_(jobs.c.lease < as_text(moment), jobs.c.lease > soon)", "jobs.c.lease < as_text(moment)", TRAININGS),
    Mutant("server: any number of jobs in a day", "service/jobs/queue.py", "if (connection.scalar(today) or 0) >= most:", "if False:", TRAININGS),
    Mutant("server: leases by each machine's own clock", "service/jobs/queue.py", "    moment = clock(connection, store)", "    moment = now()", TRAININGS),
    Mutant("server: a format changed under a server", "storage/presence.py", "self._fits = all(part.format(looking) == part.newest for part in PARTS.values())", "self._fits = True", PRESENT),
    Mutant("server: an upgrade goes round running servers", "storage/presence.py", 'if _try(connection, "pg_try_advisory_lock") is False:', "if False:", PRESENT),
    Mutant("server: ready with a full disk", "service/watch.py", "[self._workers(), self._disk(), self._database()]", "[self._workers(), self._database()]", WATCHED),
    Mutant("server: a dead worker stays dead", "service/service.py", "            worker.look_after()\n", "            pass\n", WATCHED),
    Mutant("traces: any attribute is sent", "service/telemetry.py", "for name, fits in ATTRIBUTES.items() if name in said and fits(said[name])", "for name in said", TRACED),
    Mutant("traces: any value is sent", "service/telemetry.py", "if name in said and fits(said[name])", "if name in said", TRACED),
    Mutant("traces: any span is sent", "service/telemetry.py", "for span in spans if span.name in SPANS", "for span in spans", TRACED),
    Mutant("traces: no fence", "service/telemetry.py", "self._exporter.export([_bare(span) for span in spans if span.name in SPANS])", "self._exporter.export(spans)", TRACED),
    Mutant("traces: what workers do is seen", "service/telemetry.py", "self.span(name) if get_current_span().is_recording() else nullcontext()", "self.span(name)", TRACED),
    Mutant("traces: in the clear", "service/holder/telemetry.py", 'if not encrypted or not parts.hostname or "@" in parts.netloc', "if not parts.hostname", TRACED),
    Mutant("signature: its twin is taken", "release/signatures.py", "or second > _ORDER // 2:", "or False:", TOKENS),
    Mutant("signature: any algorithm", "release/signatures.py", 'if record.get("algorithm") != (None if _is_ed25519(public_key) else P256):', "if False:", TOKENS),
    Mutant("signature: of anything", "release/signatures.py", "    curve_key.verify(encode_dss_signature(first, second), content, ECDSA(SHA256()))\n", "", TOKENS),
    Mutant("token: a wrong PIN is tried again", "service/holder/signing.py", 'raise InvalidParameter("signing_token: the token refuses the PIN', 'raise TokenUnusable("signing_token: the token refuses the PIN', TOKENS),
    Mutant("token: not tried when the server starts", "service/service.py", '            self.signing_key.sign(b"a server starts")', "            pass", TOKENS),
]  # fmt: skip
