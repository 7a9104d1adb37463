"""Defects of the holder's console: files elsewhere, silent changes, budgets and versions that are mixed up."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import TRAININGS, Mutant

CHANGES = ("service/changes/test_changes.py",)
FORMS = ("service/pages/test_console_pages.py",)

MUTANTS = [
    Mutant("console: a link leads elsewhere", "service/holder/console_sources.py", "return found if all(part.resolve().is_relative_to(root) for part in parts) else None", "return found", CHANGES),
    Mutant("console: a path leads elsewhere", "service/holder/console_sources.py", "    try:\n        found = (root / place).resolve(strict=True)", "    return root / place if (root / place).exists() else None\n    try:\n        found = (root / place).resolve(strict=True)", CHANGES),
    Mutant("console: beside the file, over its head", "service/holder/made.py", "analysts[analyst].setdefault(dataset, share)", "analysts[analyst][dataset] = share", CHANGES),
    Mutant("console: a disabled analyst goes on", "service/holder/made.py", "        if not one.disabled:\n", "        if True:\n", CHANGES),
    Mutant("console: a disabled analyst's keys open", "service/changes/analysts.py", "            end_key(connection, key_id)\n", "            pass\n", CHANGES),
    Mutant("console: a share is raised in silence", "service/changes/analysts.py", "and not reason:", "and False:", CHANGES),
    Mutant("console: a share beyond the whole", "service/changes/analysts.py", '        check_share("epsilon", share, service.catalog.owner.datasets.get(dataset))\n', "        pass\n", CHANGES),
    Mutant("console: what the file declares is changed", "service/changes/analysts.py", "    if dataset in found.fixed:\n", "    if False:\n", CHANGES),
    Mutant("console: a change without a line in the log", "service/changes/change.py", "        record_with(connection, service.store, caller.name, action, dataset, by=caller.key_id, **told)\n", "", CHANGES),
    Mutant("console: anybody changes it", "service/changes/change.py", "    if not caller.is_holder:\n", "    if False:\n", CHANGES),
    Mutant("console: a rotated key stays", "service/changes/keys.py", "        let_expire(connection, key_id, ends)\n", "", CHANGES),
    Mutant("console: a rotated key lives longer", "service/access/keys.py", 'ends = min(as_text(at), find_key(connection, key_id).expires or "9")', "ends = as_text(at)", CHANGES),
    Mutant("console: a stolen login makes a holder's key", "service/changes/keys.py", "if found.caller.role not in ISSUED_ROLES:", "if False:", CHANGES),
    Mutant("console: the same people, two budgets", "service/changes/datasets.py", "other = served_as(name, path, served)", "other = None", CHANGES),
    Mutant("console: two budgets by way of a pattern", "service/holder/same_files.py", "return below or not _opened(one).isdisjoint(_opened(other))", "return below", CHANGES),
    Mutant("console: a server starts with two names of one table", "service/holder/catalogs.py", "check_declared(owner, self.made)", "pass", CHANGES),
    Mutant("console: another schema is a version", "service/changes/datasets.py", "if content.digest != old.digest:", "if False:", CHANGES),
    Mutant("console: a job reads whatever is newest", "service/jobs/training.py", "catalog.named(job.dataset, job.version)", "catalog.named(job.dataset)", (*CHANGES, *TRAININGS)),
    Mutant("console: a session reads whatever is newest", "service/jobs/answering.py", "named(session.dataset, session.version)", "named(session.dataset)", CHANGES),
    Mutant("console: a retired data set is asked", "service/service.py", "    if asked.offered.settings.retired:\n", "    if False:\n", CHANGES),
    Mutant("console: other processes never hear of it", "service/holder/catalogs.py", "            if made != self.made:\n", "            if False:\n", CHANGES),
    Mutant("console: done before it is asked", "service/pages/change.py", 'if request.method == "GET" or text_of(form, "sure") != "yes":', 'if request.method == "GET":', FORMS),
    Mutant("console: a reload makes a second key", "service/pages/key_changes.py", 'expires=ends, key_id=typed["once"][:16]', "expires=ends", FORMS),
]  # fmt: skip
