"""Defects of noisy curvature, and of the intervals that follow from it."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant, scaled

CURVED = ("mechanisms/test_curvature.py",)
BOUGHT = ("explain/test_buying.py",)
HELD = ("explain/test_intervals.py",)
SHOWN = ("explain/test_column_effects.py",)
ADDED = ("explain/test_one_prediction.py",)
REFINED = ("release/test_refinement.py",)

CURVATURE = "mechanisms/statistics/curvature.py"
SUMS = "estimators/curvature_rows.py"
BUYING = "explain/buying.py"
FILE = "release/curvature_file.py"
UNCERTAIN = "explain/uncertainty.py"
BANDS = "explain/bands.py"
EFFECTS = "explain/directions.py"
COLUMNS = "explain/column_effects.py"
ONE = "explain/one_prediction.py"
ARTIFACT = "release/artifact.py"
VERIFIED = "release/verification.py"
REFINING = "release/refinement.py"

# fmt: off
MUTANTS = [
    *scaled("noise of the Hessian", CURVATURE, "_noisy(hessian, @self.hessian_noise_scale@,", CURVED),
    *scaled("noise of the gradients' spread", CURVATURE, "_noisy(gradients, @self.gradient_noise_scale@,", CURVED),
    *scaled("noise beside the diagonal", CURVATURE, "add_gaussian(matrix[above], @scale * _ROOT_HALF@,", CURVED),
    *scaled("curvature's calibrated noise", CURVATURE, "            @task.relation.moments@ / (whole", CURVED),
    Mutant("curvature: a replaced record moves it once", CURVATURE, "moved, grid = self.task.relation.moments,", "moved, grid = 1.0,", CURVED),
    Mutant("curvature: the gradients are free", CURVATURE, "moved / self.gradient_noise_scale + grid)", "0.0)", CURVED),
    Mutant("curvature: weights are forgotten in the slope", CURVATURE, "self.task.loss.lipschitz * self.task.weight_bound", "self.task.loss.lipschitz", CURVED),
    Mutant("curvature: factors are rounded, not cut", SUMS, "np.trunc(joined * UNIT)", "np.copysign(np.ceil(np.abs(joined * UNIT)), joined)", CURVED),
    Mutant("curvature: sums of floats", SUMS, "    whole = np.trunc(joined * UNIT)\n", "    whole = joined * UNIT\n", CURVED),
    Mutant("curvature: half of a class's curvature", SUMS, "np.sqrt(weights * chances[:, number, np.newaxis])", "np.sqrt(0.5 * weights * chances[:, number, np.newaxis])", CURVED),
    Mutant("curvature: targets are forgotten", SUMS, "* scores[:, 0] - self._offsets[part]", "* scores[:, 0]", CURVED),
    Mutant("curvature: pure privacy is sold", CURVATURE, "if guarantee.delta == 0.0:", "if False:", CURVED),
    Mutant("curvature: persons with several rows", CURVATURE, "if task.rows_per_person > 1 or task.averaged:", "if False:", BOUGHT),
    Mutant("curvature: another table", BUYING, "if task.relation.count_is_public and rows.total != task.total:", "if False:", BOUGHT),
    Mutant("curvature: other class weights", BUYING, "if rows.goal.weight_bound != task.weight_bound:", "if False:", BOUGHT),
    Mutant("curvature: rows are not centred", BUYING, "    if isinstance(encoder, CentredEncoder):\n", "    if False:\n", BOUGHT),
    Mutant("curvature: paid by nobody", BUYING, "        ledger=ledger,\n        cost", "        ledger=None,\n        cost", BOUGHT),
    Mutant("curvature: bytes may change", FILE, "if found.to_bytes() != raw:", "if False:", BOUGHT),
    *scaled("intervals: the noise", UNCERTAIN, "noise = [@self._deviation@ * reach", HELD),
    Mutant("intervals: no sampling", UNCERTAIN, 'curved.gradients if curved is not None and self.kind == "confidence" else None', "None", HELD),
    Mutant("intervals: the second noise is forgotten", UNCERTAIN, "self._second_deviation * functions", "0.0 * functions", HELD),
    Mutant("intervals: no bootstrap", UNCERTAIN, "np.resize(ratios, errors.shape)", "np.ones_like(errors)", HELD),
    Mutant("intervals: the bootstrap draws half of the noise", UNCERTAIN, "generator.normal(0.0, scale, size)", "generator.normal(0.0, 0.5 * scale, size)", HELD),
    Mutant("intervals: far noise is trusted", UNCERTAIN, "        if moved > most:\n", "        if False:\n", HELD),
    Mutant("intervals: any curvature will do", UNCERTAIN, "self.curvature.release_sha256 != self.release.digest", "False", HELD),
    Mutant("intervals: other laws taken for normal", UNCERTAIN, 'return self._mechanism.noise == "gaussian" or', "return True or", HELD),
    Mutant("importance: bars hold one by one", COLUMNS, "return 1.0 - (1.0 - self.level) / (len(self._names) + len(self._pairs))", "return self.level", SHOWN),
    Mutant("importance: half of the error", COLUMNS, "half = longest / math.sqrt(len(functions))", "half = 0.5 * longest / math.sqrt(len(functions))", SHOWN),
    Mutant("importance: the norm is not allowed for", COLUMNS, "return self.lower > self.misfit", "return self.lower > 0.0", SHOWN),
    Mutant("importance: sampling is forgotten", UNCERTAIN, "            noise.append(self._sampling_bound * functions)\n", "            pass\n", SHOWN),
    Mutant("importance: other laws taken for normal", UNCERTAIN, 'if self._mechanism.noise == "laplace":', "if False:", SHOWN),
    Mutant("explain: a pair counts for its first column", ONE, 'shown = [" x ".join(name) or "intercept" for name in names]', 'shown = [" x ".join(name[:1]) or "intercept" for name in names]', ADDED),
    Mutant("explain: nothing is usual", ONE, "base = float(offset + width * usual @ weights)", "base = float(offset)", ADDED),
    Mutant("refine: steps are not repeated", ARTIFACT, "if not np.array_equal(release.refinement.apply(release.model.encoder), release.model.coefficients):", "if False:", REFINED),
    Mutant("refine: any origin will do", ARTIFACT, '["origin_sha256"] != release.origin.digest:', '["origin_sha256"] == "":', REFINED),
    Mutant("refine: the given origin is not compared", VERIFIED, "if origin is not None and proven.origin != Release.load(origin).digest:", "if False:", REFINED),
    Mutant("refine: falling neighbours are not pooled", REFINING, "pools[-2][0] > pools[-1][0]", "False", REFINED),
    Mutant("refine: intervals of what was refined", UNCERTAIN, "        if self.release.refinement is not None:\n", "        if False:\n", REFINED),
    Mutant("effects: the level is not raised", BANDS, "raised = 1.0 - (1.0 - self.level) / len(values)", "raised = 0.5", HELD),
    Mutant("effects: other columns' parts count", EFFECTS, "own = np.array([name in columns for columns in encoder.feature_columns])", "own = np.ones(encoder.dimension, bool)", HELD),
    Mutant("effects: each row keeps its own norm", EFFECTS, "return np.where(scaled, usual * undivided, means)", "return means", HELD),
]
# fmt: on
