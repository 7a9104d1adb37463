"""Defects of mechanisms, of the accounting and the choices under them."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import (
    ACCOUNTING,
    AUDIT,
    BOUGHT,
    CALLERS,
    CENTRES,
    CHOICE_ROUNDING,
    CHOICES,
    COPIES,
    DEFECTS,
    EXACT,
    FUNCTIONS,
    HOSTILE,
    INTEGERS,
    LAWS,
    LOCATED,
    NOISE,
    PARTIES,
    PATH_LAWS,
    QUESTIONS,
    SCORE_COUNTED,
    SEARCH,
    SESSIONS,
    SHARES,
    SOFTMAX,
    WEAK,
    WHOLE_RUNS,
    Mutant,
    scaled,
)

NORM = ("mechanisms/test_tddl_norm.py",)
CLASSES_COUNTED = ("mechanisms/test_class_counts.py",)
OFFSETS = ("estimators/test_offsets.py",)
PAPER_TDIL = ("mechanisms/test_tdil_jt13.py",)

MUTANTS = [
    *scaled("output gaussian scale", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "@math.sqrt(task.problems)"),
    *scaled("output laplace scale", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "@math.sqrt(task.dimension)"),
    *scaled("output norm-Gamma scale", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "@self.sensitivity / share"),
    *scaled("objective gaussian scale", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "@sensitivity / (ratio * (1.0 - accounting.MARGIN))"),
    *scaled("objective norm-Gamma scale", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "@sensitivity / share"),
    *scaled("objective ra12 scale", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "@accounting.ra12_noise_scale(share, delta, sensitivity, task.dimension)"),
    *scaled("tolerance gaussian scale", "privlearn.mechanisms.release.objective:ObjectivePerturbation._tolerance_noise_per_distance", "@2.0 / (ratio * (1.0 - accounting.MARGIN) - self._grid_ratio)"),
    *scaled("tolerance norm-Gamma scale", "privlearn.mechanisms.release.objective:ObjectivePerturbation._tolerance_noise_per_distance", "@2.0 * self.task.problems"),
    *scaled("noise of the mean", "privlearn.mechanisms.statistics.centring:Centring.run", "@self.mean_noise_scale", CENTRES),
    *scaled("noise of the counts", "privlearn.mechanisms.statistics.centring:Centring.run", "@self.count_noise_scale", CENTRES),
    Mutant("the mean is free", "privlearn.mechanisms.statistics.centring:Centring.ratio", "math.hypot(mean, math.sqrt(_COUNTS) / self.count_noise_scale)", "math.hypot(0.0, math.sqrt(_COUNTS) / self.count_noise_scale)", CENTRES),
    Mutant("five counts are free", "privlearn.mechanisms.statistics.centring:Centring.ratio", "math.sqrt(_COUNTS)", "1.0", CENTRES),
    Mutant("a replaced row moves the mean once", "privlearn.mechanisms.statistics.centring:row_sum_sensitivity", "relation.gradients", "1.0", CENTRES),
    Mutant("the curve forgets the centring", "privlearn.mechanisms.release.objective:ObjectivePerturbation._curve", "math.hypot(tolerance_ratio, self._statistics_ratio)", "tolerance_ratio", CENTRES),
    Mutant("the output forgets the centring", "privlearn.mechanisms.release.output:OutputPerturbation.spends", "math.hypot(self.ratio, task.other_ratio)", "self.ratio", CENTRES),
    *scaled("noise of the counted scores", "privlearn.mechanisms.statistics.score_counts:ScoreCounts.run", "add_gaussian(counts, @self.noise_scale, randomness)", SCORE_COUNTED),
    Mutant("a replaced record is counted once", "privlearn.mechanisms.statistics.score_counts:ScoreCounts.ratio", "relation.counts", "1.0", SCORE_COUNTED),
    Mutant("statistics are free", "privlearn.mechanisms.task:Task.other_ratio", "self.statistics.values()", "()", SCORE_COUNTED),
    Mutant("pure statistics are free", "privlearn.mechanisms.task:Task.other_epsilon", "self.statistics.values()", "()", LOCATED),
    Mutant("persons: pure statistics at the price of one row", "privlearn.mechanisms.task:Task.other_epsilon", "self.records_of_a_person", "1", LOCATED),
    Mutant("objective: pure statistics are not added", "privlearn.mechanisms.release.objective:ObjectivePerturbation.spends", "task.problems * (main + tolerance) + task.other_epsilon", "task.problems * (main + tolerance)", LOCATED),
    Mutant("output: pure statistics are not added", "privlearn.mechanisms.release.output:OutputPerturbation.spends", "task.problems * per_problem + task.other_epsilon", "task.problems * per_problem", LOCATED),
    Mutant("several problems share the statistics too often", "privlearn.mechanisms.release.objective:ObjectivePerturbation._statistics_ratio", "self.task.other_ratio / math.sqrt(self.task.problems)", "self.task.other_ratio / self.task.problems", LOCATED),
    Mutant("numbers are counted more often than is paid", "privlearn.mechanisms.statistics.locations:Locations.run", "range(ROUNDS)", "range(ROUNDS + 1)", LOCATED),
    Mutant("numbers are counted without noise", "privlearn.mechanisms.statistics.locations:Locations.run", "one_round.add_noise(counts, randomness)", "counts", LOCATED),
    *scaled("noise of histograms", "privlearn.mechanisms.statistics.statistic:HistogramStatistic.add_noise", "ADD_NOISE[self.noise](table, @self.noise_scale, randomness)", LOCATED),
    Mutant("a replaced record leaves its histogram only", "privlearn.mechanisms.statistics.statistic:HistogramStatistic.ratio", "relation.counts", "1.0", LOCATED),
    Mutant("a replaced record leaves its histogram only, pure", "privlearn.mechanisms.statistics.statistic:HistogramStatistic.epsilon", "relation.gradients", "1.0", LOCATED),
    Mutant("several histograms at the price of one", "privlearn.mechanisms.statistics.statistic:HistogramStatistic.ratio", "math.sqrt(len(self.cells))", "1.0", LOCATED),
    Mutant("class counts: every row of a person counts", "privlearn.estimators.memory_oracle:MemoryOracle.class_counts", "self._rows.counted", "None", CLASSES_COUNTED),
    Mutant("class counts: an empty class has no floor", "privlearn.mechanisms.statistics.statistic:ClassCounts.run", "max(self.deviation, 0.5)", "1e-300", CLASSES_COUNTED),
    Mutant("histograms without noise are free", "privlearn.mechanisms.statistics.statistic:_divide", "math.inf", "0.0", CLASSES_COUNTED),
    Mutant("offsets that nothing pays for", "privlearn.release.agreement:check_agreement", "_has_offsets_of(model, task)", "", OFFSETS),
    Mutant("offsets of another candidate", "privlearn.estimators.fit:Fit.of", "Fit(estimator, rows).with_public_offsets()", "Fit(estimator, estimator.apply_weights(self.rows))", OFFSETS),
    Mutant("offsets that the noise would have drowned", "privlearn.release.agreement:_largest_offset", "max(counts.deviation, 0.5)", "0.5", OFFSETS),
    Mutant("any unit of targets", "privlearn.release.agreement:_has_offsets_of", "np.all((given.stretches >= score_map.MIN_STRETCH) & (given.stretches <= 1.0))", "True", OFFSETS),
    Mutant("scores are counted without their offset", "privlearn.estimators.memory_oracle:MemoryOracle.score_counts", "row_scores(block, coefficients)[:, 0] + offset", "row_scores(block, coefficients)[:, 0]", OFFSETS),
    Mutant("targets beyond the cut", "privlearn.estimators.training_rows:NumberTargets.offsets", "np.clip((column - offset) / factor, -MAX_TARGET, MAX_TARGET)", "(column - offset) / factor", OFFSETS),
    Mutant("the loss is narrow at every noise", "privlearn.estimators.calibration:_loss_of_width", "min(max(spreads / UNITS_OF_SPREAD, Huber.width), MAX_TARGET)", "Huber.width", OFFSETS),
    Mutant("several histograms at the price of one, pure", "privlearn.mechanisms.statistics.statistic:HistogramStatistic.epsilon", "len(self.cells)", "1", LOCATED),
    Mutant("two problems cost as one", "privlearn.mechanisms.release.objective:ObjectivePerturbation._delta_of_problems", "self.task.problems", "1", ("estimators/test_several_numbers.py",)),
    Mutant("silent records are counted", "privlearn.estimators.memory_oracle:MemoryOracle.score_counts", "targets.ignored is not None", "False", SCORE_COUNTED),
    Mutant("centred rows are too long", "privlearn.data.encoding.arrays:CentredEncoder.stretch", "math.sqrt(1.0 - CENTRED_INTERCEPT)", "1.0", CENTRES),
    Mutant("sums that depend on their order", "privlearn.estimators.memory_oracle:MemoryOracle.sum_of_rows", "np.trunc(features * (UNIT * weights[:, np.newaxis]))", "features * (UNIT * weights[:, np.newaxis])", CENTRES),
    *scaled("drawn gaussian noise", "privlearn.mechanisms.noise:add_gaussian", "@scale / step"),
    *scaled("drawn laplace noise", "privlearn.mechanisms.noise:add_laplace", "@scale / step"),
    *scaled("drawn norm-Gamma noise", "privlearn.mechanisms.noise:norm_gamma_steps.in_steps", "@scale * gamma(uniforms[:dimension])", EXACT),
    *scaled("perturbation of the objective", "privlearn.mechanisms.release.objective:ObjectivePerturbation.run", "@perturbation / self.task.total"),
    *scaled("descent scale", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._min_scale", "@self.sum_sensitivity", PARTIES),
    *scaled("curvature scale", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent.curvature_noise_scale", "@_moment_sensitivity(self.task)", PARTIES),
    *scaled("asked gradient noise", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._describe_question", "@self.noise_scale", PARTIES),
    *scaled("aggregation scale", "privlearn.mechanisms.summed.local_aggregation:LocalAggregation._min_scale", "@self.joint_sensitivity / (target - grid_ratio(self._length))", PARTIES),
    *scaled("pure aggregation scale", "privlearn.mechanisms.summed.local_aggregation:LocalAggregation._min_scale", "@self.joint_sensitivity / (epsilon * (1.0 - MARGIN))", PARTIES),
    *scaled("psgd noise drawn anew", "privlearn.mechanisms.summed.psgd:PrivateSGD.round_scale", "@self.task.gradient_sensitivity", PARTIES),
    *scaled("psgd noise drawn once", "privlearn.mechanisms.summed.psgd:PrivateSGD.run_noise_scale", "@accounting.ra12_noise_scale(rest, self.guarantee.delta, task.gradient_sensitivity, task.dimension)", PARTIES),
    *scaled("noise of the trusted sum", "privlearn.parties.run.simulation:TrustedSum._add_noise", "@noise.scale", PARTIES),
    *scaled("noise share", "privlearn.parties.secure_sum.noise_share:NoiseShare.share_scale", "@self.scale", SHARES),
    *scaled("drawn noise share", "privlearn.parties.secure_sum.noise_share:NoiseShare.draw", "@self.share_scale", SHARES),
    *scaled("calibrated noise of a score", "privlearn.mechanisms.search.search:score_scale", "@_rows_per_person(candidates)", SEARCH),
    *scaled("drawn noise of a score", "privlearn.mechanisms.search.search:ScoredSearch._with_noise", "@self.score_noise_scale", SEARCH),
    *scaled("weight of the exponential choice", "privlearn.mechanisms.search.partition:Partition.weights", "@self.selection_epsilon", SEARCH),
    Mutant("slack skipped", "privlearn.mechanisms.release.objective:ObjectivePerturbation.slack", "factor * self.task.jacobian_slack(self.effective_regularization)", "0.0 * self.task.jacobian_slack(self.effective_regularization)", LAWS),
    Mutant("papers' slack counted once", "privlearn.mechanisms.release.objective:ObjectivePerturbation.slack", "1.0 if self.calibration == 'tight' else 2.0", "1.0 if self.calibration == 'tight' else 1.0", LAWS),
    Mutant("slack without the class weight", "privlearn.mechanisms.task:Task.curvature_ratio", "trace * self.max_weight", "trace", LAWS),
    Mutant("slack of one row for a person of many", "privlearn.mechanisms.task:Task.jacobian_slack", "self.records_of_a_person * each", "each", LAWS),
    Mutant("slack of averaged rows as of one", "privlearn.mechanisms.task:Task.jacobian_slack", "ratio if self.averaged else rank * math.log1p(ratio / rank)", "rank * math.log1p(ratio / rank)", LAWS),
    Mutant("regularization not raised", "privlearn.mechanisms.release.objective:_raise_regularization", "slack <= limit * (1.0 - accounting.MARGIN)", "True", LAWS),
    Mutant("gradient sensitivity halved", "privlearn.guarantee:", "gradients=2", "gradients=1", LAWS),
    Mutant("zero_out for free", "privlearn.guarantee:", "change='left out', replaces=False, gradients=1", "change='left out', replaces=False, gradients=1e-09", LAWS),
    Mutant("gradients without the class weight", "privlearn.mechanisms.task:Task.gradient_sensitivity", "self.relation.gradients * self.loss.lipschitz * self.max_weight", "self.relation.gradients * self.loss.lipschitz", LAWS),
    Mutant("gradients of one row for a person of many", "privlearn.mechanisms.task:Task.gradient_sensitivity", "self.relation.gradients * self.loss.lipschitz * self.max_weight * self.records_of_a_person", "self.relation.gradients * self.loss.lipschitz * self.max_weight", LAWS),
    Mutant("sqrt(K) dropped, output", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "math.sqrt(task.problems) * self.sensitivity", "self.sensitivity", LAWS),
    Mutant("K dropped, pure output", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "(epsilon * (1.0 - MARGIN) - task.other_epsilon) / task.problems", "epsilon * (1.0 - MARGIN) - task.other_epsilon", LAWS),
    Mutant("K dropped, objective", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "times=task.problems", "", LAWS),
    Mutant("K dropped, pure objective", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "(self._main_epsilon - self.guarantee.epsilon * accounting.MARGIN) / task.problems", "self._main_epsilon - self.guarantee.epsilon * accounting.MARGIN", LAWS),
    Mutant("sqrt(K) dropped, tolerance", "privlearn.mechanisms.release.objective:ObjectivePerturbation._tolerance_noise_per_distance", "joint / math.sqrt(self.task.problems)", "joint", LAWS),
    Mutant("sqrt(d) dropped, laplace", "privlearn.mechanisms.release.output:OutputPerturbation._min_scale", "math.sqrt(task.dimension) * self.sensitivity", "self.sensitivity", LAWS),
    Mutant("tolerance outside the sensitivity", "privlearn.mechanisms.release.output:OutputPerturbation.sensitivity", "lemma * self.task.minimiser_sensitivity + 2.0 * self.solver_distance", "lemma * self.task.minimiser_sensitivity", DEFECTS),
    Mutant("tolerance noise skipped", "privlearn.mechanisms.release.objective:ObjectivePerturbation.run", "ADD_NOISE[self.noise](vectors, self.tolerance_noise_scale, randomness)", "vectors", NOISE),
    Mutant("output noise skipped", "privlearn.mechanisms.release.output:OutputPerturbation.run", """
        if not self.guarantee.is_private:
            ...
    """, """
        if not self.guarantee.is_private:
            ...
        return minimisers
    """, NOISE),
    Mutant("tolerance's epsilon counted twice", "privlearn.mechanisms.release.objective:ObjectivePerturbation._main_epsilon", "self.guarantee.epsilon * (1.0 - TOLERANCE_SHARE)", "self.guarantee.epsilon", LAWS),
    Mutant("tolerance's cost forgotten", "privlearn.mechanisms.release.objective:ObjectivePerturbation._delta_of_problems", "self._tolerance_ratio", "0.0", DEFECTS),
    Mutant("main delta not reduced", "privlearn.mechanisms.release.objective:ObjectivePerturbation._min_scale", "self.guarantee.delta * (1.0 - TOLERANCE_SHARE)", "self.guarantee.delta", LAWS),
    Mutant("one draw for all classes", "privlearn.mechanisms.noise:add_gaussian", "return _add_integers(values, step, randomness.discrete_gaussian(scale / step, values.size))", """
        one = randomness.discrete_gaussian(scale / step, values.shape[-1])
        return _add_integers(values, step, np.broadcast_to(one, values.shape))
    """, DEFECTS),
    Mutant("one norm-Gamma draw for all classes", "privlearn.mechanisms.noise:add_norm_gamma", "[norm_gamma_steps(row.tolist(), scale, step, randomness) for row in np.atleast_2d(values)]", "[norm_gamma_steps(row.tolist(), scale, step, randomness) for row in [np.atleast_2d(values)[0]]] * len(np.atleast_2d(values))", DEFECTS),
    Mutant("tolerance's noise alone at the corner 0", "privlearn.accounting.curves:GaussianObjectiveCurve._core", "(*parts, (1, GaussianCurve(self.other_ratio))) if self.other_ratio else parts", "parts", ("accounting/test_curves.py",)),
    Mutant("tolerance's noise not beside the objective's", "privlearn.accounting.curves:GaussianObjectiveCurve._core", "math.hypot(self.ratio, self.other_ratio)", "self.ratio", LAWS),
    Mutant("tolerance's noise not paid for when the objective's is chosen", "privlearn.accounting.curves:GaussianObjectiveCurves.__call__", "math.hypot(self.share * ratio, self.other_ratio)", "self.other_ratio", LAWS),
    Mutant("a residual has the sign of its noise", "privlearn.accounting.curves:FreeGaussianCurve.log_delta", "math.log(2.0) + GaussianCurve(self.ratio).log_delta(beyond)", "GaussianCurve(self.ratio).log_delta(beyond)", ("accounting/test_curves.py",)),
    Mutant("a residual's sign is known", "privlearn.mechanisms.task:Task.has_open_sign", "not (self.loss.monotone or self.classes)", "False", ("privacy/test_residual_losses.py",)),
    Mutant("a residual's curve forgets what is beside it", "privlearn.accounting.curves:GaussianObjectiveCurve._core", "FreeGaussianCurve(joint)", "FreeGaussianCurve(self.ratio)", CENTRES),
    Mutant("tolerance that drowns the model", "privlearn.estimators.calibration:_refuse_loose_tolerance", "share > _MAX_TOLERANCE_SHARE", "False", ("estimators/test_linear.py",)),
    Mutant("softmax: one corner", "privlearn.mechanisms.task:Task.corners", "max(self.classes - 1, 1)", "1", SOFTMAX),
    Mutant("persons: centring at the price of one row", "privlearn.mechanisms.task:Task.other_ratio", "rows * math.hypot(*(part.ratio(self.relation) for part in self.statistics.values()))", "math.hypot(*(part.ratio(self.relation) for part in self.statistics.values()))", ("estimators/test_probability.py",)),
    Mutant("persons: roundings of many rows add up", "privlearn.estimators.memory_oracle:MemoryOracle.sum_of_rows", "np.trunc", "np.rint", ("mechanisms/test_centring.py",)),
    Mutant("persons: a count moves by two", "privlearn.mechanisms.statistics.centring:Centring.run", "math.floor(oracle.rows_within(Centre(mean, self.radii[middle])))", "round(oracle.rows_within(Centre(mean, self.radii[middle])) + 0.4999)", ("mechanisms/test_centring.py",)),
    Mutant("softmax: slack of a margin", "privlearn.mechanisms.task:Task.curvature_rank", "max(self.classes - 1, 1)", "1", SOFTMAX),
    Mutant("softmax: trace of two classes", "privlearn.mechanisms.task:Task.curvature_ratio", "1.0 - 1.0 / self.classes", "0.5", SOFTMAX),
    Mutant("softmax: noise per class", "privlearn.mechanisms.release.objective:ObjectivePerturbation.run", "minimisers.reshape(perturbation.shape)", "minimisers", NOISE),
    Mutant("softmax: perturbation lost", "privlearn.estimators.memory_oracle:MemoryOracle._minimise_together", "None if linear is None else linear.reshape(classes, -1)", "None", NOISE),
    Mutant("softmax: perturbation not in the gradient", "privlearn.solvers.objective:SmoothObjective.at", "self.regularization * coefficients + self.linear", "self.regularization * coefficients", NOISE),
    Mutant("noise per class for the multinomial loss", "privlearn.mechanisms.release.output:OutputPerturbation.run", "minimisers.reshape(self.task.problems, self.task.dimension)", "minimisers", NOISE),
    Mutant("values not rounded to the grid", "privlearn.mechanisms.noise:_add_integers", "_from_grid(sums, step).reshape(values.shape)", "values + step * draws.reshape(values.shape)", NOISE),
    Mutant("norm-Gamma noise on a lattice of its own", "privlearn.mechanisms.noise:add_norm_gamma", "step = grid_step(scale, GAMMA_GRID_BITS)", """
        step = grid_step(scale, GAMMA_GRID_BITS)
        values = np.rint(values / step) * step
    """, EXACT),
    Mutant("norm-Gamma sum rounded to a finer grid", "privlearn.mechanisms.noise:norm_gamma_steps.in_steps", "(value + stretch * part) / step", "(value + stretch * part) / (step / 2)", EXACT),
    Mutant("a draw rounded before it is added", "privlearn.mechanisms.noise:_add_integers", "whole.astype(np.int64) + draws", "(whole + draws.astype(np.float64)).astype(np.int64)", NOISE),
    Mutant("the ball's middle for the real number", "privlearn.mechanisms.noise:_balls", "flint.arb((1, -bits - 1), (1, -bits - 1))", "flint.arb((1, -bits - 1))", EXACT),
    Mutant("the interval's lower end for the real number", "privlearn.mechanisms.noise:_balls", "(1, -bits - 1), (1, -bits - 1)", "0", EXACT),
    Mutant("new reals where more bits were needed", "privlearn.mechanisms.noise:draw_exactly", "[digits << more | randomness.bits(more) for digits in known]", "[randomness.bits(bits + more) for _ in known]", EXACT),
    Mutant("rounded down, not to the nearest", "privlearn.mechanisms.noise:round_to_integers", "value + 0.5", "value", EXACT),
    Mutant("choice: qualities rounded at full size", "privlearn.mechanisms.search.selection:exponential_weights", "qualities - np.max(qualities)", "qualities", CHOICE_ROUNDING),
    Mutant("the lower half of the ball taken", "privlearn.mechanisms.search.selection:propose_in_ball", "height <= 0 or exponential < excess", "exponential < excess", CHOICES),
    Mutant("every proposed point taken", "privlearn.mechanisms.search.selection:propose_in_ball", "exponential < excess", "exponential < 0", CHOICES),
    Mutant("a point taken before it is clear", "privlearn.mechanisms.search.selection:propose_in_ball", """
        if not (height > 0 and exponential >= excess):
            return None
    """, "", CHOICES),
    Mutant("grid as coarse as the noise", "privlearn.mechanisms.noise:", "GRID_BITS = 44", "GRID_BITS = 1", NOISE),
    Mutant("norm of an exponential, not of a Gamma", "privlearn.mechanisms.noise:norm_gamma_steps.in_steps", "uniforms[:dimension]", "uniforms[:1]", NOISE),
    Mutant("direction from a cube", "privlearn.mechanisms.noise:norm_gamma_steps.in_steps", "norm(direction)", "max(map(abs, direction))", NOISE),
    Mutant("seeded generator called secure", "privlearn.randomness:SeededRandomness", "secure = False", "secure = True", NOISE),
    Mutant("secure draws from a seed", "privlearn.randomness:randomness_from", "SecureRandomness()", "SeededRandomness(0)", NOISE),
    Mutant("persons: discover does not ask what a person is", "privlearn.statistics.discovery.measuring:MarkedColumns.__init__", "open_table(table, self._schema, names)", "as_source(table, names)", BOUGHT),
    Mutant("asked tolerance is not raised", "privlearn.mechanisms.task:Task._with_reachable_tolerance", "min(max(self.tolerance, smallest), UNREACHABLE)", "self.tolerance", DEFECTS),
    Mutant("infinite epsilon adds noise", "privlearn.mechanisms.release.output:OutputPerturbation.run", """
        if not self.guarantee.is_private:
            return minimisers
    """, "", DEFECTS),
    Mutant("negative radius squared", "privlearn.mechanisms.release.objective:ObjectivePerturbation._ra12_delta", "max(radius, 0.0)", "radius", LAWS),
    Mutant("hockey stick of half the distance", "privlearn.accounting.curves:GaussianCurve.log_delta", "self.ratio ** 2 / 2.0", "self.ratio ** 2 / 4.0", ACCOUNTING),
    Mutant("cancellation again", "privlearn.accounting.curves:GaussianCurve.log_delta", "self.ratio <= _NARROW", "False", ACCOUNTING),
    Mutant("cancellation far out", "privlearn.accounting.curves:_mills_slope", "x > _FAR, ratios * rest", "x > 1000000000.0, ratios * rest", ACCOUNTING),
    Mutant("curves not rounded upwards", "privlearn.accounting.curves:GaussianCurve.log_delta", "logs + exponent + _ROUNDING", "logs", ACCOUNTING),
    Mutant("erfcx by too few terms", "privlearn.accounting.functions:", "_weideman(40)", "_weideman(30)", FUNCTIONS),
    Mutant("norms of odd dimensions without a term", "privlearn.accounting.functions:log_norm_tail", """
        if odd:
            ...
    """, """
        if False:
            ...
    """, FUNCTIONS),
    Mutant("an integral without the error of its corners", "privlearn.accounting.functions:integral", "precision * (value + np.sum(halves))", "1000000.0 * precision * (value + np.sum(halves))", FUNCTIONS),
    Mutant("epsilon rounded downwards", "privlearn.accounting.compose:gaussian_epsilon", "found + 4.0 * precision", "found - 4.0 * precision", ACCOUNTING),
    Mutant("slack added, not subtracted", "privlearn.accounting.curves:GaussianObjectiveCurve.delta", "np.abs(at) - self.slack", "np.abs(at) + self.slack", ACCOUNTING),
    Mutant("chord dropped", "privlearn.accounting.curves:GaussianObjectiveCurve.delta", "np.abs(at) < self.slack", "np.abs(at) < 0.0", ACCOUNTING),
    Mutant("composition of one", "privlearn.accounting.compose:_convolve", "_power(spectrum, times)", "_power(spectrum, 1)", ACCOUNTING),
    Mutant("composition without the tilt", "privlearn.accounting.compose:_tilt", "low, *moments(low)[1:]", "0.0, *moments(0.0)[1:]", ACCOUNTING),
    Mutant("the transform's error not counted", "privlearn.accounting.compose:_finite_part", "float(np.sum(weights * chances)) + error * _length(weights)", "float(np.sum(weights * chances))", ACCOUNTING),
    Mutant("infinite losses for free", "privlearn.accounting.compose:composition_delta", "lost + _finite_part(gap, masses, times, epsilon)", "_finite_part(gap, masses, times, epsilon)", ACCOUNTING),
    Mutant("losses beyond the period for free", "privlearn.accounting.compose:_finite_part", "math.exp(min(times * log_moment - steepest * top, 0.0))", "0.0 * math.exp(min(times * log_moment - steepest * top, 0.0))", ACCOUNTING),
    Mutant("losses without their mirror image", "privlearn.accounting.compose:_dominating_losses", "positive * np.exp(-gap * steps[1:])", "0.0 * positive * np.exp(-gap * steps[1:])", ACCOUNTING),
    Mutant("deltas below the grid", "privlearn.accounting.calibrate:gaussian_ratio", "times > 1 and delta < MIN_COMPOSED_DELTA", "False", ACCOUNTING),
    Mutant("Renyi without the order", "privlearn.accounting.compose:renyi_divergence", "order * (order - 1.0)", "order", ACCOUNTING),
    Mutant("search from the unsafe side", "privlearn.accounting.calibrate:max_affordable", "return low", "return high", ACCOUNTING),
    Mutant("validation rows trained on", "privlearn.estimators.selection.methods:partition.run.trial", "parts[index]", "np.append(parts[index], last)", SEARCH),
    Mutant("scored on the rows trained on", "privlearn.estimators.selection.methods:partition.run.trial", "work.take(last, expected)", "work.take(parts[place], expected)", SEARCH),
    Mutant("parts that overlap", "privlearn.mechanisms.search.partition:split_rows", "np.array_split(order, parts)", "[*np.array_split(order, parts)[:-1], order]", SEARCH),
    Mutant("parts of persons with several rows", "privlearn.mechanisms.search.partition:Partition.__post_init__", "any((task.rows_per_person > 1 for task in tasks))", "False", SEARCH),
    Mutant("a person in several parts", "privlearn.estimators.selection.methods:split_persons", "rows.persons is None", "True", ("estimators/selection",)),
    Mutant("curvature: gradients of a person squared row by row", "privlearn.explain.private_curvature:CurvatureRows.sums", "if self._persons is None:\n    ...\nelse:\n    ...", "_add_outer(rows, gradients)", ("explain/test_buying.py",)),
    Mutant("choice's epsilon not counted", "privlearn.mechanisms.search.partition:Partition.spends", "max(trained.epsilon, self.selection_epsilon + SELECTION_ROUNDING)", "trained.epsilon", SEARCH),
    Mutant("as many trials as expected, always", "privlearn.mechanisms.search.random_stopping:RandomStopping._draw_candidates", """
        while draw_below(self.expected_trials, randomness) != 0:
            ...
    """, """
        for _ in range(self.expected_trials - 1):
            ...
    """, SEARCH),
    Mutant("twice as many trials", "privlearn.mechanisms.search.random_stopping:RandomStopping._draw_candidates", "self.expected_trials", "2 * self.expected_trials", SEARCH),
    Mutant("the worst trial released", "privlearn.mechanisms.search.search:ScoredSearch._best_of", "min(trials, key=lambda best: best.mistakes)", "max(trials, key=lambda best: best.mistakes)", SEARCH),
    Mutant("every trial with the whole promise", "privlearn.mechanisms.search.every_candidate:EveryCandidate.calibrate", "len(calibrators) * (1.0 + SCORE_SHARE)", "1.0 + SCORE_SHARE", SEARCH),
    Mutant("every trial's score for free", "privlearn.mechanisms.search.every_candidate:EveryCandidate.renyi", "sum((candidate.renyi(order) for candidate in self.candidates)) + scores", "sum((candidate.renyi(order) for candidate in self.candidates))", SEARCH),
    Mutant("one of all trials counted", "privlearn.mechanisms.search.every_candidate:EveryCandidate.renyi", "sum((candidate.renyi(order) for candidate in self.candidates))", "max((candidate.renyi(order) for candidate in self.candidates))", SEARCH),
    Mutant("trials with the whole promise", "privlearn.mechanisms.search.random_stopping:RandomStopping.calibrate", "guarantee.epsilon * (1.0 - MARGIN) / STOPPED_PURE", "guarantee.epsilon * (1.0 - MARGIN)", SEARCH),
    Mutant("the score for free", "privlearn.mechanisms.search.random_stopping:RandomStopping._trial_renyi", "self._max_renyi(order) + order * self.score_ratio ** 2 / 2.0", "self._max_renyi(order)", SEARCH),
    Mutant("a person's rows scored as one", "privlearn.mechanisms.search.search:_rows_per_person", "max((candidate.task.rows_per_person for candidate in candidates))", "1", SEARCH),
    Mutant("the cheapest candidate counted", "privlearn.mechanisms.search.search:Search._max_renyi", "max((candidate.renyi(order) for candidate in self.candidates))", "min((candidate.renyi(order) for candidate in self.candidates))", SEARCH),
    Mutant("search not charged", "privlearn.estimators.selection.search:PrivateGridSearch.fit", "charge.pay_for(choose)", "choose()", SEARCH),
    Mutant("mistakes above one", "privlearn.estimators.memory_oracle:MemoryOracle.mistakes", "parts = parts * weights", "pass", SEARCH),
    Mutant("the choice for free", "privlearn.accounting.calibrate:stopping_renyi", "trial(order) + selection", "trial(order)", ACCOUNTING),
    Mutant("the choice at half its price", "privlearn.accounting.calibrate:stopping_renyi", "2.0 * ((1.0 - 1.0 / inner_order) * trial(inner_order) + log_trials / inner_order)", "1.0 * ((1.0 - 1.0 / inner_order) * trial(inner_order) + log_trials / inner_order)", ACCOUNTING),
    Mutant("pure choices at twice an epsilon", "privlearn.accounting.calibrate:", "STOPPED_PURE = 3.0", "STOPPED_PURE = 2.0", ACCOUNTING),
    Mutant("ra12 as Procedure 3 prints it", "privlearn.accounting.calibrate:ra12_noise_scale", "quantile ** 2", "quantile", ACCOUNTING),
    Mutant("composition off by one", "privlearn.accounting.compose:_convolve", "_power(spectrum, times)", "_power(spectrum, max(times - 1, 1))", ACCOUNTING),
    Mutant("composition off by one, tddl", "privlearn.mechanisms.release.tddl:TestDataDependentLearner.answers_count", "self.task.problems * self.noisy_numbers", "self.task.problems * self.noisy_numbers - 1", QUESTIONS),
    Mutant("composition off by one, tdil", "privlearn.mechanisms.release.tdil:TestDataIndependentLearner.zcdp", "self.rounds", "self.rounds - 1", QUESTIONS),
    Mutant("composition off by one, pinp", "privlearn.mechanisms.session.pinp:TightPINP._rho", "self.updates", "self.updates - 1", SESSIONS),
    *scaled("session: drawn noise of a path", "privlearn.mechanisms.session.function_release:GaussianPaths.draw", "@2.0 ** DRAW_BITS", PATH_LAWS),
    *scaled("session: noise of the sparse vector", "privlearn.mechanisms.session.pinp:AboveThreshold._scale", "@2.0 * self.sensitivity", SESSIONS),
    *scaled("session: noise of an answer, pinp", "privlearn.mechanisms.session.pinp:TightPINP.ask", "@self.answer_scale", SESSIONS),
    Mutant("session: sqrt(K) dropped", "privlearn.mechanisms.session.function_release:_distance", "math.sqrt(problems) * math.hypot(kernel_task.sensitivity, rounding)", "math.hypot(kernel_task.sensitivity, rounding)", PATH_LAWS),
    Mutant("session: rounding of values for free", "privlearn.mechanisms.session.function_release:_distance", "2.0 * kernel_task.evaluation_error", "0.0 * kernel_task.evaluation_error", PATH_LAWS),
    Mutant("session: one path for all functions", "privlearn.mechanisms.session.function_release:GaussianPaths.draw", "_integers(2.0 ** DRAW_BITS, shape, randomness)", "[row * shape[1] for row in _integers(2.0 ** DRAW_BITS, (shape[0], 1), randomness)]", PATH_LAWS),
    Mutant("session: independent noise", "privlearn.mechanisms.session.function_release:GaussianPaths._new_rows", "_to_grid(self._solve(cross.T).T)", "0.0 * _to_grid(self._solve(cross.T).T)", PATH_LAWS),
    *scaled("noise of function release", "privlearn.mechanisms.session.function_release:FunctionRelease.calibrate", "@_distance(kernel_task)", ("mechanisms/test_function_release.py",)),
    *scaled("noise of tddl", "privlearn.mechanisms.release.tddl:TestDataDependentLearner.run", "@self.noise_scale", QUESTIONS),
    Mutant("the norm for nothing, tddl", "privlearn.mechanisms.release.tddl:NormBoundedLearner.noisy_numbers", "self.probes_count + 1", "self.probes_count", NORM),
    Mutant("the norm without noise, tddl", "privlearn.mechanisms.release.tddl:TestDataDependentLearner.run", "return self.fit_answers(points, add_laplace(exact, self.noise_scale, randomness))", """
        noisy = add_laplace(exact, self.noise_scale, randomness)
        noisy[:, self.probes_count:] = exact[:, self.probes_count:]
        return self.fit_answers(points, noisy)
    """, NORM),
    *scaled("noise of tdil, the paper's", "privlearn.mechanisms.release.tdil_jt13:PaperTDIL._learn", "@self.noise_scale", PAPER_TDIL),
    Mutant("line 5 as printed, tdil", "privlearn.mechanisms.release.tdil_jt13:PaperTDIL.calibrate", "share / 2.0 - SELECTION_ROUNDING", "share / (2.0 * answer_sensitivity(task))", PAPER_TDIL),
    Mutant("rounds of all problems forgotten, tdil", "privlearn.mechanisms.release.tdil_jt13:PaperTDIL._epsilon_per_share", "self.rounds * self.task.problems", "self.rounds", PAPER_TDIL),
    *scaled("noise of tdil", "privlearn.mechanisms.release.tdil:TestDataIndependentLearner.interrogate", "@self.noise_scale", QUESTIONS),
    Mutant("selection twice too sharp, tdil", "privlearn.mechanisms.release.tdil:TestDataIndependentLearner.selection_rate", "2.0 * self.sensitivity", "self.sensitivity", QUESTIONS),
    Mutant("wrong sensitivity of answers", "privlearn.mechanisms.release.answers:answer_sensitivity", "task.minimiser_sensitivity", "0.5 * task.minimiser_sensitivity", AUDIT),
    Mutant("wrong sensitivity, zero_out as exchange", "privlearn.guarantee:", "gradients=2", "gradients=1", AUDIT),
    Mutant("slack with the root of the curvature", "privlearn.mechanisms.task:Task.curvature_ratio", "self.loss.smoothness", "self.loss.smoothness ** 0.5", AUDIT),
    Mutant("slack skipped, seen by the audit", "privlearn.mechanisms.release.objective:ObjectivePerturbation.slack", "factor * self.task.jacobian_slack(self.effective_regularization)", "0.0 * self.task.jacobian_slack(self.effective_regularization)", AUDIT),
    Mutant("half the noise drawn, seen by the audit", "privlearn.mechanisms.release.objective:ObjectivePerturbation.run", "self.noise_scale", "0.5 * self.noise_scale", AUDIT),
    Mutant("one noise for all classes, seen by the audit", "privlearn.mechanisms.release.output:OutputPerturbation.run", "return ADD_NOISE[self.noise](vectors, self.noise_scale, randomness).reshape(minimisers.shape)", """
        one = ADD_NOISE[self.noise](np.zeros_like(vectors[:1]), self.noise_scale, randomness)
        return (vectors + one).reshape(minimisers.shape)
    """, AUDIT),
    Mutant("noise drawn twice for a long minimiser", "privlearn.mechanisms.release.output:OutputPerturbation.run", """
        if not self.guarantee.is_private:
            ...
    """, """
        if not self.guarantee.is_private:
            ...
        if float(minimisers[0, 0]) > 0:
            ADD_NOISE[self.noise](minimisers, self.noise_scale, randomness)
    """, AUDIT),
    Mutant("half the noise of a list drawn, seen by the audit", "privlearn.mechanisms.statistics.discovery:frequent", "noise_scale, randomness", "0.5 * noise_scale, randomness", WHOLE_RUNS),
    Mutant("half a path drawn, seen by the audit", "privlearn.mechanisms.session.function_release:GaussianPaths.draw", "2.0 ** DRAW_BITS", "0.5 * 2.0 ** DRAW_BITS", WHOLE_RUNS),
    Mutant("half the noise of the sparse vector, seen by the audit", "privlearn.mechanisms.session.pinp:AboveThreshold._scale", "2.0 * self.sensitivity", "self.sensitivity", WHOLE_RUNS),
    Mutant("half the noise of an answer, seen by the audit", "privlearn.mechanisms.session.pinp:TightPINP.ask", "self.answer_scale", "0.5 * self.answer_scale", WHOLE_RUNS),
    Mutant("draws repeated", "privlearn.randomness:system_words", "os.urandom", "np.random.default_rng(count).bytes", DEFECTS),
    Mutant("coefficients asked about not bounded", "privlearn.mechanisms.summed.summed:Question.__post_init__", "np.clip(self.coefficients, -MAX_COEFFICIENT, MAX_COEFFICIENT)", "self.coefficients", HOSTILE),
    Mutant("rounds not composed", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._ratio_of", "kinds.count('gradients') * gradient ** 2", "gradient ** 2", PARTIES),
    Mutant("second moments for free", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._ratio_of", "kinds.count('gradients') * gradient ** 2 + kinds.count('second_moments') * moments ** 2", "kinds.count('gradients') * gradient ** 2", PARTIES),
    Mutant("second moments as for zero_out", "privlearn.guarantee:", "moments=math.sqrt(2.0)", "moments=1.0", PARTIES),
    Mutant("second moments without the class weight", "privlearn.mechanisms.summed.noisy_descent:_moment_sensitivity", "task.relation.moments * task.max_weight", "task.relation.moments", PARTIES),
    Mutant("second moments of one row for a person of many", "privlearn.mechanisms.summed.noisy_descent:_moment_sensitivity", "task.relation.moments * task.max_weight * task.records_of_a_person", "task.relation.moments * task.max_weight", PARTIES),
    Mutant("sqrt(K) dropped, descent", "privlearn.mechanisms.summed.summed:SummedMechanism.sum_sensitivity", "math.sqrt(self.task.problems)", "1.0", PARTIES),
    Mutant("rounding of sums for free", "privlearn.mechanisms.summed.summed:summation_error", "2.0 * SUM_ROUNDING", "0.0 * SUM_ROUNDING", PARTIES),
    Mutant("rounding to the grid for free", "privlearn.mechanisms.summed.summed:grid_ratio", "math.sqrt(length) * 2.0 ** (-SHARE_GRID_BITS)", "0.0", PARTIES),
    Mutant("off-diagonal moments counted once", "privlearn.mechanisms.summed.summed:pack", "np.where(rows == columns, 1.0, math.sqrt(2.0))", "1.0", PARTIES),
    Mutant("functions of the softmax as one against the rest", "privlearn.mechanisms.session.function_release:_distance", "math.sqrt(problems)", "math.sqrt(functions)", PATH_LAWS),
    Mutant("rounding of one function for all", "privlearn.mechanisms.session.function_release:_distance", "functions / problems", "1.0", PATH_LAWS),
    Mutant("softmax margins exact for the certificate", "privlearn.solvers.certifiable:softmax_derivative_error", "0.5 * margin_error + gamma(product_chain(classes) + 16)", "0.0 * margin_error", ("solvers/test_kernel_multinomial.py", "solvers/test_multinomial.py")),
    Mutant("the gap of one class for all", "privlearn.solvers.kernel.multinomial:_Machine._gradient", "(alpha + derivatives).T", "(alpha + derivatives).T[:1]", ("solvers/test_kernel_multinomial.py",)),
    Mutant("all classes share one class's moments", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._metric.solve", "gradient.reshape(-1, task.features)", "gradient.reshape(-1, task.features).mean(axis=0, keepdims=True)", ("parties/test_softmax_and_numbers.py",)),
    Mutant("margins that depend on a row's place", "privlearn.estimators.memory_oracle:MemoryOracle._margins", "row_scores(block, coefficients)", "block @ coefficients.T", ("parties/test_softmax_and_numbers.py",)),
    *scaled("scale of integer noise", "privlearn.randomness:Distribution.exponent", "@magnitude / self.scale", INTEGERS),
    Mutant("integers: a block's share forgotten", "privlearn.randomness:Distribution.exponent", "energy - block * math.log(2.0)", "energy", INTEGERS),
    Mutant("integers: an acceptance probability above one", "privlearn.randomness:gaussian", "highest + 2.0 ** (-40)", "0.0", INTEGERS),
    Mutant("integers: zero with both signs", "privlearn.randomness:_draw_accepted", "magnitude == 0", "magnitude < 0", INTEGERS),
    Mutant("integers: undecided bits accept", "privlearn.randomness:_draw_accepted", "1.0 - MARGIN", "1.0 + MARGIN", INTEGERS),
    Mutant("integers: undecided bits reject", "privlearn.randomness:_draw_accepted", "1.0 + MARGIN", "1.0 - MARGIN", INTEGERS),
    Mutant("integers: a far block cut off", "privlearn.randomness:_exact_magnitude", """
        while not zeros:
            ...
    """, """
        if not zeros:
            ...
    """, INTEGERS),
    Mutant("integers: fresh digits instead of more", "privlearn.randomness:_accepts", "digits << _WORD_BITS | int(words(1)[0])", "int(words(1)[0])", INTEGERS),
    Mutant("integers: too few squarings", "privlearn.randomness:exp_minus", "range(_HALVINGS)", "range(_HALVINGS - 1)", INTEGERS),
    Mutant("noise: words kept between calls", "privlearn.randomness:", """
        def system_words(count: int) -> Words:
            ...
    """, """
        import functools
        @functools.cache
        def system_words(count: int) -> Words:
            ...
    """, COPIES),
    Mutant("mask keys from OpenSSL's generator", "privlearn.parties.secure_sum.curve:generate_key", "1 + secrets.randbelow(ORDER - 1)", "ec.generate_private_key(_CURVE).private_numbers().private_value", COPIES),
    Mutant("sums of noise that wrap around", "privlearn.mechanisms.noise:_add_integers", "_below(whole, _HALF_RANGE)", "", NOISE),
    Mutant("margin of discrete noise unchecked", "privlearn.mechanisms.noise:check_gaussian_numbers", "2.0 ** 60", "2.0 ** 160", ("mechanisms/test_grid_noise.py",)),
    Mutant("a direction without bend", "privlearn.solvers.kernel.multinomial:_Machine._newton_direction", "not energy > 0", "False", ("solvers/test_kernel_multinomial.py",)),
    Mutant("numbers without their targets", "privlearn.estimators.memory_oracle:MemoryOracle._gradient", "margins if offsets is None else margins - offsets", "margins", ("parties/test_softmax_and_numbers.py",)),
    Mutant("momentum dropped", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent.run", "here + momentum * (here - before)", "here", PARTIES),
    Mutant("steps without the curvature's noise bound", "privlearn.mechanisms.summed.noisy_descent:NoisyDescent._metric", "values + shift", "values", PARTIES),
    Mutant("uniform mean counts all records", "privlearn.mechanisms.summed.local_aggregation:LocalAggregation.calibrate", "task.total if calibration == 'weighted' else parties * min_party_records", "task.total", PARTIES),
    Mutant("solver's distance ignored, aggregation", "privlearn.mechanisms.summed.local_aggregation:LocalAggregation.sensitivity", "exact + 2.0 * (task.solver_distance + weighing)", "exact", PARTIES),
    Mutant("dropped-out party still counted", "privlearn.mechanisms.summed.local_aggregation:LocalAggregation.run", "answer.vector.reshape(self.task.problems, self.task.dimension) / present", "answer.vector.reshape(self.task.problems, self.task.dimension)", PARTIES),
    Mutant("psgd claims the limit's guarantee", "privlearn.mechanisms.summed.psgd:PrivateSGD.calibrate", "epsilon * (1.0 + accounting.MARGIN)", "guarantee.epsilon", PARTIES),
    Mutant("psgd without delta pays for one round", "privlearn.mechanisms.summed.psgd:PrivateSGD.round_scale", "self.rounds * self.sum_sensitivity", "self.sum_sensitivity", PARTIES),
    Mutant("psgd without delta claims one round", "privlearn.mechanisms.summed.psgd:PrivateSGD.spends", "self.rounds * self.round_epsilon", "self.round_epsilon", PARTIES),
    Mutant("psgd raises Lambda as printed", "privlearn.mechanisms.summed.psgd:PrivateSGD.effective_regularization", "self.limit_epsilon / 4.0", "self.task.loss.smoothness / 4.0", PARTIES),
    *scaled("choice of a quantile", "privlearn.mechanisms.statistics.quantile:_choose", "@epsilon / (2.0 * rows * sensitivity)", BOUGHT),
    *scaled("noise of a histogram", "privlearn.mechanisms.statistics.discovery:frequent", "@noise_scale, randomness", BOUGHT),
    Mutant("centre moves by one", "privlearn.mechanisms.statistics.quantile:choose_centre", "2, epsilon", "1, epsilon", BOUGHT),
    Mutant("spread moves by one", "privlearn.mechanisms.statistics.quantile:choose_scale", "2, epsilon", "1, epsilon", BOUGHT),
    Mutant("quantile of one row for a person of many", "privlearn.mechanisms.statistics.quantile:_choose", "2.0 * rows", "2.0", BOUGHT),
    Mutant("cells equal to a bound count as beyond", "privlearn.mechanisms.statistics.quantile:reach_losses", "np.maximum(sides.above - beyond, beyond - from_here_on)", "np.abs(from_here_on - beyond)", BOUGHT),
    Mutant("rare values above a threshold of noise alone", "privlearn.mechanisms.statistics.discovery:rare_threshold", "rows - noise_scale * NormalDist().inv_cdf(probability / rows)", "-noise_scale * NormalDist().inv_cdf(probability / rows)", BOUGHT),
    Mutant("rare values of one row for a person of many", "privlearn.mechanisms.statistics.discovery:rare_probability", "rows * normal_tail((threshold - rows) / noise_scale)", "normal_tail((threshold - 1) / noise_scale)", BOUGHT),
    Mutant("histogram moves by one under replace_one", "privlearn.guarantee:", "counts=math.sqrt(2.0)", "counts=1.0", BOUGHT),
    Mutant("rare event for free", "privlearn.mechanisms.statistics.discovery:_zcdp_budget", "guarantee.delta - rare", "guarantee.delta", BOUGHT),
    Mutant("anchors for free", "privlearn.mechanisms.statistics.discovery:Discovery.zcdp", "self.bounds * bound ** 2 + self.anchors * anchor ** 2", "self.bounds * bound ** 2", BOUGHT),
    Mutant("anchors not planned for", "privlearn.mechanisms.statistics.discovery:Discovery.calibrate", "bounds + ANCHOR ** 2 * anchors", "bounds", BOUGHT),
    Mutant("noise is sold", "privlearn.mechanisms.statistics.discovery:Discovery.calibrate", "discovery._refuse_noise()", "", BOUGHT),
    Mutant("bought before the charge", "privlearn.statistics.discovery.measuring:discover", "charge.pay_for(lambda: _estimate(columns, draft, mechanism, randomness))", "_estimate(columns, draft, mechanism, randomness)", BOUGHT),
    Mutant("order of values shown", "privlearn.mechanisms.statistics.discovery:Discovery.frequent_values", "sorted", "list", BOUGHT),
    Mutant("all rows of a person counted", "privlearn.statistics.discovery.measuring:MarkedColumns._column", "cells if self._first is None else cells[self._first]", "cells", BOUGHT),
    Mutant("table not checked before it is paid for", "privlearn.statistics.discovery.measuring:MarkedColumns._read", "self._encoder.cells(block)", "", BOUGHT),
    Mutant("weak: a part for the whole", "privlearn.mechanisms.search.partition:Partition.records", "sum((candidate.task.total for candidate in self.candidates)) + self.validation_rows", "self.candidates[0].task.total", WEAK),
    Mutant("weak: a purchase", "privlearn.statistics.layout:CountsRequest.charge", "accept_weak_privacy=self.accept_weak_privacy", "accept_weak_privacy=True", WEAK),
    Mutant("callers: of a search not looked at", "privlearn.estimators.selection.search:PrivateGridSearch._prepare_charge", "check_callers(charging=self.ledger is not None)", "pass", CALLERS),
    Mutant("shares rounded up", "privlearn.budget.split:_part", "round_down(share * exact(whole))", "float(share) * whole", BOUGHT),
    Mutant("PINP's updates for half the sensitivity", "privlearn.mechanisms.session.pinp:_paper_updates", "needed / kernel_task.answer_sensitivity", "2.0 * needed / kernel_task.answer_sensitivity", ("papers/bounds/test_pinp_sizes.py",)),
    Mutant("bounds: every relation replaces", "privlearn.papers.study.case:Case._share", "self.relation.gradients / 2.0", "1.0", ("cli/test_bounds.py",)),
    Mutant("bounds: the lower bound of a replaced record", "privlearn.papers.study.case:Case.lower_bound", "bound / self.relation.replacing", "bound", ("cli/test_bounds.py",)),
    Mutant("a quick run claims", "privlearn.papers:Experiment.run", "self._without_claims(result) if quick else result", "result", ("papers/test_experiments.py",)),
]  # fmt: skip
