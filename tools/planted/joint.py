"""Defects of joint evaluations, and of people whom several parties know."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

COUNTS = ("mechanisms/test_summed_counts.py",)
TOGETHER = ("evaluation/test_together.py",)
SEVERAL = ("multiparty/test_several_parties.py",)
BOUGHT = ("multiparty/test_joint_discovery.py",)
REGRESSED = ("multiparty/test_joint_moments.py",)
DERIVED = ("release/test_moments_release.py",)
TAILS = ("mechanisms/test_tail_counts.py",)
CHECKED = ("multiparty/test_checked_plan.py",)

SUMMED = "mechanisms/summed/summed_counts.py"
JOINT = "evaluation/together.py"
FILE = "release/counts_file.py"
MOMENTS = "mechanisms/summed/summed_moments.py"
TRAINING = "multiparty/run/training.py"
CERTIFIED = "release/certified.py"

# fmt: off
MUTANTS = [
    Mutant("joint counts: a person moves half as much", SUMMED, "return self.guarantee.relation.counts * self._rows_of_a_person", "return 0.5 * self.guarantee.relation.counts * self._rows_of_a_person", COUNTS),
    Mutant("joint counts: the grid of the shares for free", SUMMED, "return self.moved / self.noise_scale + grid_ratio(sum(self.cells))", "return self.moved / self.noise_scale", COUNTS),
    Mutant("joint counts: tables not weighed", SUMMED, "tuple(math.sqrt(share) for share in self.shares)", "tuple(1.0 for share in self.shares)", COUNTS),
    Mutant("joint counts: noise of one share in the intervals", SUMMED, "noise = math.sqrt(present / self.noise_shares)", "noise = math.sqrt(1 / self.noise_shares)", TOGETHER),
    Mutant("joint counts: more records than expected stop a run", TRAINING, "np.clip(self._vector, -bound, bound)", "self._vector", TOGETHER),
    Mutant("joint counts: another number of records counted", "multiparty/run/joint_plan.py", "if self.guarantee.relation.count_is_public and records != self.parties[name]:", "if False:", TOGETHER),
    Mutant("joint counts: the model not in the plan", JOINT, 'super().to_dict() | {"release_sha256": self.release.digest}', "super().to_dict()", TOGETHER),
    Mutant("joint counts: another sum than that of the run", FILE, 'if about["in_sum"] != told:', "if False:", TOGETHER),
    Mutant("joint bounds: the receipt's price believed", CERTIFIED, "if not spent <= receipt.guarantee:", "if False:", BOUGHT),
    Mutant("joint bounds: people of several parties forgotten in the receipt", CERTIFIED, "            parties_per_person=receipt.parties_per_person,\n", "", BOUGHT),
    Mutant("joint bounds: people of several parties forgotten", "multiparty/run/joint_discovery.py", "            parties_per_person=self.parties_per_person,\n", "", BOUGHT),
    Mutant("joint bounds: another number of records counted", "multiparty/run/joint_discovery.py", "        plan.check_declared(name, columns.records)\n", "", BOUGHT),
    Mutant("joint bounds: the draft not in the plan", "multiparty/run/joint_discovery.py", 'super().to_dict() | {"draft": self.draft.to_dict()}', "super().to_dict()", BOUGHT),
    Mutant("joint bounds: other candidates than the plan's", "discovery/summed.py", "if self.run is not None:", "if False:", BOUGHT),
    Mutant("joint bounds: noise sold", "multiparty/run/joint_discovery.py", "            self._refuse_noise()\n", "            self.cells\n", BOUGHT),
    Mutant("joint bounds: a tail without its last cell", "mechanisms/statistics/tail_counts.py", "tail = counts[-1][start]", "tail = 0.0 * counts[-1][start]", TAILS),
    Mutant("joint moments: the targets for free", MOMENTS, "math.sqrt(self.shares[0]) * (1.0 + self._leverage / 2.0)", "math.sqrt(self.shares[0])", REGRESSED),
    Mutant("joint moments: one deleted is one replaced", MOMENTS, "self.guarantee.relation.moments * self._rows_of_a_person", "self._rows_of_a_person", REGRESSED),
    Mutant("joint moments: a person's other rows forgotten", MOMENTS, "relation.moments * self._rows_of_a_person", "relation.moments", REGRESSED),
    Mutant("joint moments: more weight for targets than is proven", MOMENTS, "if self._leverage > 1.0 + 2.0**-40:", "if False:", REGRESSED),
    Mutant("several parties: the others' records forgotten", "mechanisms/task.py", "return self.rows_per_person * self.parties_per_person", "return self.rows_per_person", SEVERAL),
    Mutant("several parties: forgotten in the moments", "mechanisms/summed/noisy_descent.py", "task.records_of_a_person + summation", "task.rows_per_person + summation", SEVERAL),
    Mutant("several parties: one rounded vector", "multiparty/secure_sum/noise_share.py", "grid_step(self.share_scale / self.parties_per_person,", "grid_step(self.share_scale,", SEVERAL),
    Mutant("several parties: forgotten in a run", "multiparty/run/conversation.py", "plan.cohort, plan.parties_per_person)", "plan.cohort)", SEVERAL),
    Mutant("a fingerprint of 64 bits", "multiparty/run/fingerprint.py", "WORDS = 8\n", "WORDS = 4\n", CHECKED),
    Mutant("other constants signed", "multiparty/run/witness.py", "if release.certificate.mechanism != self._plan.mechanism:", "if False:", REGRESSED),
    Mutant("other public facts signed", "multiparty/run/witness.py", "if isinstance(release, CountsFile) and not self._says_what_was_counted(release, run):", "if False:", REGRESSED),
    Mutant("moments of another schema than the plan's", "release/moments_file.py", 'if (planned, agreed["targets"]) != (self.about["schema"], self.about["targets"]):', "if False:", REGRESSED),
    Mutant("a regression that does not follow from its sum", "release/artifact.py", "        and moments.leads_to(model, certificate)\n", "", DERIVED),
    Mutant("a regression with another certificate than its sum's", "release/moments_file.py", "if certificate.to_dict() != self.certified(model, target, regularization).to_dict():", "if False:", DERIVED),
    Mutant("a regression's coefficients not solved for", "release/moments_file.py", "_STEPS = 2", "_STEPS = 2**30", DERIVED),
]
