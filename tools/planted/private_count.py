"""Defects of add/remove neighbours, under which the number of records is private."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import FROZEN, LAWS, Mutant

COUNTS = ("privacy/test_private_count.py",)
PARTIES = ("parties/test_private_counts.py",)
SESSIONS_COUNT = ("sessions/test_private_count_sessions.py",)
REQUESTS = ("server/test_private_counts.py",)


# fmt: off
MUTANTS = [
    Mutant("add_remove: half a gradient", "privlearn.guarantee:", "change='not there, nor counted', replaces=False, gradients=1", "change='not there, nor counted', replaces=False, gradients=0.5", LAWS),
    Mutant("add_remove: the number of records is public", "privlearn.guarantee:", "count_is_public=False", "count_is_public=True", COUNTS),
    Mutant("add_remove: n in place of the expected number", "privlearn.guarantee:Relation.total", "int(expected)", "max(counted, 1)", COUNTS),
    Mutant("add_remove: the solver divides by n", "privlearn.estimators.memory_oracle:MemoryOracle._minimiser", "rows.total", "max(rows.features.shape[0], 1)", COUNTS),
    Mutant("add_remove: n in a search's certificate", "privlearn.estimators.selection.methods:partition", "len(members) if expected is None else expected", "len(members)", COUNTS),
    Mutant("add_remove: equal parts of the table", "privlearn.estimators.selection.methods:partition", "(scatter_rows, max(1, rows.total // count))", "(split_rows, max(1, rows.total // count))", COUNTS),
    Mutant("add_remove: n in a receipt", "privlearn.statistics.discovery.measuring:discover", "request.total(columns.records)", "columns.records", COUNTS),
    Mutant("add_remove: an empty table is refused", "privlearn.estimators.reading:read_columns", "all_answers = read_answers(y) if y is not None else np.concatenate(answers)", """
        if len(cells) == 0:
            raise DataError('no rows')
        all_answers = read_answers(y) if y is not None else np.concatenate(answers)
    """, COUNTS),
    Mutant("add_remove: a large table is refused", "privlearn.mechanisms.task:Task.within_reach", "mass <= self.mass_bound", "True", COUNTS),
    Mutant("add_remove: rounding of n records at most", "privlearn.mechanisms.task:Task.mass_bound", "self.max_weight * self.relation.max_table_ratio", "self.max_weight", COUNTS),
    Mutant("add_remove: a party counts its records", "privlearn.parties.run.joint_training:JointTraining.read_party", "total=self.parties[name]", "", PARTIES),
    Mutant("add_remove: a party with other records is refused", "privlearn.parties.run.agreement:Agreement.check_declared", "self.guarantee.relation.count_is_public and records != self.parties[name]", "records != self.parties[name]", PARTIES),
    Mutant("add_remove: a sum beyond its bound stops a run", "privlearn.parties.run.answers:Party.answer", "np.clip(self._exact(question), -bound, bound)", "self._exact(question)", PARTIES),
    Mutant("add_remove: a server counts its records", "privlearn.server.holder.datasets:OfferedDataSet.records", "self.settings.guarantee.relation.total(count, self.settings.expected_records)", "count", REQUESTS),
    Mutant("add_remove: a session divides by n", "privlearn.estimators.kernel_learner:KernelLearner._read_machine", "relation.total(rows.total, self.expected_records)", "max(rows.total, 1)", SESSIONS_COUNT),
    Mutant("add_remove: a session's solver for n records at most", "privlearn.estimators.kernel_fit:landmark_task", "'replace_one' if task.relation.count_is_public else task.neighbours", "'replace_one'", SESSIONS_COUNT),
    Mutant("add_remove: a session refuses an empty table", "privlearn.estimators.kernel_machine:SessionLandmarks.of_records", "may_be_empty=True", "", SESSIONS_COUNT),
    Mutant("add_remove: a session for n on a learner for N0", "privlearn.estimators.kernel_machine:KernelMachine.kernel_task", "self._check_count_is_as_private(neighbours)", "", SESSIONS_COUNT),
    Mutant("add_remove: a session for the guarantee that the learner has now", "privlearn.estimators.kernel_learner:KernelLearner.freeze", "self._machine", "dataclasses.replace(self._machine, relation=self._relation)", FROZEN),
    Mutant("add_remove: an exact kernel machine", "privlearn.estimators.kernel_learner:KernelLearner._read_machine", """
        if self.public_points is None:
            refuse_private_count(relation)
    """, "", SESSIONS_COUNT),
    Mutant("add_remove: a certificate without public points", "privlearn.release.session_certificate:SessionCertificate._check", "refuse_private_count(self.guarantee.relation)", "pass", SESSIONS_COUNT),
]  # fmt: skip
