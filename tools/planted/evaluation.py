"""Defects of noisy counts, and of what is measured by them."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import (
    CONTRADICTIONS,
    COUNTED,
    DECIDED,
    EVALUATE_JOBS,
    FEW_ROWS,
    MEASURED,
    SIMULATED,
    Mutant,
    scaled,
)

REPLAYED = ("audit/test_record_and_replay.py",)
MECHANISM_OUTPUT = ("release/test_mechanism_output.py",)
REGULARIZERS = ("estimators/test_regularizers.py",)

# fmt: off
MUTANTS = [
    *scaled("counts: noise", "privlearn.mechanisms.statistics.counts:NoisyCounts.run", "add(table, @scale, randomness)", COUNTED),
    Mutant("counts: one row for a person of many, L1", "privlearn.mechanisms.statistics.counts:_sensitivity_l1", "guarantee.relation.gradients * rows", "guarantee.relation.gradients", COUNTED),
    Mutant("counts: one row for a person of many, L2", "privlearn.mechanisms.statistics.counts:_sensitivity_l2", "guarantee.relation.counts * rows", "guarantee.relation.counts", COUNTED),
    Mutant("counts: Gaussian shares as Laplace's", "privlearn.mechanisms.statistics.counts:NoisyCounts.scales", "{'gaussian': 0.5, 'laplace': 1.0}", "{'gaussian': 0.0, 'laplace': 1.0}", COUNTED),
    Mutant("counts: every table has the whole budget", "privlearn.mechanisms.statistics.counts:NoisyCounts.scales", "self.noise_scale / share ** power", "self.noise_scale", COUNTED),
    Mutant("replay: every table has the whole budget", "privlearn.mechanisms.statistics.counts:NoisyCounts.scales", "self.noise_scale / share ** power", "self.noise_scale", REPLAYED),
    Mutant("replay: exact counts leave", "privlearn.statistics.layout:CountsLayout.add_noise", "self.mechanism.run(exact, randomness)", "exact", REPLAYED),
    Mutant("counts: only the first table costs", "privlearn.mechanisms.statistics.counts:NoisyCounts._loss", "list(zip(self.cells, self.scales, strict=True))", "list(zip(self.cells, self.scales, strict=True))[:1]", COUNTED),
    Mutant("counts: weights of a person rounded up", "privlearn.mechanisms.statistics.exact_counts:count", "np.floor(weights * UNIT)", "np.ceil(weights * UNIT)", COUNTED),
    Mutant("counts: rows without a cell are in the last", "privlearn.mechanisms.statistics.exact_counts:count", "np.bincount(cell[inside], weights=units[inside], minlength=cells)", "np.bincount(cell % cells, weights=units, minlength=cells)", COUNTED),
    Mutant("evaluate: counted before the charge", "privlearn.statistics.evaluation.measuring:evaluate", "charge.pay_for(lambda: measure(layout, schema, rows, weights, request.randomness))", "measure(layout, schema, rows, weights, request.randomness)", MEASURED),
    Mutant("evaluate: exact counts leave", "privlearn.statistics.layout:CountsLayout.add_noise", "self.mechanism.run(exact, randomness)", "exact", MEASURED),
    Mutant("evaluate: weak promises accepted", "privlearn.statistics.layout:CountsRequest.charge", "accept_weak_privacy=self.accept_weak_privacy", "accept_weak_privacy=True", MEASURED),
    Mutant("evaluate: all rows of a person counted", "privlearn.statistics.evaluation.scored_rows:ScoredRows.tables", "count(index, size, block_weights)", "count(index, size)", MEASURED),
    Mutant("evaluate: n in place of the expected number", "privlearn.statistics.evaluation.measuring:evaluate", "request.total(persons)", "persons", MEASURED),
    Mutant("evaluate: rows beyond a person's share", "privlearn.statistics.evaluation.measuring:read_cells", "weights.counted", "None", MEASURED),
    Mutant("few rows: a block without rows fails", "privlearn.statistics.evaluation.subject:_row_by_row.score_rows", "np.concatenate(outputs) if outputs else np.empty(_shape(0, target))", "np.concatenate(outputs)", FEW_ROWS),
    Mutant("few rows: no scores of several classes", "privlearn.statistics.evaluation.subject:_row_by_row.score_rows", "_shape(0, target)", "0", FEW_ROWS),
    Mutant("few rows: Fourier features of no row fail", "privlearn.release.encoders:FourierEncoder.lift", "may_be_empty=True", "", FEW_ROWS),
    Mutant("file: any rank of landmarks", "privlearn.release.agreement:_has_shape_of", "features in model.encoder.possible_ranks", "True", CONTRADICTIONS),
    Mutant("file: any number of features", "privlearn.release.agreement:_has_shape_of", "features == model.encoder.dimension", "True", CONTRADICTIONS),
    Mutant("file: any number of problems", "privlearn.release.agreement:_has_shape_of", "task.problems * together != rows", "", CONTRADICTIONS),
    Mutant("file: classes not stated", "privlearn.release.agreement:_has_shape_of", "not stated", "", CONTRADICTIONS),
    Mutant("file: coefficients off the grid", "privlearn.release.agreement:check_noise", "step is not None", "False", CONTRADICTIONS),
    Mutant("file: a public model off the grid", "privlearn.release.agreement:check_noise", "output.prior is not None", "False", MECHANISM_OUTPUT),
    Mutant("file: the grid of the sum instead of the mechanism's", "privlearn.release.agreement:check_noise", "output.coefficients", "model.coefficients", MECHANISM_OUTPUT),
    Mutant("file: no grid around a public model", "privlearn.release.agreement:check_noise", "step is not None", "step is not None and (not certificate.task.prior_norm)", MECHANISM_OUTPUT),
    Mutant("file: a regularizer that the file does not hold", "privlearn.release.agreement:check_output", "task.prior_norm == 0.0 and task.largest_ridge == 1.0", "True", MECHANISM_OUTPUT),
    Mutant("file: a public model of any norm", "privlearn.release.agreement:check_output", "abs(prior_norm(output.prior) - task.prior_norm) <= 1e-09 * task.prior_norm + rounding", "abs(prior_norm(output.prior) - task.prior_norm) < math.inf", MECHANISM_OUTPUT),
    Mutant("file: any weights of the regularizer", "privlearn.release.agreement:check_output", "largest_ridge(output.scales) == task.largest_ridge", "", MECHANISM_OUTPUT),
    Mutant("file: coefficients of another output", "privlearn.release.agreement:check_output", "np.array_equal(output.model_coefficients, model.coefficients)", "", MECHANISM_OUTPUT),
    Mutant("file: an intercept with a weight", "privlearn.release.agreement:_is_regularizer_of", "np.all(scales[encoder.n_features:] == 1.0)", "True", MECHANISM_OUTPUT),
    Mutant("file: weights below 1", "privlearn.release.agreement:_is_regularizer_of", "(scales > 0.0) & (scales <= 1.0)", "scales > 0.0", MECHANISM_OUTPUT),
    Mutant("release: a public model not rounded to the grid", "privlearn.estimators.training_rows:TrainingRows.model", "self.prior is None or step is None", "True", MECHANISM_OUTPUT),
    Mutant("search: scored without the public model", "privlearn.estimators.fit:Fit._score_coefficients", "released if self.rows.prior is None else released + self.rows.prior", "released", REGULARIZERS),
    Mutant("regularization: as large as you like", "privlearn.mechanisms.task:Task.__post_init__", "MIN_REGULARIZATION <= self.regularization <= MAX_REGULARIZATION", "MIN_REGULARIZATION <= self.regularization", REGULARIZERS),
    Mutant("regularization: as small as you like", "privlearn.mechanisms.task:Task.__post_init__", "MIN_REGULARIZATION <= self.regularization <= MAX_REGULARIZATION", "self.regularization <= MAX_REGULARIZATION", REGULARIZERS),
    Mutant("regularization: any C", "privlearn.estimators.learner:Learner.regularization_for", "not _MIN_C <= float(self.C) <= _MAX_C", "False", REGULARIZERS),
    Mutant("file: grid of the wrong noise", "privlearn.mechanisms.release.objective:ObjectivePerturbation.coefficient_step", "self.tolerance_noise_scale", "self.tolerance_noise_scale / 2.0 ** 20", CONTRADICTIONS),
    Mutant("file: counts off the grid", "privlearn.release.counts_file:CountsFile._parse", "_check_noise(tables, certificate.mechanism)", "", CONTRADICTIONS),
    Mutant("file: matrices off the grid", "privlearn.release.curvature_file:Curvature.from_bytes", "_check_noise(curvature)", "", CONTRADICTIONS),
    Mutant("file: rows of a person in arrays", "privlearn.release.agreement:_counts_persons_like", "task.rows_per_person == 1 and (not task.averaged)", "True", CONTRADICTIONS),
    Mutant("evaluate: scores that are not finite", "privlearn.statistics.evaluation.subject:check_outputs", "not np.isfinite(values).all()", "False", MEASURED),
    Mutant("intervals: sampling left out", "privlearn.statistics.intervals:NoisyTable.draws", "source.multinomial(round(self._total), probabilities, size=replicates)", "np.tile(self.plausible.ravel(), (replicates, 1))", SIMULATED),
    Mutant("intervals: noise left out", "privlearn.statistics.intervals:NoisyTable.draws", "sample(0.0, self.scale, drawn.shape)", "0.0", SIMULATED),
    Mutant("area: ties not put back", "privlearn.statistics.evaluation.metrics:_extrapolate", "(4.0 * fine - coarse) / 3.0", "fine", SIMULATED),
    Mutant("area: products of moved counts", "privlearn.statistics.evaluation.metrics:_area_with_ties", "ordered - bias / 2.0, pairs - bias", "ordered, pairs", SIMULATED),
    Mutant("area: bins joined are corrected as fewer", "privlearn.statistics.evaluation.metrics:area", "_area_with_ties(join_bins(counts), bias)", "_area_with_ties(join_bins(counts), bias / 4.0)", SIMULATED),
    Mutant("variance: the mean's own noise", "privlearn.statistics.evaluation.metrics:binned_variance", "share((counts * middles ** 2).sum(-1), total) - mean ** 2 + share(squared, total ** 2)", "share((counts * middles ** 2).sum(-1), total) - mean ** 2", SIMULATED),
    Mutant("cell noise: Laplace taken for normal", "privlearn.statistics.intervals:NoisyTable.cell_noise", "{'gaussian': 1.0, 'laplace': 2.0}", "{'gaussian': 1.0, 'laplace': 1.0}", SIMULATED),
    Mutant("evaluate: the area is not corrected", "privlearn.statistics.evaluation.evaluation:Evaluation._two_class_estimates", "quadratic=True", "", MEASURED),
    Mutant("quotient: the divisor is taken for exact", "privlearn.statistics.intervals:quotient", "whole ** 2 - whole_half ** 2", "whole ** 2", SIMULATED),
    Mutant("residuals: bins not extrapolated", "privlearn.statistics.evaluation.metrics:residuals", "_extrapolate(one, np.repeat(other, 2))", "one", SIMULATED),
    Mutant("threshold: counts of another model", "privlearn.release.artifact:_check_decision", "release.evaluation.about.get('release_sha256') != release.undecided.digest", "False", DECIDED),
    Mutant("threshold: without its counts", "privlearn.release.artifact:_check_decision", "decision is None or release.evaluation is None", "False", DECIDED),
    Mutant("counts file: certificate of other tables", "privlearn.release.counts_file:CountsFile._parse", "certificate.subject.get('about_sha256') != digest_of(members['about.json'])", "False", DECIDED),
    Mutant("counts file: certificate of other counts", "privlearn.release.counts_file:CountsFile._parse", "cells != certificate.mechanism.cells", "", DECIDED),
    Mutant("evaluate job: another analyst's release", "privlearn.server.service:Service._context", "self.result(caller, result_id, result_kind)", "results.find(self.store, None, result_id, result_kind)", EVALUATE_JOBS),
    Mutant("evaluate job: a release that the key is not for", "privlearn.server.service:Service._context", "self.result(caller, result_id, result_kind)", "results.find(self.store, caller.name, result_id, result_kind)", EVALUATE_JOBS),
]  # fmt: skip
# fmt: on
