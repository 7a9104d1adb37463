"""Defects of joint evaluations, and of people whom several parties know."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

COUNTS = ("mechanisms/test_summed_counts.py",)
TOGETHER = ("statistics/evaluation/test_together.py",)
SEVERAL = ("parties/test_several_parties.py",)
BOUGHT = ("parties/test_joint_discovery.py",)
REGRESSED = ("parties/test_joint_moments.py",)
DERIVED = ("release/test_moments_release.py",)
TAILS = ("mechanisms/test_tail_counts.py",)
CHECKED = ("parties/test_agreement_summary.py",)


# fmt: off
MUTANTS = [
    Mutant("joint counts: a person moves half as much", "privlearn.mechanisms.summed.summed_counts:SummedCounts.sum_sensitivity", "self.guarantee.relation.counts", "0.5 * self.guarantee.relation.counts", COUNTS),
    Mutant("joint counts: the grid of the shares for free", "privlearn.mechanisms.summed.summed_counts:SummedCounts._loss", "self.sum_sensitivity / self.noise_scale + grid_ratio(sum(self.cells))", "self.sum_sensitivity / self.noise_scale", COUNTS),
    Mutant("joint counts: tables not weighed", "privlearn.mechanisms.summed.summed_counts:SummedCounts._roots", "math.sqrt(share)", "1.0", COUNTS),
    Mutant("joint counts: noise of one share in the intervals", "privlearn.mechanisms.summed.summed_counts:SummedCounts.in_sum", "present / self.noise_shares", "1 / self.noise_shares", TOGETHER),
    Mutant("joint counts: more records than expected stop a run", "privlearn.parties.run.answers:CountedParty.answer", "np.clip(self._vector, -bound, bound)", "self._vector", TOGETHER),
    Mutant("joint counts: another number of records counted", "privlearn.parties.run.agreement:Agreement.check_declared", "self.guarantee.relation.count_is_public and records != self.parties[name]", "False", TOGETHER),
    Mutant("joint counts: the model not in the plan", "privlearn.parties.run.joint_evaluation:JointEvaluation.to_dict", "super().to_dict() | {'release_sha256': self.release.digest}", "super().to_dict()", TOGETHER),
    Mutant("joint counts: another sum than that of the run", "privlearn.release.counts_file:CountsFile._parse", "about['in_sum'] != in_sum", "False", TOGETHER),
    Mutant("joint bounds: the receipt's price believed", "privlearn.release.base_certificate:check_receipt", "not spent <= receipt.guarantee", "False", BOUGHT),
    Mutant("joint bounds: people of several parties forgotten in the receipt", "privlearn.release.base_certificate:_recompute_cost", "parties_per_person=receipt.parties_per_person", "", BOUGHT),
    Mutant("joint bounds: people of several parties forgotten", "privlearn.parties.run.joint_discovery:JointDiscovery.mechanism", "parties_per_person=self.parties_per_person", "", BOUGHT),
    Mutant("joint bounds: another number of records counted", "privlearn.parties.run.joint_discovery:JointDiscovery.read_party", "self.check_declared(name, columns.records)", "", BOUGHT),
    Mutant("joint bounds: the draft not in the plan", "privlearn.parties.run.joint_discovery:JointDiscovery.to_dict", "super().to_dict() | {'draft': self.draft.to_dict()}", "super().to_dict()", BOUGHT),
    Mutant("joint bounds: other candidates than the plan's", "privlearn.statistics.discovery.summed:DiscoveredSchema.__post_init__", "self.run is not None", "False", BOUGHT),
    Mutant("joint bounds: noise sold", "privlearn.parties.run.joint_discovery:JointDiscovery._can_be_carried_out", "self._refuse_noise()", "self.cells", BOUGHT),
    Mutant("joint bounds: a tail without its last cell", "privlearn.mechanisms.statistics.tail_counts:from_edge", "counts[-1][start]", "0.0 * counts[-1][start]", TAILS),
    Mutant("joint moments: the targets for free", "privlearn.mechanisms.summed.summed_moments:SummedMoments.sum_sensitivity", "math.sqrt(self.shares[0]) * (1.0 + self._leverage / 2.0)", "math.sqrt(self.shares[0])", REGRESSED),
    Mutant("joint moments: one deleted is one replaced", "privlearn.mechanisms.summed.summed_moments:SummedMoments.sum_sensitivity", "self.guarantee.relation.moments * self._rows_of_a_person", "self._rows_of_a_person", REGRESSED),
    Mutant("joint moments: a person's other rows forgotten", "privlearn.mechanisms.summed.summed_moments:SummedMoments.sum_sensitivity", "self.guarantee.relation.moments * self._rows_of_a_person", "self.guarantee.relation.moments", REGRESSED),
    Mutant("joint moments: more weight for targets than is proven", "privlearn.mechanisms.summed.summed_moments:SummedMoments.__post_init__", "self._leverage > 1.0 + 2.0 ** (-40)", "False", REGRESSED),
    Mutant("several parties: the others' records forgotten", "privlearn.mechanisms.task:Task.records_of_a_person", "self.rows_per_person * self.parties_per_person", "self.rows_per_person", SEVERAL),
    Mutant("several parties: forgotten in the moments", "privlearn.mechanisms.summed.noisy_descent:_moment_sensitivity", "task.records_of_a_person", "task.rows_per_person", SEVERAL),
    Mutant("several parties: one rounded vector", "privlearn.parties.secure_sum.noise_share:NoiseShare.step", "self.share_scale / self.parties_per_person", "self.share_scale", SEVERAL),
    Mutant("several parties: forgotten in a run", "privlearn.parties.run.agreement:Agreement.party_noise", "self.parties_per_person", "1", SEVERAL),
    Mutant("a fingerprint of 64 bits", "privlearn.release.signatures:", "WORDS = 12", "WORDS = 4", CHECKED),
    Mutant("other constants signed", "privlearn.parties.run.witness:Witness._check", "release.certificate.mechanism != self._agreement.mechanism", "False", REGRESSED),
    Mutant("other public facts signed", "privlearn.parties.run.witness:_same_files", "left[name] == right[name]", "True", REGRESSED),
    Mutant("moments of another schema than the plan's", "privlearn.release.moments_file:Moments.__post_init__", "(planned, agreed['targets']) != (self.about['schema'], self.about['targets'])", "False", REGRESSED),
    Mutant("a regression that does not follow from its sum", "privlearn.release.artifact:_check_moments", "moments.leads_to(model, certificate)", "", DERIVED),
    Mutant("a regression with another certificate than its sum's", "privlearn.release.moments_file:Moments.leads_to", "certificate.to_dict() != self.certify(model, target, regularization).to_dict()", "False", DERIVED),
    Mutant("a regression's coefficients not solved for", "privlearn.release.moments_file:", "_STEPS = 2", "_STEPS = 2 ** 30", DERIVED),
]  # fmt: skip
