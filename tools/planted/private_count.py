"""Defects of add/remove neighbours, under which the number of records is private."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import LAWS, Mutant

COUNTS = ("privacy/test_private_count.py",)
PARTIES = ("multiparty/test_private_counts.py",)
REQUESTS = ("service/test_private_counts.py",)

RELATION = "relation.py"
METHODS = "selection/methods.py"
ORACLE = "estimators/memory_oracle.py"
TRAINING = "multiparty/run/training.py"

# fmt: off
MUTANTS = [
    Mutant("add_remove: half a gradient", RELATION, 'nor counted",\n        replaces=False,\n        gradients=1,', 'nor counted",\n        replaces=False,\n        gradients=0.5,', LAWS),
    Mutant("add_remove: the number of records is public", RELATION, "        count_is_public=False,\n", "        count_is_public=True,\n", COUNTS),
    Mutant("add_remove: n in place of the expected number", RELATION, "            return int(expected)\n", "            return max(counted, 1)\n", COUNTS),
    Mutant("add_remove: the solver divides by n", ORACLE, "            rows.total,\n            rows.weights,\n", "            max(rows.features.shape[0], 1),\n            rows.weights,\n", COUNTS),
    Mutant("add_remove: n in a search's certificate", METHODS, "len(last) if expected is None else expected", "len(last)", COUNTS),
    Mutant("add_remove: equal parts of the table", METHODS, "split, expected = scatter_places, ", "split, expected = split_places, ", COUNTS),
    Mutant("add_remove: n in a receipt", "discovery/buying.py", "records=guarantee.relation.total(columns.records, expected_records)", "records=columns.records", COUNTS),
    Mutant("add_remove: an empty table is refused", "estimators/inputs.py", "    found = read_answers(y) if", "    if len(cells) == 0:\n        raise DataError('no rows')\n    found = read_answers(y) if", COUNTS),
    Mutant("add_remove: a large table is refused", "mechanisms/task.py", "return self if mass <= self.mass_bound else", "return self if True else", COUNTS),
    Mutant("add_remove: rounding of n records at most", "mechanisms/task.py", "self.weight_bound * self.relation.largest_table", "self.weight_bound", COUNTS),
    Mutant("add_remove: a party counts its records", TRAINING, "features=features, total=plan.parties[name])", "features=features)", PARTIES),
    Mutant("add_remove: a party with other records is refused", "multiparty/run/joint_plan.py", "if self.guarantee.relation.count_is_public and records != self.parties[name]:", "if records != self.parties[name]:", PARTIES),
    Mutant("add_remove: a sum beyond its bound stops a run", TRAINING, "np.clip(self._exact(question), -bound, bound)", "self._exact(question)", PARTIES),
    Mutant("add_remove: a server counts its records", "service/holder/datasets.py", "return self.settings.guarantee.relation.total(counted, self.settings.expected_records)", "return counted", REQUESTS),
]
