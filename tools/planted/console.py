"""Defects of the holder's console: files elsewhere, silent changes, budgets and versions that are mixed up."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import TRAININGS, Mutant

CHANGES = ("server/changes/test_changes.py",)
FORMS = ("server/pages/test_console_pages.py",)

MUTANTS = [
    Mutant("console: a link leads elsewhere", "privlearn.server.holder.console:_inside", "path if all((part.resolve().is_relative_to(root) for part in parts)) else None", "path", CHANGES),
    Mutant("console: a path leads elsewhere", "privlearn.server.holder.console:_inside", """
        try:
            ...
        except (OSError, RuntimeError):
            return None
    """, """
        return root / relative if (root / relative).exists() else None
        try:
            ...
        except (OSError, RuntimeError):
            return None
    """, CHANGES),
    Mutant("console: beside the file, over its head", "privlearn.server.holder.console_state:merge", "analysts[analyst].setdefault(dataset, share)", "analysts[analyst][dataset] = share", CHANGES),
    Mutant("console: a disabled analyst goes on", "privlearn.server.holder.console_state:merge", "not one.disabled", "True", CHANGES),
    Mutant("console: a disabled analyst's keys open", "privlearn.server.changes.analysts:disable_analyst", "end_key(connection, key_id)", "pass", CHANGES),
    Mutant("console: a share is raised in silence", "privlearn.server.changes.analysts:check_new_share", "not reason", "False", CHANGES),
    Mutant("console: a share beyond the whole", "privlearn.server.changes.analysts:check_new_share", "check_share('epsilon', share, service.catalog.owner.datasets.get(dataset))", "pass", CHANGES),
    Mutant("console: what the file declares is changed", "privlearn.server.changes.analysts:check_changeable_share", "dataset in found.fixed", "False", CHANGES),
    Mutant("console: a change without a line in the log", "privlearn.server.changes.change:change_transaction", "record_with(connection, service.store, caller.name, action, dataset, by=caller.key_id, **details)", "", CHANGES),
    Mutant("console: anybody changes it", "privlearn.server.changes.change:check_allowed", "not caller.is_holder", "False", CHANGES),
    Mutant("console: a rotated key stays", "privlearn.server.changes.keys:rotate_key", "shorten_expiry(connection, key_id, ends)", "", CHANGES),
    Mutant("console: a rotated key lives longer", "privlearn.server.access.keys:shorten_expiry", "min(as_text(at), find_key(connection, key_id).expires or '9')", "as_text(at)", CHANGES),
    Mutant("console: a stolen login makes a holder's key", "privlearn.server.changes.keys:_check_rotation", "found.caller.role not in ISSUED_ROLES", "False", CHANGES),
    Mutant("console: the same people, two budgets", "privlearn.server.changes.datasets:_check_not_served", "find_other_name(name, path, served)", "None", CHANGES),
    Mutant("console: two budgets by way of a pattern", "privlearn.server.holder.console_state:_overlap", "below or not _file_ids(one).isdisjoint(_file_ids(other))", "below", CHANGES),
    Mutant("console: a server starts with two names of one table", "privlearn.server.holder.catalog:Catalogs.__init__", "check_declared(owner, self.console_state)", "pass", CHANGES),
    Mutant("console: another schema is a version", "privlearn.server.changes.datasets:check_new_version", "content.digest != old.digest", "False", CHANGES),
    Mutant("console: a job reads whatever is newest", "privlearn.server.jobs.running:run_job", "job.version", "", (*CHANGES, *TRAININGS)),
    Mutant("console: a session reads whatever is newest", "privlearn.server.jobs.sessions:OpenSessions._reopen", "session.version", "", CHANGES),
    Mutant("console: a retired data set is asked", "privlearn.server.jobs.admission:check_guarantee", "context.offered.settings.retired", "False", CHANGES),
    Mutant("console: other processes never hear of it", "privlearn.server.holder.catalog:Catalogs.refresh", "state != self.console_state", "False", CHANGES),
    Mutant("console: done before it is asked", "privlearn.server.pages.change:carry_out", "visit.request.method == 'GET' or text_of(form, 'sure') != 'yes'", "visit.request.method == 'GET'", FORMS),
    Mutant("console: a reload makes a second key", "privlearn.server.pages.analysts:issue.do", "key_id=typed['once'][:16]", "", FORMS),
]  # fmt: skip
