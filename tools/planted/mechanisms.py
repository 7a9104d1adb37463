"""Defects of mechanisms, of the accounting and the choices under them."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from collections.abc import Iterator

from tools.planted.mutant import (
    ACCOUNTING,
    AUDIT,
    BOUGHT,
    CALLERS,
    CENTRES,
    CHOICES,
    DEFECTS,
    EXACT,
    FUNCTIONS,
    HOSTILE,
    LAWS,
    NOISE,
    PARTIES,
    PATH_LAWS,
    QUESTIONS,
    RELEASE,
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

OUTPUT = "mechanisms/release/output.py"
OBJECTIVE = "mechanisms/release/objective.py"
NOISES = "mechanisms/noise.py"
RELATION = "relation.py"
TASK = "mechanisms/task.py"
CALIBRATE = "accounting/calibrate.py"
CURVES = "accounting/curves.py"
COMPOSE = "accounting/compose.py"
TDDL = "mechanisms/release/tddl.py"
TDIL = "mechanisms/release/tdil.py"
NORM = ("mechanisms/test_tddl_norm.py",)
PAPER_TDIL = ("mechanisms/test_tdil_jt13.py",)
PINP = "mechanisms/session/pinp.py"
FUNCTION = "mechanisms/session/function_release.py"
PATHS = "mechanisms/session/function_release.py"
STOPPING = "mechanisms/search/random_stopping.py"
SCORED = "mechanisms/search/search.py"
EVERY = "mechanisms/search/every_candidate.py"
PARTITION = "mechanisms/search/partition.py"
SEARCH_WAYS = "selection/methods.py"
QUANTILE = "mechanisms/statistics/quantile.py"
HISTOGRAM = "mechanisms/statistics/histogram.py"
DISCOVERY = "mechanisms/statistics/discovery.py"
BUYING = "discovery/buying.py"
DESCENT = "mechanisms/summed/noisy_descent.py"
SGD = "mechanisms/summed/psgd.py"
AGGREGATION = "mechanisms/summed/local_aggregation.py"
SUMMED = "mechanisms/summed/summed.py"
TRUSTED = "multiparty/run/training.py"
CENTRING = "mechanisms/statistics/centring.py"
SCORES = "mechanisms/statistics/score_counts.py"
CENTRED = "data/encode/centred.py"
MEMORY = "estimators/memory_oracle.py"
SHARE = "multiparty/secure_sum/noise_share.py"
ORACLE = "estimators/memory_oracle.py"
PLAN = "estimators/plan.py"
MULTINOMIAL = "erm/multinomial.py"
ARTIFACT = "release/artifact.py"


def _noise_scales() -> Iterator[Mutant]:
    yield from scaled(
        "output gaussian scale", OUTPUT, "return @math.sqrt(task.problems) * self.sensitivity / ratio@"
    )
    yield from scaled(
        "output laplace scale", OUTPUT, "return @math.sqrt(task.dimension) * self.sensitivity / (@share"
    )
    yield from scaled("output norm-Gamma scale", OUTPUT, "return @self.sensitivity / share@\n")
    yield from scaled(
        "objective gaussian scale",
        OBJECTIVE,
        "return @sensitivity / (ratio@ * (1.0 - MARGIN))",
    )
    yield from scaled("objective norm-Gamma scale", OBJECTIVE, "return @sensitivity / share@\n")
    yield from scaled("objective ra12 scale", OBJECTIVE, "return @ra12_noise_scale(@share")
    yield from scaled("tolerance gaussian scale", OBJECTIVE, "return @2.0@ / (ratio * (1.0 - MARGIN)")
    yield from scaled("tolerance norm-Gamma scale", OBJECTIVE, "return @2.0 * self.task.problems@ / (share")
    yield from scaled(
        "noise of the mean", CENTRING, "add_gaussian(oracle.sum_of_rows(), @self.mean_noise_scale@", CENTRES
    )
    yield from scaled("noise of the counts", CENTRING, "float(count)]), @self.count_noise_scale@", CENTRES)
    yield Mutant("the mean is free", CENTRING, "math.hypot(mean,", "math.hypot(0.0,", CENTRES)
    yield Mutant(
        "five counts are free", CENTRING, "math.sqrt(_COUNTS) / self.count", "1.0 / self.count", CENTRES
    )
    yield Mutant(
        "a replaced row moves the mean once", CENTRING, "return relation.gradients *", "return 1.0 *", CENTRES
    )
    yield Mutant(
        "the curve forgets the centring",
        OBJECTIVE,
        "math.hypot(beside, task.beside_ratio)",
        "beside",
        CENTRES,
    )
    yield Mutant(
        "the output forgets the centring",
        OUTPUT,
        "math.hypot(self.ratio, task.beside_ratio)",
        "self.ratio",
        CENTRES,
    )
    yield from scaled(
        "noise of the counted scores",
        SCORES,
        "add_gaussian(counts, @self.noise_scale@, randomness)",
        SCORE_COUNTED,
    )
    yield Mutant(
        "a replaced record is counted once",
        SCORES,
        "return relation.counts / self",
        "return 1.0 / self",
        SCORE_COUNTED,
    )
    yield Mutant(
        "counted scores are free",
        TASK,
        "(self.centring, self.score_counts)",
        "(self.centring,)",
        SCORE_COUNTED,
    )
    yield Mutant(
        "two problems cost as one",
        OBJECTIVE,
        "composed_delta(curve, self.task.problems, epsilon)",
        "composed_delta(curve, 1, epsilon)",
        ("estimators/test_several_numbers.py",),
    )
    yield Mutant(
        "silent records are counted",
        MEMORY,
        "counted = counted * ~goal.ignored[rows]",
        "pass",
        SCORE_COUNTED,
    )
    yield Mutant("centred rows are too long", CENTRED, "math.sqrt(1.0 - INTERCEPT)", "1.0", CENTRES)
    yield Mutant(
        "sums that depend on their order",
        MEMORY,
        "np.rint(features * (UNIT * weights[:, np.newaxis])).astype(np.int64)",
        "(features * (UNIT * weights[:, np.newaxis]))",
        CENTRES,
    )
    drawn = "@scale / step@, values.size))"
    yield from scaled("drawn gaussian noise", NOISES, f"randomness.discrete_gaussian({drawn}")
    yield from scaled("drawn laplace noise", NOISES, f"randomness.discrete_laplace({drawn}")
    yield from scaled(
        "drawn norm-Gamma noise", NOISES, "stretch = @scale * gamma(uniforms[:dimension])@ /", EXACT
    )
    yield from scaled("perturbation of the objective", OBJECTIVE, "minimise(@perturbation@ / self.task.total")
    yield from scaled(
        "descent scale",
        DESCENT,
        "return @self.rounded_sensitivity * math.sqrt(self.rounds / share)@ /",
        PARTIES,
    )
    yield from scaled("curvature scale", DESCENT, "return @_moment_sensitivity(self.task) * spread@", PARTIES)
    yield from scaled(
        "asked gradient noise", DESCENT, "self._gradient_bound, self._noise(@self.noise_scale@)", PARTIES
    )
    yield from scaled(
        "aggregation scale",
        AGGREGATION,
        "return @math.sqrt(task.problems) * self.sensitivity / (@target",
        PARTIES,
    )
    yield from scaled(
        "pure aggregation scale", AGGREGATION, "return @task.problems * self.sensitivity / (@epsilon", PARTIES
    )
    yield from scaled(
        "psgd noise drawn anew", SGD, "return @self.task.gradient_sensitivity / @self.limit_epsilon", PARTIES
    )
    yield from scaled("psgd noise drawn once", SGD, "return @ra12_noise_scale(@rest", PARTIES)
    yield from scaled("noise of the trusted sum", TRUSTED, "scale = @noise.scale * (@self", PARTIES)
    yield from scaled("noise share", SHARE, "return @self.scale / math.sqrt(self.cohort.honest)@", SHARES)
    yield from scaled(
        "drawn noise share",
        SHARE,
        "randomness.discrete_gaussian(@self.share_scale / self.step@, dimension)",
        SHARES,
    )
    yield from scaled(
        "calibrated noise of a score", SCORED, "return @_rows_per_person(candidates) / (@ratio", SEARCH
    )
    yield from scaled(
        "drawn noise of a score", SCORED, "np.array([mistakes]), @self.score_noise_scale@, ", SEARCH
    )
    yield from scaled(
        "weight of the exponential choice", PARTITION, "return -@self.selection_epsilon@ * mistakes", SEARCH
    )


MUTANTS = [
    *_noise_scales(),
    Mutant("slack skipped", OBJECTIVE, "return factor * self.task.jacobian_slack", "return 0.0 * self.task.jacobian_slack", LAWS),
    Mutant("papers' slack counted once", OBJECTIVE, '== "tight" else 2.0', '== "tight" else 1.0', LAWS),
    Mutant("slack without the class weight", TASK, "return trace * self.weight_bound", "return trace", LAWS),
    Mutant("slack of one row for a person of many", TASK, "self.rows_per_person * rank * math.log1p(ratio / rank)", "rank * math.log1p(ratio / rank)", LAWS),
    Mutant("slack of averaged rows as of one", TASK, "return ratio if self.averaged else", "return", LAWS),
    Mutant("regularization not raised", OBJECTIVE, "if slack <= limit * (1.0 - MARGIN):", "if True:", LAWS),
    Mutant("gradient sensitivity halved", RELATION, "gradients=2,", "gradients=1,", LAWS),
    Mutant("zero_out for free", RELATION, 'otherwise="left out",\n        replaces=False,\n        gradients=1,', 'otherwise="left out",\n        replaces=False,\n        gradients=1e-9,', LAWS),
    Mutant("gradients without the class weight", TASK, "self.loss.lipschitz * self.weight_bound *", "self.loss.lipschitz *", LAWS),
    Mutant("gradients of one row for a person of many", TASK, "* self.weight_bound * self.records_of_a_person", "* self.weight_bound", LAWS),
    Mutant("sqrt(K) dropped, output", OUTPUT, "return math.sqrt(task.problems) * self.sensitivity / ratio", "return self.sensitivity / ratio", LAWS),
    Mutant("K dropped, pure output", OUTPUT, "share = epsilon * (1.0 - MARGIN) / task.problems", "share = epsilon * (1.0 - MARGIN)", LAWS),
    Mutant("K dropped, objective", OBJECTIVE, "            times=task.problems,\n", "", LAWS),
    Mutant("K dropped, pure objective", OBJECTIVE, "share = self._main_epsilon * (1.0 - MARGIN) / task.problems - self.slack", "share = self._main_epsilon * (1.0 - MARGIN) - self.slack", LAWS),
    Mutant("sqrt(K) dropped, tolerance", OBJECTIVE, "ratio = joint / math.sqrt(self.task.problems)", "ratio = joint", LAWS),
    Mutant("sqrt(d) dropped, laplace", OUTPUT, "return math.sqrt(task.dimension) * self.sensitivity / (share", "return self.sensitivity / (share", LAWS),
    Mutant("tolerance outside the sensitivity", OUTPUT, " + 2.0 * self.solver_distance", "", DEFECTS),
    Mutant("tolerance noise skipped", OBJECTIVE, "noisy = ADD_NOISE[self.noise](vectors, self.tolerance_noise_scale, randomness)", "noisy = vectors", NOISE),
    Mutant("output noise skipped", OUTPUT, "vectors = minimisers.reshape", "return minimisers\n        vectors = minimisers.reshape", NOISE),
    Mutant("tolerance's epsilon counted twice", OBJECTIVE, "return self.guarantee.epsilon * (1.0 - TOLERANCE_SHARE)", "return self.guarantee.epsilon", LAWS),
    Mutant("tolerance's cost forgotten", OBJECTIVE, "curve = self._curve(self.ratio, self._tolerance_ratio)", "curve = self._curve(self.ratio, 0.0)", DEFECTS),
    Mutant("main delta not reduced", OBJECTIVE, "delta = self.guarantee.delta * (1.0 - TOLERANCE_SHARE) *", "delta = self.guarantee.delta *", LAWS),
    Mutant("one draw for all classes", NOISES, "return _add_integers(values, step, randomness.discrete_gaussian(scale / step, values.size))", "one = randomness.discrete_gaussian(scale / step, values.shape[-1])\n    return _add_integers(values, step, np.broadcast_to(one, values.shape))", DEFECTS),
    Mutant("one norm-Gamma draw for all classes", NOISES, "for row in np.atleast_2d(values)]", "for row in [np.atleast_2d(values)[0]]] * len(np.atleast_2d(values))", DEFECTS),
    Mutant("tolerance's noise alone at the corner 0", CURVES, "return SummedCurve((*parts, (1, GaussianCurve(self.beside))) if self.beside else parts)", "return SummedCurve(parts)", ("accounting/test_curves.py",)),
    Mutant("tolerance's noise not beside the objective's", CURVES, "return math.hypot(length * self.ratio, self.beside)", "return length * self.ratio", LAWS),
    Mutant("tolerance's noise not paid for when the objective's is chosen", CURVES, "beside = math.hypot(self.share * ratio, self.beside)", "beside = self.beside", LAWS),
    Mutant("a residual has the sign of its noise", CURVES, "far = math.log(2.0) + GaussianCurve", "far = GaussianCurve", ("accounting/test_curves.py",)),
    Mutant("a residual's sign is known", TASK, "return 0 if self.loss.monotone or self.classes else 1", "return 0", ("privacy/test_residual_losses.py",)),
    Mutant("a residual's curve forgets what is beside it", CURVES, "return FreeGaussianCurve(self._from_corner(1.0))", "return FreeGaussianCurve(self.ratio)", CENTRES),
    Mutant("tolerance that drowns the model", PLAN, "and share > _FELT:", "and False:", ("estimators/test_linear.py",)),
    Mutant("softmax: one corner", TASK, "return ((others, 1.0),)", "return ((1, 1.0),)", SOFTMAX),
    Mutant("softmax: corners between two records' left out", TASK, "(others * (others - 1), math.sqrt(0.75)), ", "", SOFTMAX),
    Mutant("softmax: corners of one record left out", TASK, ", (2 * others, 0.5)", "", SOFTMAX),
    Mutant("softmax: slack of a margin", TASK, "return max(self.classes - 1, 1)", "return 1", SOFTMAX),
    Mutant("softmax: trace of two classes", TASK, "trace = 1.0 - 1.0 / self.classes if", "trace = 0.5 if", SOFTMAX),
    Mutant("softmax: persons of many rows", TASK, "if self.records_of_a_person > 1 or self.averaged or not known:", "if not known:", SOFTMAX),
    Mutant("softmax: noise per class", OBJECTIVE, "vectors = minimisers.reshape(perturbation.shape)", "vectors = minimisers", NOISE),
    Mutant("softmax: perturbation lost", ORACLE, "linear=None if linear is None else linear.reshape(classes, -1),", "linear=None,", NOISE),
    Mutant("softmax: perturbation not in the gradient", MULTINOMIAL, "gradient += self.regularization * coefficients + self.linear", "gradient += self.regularization * coefficients", NOISE),
    Mutant("softmax: certificate of fewer classes", ARTIFACT, "        and task.classes in (0, len(model.coefficients))\n", "", RELEASE),
    Mutant("noise per class for the multinomial loss", OUTPUT, "minimisers.reshape(self.task.problems, self.task.dimension)", "minimisers", NOISE),
    Mutant("values not rounded to the grid", NOISES, "return _from_grid(sums, step).reshape(values.shape)\n\n\ndef _from_grid", "return values + step * draws.reshape(values.shape)\n\n\ndef _from_grid", NOISE),
    Mutant("norm-Gamma noise on a lattice of its own", NOISES, "step = grid_step(scale, GAMMA_GRID_BITS)\n", "step = grid_step(scale, GAMMA_GRID_BITS)\n    values = np.rint(values / step) * step\n", EXACT),
    Mutant("norm-Gamma sum rounded to a finer grid", NOISES, "(value + stretch * part) / step for", "(value + stretch * part) / (step / 2) for", EXACT),
    Mutant("a draw rounded before it is added", NOISES, "sums = (int(steps) + drawn for", "sums = (int(steps) + int(float(drawn)) for", NOISE),
    Mutant("the ball's middle for the real number", "mechanisms/noise.py", "return flint.arb((2 * digits + 1, -bits - 1), (1, -bits - 1))", "return flint.arb((2 * digits + 1, -bits - 1))", EXACT),
    Mutant("the interval's lower end for the real number", "mechanisms/noise.py", "return flint.arb((2 * digits + 1, -bits - 1), (1, -bits - 1))", "return flint.arb((digits, -bits))", EXACT),
    Mutant("new reals where more bits were needed", "mechanisms/noise.py", "known = [digits << more | randomness.bits(more) for digits in known]", "known = [randomness.bits(bits + more) for _ in known]", EXACT),
    Mutant("rounded down, not to the nearest", "mechanisms/noise.py", "(value + 0.5).floor()", "value.floor()", EXACT),
    Mutant("the lower half of the ball taken", "mechanisms/search/selection.py", "if height <= 0 or exponential < excess:", "if exponential < excess:", CHOICES),
    Mutant("every proposed point taken", "mechanisms/search/selection.py", "if height <= 0 or exponential < excess:", "if height <= 0 or exponential < 0:", CHOICES),
    Mutant("a point taken before it is clear", "mechanisms/search/selection.py", "    if not (height > 0 and exponential >= excess):\n        return None\n", "", CHOICES),
    Mutant("grid as coarse as the noise", NOISES, "GRID_BITS = 44\n", "GRID_BITS = 1\n", NOISE),
    Mutant("norm of an exponential, not of a Gamma", NOISES, "gamma(uniforms[:dimension])", "gamma(uniforms[:1])", NOISE),
    Mutant("direction from a cube", NOISES, "/ norm(direction)", "/ max(map(abs, direction))", NOISE),
    Mutant("seeded generator called secure", "randomness.py", 'for tests and experiments only"\n    secure = False', 'for tests and experiments only"\n    secure = True', NOISE),
    Mutant("secure draws from a seed", "randomness.py", "        return SecureRandomness()\n", "        return SeededRandomness(0)\n", NOISE),
    Mutant("persons: discover does not ask what a person is", BUYING, "open_table(table, self._schema, wanted)", "as_source(table, wanted)", BOUGHT),
    Mutant("asked tolerance is not raised", "mechanisms/task.py", "tolerance=min(max(self.tolerance, least), ANYTHING)", "tolerance=self.tolerance", DEFECTS),
    Mutant("infinite epsilon adds noise", OUTPUT, "        if not self.guarantee.is_private:\n            return minimisers\n", "", DEFECTS),
    Mutant("negative radius squared", OBJECTIVE, "quantile = max(radius, 0.0) / self.noise_scale", "quantile = radius / self.noise_scale", LAWS),
    Mutant("hockey stick of half the distance", CURVES, "dtype=float) - self.ratio**2 / 2.0) / self.ratio", "dtype=float) - self.ratio**2 / 4.0) / self.ratio", ACCOUNTING),
    Mutant("cancellation again", CURVES, "if self.ratio <= _NARROW:", "if False:", ACCOUNTING),
    Mutant("cancellation far out", CURVES, "np.where(x > _FAR,", "np.where(x > 1e9,", ACCOUNTING),
    Mutant("curves not rounded upwards", CURVES, "return np.minimum(found + exponent + _ROUNDING, 0.0)", "return np.minimum(found, 0.0)", ACCOUNTING),
    Mutant("erfcx by too few terms", "accounting/functions.py", "_weideman(40)", "_weideman(30)", FUNCTIONS),
    Mutant("norms of odd dimensions without a term", "accounting/functions.py", "    if odd:", "    if False:", FUNCTIONS),
    Mutant("an integral without the error of its corners", "accounting/functions.py", "errors <= precision", "errors <= 1e6 * precision", FUNCTIONS),
    Mutant("epsilon rounded downwards", "accounting/conversions.py", "found + 4.0 * precision", "found - 4.0 * precision", ACCOUNTING),
    Mutant("slack added, not subtracted", CURVES, "np.maximum(np.abs(at) - self.slack, 0.0)", "np.maximum(np.abs(at) + self.slack, 0.0)", ACCOUNTING),
    Mutant("chord dropped", CURVES, "np.where(np.abs(at) < self.slack, self._chord(at),", "np.where(np.abs(at) < 0.0, self._chord(at),", ACCOUNTING),
    Mutant("composition of one", COMPOSE, "power = _power(spectrum, times)", "power = _power(spectrum, 1)", ACCOUNTING),
    Mutant("composition without the tilt", COMPOSE, "return low, *moments(low)[1:]", "return 0.0, *moments(0.0)[1:]", ACCOUNTING),
    Mutant("the transform's error not counted", COMPOSE, "float(np.sum(weights * chances)) + error * _length(weights)", "float(np.sum(weights * chances))", ACCOUNTING),
    Mutant("infinite losses for free", COMPOSE, "return min(1.0, lost + _finite_part", "return min(1.0, _finite_part", ACCOUNTING),
    Mutant("losses beyond the period for free", COMPOSE, "found += math.exp(min(times", "found += 0.0 * math.exp(min(times", ACCOUNTING),
    Mutant("losses without their mirror image", COMPOSE, "negative = positive * np.exp", "negative = 0.0 * positive * np.exp", ACCOUNTING),
    Mutant("deltas below the grid", CALIBRATE, "if times > 1 and delta < LEAST_COMPOSED_DELTA:", "if False:", ACCOUNTING),
    Mutant("Renyi without the order", COMPOSE, "math.log(order * (order - 1.0) * area)", "math.log(order * area)", ACCOUNTING),
    Mutant("search from the unsafe side", CALIBRATE, "        low, high = (middle, high) if known.holds(middle) else (low, middle)\n    return low", "        low, high = (middle, high) if known.holds(middle) else (low, middle)\n    return high", ACCOUNTING),
    Mutant("validation rows trained on", SEARCH_WAYS, "work.take(parts[place], expected), work.take(last, expected)", "work.take(np.append(parts[place], last), expected), work.take(last, expected)", SEARCH),
    Mutant("scored on the rows trained on", SEARCH_WAYS, "work.take(parts[place], expected), work.take(last, expected)", "work.take(parts[place], expected), work.take(parts[place], expected)", SEARCH),
    Mutant("parts that overlap", PARTITION, "return np.array_split(order, parts)", "return [*np.array_split(order, parts)[:-1], order]", SEARCH),
    Mutant("parts of persons with several rows", PARTITION, "if any(task.rows_per_person > 1 or task.averaged for task in tasks):", "if False:", SEARCH),
    Mutant("choice's epsilon not counted", PARTITION, "epsilon = max(trained.epsilon, self.selection_epsilon + SELECTION_ROUNDING)", "epsilon = trained.epsilon", SEARCH),
    Mutant("as many trials as expected, always", STOPPING, "while draw_below(self.expected_trials, randomness) != 0:", "for _ in range(self.expected_trials - 1):", SEARCH),
    Mutant("twice as many trials", STOPPING, "while draw_below(self.expected_trials, randomness) != 0:", "while draw_below(2 * self.expected_trials, randomness) != 0:", SEARCH),
    Mutant("the worst trial released", SCORED, "return min(trials", "return max(trials", SEARCH),
    Mutant("every trial with the whole promise", EVERY, "fit = rho * (1.0 - MARGIN) / (len(plans) * (1.0 + SCORE_SHARE))", "fit = rho * (1.0 - MARGIN) / (1.0 + SCORE_SHARE)", SEARCH),
    Mutant("every trial's score for free", EVERY, "for candidate in self.candidates) + scores", "for candidate in self.candidates)", SEARCH),
    Mutant("one of all trials counted", EVERY, "return sum(candidate.renyi(order) for candidate in self.candidates)", "return max(candidate.renyi(order) for candidate in self.candidates)", SEARCH),
    Mutant("trials with the whole promise", STOPPING, "/ STOPPED_PURE\n", "\n", SEARCH),
    Mutant("the score for free", STOPPING, "return self._largest_renyi(order) + order * self.score_ratio**2 / 2.0", "return self._largest_renyi(order)", SEARCH),
    Mutant("a person's rows scored as one", SCORED, "return max(candidate.task.rows_per_person for candidate in candidates)", "return 1", SEARCH),
    Mutant("the cheapest candidate counted", "mechanisms/search/search.py", "return max(candidate.renyi(order) for candidate in self.candidates)", "return min(candidate.renyi(order) for candidate in self.candidates)", SEARCH),
    Mutant("search not charged", "selection/search.py", "= charge.pay_for(chosen)", "= chosen()", SEARCH),
    Mutant("mistakes above one", "estimators/memory_oracle.py", "parts = parts * self._rows.person_weights", "pass", SEARCH),
    Mutant("the choice for free", "accounting/calibrate.py", "return trial(order) + chosen + spread / (order - 1.0)", "return trial(order) + spread / (order - 1.0)", ACCOUNTING),
    Mutant("the choice at half its price", "accounting/calibrate.py", "chosen = 2.0 * (", "chosen = 1.0 * (", ACCOUNTING),
    Mutant("pure choices at twice an epsilon", "accounting/calibrate.py", "STOPPED_PURE = 3.0", "STOPPED_PURE = 2.0", ACCOUNTING),
    Mutant("ra12 as Procedure 3 prints it", CALIBRATE, "math.sqrt(quantile**2 + 2.0 * epsilon)", "math.sqrt(quantile + 2.0 * epsilon)", ACCOUNTING),
    Mutant("composition off by one", COMPOSE, "power = _power(spectrum, times)", "power = _power(spectrum, max(times - 1, 1))", ACCOUNTING),
    Mutant("composition off by one, tddl", TDDL, "return self.task.problems * self.noisy_numbers", "return self.task.problems * self.noisy_numbers - 1", QUESTIONS),
    Mutant("composition off by one, tdil", TDIL, "self.task.problems * self.rounds * (selection", "self.task.problems * (self.rounds - 1) * (selection", QUESTIONS),
    Mutant("composition off by one, pinp", PINP, "self.updates * (self.test_epsilon**2", "(self.updates - 1) * (self.test_epsilon**2", SESSIONS),
    *scaled("session: drawn noise of a path", PATHS, "_integers(@2.0**DRAW_BITS@, shape", PATH_LAWS),
    *scaled("session: noise of the sparse vector", "mechanisms/session/pinp.py", "return @2.0 * self.sensitivity / (self.epsilon@ - ", SESSIONS),
    *scaled("session: noise of an answer, pinp", PINP, "add_gaussian(np.array([value]), @self.answer_scale@, randomness)", SESSIONS),
    Mutant("session: sqrt(K) dropped", FUNCTION, "return math.sqrt(problems) * math.hypot", "return math.hypot", PATH_LAWS),
    Mutant("session: rounding of values for free", FUNCTION, "rounding = 2.0 * facts.evaluation_error", "rounding = 0.0 * facts.evaluation_error", PATH_LAWS),
    Mutant("session: one path for all functions", PATHS, "draws = _integers(2.0**DRAW_BITS, shape, randomness)", "draws = [row * shape[1] for row in _integers(2.0**DRAW_BITS, (shape[0], 1), randomness)]", PATH_LAWS),
    Mutant("session: independent noise", PATHS, "left = _to_grid(self._solve(cross.T).T)", "left = 0.0 * _to_grid(self._solve(cross.T).T)", PATH_LAWS),
    *scaled("noise of function release", "mechanisms/session/function_release.py", "return cls(facts, guarantee, @_distance(facts) / (@ratio", ("mechanisms/test_function_release.py",)),
    *scaled("noise of tddl", TDDL, "add_laplace(asked, @self.noise_scale@, randomness)", QUESTIONS),
    Mutant("the norm for nothing, tddl", "mechanisms/release/tddl_norm.py", "return self.probes_count + 1", "return self.probes_count", NORM),
    Mutant("the norm without noise, tddl", "mechanisms/release/tddl.py", "np.array([self.asks(w, points) for w in minimisers])\n        return self.fit_answers(points, add_laplace(asked, self.noise_scale, randomness))", "np.array([self.asks(w, points) for w in minimisers])\n        noisy = add_laplace(asked, self.noise_scale, randomness)\n        noisy[:, self.probes_count :] = asked[:, self.probes_count :]\n        return self.fit_answers(points, noisy)", NORM),
    *scaled("noise of tdil, the paper's", "mechanisms/release/tdil_jt13.py", "add_laplace(gap, @self.noise_scale@, randomness)", PAPER_TDIL),
    Mutant("line 5 as printed, tdil", "mechanisms/release/tdil_jt13.py", "choice = share / 2.0 - SELECTION_ROUNDING", "choice = share / (2.0 * answer_sensitivity(task))", PAPER_TDIL),
    Mutant("rounds of all problems forgotten, tdil", "mechanisms/release/tdil_jt13.py", "rounds = self.rounds * self.task.problems\n", "rounds = self.rounds\n", PAPER_TDIL),
    *scaled("noise of tdil", TDIL, "add_gaussian(gap, @self.noise_scale@, randomness)", QUESTIONS),
    Mutant("selection twice too sharp, tdil", TDIL, "return self.selection_epsilon / (2.0 * self.sensitivity)", "return self.selection_epsilon / self.sensitivity", QUESTIONS),
    Mutant("wrong sensitivity of answers", "mechanisms/release/answers.py", "return task.minimiser_sensitivity + 2.0 * (distance + rounding)", "return 0.5 * task.minimiser_sensitivity + 2.0 * (distance + rounding)", AUDIT),
    Mutant("wrong sensitivity, zero_out as exchange", RELATION, "gradients=2,", "gradients=1,", AUDIT),
    Mutant("slack with the root of the curvature", TASK, "if self.classes else self.loss.smoothness", "if self.classes else self.loss.smoothness**0.5", AUDIT),
    Mutant("slack skipped, seen by the audit", OBJECTIVE, "return factor * self.task.jacobian_slack", "return 0.0 * self.task.jacobian_slack", AUDIT),
    Mutant("half the noise drawn, seen by the audit", OBJECTIVE, "perturbation = ADD_NOISE[self.noise](nothing, self.noise_scale, randomness)", "perturbation = ADD_NOISE[self.noise](nothing, 0.5 * self.noise_scale, randomness)", AUDIT),
    Mutant("one noise for all classes, seen by the audit", OUTPUT, "return ADD_NOISE[self.noise](vectors, self.noise_scale, randomness).reshape(minimisers.shape)", "one = ADD_NOISE[self.noise](np.zeros_like(vectors[:1]), self.noise_scale, randomness)\n        return (vectors + one).reshape(minimisers.shape)", AUDIT),
    Mutant("noise drawn twice for a long minimiser", OUTPUT, "        # One row per problem: the multinomial", "        if float(minimisers[0, 0]) > 0:\n            ADD_NOISE[self.noise](minimisers, self.noise_scale, randomness)\n        # One row per problem: the multinomial", AUDIT),
    Mutant("half the noise of a list drawn, seen by the audit", HISTOGRAM, "astype(np.float64), noise_scale, randomness)", "astype(np.float64), 0.5 * noise_scale, randomness)", WHOLE_RUNS),
    Mutant("half a path drawn, seen by the audit", PATHS, "_integers(2.0**DRAW_BITS, shape", "_integers(0.5 * 2.0**DRAW_BITS, shape", WHOLE_RUNS),
    Mutant("half the noise of the sparse vector, seen by the audit", "mechanisms/session/pinp.py", "return 2.0 * self.sensitivity / (self.epsilon", "return self.sensitivity / (self.epsilon", WHOLE_RUNS),
    Mutant("half the noise of an answer, seen by the audit", PINP, "add_gaussian(np.array([value]), self.answer_scale, randomness)", "add_gaussian(np.array([value]), 0.5 * self.answer_scale, randomness)", WHOLE_RUNS),
    Mutant("draws repeated", "randomness.py", "def _draw(measurement: Measurement, size: int) -> Integers:\n    return np.array(measurement([0] * size), dtype=np.int64)", "_DRAWN: dict[int, Integers] = {}\n\n\ndef _draw(measurement: Measurement, size: int) -> Integers:\n    return _DRAWN.setdefault(size, np.array(measurement([0] * size), dtype=np.int64))", DEFECTS),
    Mutant("coefficients asked about not bounded", SUMMED, "cut = np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)", "cut = self.coefficients", HOSTILE),
    Mutant("rounds not composed", DESCENT, 'kinds.count("gradients") * gradient**2', "gradient**2", PARTIES),
    Mutant("second moments for free", DESCENT, ' + kinds.count("second_moments") * moments**2', "", PARTIES),
    Mutant("second moments as for zero_out", RELATION, "moments=math.sqrt(2.0),", "moments=1.0,", PARTIES),
    Mutant("second moments without the class weight", DESCENT, "task.relation.moments * task.weight_bound * task.records", "task.relation.moments * task.records", PARTIES),
    Mutant("second moments of one row for a person of many", DESCENT, "task.weight_bound * task.records_of_a_person + summation", "task.weight_bound + summation", PARTIES),
    Mutant("sqrt(K) dropped, descent", SUMMED, "return math.sqrt(self.task.problems) * (", "return 1.0 * (", PARTIES),
    Mutant("rounding of sums for free", SUMMED, "2.0 * SUM_ROUNDING * task.total", "0.0 * SUM_ROUNDING * task.total", PARTIES),
    Mutant("rounding to the grid for free", SUMMED, "math.sqrt(length) * 2.0**-SHARE_GRID_BITS", "0.0", PARTIES),
    Mutant("off-diagonal moments counted once", SUMMED, "np.where(rows == columns, 1.0, math.sqrt(2.0)))\n\n\ndef unpacked", "1.0)\n\n\ndef unpacked", PARTIES),
    Mutant("functions of the softmax as one against the rest", "mechanisms/session/function_release.py", "return math.sqrt(problems) * math.hypot", "return math.sqrt(functions) * math.hypot", PATH_LAWS),
    Mutant("rounding of one function for all", "mechanisms/session/function_release.py", "math.sqrt(functions / problems * (CAPACITY", "math.sqrt(1.0 * (CAPACITY", PATH_LAWS),
    Mutant("softmax margins exact for the certificate", "erm/certifiable.py", "return 0.5 * margin_error + gamma(product_chain(classes) + 16)", "return 0.0 * margin_error", ("erm/test_kernel_multinomial.py", "erm/test_multinomial.py")),
    Mutant("the gap of one class for all", "erm/kernel/multinomial.py", "for column in (alpha + slopes).T", "for column in (alpha + slopes).T[:1]", ("erm/test_kernel_multinomial.py",)),
    Mutant("all classes share one class's moments", DESCENT, "scores = gradient.reshape(-1, task.features)", "scores = gradient.reshape(-1, task.features).mean(axis=0, keepdims=True)", ("multiparty/test_softmax_and_numbers.py",)),
    Mutant("margins that depend on a row's place", "estimators/memory_oracle.py", "margins[rows] = row_scores(block, coefficients)", "margins[rows] = block @ coefficients.T", ("multiparty/test_softmax_and_numbers.py",)),
    Mutant("drawn ahead: a draw given twice", "sessions/drawn_ahead.py", "self._kept[scale] = kept[size:]", "self._kept[scale] = kept", ("sessions/test_drawn_ahead.py",)),
    Mutant("drawn ahead: kept for ever", "sessions/drawn_ahead.py", "if time.monotonic() - self._drawn_at > LONGEST:", "if False:", ("sessions/test_drawn_ahead.py",)),
    Mutant("drawn ahead: nothing is forgotten", "sessions/drawn_ahead.py", "        self._kept.clear()\n", "", ("sessions/test_drawn_ahead.py",)),
    Mutant("drawn ahead: one store for all scales", "sessions/drawn_ahead.py", "kept = self._kept.get(scale, np", "kept = next(iter(self._kept.values()), np", ("sessions/test_drawn_ahead.py",)),
    Mutant("draws kept though another answered", "sessions/machines.py", "if record.point not in self._own and isinstance", "if False and isinstance", ("sessions/test_drawn_ahead.py",)),
    Mutant("a direction without bend", "erm/kernel/multinomial.py", "if not bend > 0:", "if False:", ("erm/test_kernel_multinomial.py",)),
    Mutant("numbers without their targets", "estimators/memory_oracle.py", "margins if offsets is None else margins - offsets", "margins", ("multiparty/test_softmax_and_numbers.py",)),
    Mutant("momentum dropped", DESCENT, "ahead = here + momentum * (here - before)", "ahead = here", PARTIES),
    Mutant("steps without the curvature's noise bound", DESCENT, "np.maximum(values + most, 0.0)", "np.maximum(values, 0.0)", PARTIES),
    Mutant("uniform mean counts all records", AGGREGATION, 'count = task.total if calibration == "weighted" else parties * smallest_party', "count = task.total", PARTIES),
    Mutant("solver's distance ignored, aggregation", AGGREGATION, "return exact + 2.0 * task.solver_distance", "return exact", PARTIES),
    Mutant("dropped-out party still counted", AGGREGATION, ".task.dimension) / present", ".task.dimension)", PARTIES),
    Mutant("psgd claims the limit's guarantee", SGD, "claim = Guarantee(epsilon * (1.0 + MARGIN)", "claim = Guarantee(guarantee.epsilon", PARTIES),
    Mutant("psgd raises Lambda as printed", SGD, "math.expm1(self.limit_epsilon / 4.0)", "math.expm1(self.task.loss.smoothness / 4.0)", PARTIES),
    *scaled("choice of a quantile", QUANTILE, "scores = log_weights - @epsilon / (2.0 * rows * sensitivity)@ *", BOUGHT),
    *scaled("noise of a histogram", HISTOGRAM, "astype(np.float64), @noise_scale@, randomness)", BOUGHT),
    Mutant("centre moves by one", QUANTILE, "centre_losses(column.sides(points)), 2,", "centre_losses(column.sides(points)), 1,", BOUGHT),
    Mutant("spread moves by one", QUANTILE, "centre_losses(distances.sides(points)), 2,", "centre_losses(distances.sides(points)), 1,", BOUGHT),
    Mutant("quantile of one row for a person of many", QUANTILE, "(2.0 * rows * sensitivity)", "(2.0 * sensitivity)", BOUGHT),
    Mutant("losses rounded before they are compared", QUANTILE, "(losses - losses.min())", "losses", BOUGHT),
    Mutant("cells equal to a bound count as beyond", QUANTILE, "np.maximum(sides.above - beyond, beyond - from_here_on)", "np.abs(from_here_on - beyond)", BOUGHT),
    Mutant("rare values above a threshold of noise alone", HISTOGRAM, "return rows - noise_scale", "return -noise_scale", BOUGHT),
    Mutant("rare values of one row for a person of many", HISTOGRAM, "rows * normal_tail((threshold - rows) / noise_scale)", "normal_tail((threshold - 1) / noise_scale)", BOUGHT),
    Mutant("histogram moves by one under replace_one", RELATION, "counts=math.sqrt(2.0),", "counts=1.0,", BOUGHT),
    Mutant("rare event for free", DISCOVERY, "zcdp_budget(epsilon, guarantee.delta - rare)", "zcdp_budget(epsilon, guarantee.delta)", BOUGHT),
    Mutant("anchors for free", DISCOVERY, "self.bounds * bound**2 + self.anchors * anchor**2", "self.bounds * bound**2", BOUGHT),
    Mutant("anchors not planned for", DISCOVERY, "BOUND_WEIGHT * (bounds + ANCHOR**2 * anchors)", "BOUND_WEIGHT * bounds", BOUGHT),
    Mutant("noise is sold", DISCOVERY, "        plan._refuse_noise()\n", "", BOUGHT),
    Mutant("bought before the charge", BUYING, "charge.pay_for(lambda: _bought(columns, draft, plan, randomness))", "_bought(columns, draft, plan, randomness)", BOUGHT),
    Mutant("order of values shown", DISCOVERY, "return sorted(value", "return list(value", BOUGHT),
    Mutant("all rows of a person counted", BUYING, "return cells if self._first is None else cells[self._first]", "return cells", BOUGHT),
    Mutant("table not checked before it is paid for", BUYING, "        self._encoder.cells(block)\n", "", BOUGHT),
    Mutant("weak: a part for the whole", PARTITION, "sum(candidate.task.total for candidate in self.candidates) + self.validation_rows", "self.candidates[0].task.total", WEAK),
    Mutant("weak: a purchase", BUYING, "        accept_weak_privacy=accept_weak_privacy,\n", "        accept_weak_privacy=True,\n", WEAK),
    Mutant("callers: of a search not looked at", "selection/search.py", "            check_callers()\n", "            pass\n", CALLERS),
    Mutant("shares rounded up", "splitting.py", "rounded_down(share * exact(whole))", "float(share) * whole", BOUGHT),
]  # fmt: skip
