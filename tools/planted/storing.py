"""Defects of what must not be forgotten: ledgers, stores, sessions, the service and its commands."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import (
    ACCOUNTS,
    DEFECTS,
    FROZEN,
    GUEST_KINDS,
    KERNEL_MODULES,
    KEYS,
    LEDGERS,
    LOGGED,
    OBJECTS,
    OPERATED,
    PAGED,
    PAGES,
    SHARED,
    SIGNED,
    SPANS,
    STATES,
    TRAININGS,
    TURNS,
    UPGRADES,
    WEAK,
    WEAK_COMMANDS,
    WEAK_REQUESTS,
    Mutant,
    TextMutant,
)

MUTANTS: list[Mutant | TextMutant] = [
    Mutant("ledger charged after", "privlearn.budget.charge:Charge.pay_for", """
        if budget is None:
            ...
    """, """
        if budget is None:
            ...
        compute()
    """, DEFECTS),
    Mutant("commit skipped", "privlearn.budget.charge:Charge.pay_for.compute_and_commit", "reservation.commit()", "", DEFECTS),
    Mutant("session: solved before the charge", "privlearn.sessions.interactive:InteractivePredictor.__init__", "opened, solved = charge.pay_for(lambda: new_state(store, frozen, calibrated, randomness, sizes))", """
        frozen.solve()
        opened, solved = charge.pay_for(lambda: new_state(store, frozen, calibrated, randomness, sizes))
    """, ("estimators/test_kernel_learner.py",)),
    Mutant("session: a fit changes open sessions", "privlearn.estimators.kernel_learner:KernelLearner._hold", "self._machine, self.encoder_, self.kernel_ = (machine, machine.reader.encoder, machine.kernel)", """
        vars(vars(self).get('_machine', machine)).update(vars(machine))
        self._machine, self.encoder_, self.kernel_ = (machine, machine.reader.encoder, machine.kernel)
    """, FROZEN),
    Mutant("session: points read by the learner's parameters of now", "privlearn.estimators.kernel_learner:KernelLearner._read_machine", "self._reader(rows.encoder)", "type('', (), {'encoder': rows.encoder, 'fit_intercept': True, 'read': lambda _, data: self._reader(rows.encoder).read(data)})()", FROZEN),
    Mutant("session: a failed read changes the part", "privlearn.estimators.kernel_learner:KernelLearner.read", "return self._hold(self._read_machine(X, y))", """
        vars(vars(self).get('_machine', self))['records_part'] = part_of(X)
        return self._hold(self._read_machine(X, y))
    """, FROZEN),
    Mutant("session: a reopened one gives its function to the learner", "privlearn.estimators.kernel_machine:KernelMachine._with_function", "return dataclasses.replace(self, function=function)", """
        vars(self)['function'] = function
        return self
    """, FROZEN),
    Mutant("session: a machine that can be changed", "privlearn.estimators.kernel_machine:KernelMachine", "frozen=True", "", FROZEN),
    Mutant("session: answers leave before they are durable", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", "locked.append(records)", "", STATES),
    Mutant("session: a turn for what is known", "privlearn.sessions.interactive:InteractivePredictor._answer_new", "key not in self._known", "", TURNS),
    Mutant("session: processes pass a limit of points together", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", "admission.check(len(unknown) + following, len(self._known))", "pass", TURNS),
    Mutant("session: a long request passes a limit", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", "len(unknown) + following", "len(unknown)", TURNS),
    Mutant("session: a point drawn twice", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", "self._key(point) not in self._known", "", TURNS),
    Mutant("session: noise not given the others' answers", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", "self._remember(locked.records_after(len(self._known)))", "", TURNS),
    Mutant("session: an answer known before its commit", "privlearn.sessions.interactive:InteractivePredictor._answer_locked", """
        with self._state.lock() as locked:
            ...
        self._remember(records)
    """, """
        with self._state.lock() as locked:
            ...
            self._remember(records)
    """, ("sessions/test_interactive.py",)),
    Mutant("session: refused for another caller's point", "privlearn.sessions.interactive:InteractivePredictor._answer_new", """
        if not others:
            ...
    """, "...", ("sessions/test_interactive.py",)),
    Mutant("session: a repeated object drawn anew", "privlearn.features.objects:_encode", "sorted((_encode(pair) for pair in value.items()))", "(_encode(pair) for pair in value.items())", OBJECTS),
    Mutant("session: two objects under one key", "privlearn.features.objects:_join", "_LENGTH.pack(len(part)) + part", "part + _LENGTH.pack(0)[:1]", OBJECTS),
    Mutant("session: a point that whoever asked can change", "privlearn.features.objects:canonical", "return object_from_bytes(object_to_bytes(value))", """
        object_to_bytes(value)
        return value
    """, OBJECTS),
    Mutant("session: noise of objects not given the past", "privlearn.sessions.records:ObjectPoints.add", "object_from_bytes(key)", "object_from_bytes(self.key(str(len(self.all))))", ("sessions/test_points.py",)),
    Mutant("session: landmark rows longer than 1", "privlearn.estimators.kernel_machine:_to_grid", "np.trunc(np.ldexp(features, GRID_BITS))", "np.copysign(np.ceil(np.abs(np.ldexp(features, GRID_BITS))), features)", SPANS),
    Mutant("session: landmarks taken from the records", "privlearn.estimators.kernel_learner:KernelLearner._read_features", "self.landmarks(rows.encoder)", "SessionLandmarks(self.select_kernel(rows.encoder), in_memory(rows.features)[:20])", SPANS),
    Mutant("session: the linear solver's distance for free", "privlearn.estimators.kernel_fit:landmark_kernel_task", "landmark_task(task, dimension).solver_distance", "0.0", SPANS),
    Mutant("session: a turn without the lock", "privlearn.sessions.state:SharedState.lock", "f'session {session}'", "f'session {os.getpid()}'", TURNS),
    Mutant("session: goes on where answers were forgotten", "privlearn.sessions.state:LockedSharedState.records_after", "self._count < known", "False", TURNS),
    Mutant("session: a forked child answers", "privlearn.sessions.state:SharedState.check_open", "os.getpid() != self._process", "False", TURNS),
    Mutant("session: another session's state goes on", "privlearn.sessions.state:SharedState.lock", "row is None or row.header != self._written", "row is None", STATES),
    Mutant("session: other records accepted", "privlearn.sessions.opening:restore_mechanism", "learner.training_digest() != header['training']", "False", STATES),
    Mutant("composition off by one, ledger", "privlearn.budget.composition:BasicComposition.admits", "counted + Sum.of(requested)", "counted", LEDGERS),
    Mutant("budget of each user alone", "privlearn.budget.reservation:check_budget", """
        if not _fits(composition, totals_for_part(totals, part), requested):
            ...
    """, """
        totals = totals if hasattr(ledger, '_seen') else {}
        object.__setattr__(ledger, '_seen', True)
        if not _fits(composition, totals_for_part(totals, part), requested):
            ...
    """, DEFECTS),
    Mutant("share not checked", "privlearn.budget.reservation:check_budget", "ledger.share is None", "True", ACCOUNTS),
    Mutant("an id charged twice", "privlearn.budget.ledger:Ledger.reserve", "id or str(uuid4())", "str(uuid4())", ACCOUNTS),
    Mutant("an id used again once settled", "privlearn.budget.reservation:is_repeated_request", "settlement is not None", "False", ACCOUNTS),
    Mutant("an id for another cost", "privlearn.budget.reservation:is_repeated_request", "ledger.part_name, requested", "ledger.part_name, amount", ACCOUNTS),
    Mutant("service: a training for nothing", "privlearn.server.jobs.running:_compute", "not job.trial", "False", TRAININGS),
    Mutant("service: a restart pays again", "privlearn.server.jobs.running:_reserve", "id=job.id", "", TRAININGS),
    Mutant("service: a result seen before it is paid", "privlearn.server.jobs.results:_visible", "select(*columns).join_from(results, jobs).where(jobs.c.state == 'done')", "select(*columns).join_from(results, jobs)", TRAININGS),
    Mutant("service: two results for one cost", "privlearn.server.jobs.results:store_result", """
        if connection.scalar(select(results.c.id).where(results.c.id == job.id)) is None:
            ...
    """, """
        connection.execute(results.delete().where(results.c.id == job.id))
        if True:
            ...
    """, TRAININGS),
    Mutant("service: an error tells what is in a cell", "privlearn.server.jobs.running:reason_of", "str(error) if isinstance(error, PrivlearnError) else type(error).__name__", "str(error)", TRAININGS),
    Mutant("service: an error tells the analyst", "privlearn.server.jobs.running:run_job", "f\"{queue.FAILED}; {_spending(store, job)}\"", "str(error)", TRAININGS),
    Mutant("service: the clock tells", "privlearn.server.jobs.running:run_job", "wait_for_end_of_slot(began, offered.first_slot(job.learner))", "", TRAININGS),
    Mutant("service: rows are read before the cost is reserved", "privlearn.server.jobs.running:_compute", "price = price_job(kind, context, ledger)", """
        price = price_job(kind, context, ledger)
        context.offered.read_rows()
    """, (*TRAININGS, *GUEST_KINDS)),
    Mutant("service: another mechanism than was paid for", "privlearn.server.job_kinds.job_kind:check_same", "mechanism != charged", "False", TRAININGS),
    Mutant("service: a refusal after rows were read", "privlearn.server.jobs.running:run_job", "f\"{queue.FAILED}; {_STANDS}\" if _is_charged(store, job) else f\"{str(error).rstrip('.')}. {_UNSPENT.capitalize()}\"", "f\"{str(error).rstrip('.')}. {_UNSPENT.capitalize()}\"", GUEST_KINDS),
    Mutant("service: a plan that costs more than was asked for", "privlearn.server.jobs.running:price_job", "not mechanism.guarantee <= context.guarantee", "False", GUEST_KINDS),
    Mutant("service: a refused commit is tried again", "privlearn.server.jobs.running:_commit", "return f\"{queue.FAILED}; {_spending(store, job)}\", str(error)", "raise", TRAININGS),
    Mutant("service: the log quotes why a job failed", "privlearn.server.jobs.queue:_end", "{\"job\": job_id, \"failure\": failure}", "{\"job\": job_id, \"failure\": reason or failure}", TRAININGS),
    Mutant("service: a job that keeps dying is tried for ever", "privlearn.server.jobs.running:_compute", "job.attempts > queue.MAX_ATTEMPTS", "False", TRAININGS),
    Mutant("service: a plan that no ledger takes is accepted", "privlearn.server.jobs.running:price_job", """
        check_purpose(purpose)
        rule.price(cost)
    """, "pass", GUEST_KINDS),
    Mutant("service: an epsilon of nothing", "privlearn.server.jobs.admission:check_guarantee", "context.guarantee.epsilon < minimum", "False", GUEST_KINDS),
    Mutant("service: fields of any size", "privlearn.server.jobs.admission:check_request", "len(json.dumps(dict(request.fields))) > MAX_FIELD_BYTES", "False", GUEST_KINDS),
    Mutant("service: a kind sees results of others", "privlearn.server.jobs.results:_visible", "query = query.where(jobs.c.analyst == analyst)", "pass", GUEST_KINDS),
    Mutant("service: a price that was not typed", "privlearn.server.pages.choices:Choices.meaning", "re.fullmatch(NUMBER, text)", "text.isprintable()", PAGES),
    Mutant("service: any id is looked up", "privlearn.server.pages.page:check_id", "not re.fullmatch(ID, id)", "False", PAGES),
    Mutant("service: a training process without its extensions", "privlearn.server.jobs.workers:_train_for", "load_extensions(owner.extensions.modules)", "", KERNEL_MODULES),
    Mutant("service: a session's model is given out", "privlearn.server.service:Service.fetch", "not found.media_type", "False", GUEST_KINDS),
    Mutant("service: results of others", "privlearn.server.service:Service.result", """
        found = results.find(self.store, _analyst(caller), result_id, kind)
        return self._own(caller, found, kind or 'result')
    """, "return results.find(self.store, None, result_id, kind)", GUEST_KINDS),
    Mutant("service: a result's clock tells", "privlearn.server.jobs.results:_as_result", "row.finished", "row.started", TRAININGS),
    Mutant("service: a retried request pays again", "privlearn.server.jobs.queue:submit", """
        if before is not None:
            return before
    """, "", TRAININGS),
    Mutant("service: a key for another request", "privlearn.server.jobs.queue:_find_submission", "row.request_digest != job_kind(request.kind).digest(request)", "False", TRAININGS),
    Mutant("service: a job taken from whoever runs it", "privlearn.server.jobs.queue:_free", "as_text(moment)", "'z'", TRAININGS),
    Mutant("log: a changed line is not noticed", "privlearn.server.store.log_file:verify_log", "type(event.id) is not int or event.id <= here.id or (not event.follows(here.digest))", "event.id <= here.id", LOGGED),
    Mutant("log: its end is cut off", "privlearn.server.store.log_file:watching_for", """
        if not seen:
            ...
    """, """
        if False:
            ...
    """, LOGGED),
    Mutant("log: removed though it was changed", "privlearn.server.store.log_file:prune", "verify_log(first_head(store), iterate_events(store))", "", LOGGED),
    Mutant("log: an end without its line", "privlearn.server.jobs.queue:_end", "record_with(connection, store, row.analyst, action, row.dataset, **details)", "", LOGGED),
    Mutant("service: what leaves is not signed", "privlearn.server.job_kinds.job_kind:JobContext.sign", "archive if key is None else archive.signed(key)", "archive", SIGNED),
    Mutant("service: everybody watches", "privlearn.server.http.callers:_require_role.admit", "caller.role not in roles", "False", OPERATED),
    Mutant("service: a monitor signs in", "privlearn.server.access.logins:sign_in", "caller.role == 'monitor'", "False", OPERATED),
    Mutant("service: a cell becomes a formula", "privlearn.server.store.log_file:escape_formula", "_FORMULA.match(text)", "False", OPERATED),
    Mutant("service: pages of others", "privlearn.server.store.tables:ListPage.apply", "self.datasets is not None", "False", PAGED),
    Mutant("service: a revoked key opens", "privlearn.server.access.keys:KeyInfo.is_valid", "not self.revoked and (not self.expires or as_text(now()) < self.expires)", "not self.expires or as_text(now()) < self.expires", KEYS),
    Mutant("service: what was read before a change is remembered", "privlearn.server.ttl_cache:TtlCache.refresh", "forgotten != self._forgotten", "False", KEYS),
    Mutant("service: a look-up under way outlives a revoked key", "privlearn.server.access.keys:key_changes", "_CACHE.changes", "0", KEYS),
    Mutant("service: a value is looked up by all or none", "privlearn.server.ttl_cache:TtlCache.claim", "self._claimed.add(key)", "", KEYS),
    Mutant("service: any secret opens", "privlearn.server.access.keys:_check_secret", "hmac.compare_digest(expected, hash_secret(secret))", "bool(hash_secret(secret))", KEYS),
    Mutant("service: without a share the whole budget", "privlearn.server.holder.datasets:OfferedDataSet.ledger_of", "share is None and analyst != HOLDER", "False", KEYS),
    Mutant("service: a key for one data set opens all", "privlearn.server.holder.catalog:Catalog._sees", "caller.datasets is not None and name not in caller.datasets", "False", KEYS),
    Mutant("settled ones not counted", "privlearn.budget.totals:PartTotals.after", "self.committed + change if state == 'committed' else self.committed", "self.committed", LEDGERS),
    Mutant("sums that miss an entry are relied on", "privlearn.budget.totals:read_totals", "account == WHOLE and known != _last_entry(connection, dataset)", "False", LEDGERS),
    Mutant("sums that nobody compares", "privlearn.budget.totals:TotalsCheck._require", """
        if not fits:
            ...
    """, """
        if False:
            ...
    """, LEDGERS),
    Mutant("sums rounded on the way", "privlearn.budget.totals:totals_to_columns", "None if v is None else str(v)", "None if v is None else str(float(v))", LEDGERS),
    Mutant("sums of an account lost", "privlearn.budget.totals:add_totals", "sorted({WHOLE, account})", "[WHOLE]", LEDGERS),
    Mutant("upgrade: a format that is not recorded", "privlearn.budget.storage.migrations:upgrade", "PARTS[name].record(connection, _format_of(script))", "pass", UPGRADES),
    Mutant("upgrade: scripts in the wrong place", "privlearn.budget.storage.migrations:_scripts_after", "(part.newest, version)", "(part.newest, part.newest)", UPGRADES),
    Mutant("upgrade: a newer store is rewritten", "privlearn.budget.storage.formats:Part.check_known", "version > self.newest", "False", UPGRADES),
    Mutant("upgrade: an older store is used as it is", "privlearn.budget.storage.formats:Part.check", "version < self.newest", "False", UPGRADES),
    Mutant("upgrade: those under way are not waited for", "privlearn.budget.storage.store:rebuilding", "backend.exclude_readers(connection, MARKS & set(inspect(connection).get_table_names()))", "", UPGRADES),
    Mutant("upgrade: not in one transaction", "privlearn.budget.storage.store:rebuilding", "yield connection", "yield connection.execution_options(isolation_level='AUTOCOMMIT')", UPGRADES),
    Mutant("upgrade: two at the same time", "privlearn.budget.storage.store:rebuilding", """
        announce_writing(connection)
        with connection.begin():
            backend.exclude_others(connection, 'tables')
            ...
    """, """
        with connection.begin():
            ...
    """, UPGRADES),
    Mutant("upgrade: a table that others refer to is lost", "privlearn.budget.storage.sqlite:allow_rebuilding", "driver.execute('PRAGMA foreign_keys = OFF')", "del driver", UPGRADES),
    Mutant("a note that is not recorded", "privlearn.budget.ledger:Ledger.reserve", "note=self.note", "", UPGRADES),
    Mutant("PostgreSQL without the lock", "privlearn.budget.storage.postgresql:exclude_others", "connection.execute(select(func.pg_advisory_xact_lock(key)))", "assert key is not None", SHARED),
    Mutant("PostgreSQL reads from before the lock", "privlearn.budget.storage.postgresql:_begin", "'READ COMMITTED, READ WRITE' if is_writing(connection) else 'REPEATABLE READ, READ ONLY'", "'REPEATABLE READ, READ WRITE' if is_writing(connection) else 'REPEATABLE READ, READ ONLY'", SHARED),
    TextMutant("PostgreSQL commits before the disk has it", "src/privlearn/budget/storage/postgresql.py", "ELSE 'on' END", "ELSE current_setting('synchronous_commit') END", SHARED),
    TextMutant("PostgreSQL rounds costs", "src/privlearn/budget/storage/postgresql.py", "'extra_float_digits', '3'", "'extra_float_digits', '0'", LEDGERS),
    Mutant("weak: a session", "privlearn.sessions.interactive:InteractivePredictor.__init__", "accept_weak_privacy=accept_weak_privacy", "accept_weak_privacy=True", WEAK),
    Mutant("weak: verify calls it private", "privlearn.cli.verify:verify", "verified.is_private and (not verified.weakness)", "verified.is_private", WEAK_COMMANDS),
    Mutant("weak: a total bought in parts", "privlearn.cli.train.train:complete_schema", "check_strength(shares.total, records, learner.accept_weak_privacy)", "", WEAK_COMMANDS),
    Mutant("weak: an analyst decides", "privlearn.server.jobs.admission:check_not_weak", "weak and (not context.offered.settings.accept_weak_privacy)", "False", WEAK_REQUESTS),
    Mutant("weak: a word taken back", "privlearn.server.jobs.running:_reserve", "check_strength(guarantee, offered.records, offered.settings.accept_weak_privacy)", "pass", WEAK_REQUESTS),
    Mutant("unrecorded and unsaid", "privlearn.budget.charge:Charge.check", "budget is None", "False", WEAK),
    Mutant("unrecorded and said too often", "privlearn.budget.charge:Charge.check", "self.secure and self.cost.guarantee.is_private", "True", WEAK),
]  # fmt: skip
