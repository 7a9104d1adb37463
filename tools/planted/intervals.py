"""Defects of noisy curvature, and of the intervals that follow from it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant, scaled

CURVED = ("mechanisms/test_curvature.py",)
BOUGHT = ("explain/test_buying.py",)
HELD = ("explain/test_intervals.py",)
SHIFTED = ("explain/test_worst_case.py",)
SHOWN = ("explain/test_column_effects.py",)
ADDED = ("explain/test_one_prediction.py",)
REFINED = ("release/test_refinement.py",)


# fmt: off
MUTANTS = [
    *scaled("noise of the Hessian", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.run", "@self.hessian_noise_scale", CURVED),
    *scaled("noise of the gradients' spread", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.run", "@self.gradient_noise_scale", CURVED),
    *scaled("noise beside the diagonal", "privlearn.mechanisms.statistics.curvature:_noisy", "@scale * _ROOT_HALF", CURVED),
    *scaled("curvature's calibrated noise", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.calibrate", "@task.relation.moments", CURVED),
    Mutant("curvature: a replaced record moves it once", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.ratio", "self.task.relation.moments", "1.0", CURVED),
    Mutant("curvature: the gradients are free", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.ratio", "sensitivity / self.gradient_noise_scale + grid", "0.0", CURVED),
    Mutant("curvature: weights are forgotten in the slope", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.gradient_bound", "self.task.loss.lipschitz * self.task.max_weight", "self.task.loss.lipschitz", CURVED),
    Mutant("curvature: factors are rounded, not cut", "privlearn.explain.private_curvature:_add_outer", "np.trunc(vectors * UNIT)", "np.copysign(np.ceil(np.abs(vectors * UNIT)), vectors)", CURVED),
    Mutant("curvature: sums of floats", "privlearn.explain.private_curvature:_add_outer", "np.trunc(vectors * UNIT)", "vectors * UNIT", CURVED),
    Mutant("curvature: half of a class's curvature", "privlearn.explain.private_curvature:CurvatureRows._of_classes", "weights * chances[:, number, np.newaxis]", "0.5 * weights * chances[:, number, np.newaxis]", CURVED),
    Mutant("curvature: targets are forgotten", "privlearn.explain.private_curvature:CurvatureRows._of_margin", "self._signs[part] * scores[:, 0] - self._offsets[part]", "self._signs[part] * scores[:, 0]", CURVED),
    Mutant("curvature: pure privacy is sold", "privlearn.mechanisms.statistics.curvature:NoisyCurvature.calibrate", "guarantee.delta == 0.0", "False", CURVED),
    Mutant("curvature: persons with several rows", "privlearn.mechanisms.statistics.curvature:task_refusal", "task.records_of_a_person > 1", "False", BOUGHT),
    Mutant("curvature: another table", "privlearn.explain.private_curvature:_rows_of", "task.relation.count_is_public and rows.total != task.total", "False", BOUGHT),
    Mutant("curvature: other class weights", "privlearn.explain.private_curvature:_rows_of", "rows.targets.weight_bound != task.weight_bound", "False", BOUGHT),
    Mutant("curvature: rows are not centred", "privlearn.explain.private_curvature:_rows_of", "isinstance(encoder, CentredEncoder)", "False", BOUGHT),
    Mutant("curvature: paid by nobody", "privlearn.explain.private_curvature:curvature", "ledger=ledger", "ledger=None", BOUGHT),
    Mutant("curvature: bytes may change", "privlearn.release.curvature_file:Curvature.from_bytes", "curvature.to_bytes() != raw", "False", BOUGHT),
    *scaled("intervals: the noise", "privlearn.explain.uncertainty:Uncertainty._noise_rows", "@self._deviation", HELD),
    Mutant("worst case: no bias", "privlearn.explain.worst_case:MinimiserShift._component_draws", "self._bias(first)", "0.0 * self._bias(first)", SHIFTED),
    Mutant("worst case: every loss has a third derivative", "privlearn.solvers.losses:_UnitSlope", "self_concordance: ClassVar[float] = math.inf", "self_concordance: ClassVar[float] = 1.0", ("solvers/test_loss_checks.py",)),
    Mutant("worst case: half of the wall", "privlearn.explain.worst_case:MinimiserShift._component_draws", "2.0 * self.ridge", "4.0 * self.ridge", SHIFTED),
    Mutant("worst case: half of the wall, lengths", "privlearn.explain.worst_case:MinimiserShift._length_draws", "2.0 * self.ridge", "4.0 * self.ridge", SHIFTED),
    Mutant("worst case: CMS11's noise taken for normal", "privlearn.explain.worst_case:MinimiserShift._deviations", "self.noise == 'gaussian'", "True", SHIFTED),
    Mutant("worst case: the quantile in place of the mean beyond it", "privlearn.explain.worst_case:MinimiserShift.length_quantile", "np.mean(tail)", "tail[0]", SHIFTED),
    Mutant("intervals: no bias with a curvature", "privlearn.explain.uncertainty:Uncertainty._bias", "0.5 * concordance", "0.0 * concordance", SHIFTED),
    Mutant("intervals: a free interval to first order", "privlearn.explain.uncertainty:Uncertainty.half_widths", "np.sqrt(squares(functions)) * self._shift.half_width(level)", "1.96 * np.sqrt(squares(functions)) * self._deviation / self._ridge", HELD),
    Mutant("intervals: no sampling", "privlearn.explain.uncertainty:Uncertainty._sampling", "hessian.gradients if hessian is not None and self.kind == 'confidence' else None", "None", HELD),
    Mutant("intervals: the second noise is forgotten", "privlearn.explain.uncertainty:Uncertainty._noise_rows", "self._second_deviation", "0.0", HELD),
    Mutant("intervals: no bootstrap", "privlearn.explain.uncertainty:Uncertainty._half_widths", "np.resize(ratios, errors.shape)", "np.ones_like(errors)", HELD),
    Mutant("intervals: the bootstrap draws half of the noise", "privlearn.explain.simulated_errors:symmetric_noise", "generator.normal(0.0, scale, size)", "generator.normal(0.0, 0.5 * scale, size)", HELD),
    Mutant("intervals: far noise is trusted", "privlearn.explain.uncertainty:Uncertainty._refuse_far_noise", "score_shift > limit", "False", HELD),
    Mutant("intervals: any curvature will do", "privlearn.explain.uncertainty:Uncertainty.__post_init__", "self.curvature.release_sha256 != self.release.digest", "False", HELD),
    Mutant("intervals: other laws taken for normal", "privlearn.explain.uncertainty:Uncertainty._is_normal", "self._mechanism.noise == 'gaussian'", "True", HELD),
    Mutant("importance: bars hold one by one", "privlearn.explain.column_effects:Effects._each_level", "1.0 - (1.0 - self.level) / (len(self._names) + len(self._pairs))", "self.level", SHOWN),
    Mutant("importance: half of the error", "privlearn.explain.column_effects:Effects._importance", "longest / math.sqrt(len(functions))", "0.5 * longest / math.sqrt(len(functions))", SHOWN),
    Mutant("importance: the norm is not allowed for", "privlearn.explain.column_effects:ColumnEffect.above_noise", "self.misfit", "0.0", SHOWN),
    Mutant("importance: sampling is forgotten", "privlearn.explain.uncertainty:Uncertainty._noise_rows", "noise.append(self._sampling_bound * functions)", "pass", SHOWN),
    Mutant("importance: other laws taken for normal", "privlearn.explain.uncertainty:Uncertainty._error_lengths", "self._mechanism.noise == 'laplace'", "False", SHOWN),
    Mutant("explain: a pair counts for its first column", "privlearn.explain.one_prediction:contributions", "' x '.join(name)", "' x '.join(name[:1])", ADDED),
    Mutant("explain: nothing is usual", "privlearn.explain.one_prediction:contributions", "offset + width * typical @ weights", "offset", ADDED),
    Mutant("refine: steps are not repeated", "privlearn.release.artifact:_check_refinement", "not np.array_equal(release.refinement.apply(release.model.encoder), release.model.coefficients)", "False", REFINED),
    Mutant("refine: any origin will do", "privlearn.release.artifact:_check_refinement", "json.loads(members[_REFINEMENT])['origin_sha256'] != release.origin.digest", "json.loads(members[_REFINEMENT])['origin_sha256'] == ''", REFINED),
    Mutant("refine: the given origin is not compared", "privlearn.release.verification:verify", "origin is not None and proven.origin != Release.load(origin).digest", "False", REFINED),
    Mutant("refine: falling neighbours are not pooled", "privlearn.release.refinement:isotonic", "pools[-2][0] > pools[-1][0]", "False", REFINED),
    Mutant("refine: intervals of what was refined", "privlearn.explain.uncertainty:Uncertainty.__post_init__", "self.release.refinement is not None", "False", REFINED),
    Mutant("effects: the level is not raised", "privlearn.explain.bands:Intervals.shows_effect", "1.0 - (1.0 - self.level) / len(values)", "0.5", HELD),
    Mutant("effects: other columns' parts count", "privlearn.explain.directions:_own_features", "np.array([name in columns for columns in encoder.feature_columns])", "np.ones(encoder.dimension, bool)", HELD),
    Mutant("effects: each row keeps its own norm", "privlearn.explain.directions:_own_features", "np.where(scaled, usual * undivided, means)", "means", HELD),
]  # fmt: skip
# fmt: on
