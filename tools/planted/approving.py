"""Defects of approval by a second person, and of the notices about it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

APPROVED = ("service/test_approvals.py",)
ASKED = ("service/api/test_approval_routes.py",)
TOLD = ("service/notices/test_notices.py",)

MUTANTS = [
    Mutant("approval: nobody is asked", "service/holder/approval.py", "return limit is not None and epsilon > limit", "return False", APPROVED),
    Mutant("approval: a misspelt kind", "service/holder/approval.py", "            if kind not in known:\n", "            if False:\n", APPROVED),
    Mutant("approval: what waits is run", "service/jobs/queue.py", 'return or_(jobs.c.state == "waiting",', "return or_(jobs.c.state.in_(NOT_BEGUN),", APPROVED),
    Mutant("approval: one's own request", "service/jobs/approvals.py", "    if is_own(job, by):\n", "    if False:\n", APPROVED),
    Mutant("approval: another spelling of one's name", "service/jobs/approvals.py", 'return unicodedata.normalize("NFKC", name).strip().casefold()', "return name", APPROVED),
    Mutant("approval: the holder's own request by the provider", "service/jobs/approvals.py", "    if job.asked_with.startswith(OPENID):\n", "    if False:\n", APPROVED),
    Mutant("approval: decided twice", "service/jobs/approvals.py", 'if job.state != "waiting_for_approval" or', "if", APPROVED),
    Mutant("approval: too late", "service/jobs/approvals.py", " or job.decide_by <= as_text(now()):", ":", APPROVED),
    Mutant("approval: a request waits for ever", "service/jobs/approvals.py", "& (jobs.c.decide_by <= as_text(now()))", "& (jobs.c.decide_by < '')", APPROVED),
    Mutant("approval: a decision without its line", "service/jobs/approvals.py", "            record_with(connection, store, by.name, action, job.dataset, key=by.key_id, **told)\n", "", APPROVED),
    Mutant("approval: any role decides", "service/approving.py", 'if caller.role != "approver":', "if False:", APPROVED),
    Mutant("approval: without room", "service/approving.py", '        check_room(offered, job.analyst, job.guarantee, "the analyst\'s share")\n', "        pass\n", APPROVED),
    Mutant("approval: everybody looks", "service/approving.py", "    if not caller.sees_requests:\n", "    if False:\n", ASKED),
    Mutant("approval: an approver spends a namesake's share", "service/service.py", 'if caller.role in ("approver", "auditor"):', "if False:", APPROVED),
    Mutant("approval: an approver sees a namesake's results", "service/service.py", "found.analyst != caller.analyst or", "found.analyst != caller.name or", APPROVED),
    Mutant("approval: without a purpose", "service/service.py", "        if not _is_visible(getattr(request, name)):\n            raise", "        if False:\n            raise", APPROVED),
    Mutant("approval: a restored backup runs it again", "service/store/recovery.py", '(*queue.NOT_BEGUN, "running")', '("waiting", "running")', APPROVED),
    Mutant("approval: a revoked key's request", "service/jobs/queue.py", "theirs = jobs.c.state.in_(NOT_BEGUN)", 'theirs = (jobs.c.state == "waiting")', APPROVED),
    Mutant("notices: signed with nothing", "service/notices/webhook.py", "hmac.digest(secret.encode(), body", 'hmac.digest(b"", body', TOLD),
    Mutant("notices: a receiver who refuses", "service/notices/webhook.py", "    if not answer.is_success:\n", "    if False:\n", TOLD),
    Mutant("notices: mail in the clear", "service/notices/mail.py", "            server.starttls(context=trusted())", "            server.noop()", TOLD),
    Mutant("notices: as many as there are", "service/notices/outbox.py", "Queue(MOST_WAITING)", "Queue()", TOLD),
    Mutant("notices: trials", "service/notices/outbox.py", "        if not job.trial:\n", "        if True:\n", TOLD),
]  # fmt: skip
