"""Defects of charges: whose budget, before what is checked, and how rows of a person count in a job."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import GUEST_KINDS, Mutant

CHARGES = ("budget/test_charge_contract.py",)
CALLED = ("estimators/test_callers_contract.py",)


# fmt: off
MUTANTS = [
    Mutant("charge: any idea of a person", "privlearn.budget.charge:budget_of_rows", "part.check(schema)", "", CHARGES),
    Mutant("charge: the part that the ledger states", "privlearn.budget.charge:budget_of_rows", "stated not in (None, part)", "False", CHARGES),
    Mutant("charge: rows without a part pass for one", "privlearn.budget.charge:budget_of_rows", "stated not in (None, part)", "part is not None and stated not in (None, part)", CHARGES),
    Mutant("charge: the rows' part is forgotten", "privlearn.budget.charge:budget_of_rows", "ledger.of_part(part)", "ledger", CHARGES),
    Mutant("charge: a seeded result", "privlearn.budget.charge:Charge.check", "budget is not None", "False", CHARGES),
    Mutant("charge: what stays reserved is not stated", "privlearn.budget.charge:Charge._run", "error.add_note", "str", CHARGES),
    Mutant("charge: a part in a run of several holders", "privlearn.parties.run.run_budget:RunBudget.reserve", "budget_of_rows(ledger, None, self._agreement.table_schema)", "pass", CHARGES),
    Mutant("charge: progress not checked", "privlearn.estimators.estimator:PrivateEstimator.prepare", "not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress))", "False", CHARGES),
    Mutant("charge: a session's path not checked", "privlearn.sessions.state:FileStore.check_free", "not isinstance(self.path, str | os.PathLike)", "False", CHARGES),
    Mutant("charge: a session's directory not checked", "privlearn.sessions.state:FileStore.check_free", "not (os.path.isdir(directory) and os.access(directory, os.W_OK))", "False", CHARGES),
    Mutant("charge: a fit forgets its part", "privlearn.estimators.estimator:PrivateEstimator._prepare_charge", "part_of(X)", "None", CHARGES),
    Mutant("charge: a search forgets its part", "privlearn.estimators.selection.search:PrivateGridSearch._prepare_charge", "part_of(X)", "None", CHARGES),
    Mutant("charge: a session forgets its part", "privlearn.sessions.opening:charge_of", "learner.records_part", "None", CHARGES),
    Mutant("charge: a description forgets its part", "privlearn.statistics.description.measuring:describe", "part_of(table)", "None", CHARGES),
    Mutant("charge: bounds forget their part", "privlearn.statistics.discovery.measuring:discover", "part_of(table)", "None", CHARGES),
    Mutant("charge: an evaluation forgets its part", "privlearn.statistics.evaluation.measuring:evaluate", "part_of(table)", "None", CHARGES),
    Mutant("charge: a curvature forgets its part", "privlearn.explain.private_curvature:curvature", "part_of(X)", "None", CHARGES),
    Mutant("callers: of a kernel learner not looked at", "privlearn.estimators.kernel_learner:KernelLearner._read_machine", "check_callers(seedable=False)", "", CALLED),
    Mutant("callers: cross-validation with a ledger", "privlearn.estimators.scikit_learn:check_callers", "charging and validating", "False", CALLED),
    Mutant("job kinds: a person of many rows weighs many", "privlearn.server.job_kinds.person_rows:PersonRows.count", "sizes * weights_of_persons(concatenate_tables(owners)[0], person)[0]", "sizes", GUEST_KINDS),
    Mutant("job kinds: rows_per_person rows weigh as many", "privlearn.server.job_kinds.person_rows:PersonRows.count", "sizes / self._schema.rows_per_person", "sizes", GUEST_KINDS),
    Mutant("job kinds: a row's number beyond 1", "privlearn.server.job_kinds.person_rows:_sizes", "0.0, 1.0", "0.0, 2.0", GUEST_KINDS),
    Mutant("job kinds: run for bare rows", "privlearn.server.job_kinds.job_kind:register_job_kind", "list(signature(kind.run).parameters) != _RUN_PARAMETERS", "False", GUEST_KINDS),
    Mutant("job kinds: bare rows", "privlearn.server.jobs.running:_compute", "PersonRows(rows, context.offered.schema)", "rows", GUEST_KINDS),
]  # fmt: skip
