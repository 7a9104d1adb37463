"""Defects of approval by a second person, and of the notices about it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

APPROVED = ("server/test_approvals.py",)
ASKED = ("server/api/test_approval_routes.py",)
TOLD = ("server/test_notices.py",)

MUTANTS = [
    Mutant("approval: nobody is asked", "privlearn.server.holder.dataset_settings:Approval.is_needed", "limit is not None and epsilon > limit", "False", APPROVED),
    Mutant("approval: a misspelt kind", "privlearn.server.holder.dataset_settings:Approval.check_kinds", "kind not in known", "False", APPROVED),
    Mutant("approval: what waits is run", "privlearn.server.jobs.queue:_free", "jobs.c.state == 'waiting'", "jobs.c.state.in_(NOT_BEGUN)", APPROVED),
    Mutant("approval: one's own request", "privlearn.server.jobs.approvals:_check", "is_own(job, by)", "False", APPROVED),
    Mutant("approval: another spelling of one's name", "privlearn.server.jobs.approvals:normalize_name", "unicodedata.normalize('NFKC', name).strip().casefold()", "name", APPROVED),
    Mutant("approval: the holder's own request by the provider", "privlearn.server.jobs.approvals:is_own", "job.key_id.startswith(OPENID)", "False", APPROVED),
    Mutant("approval: decided twice", "privlearn.server.jobs.approvals:_check", "job.state != 'waiting_for_approval' or job.decide_by <= as_text(now())", "job.decide_by <= as_text(now())", APPROVED),
    Mutant("approval: too late", "privlearn.server.jobs.approvals:_check", "job.state != 'waiting_for_approval' or job.decide_by <= as_text(now())", "job.state != 'waiting_for_approval'", APPROVED),
    Mutant("approval: a request waits for ever", "privlearn.server.jobs.approvals:end_undecided", "jobs.c.decide_by <= as_text(now())", "jobs.c.decide_by < ''", APPROVED),
    Mutant("approval: a decision without its line", "privlearn.server.jobs.approvals:decide", "record_with(connection, store, by.name, action, job.dataset, key=by.key_id, **details)", "", APPROVED),
    Mutant("approval: any role decides", "privlearn.server.jobs.approvals:Approvals.decide", "caller.role != 'approver'", "False", APPROVED),
    Mutant("approval: without room", "privlearn.server.jobs.approvals:_check_approvable", """check_budget_left(offered, job.analyst, job.guarantee, "the analyst's share")""", "pass", APPROVED),
    Mutant("approval: everybody looks", "privlearn.server.jobs.approvals:_check_reader", "not caller.sees_requests", "False", ASKED),
    Mutant("approval: an approver spends a namesake's share", "privlearn.server.service:Service._context", "caller.role in ('approver', 'auditor')", "False", APPROVED),
    Mutant("approval: an approver sees a namesake's results", "privlearn.server.service:Service._own", "caller.analyst", "caller.name", APPROVED),
    Mutant("approval: without a purpose", "privlearn.server.jobs.admission:time_to_approve", "not _is_visible(getattr(request, name))", "False", APPROVED),
    Mutant("approval: a restored backup runs it again", "privlearn.server.store.store:_end_open_work", "*queue.NOT_BEGUN", "'waiting'", APPROVED),
    Mutant("approval: a revoked key's request", "privlearn.server.jobs.queue:end_revoked", "jobs.c.state.in_(NOT_BEGUN)", "jobs.c.state == 'waiting'", APPROVED),
    Mutant("notices: signed with nothing", "privlearn.server.notices:signature", "hmac.digest(secret.encode(), body, 'sha256')", "hmac.digest(b'', body, 'sha256')", TOLD),
    Mutant("notices: a receiver who refuses", "privlearn.server.notices:send_webhook", "not answer.is_success", "False", TOLD),
    Mutant("notices: mail in the clear", "privlearn.server.notices:_connect", "server.starttls(context=tls_context())", "server.noop()", TOLD),
    Mutant("notices: as many as there are", "privlearn.server.notices:Outbox.__init__", "Queue(MAX_WAITING)", "Queue()", TOLD),
    Mutant("notices: trials", "privlearn.server.notices:Outboxes.notify", "not job.trial", "True", TOLD),
]  # fmt: skip
