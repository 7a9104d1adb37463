"""Defects of what a holder does beside training: say what a promise means, split a table, describe it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

MEANING = ("accounting/test_meaning.py", "release/test_meaning.py")
PARTS = ("data/test_parts.py",)
DESCRIBED = ("description",)
PARTED = ("ledger/test_parts.py",)

MEANT = "accounting/meaning.py"
SPLIT = "data/parts.py"
COUNTED = "description/measuring.py"
TOLD = "description/description.py"
LEDGER = "ledger/ledger.py"
SUMS = "ledger/sums.py"

# fmt: off
MUTANTS = [
    Mutant("meaning: only one direction", MEANT, "return factor * false_positives + 1.0 - factor + factor * right", "return factor * false_positives + right", MEANING),
    Mutant("meaning: a mu for every promise", MEANT, "return None if curve.stated_delta else", "return", MEANING),
    Mutant("meaning: odds without the exception", MEANT, "epsilon - math.log1p(-share)", "epsilon", MEANING),
    Mutant("meaning: runs add up as roots", MEANT, "math.sqrt(times) * once", "once", MEANING),
    Mutant("meaning: a bought schema is free", "release/certified.py", "beside=bought_beside(self.guarantee, self.bought)", "beside=None", MEANING),
    Mutant("meaning: rounded downwards", "release/meaning.py", "rounding=ROUND_CEILING", 'rounding="ROUND_FLOOR"', MEANING),
    Mutant("split: by the identifier under replace_one", SPLIT, 'if by == "person" and relation.replaces:', "if False:", PARTS),
    Mutant("split: by position where n is private", SPLIT, 'if by == "position" and not relation.count_is_public:', "if False:", PARTS),
    Mutant("split: a person's rows by themselves", SPLIT, "    if schema.rows_per_person > 1:\n        raise SchemaError(\n            \"somebody", "    if False:\n        raise SchemaError(\n            \"somebody", PARTS),
    Mutant("split: a private number of records in the note", SPLIT, "    if relation.count_is_public:\n        tested", "    if True:\n        tested", PARTS),
    Mutant("split: a part passes for the other", SPLIT, "if part.name != name:", "if False:", PARTS),
    Mutant("split: two splits of one data set", "ledger/admission.py", "    elif known != split.digest:", "    elif False:", PARTED),
    Mutant("split: the whole is free for parts", SUMS, "of_all = counted.get(WHOLE, nothing)", "of_all = nothing", PARTED),
    Mutant("split: the whole forgets parts", SUMS, "names = [part] if part else sorted(name for name in counted if name) or [WHOLE]", "names = [part]", PARTED),
    Mutant("split: any neighbours", LEDGER, "if part.split.neighbours != self.rule().total.neighbours:", "if False:", PARTED),
    Mutant("describe: products beyond 1", COUNTED, "sizes = np.abs(products) if", "sizes = 2.0 * np.abs(products) if", DESCRIBED),
    Mutant("describe: a person of many rows weighs many", COUNTED, "np.abs(products) * weights", "np.abs(products)", DESCRIBED),
    Mutant("describe: a row counts twice", COUNTED, "return count((products < 0).astype(np.int64), 2, sizes)", "return count((products < 0).astype(np.int64), 2, sizes) + count((products > 0).astype(np.int64), 2, sizes)", DESCRIBED),
    Mutant("describe: missing cells are forgotten", COUNTED, "np.where(np.isnan(cells), bins + 1,", "np.where(np.isnan(cells), -1,", DESCRIBED),
    Mutant("describe: half of the price", COUNTED, "cost=Cost(guarantee, plan.mechanism.renyi)", "cost=Cost(Guarantee(guarantee.epsilon / 2, guarantee.delta, guarantee.neighbours))", DESCRIBED),
    Mutant("describe: an invalid correlation matrix", TOLD, "np.maximum(values, 0.0)", "values", DESCRIBED),
    Mutant("describe: intervals of half the noise", TOLD, "return reach * mechanism.scales[place]", "return reach * mechanism.scales[place] / 2.0", DESCRIBED),
]
