"""Plant a defect, see a test fail: one at a time, in a copy of the source.

    python benchmarks/mutants.py            all of them
    python benchmarks/mutants.py slack      those whose name contains "slack"

Prints a table of mutation and first failing test; exits with 1 if a mutant survives.
"""
# ruff: noqa: E501 - one line a mutant reads as a table

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NOISE = ("test_calibrated_noise.py", "test_noise.py")
EXACT = ("test_exact_noise.py",)
CHOICES = ("../mechanisms/test_selection.py",)
LAWS = ("test_calibrated_noise.py", "test_exact_privacy_loss.py", "test_sensitivity.py")
DEFECTS = ("test_known_defects.py", "test_contract.py")
RELEASE = ("test_certificates.py", "test_release_file.py")
ACCOUNTING = ("../accounting",)
AUDIT = ("../audit",)
WHOLE_RUNS = ("../audit/test_whole_runs.py",)
LEDGERS = ("../ledger/test_arithmetic.py", "../ledger/test_store.py")
ACCOUNTS = ("../ledger/test_accounts.py",)
SHARED = ("../ledger/test_postgresql_store.py", "../ledger/test_processes.py")
UPGRADES = ("../storage",)
QUESTIONS = ("../mechanisms/test_tddl.py", "../mechanisms/test_tdil.py")
TURNS = ("../sessions/test_shared_session.py",)
STATES = ("../sessions/test_state.py",)
PATH_LAWS = ("../sessions/test_function_release.py", "../sessions/test_gaussian_path.py")
SESSIONS = ("../sessions/test_sparse_vector.py",)
PARTIES = tuple(
    f"../multiparty/test_{name}.py" for name in ("noisy_descent", "aggregation", "psgd", "party_sensitivity")
)
SEARCH = ("test_search_privacy.py", "../selection")
BOUGHT = ("../mechanisms/test_quantile.py", "../mechanisms/test_histogram.py", "../discovery")
SHARES = ("../multiparty/test_noise_share.py", "../multiparty/test_fixed_point.py")
MASKS = (
    "../multiparty/test_mask_keys.py",
    "../multiparty/test_masked_sum.py",
    "../multiparty/test_masked_traffic.py",
    "../multiparty/test_masking_refusals.py",
)
REACHED = ("../erm/test_certifiable.py",)
TRAININGS = ("../service/test_jobs.py", "../service/test_training.py")
KEYS = ("../service/test_keys.py", "../service/test_catalog.py")
WEAK = ("test_strength.py",)
COUNTS = ("test_private_count.py",)
COUNTED_PARTIES = ("../multiparty/test_private_counts.py",)
COUNTED_REQUESTS = ("../service/test_private_counts.py",)
WEAK_COMMANDS = ("../cli/test_weak_privacy.py",)
WEAK_REQUESTS = ("../service/test_weak_requests.py",)
CALLERS = ("../estimators/test_callers.py",)
ROWS = ("../data/test_cells.py", "../data/test_hostile_tables.py", "../data/test_schema.py")
LABELS = ("../estimators/test_labels.py",)
PERSONS = ("../data/test_persons.py", "../data/test_template.py")
RUNS = ("../multiparty/test_party_run.py", "../multiparty/test_coordinator_run.py")
HOSTILE = ("../multiparty/test_hostile_questions.py",)
LIARS = ("../multiparty/test_lying_coordinator.py",)


@dataclass(frozen=True)
class Mutant:
    """A text in a source file, found exactly once, and what to put there."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


OUTPUT = "mechanisms/release/output.py"
OBJECTIVE = "mechanisms/release/objective.py"
NOISES = "mechanisms/noise.py"
RELATION = "relation.py"
TASK = "mechanisms/task.py"
CERTIFICATE = "release/certified.py"
ARTIFACT = "release/artifact.py"
LINEAR = "estimators/linear.py"
BASE = "estimators/base.py"
WORK = "estimators/fitting.py"
CALIBRATE = "accounting/calibrate.py"
CURVES = "accounting/curves.py"
COMPOSE = "accounting/compose.py"
TDDL = "mechanisms/release/tddl.py"
TDIL = "mechanisms/release/tdil.py"
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
PARTY_RUN = "multiparty/run/party_run.py"
SHARE = "multiparty/secure_sum/noise_share.py"
FIXED_POINT = "multiparty/secure_sum/noise_share.py"
MASKING_PARTY = "multiparty/secure_sum/party.py"
MASK = "multiparty/secure_sum/masks.py"


def _scaled(name: str, file: str, old: str, tests: tuple[str, ...] = NOISE) -> Iterator[Mutant]:
    """The expression in ``old`` between @ signs, halved and doubled."""
    before, expression, after = old.split("@")
    for word, factor in (("halved", "0.5"), ("doubled", "2.0")):
        yield Mutant(
            f"{name} {word}",
            file,
            before + expression + after,
            f"{before}{factor} * {expression}{after}",
            tests,
        )


def _noise_scales() -> Iterator[Mutant]:
    yield from _scaled(
        "output gaussian scale", OUTPUT, "return @math.sqrt(task.problems) * self.sensitivity / ratio@"
    )
    yield from _scaled(
        "output laplace scale", OUTPUT, "return @math.sqrt(task.dimension) * self.sensitivity / (@share"
    )
    yield from _scaled("output norm-Gamma scale", OUTPUT, "return @self.sensitivity / share@\n")
    yield from _scaled(
        "objective gaussian scale", OBJECTIVE, "return @sensitivity / (ratio@ * (1.0 - MARGIN))"
    )
    yield from _scaled("objective norm-Gamma scale", OBJECTIVE, "return @sensitivity / share@\n")
    yield from _scaled("objective ra12 scale", OBJECTIVE, "return @ra12_noise_scale(@share")
    yield from _scaled(
        "tolerance gaussian scale", OBJECTIVE, "return @self._joint_distance / (@gaussian_ratio"
    )
    yield from _scaled(
        "tolerance norm-Gamma scale", OBJECTIVE, "return @2.0 * self.solver_distance * @self.task.problems"
    )
    drawn = "@scale / step@, values.size))"
    yield from _scaled("drawn gaussian noise", NOISES, f"randomness.discrete_gaussian({drawn}")
    yield from _scaled("drawn laplace noise", NOISES, f"randomness.discrete_laplace({drawn}")
    yield from _scaled(
        "drawn norm-Gamma noise", NOISES, "stretch = @scale * gamma(uniforms[:dimension])@ /", EXACT
    )
    yield from _scaled(
        "perturbation of the objective", OBJECTIVE, "minimise(@perturbation@ / self.task.total"
    )
    yield from _scaled(
        "descent scale",
        DESCENT,
        "return @self.rounded_sensitivity * math.sqrt(self.rounds / share)@ /",
        PARTIES,
    )
    yield from _scaled(
        "curvature scale", DESCENT, "return @_moment_sensitivity(self.task) * spread@", PARTIES
    )
    yield from _scaled(
        "asked gradient noise", DESCENT, "self._gradient_bound, self._noise(@self.noise_scale@)", PARTIES
    )
    yield from _scaled(
        "aggregation scale",
        AGGREGATION,
        "return @math.sqrt(task.problems) * self.sensitivity / (@target",
        PARTIES,
    )
    yield from _scaled(
        "pure aggregation scale", AGGREGATION, "return @task.problems * self.sensitivity / (@epsilon", PARTIES
    )
    yield from _scaled(
        "psgd noise drawn anew", SGD, "return @self.task.gradient_sensitivity / @self.limit_epsilon", PARTIES
    )
    yield from _scaled("psgd noise drawn once", SGD, "return @ra12_noise_scale(@rest", PARTIES)
    yield from _scaled("noise of the trusted sum", TRUSTED, "scale = @noise.scale * (@self", PARTIES)
    yield from _scaled("noise share", SHARE, "return @self.scale / math.sqrt(self.cohort.honest)@", SHARES)
    yield from _scaled(
        "drawn noise share",
        SHARE,
        "randomness.discrete_gaussian(@self.share_scale / self.step@, dimension)",
        SHARES,
    )
    yield from _scaled(
        "calibrated noise of a score", SCORED, "return @_rows_per_person(candidates) / (@ratio", SEARCH
    )
    yield from _scaled(
        "drawn noise of a score", SCORED, "np.array([mistakes]), @self.score_noise_scale@, ", SEARCH
    )
    yield from _scaled(
        "weight of the exponential choice", PARTITION, "return -@self.selection_epsilon@ * mistakes", SEARCH
    )


MUTANTS = [
    *_noise_scales(),
    Mutant("slack skipped", OBJECTIVE, "return factor * self.task.jacobian_slack", "return 0.0 * self.task.jacobian_slack", LAWS),
    Mutant("papers' slack counted once", OBJECTIVE, '== "tight" else 2.0', '== "tight" else 1.0', LAWS),
    Mutant("slack without the class weight", TASK, "self.loss.smoothness * self.weight_bound", "self.loss.smoothness", LAWS),
    Mutant("slack of one row for a person of many", TASK, "self.rows_per_person * math.log1p(ratio)", "math.log1p(ratio)", LAWS),
    Mutant("slack of averaged rows as of one", TASK, "return ratio if self.averaged else", "return", LAWS),
    Mutant("regularization not raised", OBJECTIVE, "if slack <= limit * (1.0 - MARGIN):", "if True:", LAWS),
    Mutant("gradient sensitivity halved", RELATION, "gradients=2,", "gradients=1,", LAWS),
    Mutant("zero_out for free", RELATION, 'otherwise="left out",\n        replaces=False,\n        gradients=1,', 'otherwise="left out",\n        replaces=False,\n        gradients=1e-9,', LAWS),
    Mutant("add_remove: half a gradient", RELATION, 'nor counted",\n        replaces=False,\n        gradients=1,', 'nor counted",\n        replaces=False,\n        gradients=0.5,', LAWS),
    Mutant("add_remove: the number of records is public", RELATION, "        count_is_public=False,\n", "        count_is_public=True,\n", COUNTS),
    Mutant("add_remove: n in place of the expected number", RELATION, "            return int(expected)\n", "            return max(counted, 1)\n", COUNTS),
    Mutant("add_remove: the solver divides by n", "estimators/fitting.py", "                rows.total,\n                weights,\n", "                max(rows.features.shape[0], 1),\n                weights,\n", COUNTS),
    Mutant("add_remove: n in a search's certificate", SEARCH_WAYS, "len(last) if expected is None else expected", "len(last)", COUNTS),
    Mutant("add_remove: equal parts of the table", SEARCH_WAYS, "split, expected = scatter_places, ", "split, expected = split_places, ", COUNTS),
    Mutant("add_remove: n in a receipt", BUYING, "records=guarantee.relation.total(records.num_rows, expected_records)", "records=records.num_rows", COUNTS),
    Mutant("add_remove: an empty table is refused", "estimators/inputs.py", "features = encoder.encode(X, may_be_empty=True)\n    if", "features = encoder.encode(X)\n    if", COUNTS),
    Mutant("add_remove: a large table is refused", "estimators/fitting.py", "    if mass <= task.mass_bound:\n", "    if True:\n", COUNTS),
    Mutant("add_remove: rounding of n records at most", TASK, "self.weight_bound * self.relation.largest_table", "self.weight_bound", COUNTS),
    Mutant("add_remove: a party counts its records", "multiparty/run/training.py", "            total=declared,\n", "            total=max(training.total, 1),\n", COUNTED_PARTIES),
    Mutant("add_remove: a party with other records is refused", "multiparty/run/training.py", "if relation.count_is_public and training.total != declared:", "if training.total != declared:", COUNTED_PARTIES),
    Mutant("add_remove: a sum beyond its bound stops a run", "multiparty/run/training.py", "np.clip(self._exact(question), -question.bound, question.bound)", "self._exact(question)", COUNTED_PARTIES),
    Mutant("add_remove: a server counts its records", "service/holder/datasets.py", "return self.settings.guarantee.relation.total(counted, self.settings.expected_records)", "return counted", COUNTED_REQUESTS),
    Mutant("gradients without the class weight", TASK, "self.loss.lipschitz * self.weight_bound *", "self.loss.lipschitz *", LAWS),
    Mutant("gradients of one row for a person of many", TASK, "* self.weight_bound * self.rows_per_person", "* self.weight_bound", LAWS),
    Mutant("class weight not in the task", LINEAR, "else float(weights.max())", "else 1.0", DEFECTS),
    Mutant("rows a person not in the task", BASE, "rows_per_person=rows.rows_per_person,", "", DEFECTS),
    Mutant("sqrt(K) dropped, output", OUTPUT, "return math.sqrt(task.problems) * self.sensitivity / ratio", "return self.sensitivity / ratio", LAWS),
    Mutant("K dropped, pure output", OUTPUT, "share = epsilon * (1.0 - MARGIN) / task.problems", "share = epsilon * (1.0 - MARGIN)", LAWS),
    Mutant("K dropped, objective", OBJECTIVE, "            times=task.problems,\n", "", LAWS),
    Mutant("K dropped, pure objective", OBJECTIVE, "share = self._main_epsilon * (1.0 - MARGIN) / task.problems - self.slack", "share = self._main_epsilon * (1.0 - MARGIN) - self.slack", LAWS),
    Mutant("sqrt(K) dropped, tolerance", OBJECTIVE, "return math.sqrt(self.task.problems) * 2.0 * self.solver_distance", "return 2.0 * self.solver_distance", LAWS),
    Mutant("sqrt(d) dropped, laplace", OUTPUT, "return math.sqrt(task.dimension) * self.sensitivity / (share", "return self.sensitivity / (share", LAWS),
    Mutant("tolerance outside the sensitivity", OUTPUT, " + 2.0 * self.solver_distance", "", DEFECTS),
    Mutant("tolerance noise skipped", OBJECTIVE, "return ADD_NOISE[self.noise](minimisers, self.tolerance_noise_scale, randomness)", "return minimisers", NOISE),
    Mutant("output noise skipped", OUTPUT, "vectors = minimisers.reshape", "return minimisers\n        vectors = minimisers.reshape", NOISE),
    Mutant("tolerance's epsilon counted twice", OBJECTIVE, "return self.guarantee.epsilon * (1.0 - TOLERANCE_SHARE)", "return self.guarantee.epsilon", LAWS),
    Mutant("tolerance's delta counted twice", OBJECTIVE, "delta = self._main_delta() + self._tolerance_delta()", "delta = self._main_delta()", RELEASE),
    Mutant("main delta not reduced", OBJECTIVE, "main_delta = self.guarantee.delta * (1.0 - TOLERANCE_SHARE)", "main_delta = self.guarantee.delta", LAWS),
    Mutant("one draw for all classes", NOISES, "return _add_integers(values, step, randomness.discrete_gaussian(scale / step, values.size))", "one = randomness.discrete_gaussian(scale / step, values.shape[-1])\n    return _add_integers(values, step, np.broadcast_to(one, values.shape))", DEFECTS),
    Mutant("one norm-Gamma draw for all classes", NOISES, "for row in np.atleast_2d(values)]", "for row in [np.atleast_2d(values)[0]]] * len(np.atleast_2d(values))", DEFECTS),
    Mutant("noise a class for the multinomial loss", OUTPUT, "minimisers.reshape(self.task.problems, self.task.dimension)", "minimisers", NOISE),
    Mutant("values not rounded to the grid", NOISES, "return _from_grid(sums, step).reshape(values.shape)\n\n\ndef _from_grid", "return values + step * draws.reshape(values.shape)\n\n\ndef _from_grid", NOISE),
    Mutant("norm-Gamma noise on a lattice of its own", NOISES, "step = grid_step(scale, GAMMA_GRID_BITS)\n", "step = grid_step(scale, GAMMA_GRID_BITS)\n    values = np.rint(values / step) * step\n", EXACT),
    Mutant("norm-Gamma sum rounded to a finer grid", NOISES, "(value + stretch * part) / step for", "(value + stretch * part) / (step / 2) for", EXACT),
    Mutant("a draw rounded before it is added", NOISES, "sums = (int(steps) + drawn for", "sums = (int(steps) + int(float(drawn)) for", NOISE),
    Mutant("the ball's middle for the real number", "mechanisms/noise.py", "return arb((2 * digits + 1, -bits - 1), (1, -bits - 1))", "return arb((2 * digits + 1, -bits - 1))", EXACT),
    Mutant("the interval's lower end for the real number", "mechanisms/noise.py", "return arb((2 * digits + 1, -bits - 1), (1, -bits - 1))", "return arb((digits, -bits))", EXACT),
    Mutant("new reals where more bits were needed", "mechanisms/noise.py", "known = [digits << more | randomness.bits(more) for digits in known]", "known = [randomness.bits(bits + more) for _ in known]", EXACT),
    Mutant("rounded down, not to the nearest", "mechanisms/noise.py", "_HALF = arb(0.5)", "_HALF = arb(0)", EXACT),
    Mutant("the lower half of the ball taken", "mechanisms/search/selection.py", "if height <= 0 or exponential < excess:", "if exponential < excess:", CHOICES),
    Mutant("every proposed point taken", "mechanisms/search/selection.py", "if height <= 0 or exponential < excess:", "if height <= 0 or exponential < 0:", CHOICES),
    Mutant("a point taken before it is clear", "mechanisms/search/selection.py", "    if not (height > 0 and exponential >= excess):\n        return None\n", "", CHOICES),
    Mutant("old files said to be exact", "release/certificate.py", "(self._is_first and first_floating_point(self.mechanism))", "False", RELEASE),
    Mutant("grid as coarse as the noise", NOISES, "GRID_BITS = 44\n", "GRID_BITS = 1\n", NOISE),
    Mutant("norm of an exponential, not of a Gamma", NOISES, "gamma(uniforms[:dimension])", "gamma(uniforms[:1])", NOISE),
    Mutant("direction from a cube", NOISES, "/ norm(direction)", "/ max(map(abs, direction))", NOISE),
    Mutant("seeded generator called secure", "randomness.py", 'for tests and experiments only"\n    secure = False', 'for tests and experiments only"\n    secure = True', NOISE),
    Mutant("secure draws from a seed", "randomness.py", "        return SecureRandomness()\n", "        return SeededRandomness(0)\n", NOISE),
    Mutant("ledger charged after", "ledger/charge.py", "        with self.ledger.reserve(", "        compute()\n        with self.ledger.reserve(", DEFECTS),
    Mutant("commit skipped", "ledger/charge.py", "            reservation.commit()\n", "", DEFECTS),
    Mutant("classes from the data", "estimators/inputs.py", "if private and estimator.classes is None:", "if False:", DEFECTS),
    Mutant("norm bound from the data", "estimators/inputs.py", "if private and estimator.norm_bound is None:", "if False:", DEFECTS),
    Mutant("clip removed", "data/encode/arrays.py", "self._factor / np.maximum(np.sqrt(squares), self.clip_bound / largest)", "self._factor / (self.clip_bound / largest)", DEFECTS),
    Mutant("intercept outside the norm bound", "data/encode/arrays.py", "margin(self.dimension) / (math.sqrt(2.0) if fit_intercept else 1.0)", "margin(self.dimension)", DEFECTS),
    Mutant("NaN rows accepted", "data/encode/arrays.py", "if not np.isfinite(entries).all():", "if False:", DEFECTS),
    Mutant("cell by cell: type of a column found by all of its cells", "data/sources/table.py", "        if not _is_uniform(values):\n            return mixed(values)\n", "", ROWS),
    Mutant("cell by cell: listed integers that floats cannot tell apart", "data/schema/columns.py", "abs(value) >= EXACT", "abs(value) >= 2**64", ROWS),
    Mutant("cell by cell: decimals rounded by their column's scale", "data/encode/column_cells.py", "    if pa.types.is_decimal(column.type):\n        column = column.cast(pa.string())\n", "", ROWS),
    Mutant("cell by cell: integers counted beyond floats", "data/encode/column_cells.py", "cells[np.abs(cells) < EXACT]", "cells[np.abs(cells) < 2.0**62]", (*ROWS, "../discovery/test_discover.py")),
    Mutant("cell by cell: persons that floats cannot tell apart", "data/encode/column_cells.py", "(np.abs(values[given]) < EXACT) & (values[given]", "(values[given]", ROWS),
    Mutant("cell by cell: persons told apart by spelling", "data/encode/column_cells.py", 'pc.replace_substring_regex(spellings, _SPELLED_WHOLE, r"\\1\\2")', "spellings", ROWS),
    Mutant("cell by cell: unreadable cells count as missing", "data/sources/table.py", "(*kinds, MISSING_CELL)", "(*kinds, MISSING_CELL, UNREADABLE)", ROWS),
    Mutant("cell by cell: text among numbers counts as missing", "data/sources/table.py", "(*kinds, MISSING_CELL)", "(*kinds, MISSING_CELL, TEXT)", ROWS),
    Mutant("cell by cell: line breaks read by where a block ends", "data/sources/files.py", "newlines_in_values=True", "newlines_in_values=False", ("../data/test_files.py",)),
    Mutant("cell by cell: labels made one type by numpy", "estimators/inputs.py", "y = safely(lambda: np.asarray(y, dtype=object)", "y = safely(lambda: np.asarray(y)", LABELS),
    Mutant("cell by cell: classes that floats cannot tell apart", "estimators/inputs.py", "& (array > -EXACT) & (array < EXACT)", "", LABELS),
    Mutant("cell by cell: scikit-learn looks at the labels", "estimators/inputs.py", "    check_same_length(X, answers)\n", "    check_same_length(X, answers)\n    __import__('sklearn.utils.multiclass').utils.multiclass.check_classification_targets(answers)\n", LABELS),
    Mutant("persons: nobody asks what a person is", "data/sources/files.py", "    if found:\n", "    if False:\n", PERSONS),
    Mutant("persons: estimators do not ask what a person is", "estimators/inputs.py", "    refuse_unclear_persons(encoder.schema, column_names(X))\n", "", PERSONS),
    Mutant("persons: discover does not ask what a person is", BUYING, "    refuse_unclear_persons(wanted, column_names(table))\n", "", BOUGHT),
    Mutant("persons: files do not ask what a person is", "data/sources/files.py", "    refuse_unclear_persons(schema, names)\n", "", PERSONS),
    Mutant("persons: silence about persons changes the digest", "data/schema/schema.py", 'for setting in ("bought", "one_row_per_person"):', 'for setting in ("bought",):', PERSONS),
    Mutant("solver returns what it has", "erm/descent.py", "if certified <= tolerance:", "if certified <= max(tolerance, 1e-4):", DEFECTS),
    Mutant("solver: a long text makes it fail", "erm/problem.py", "if np.max(lengths, initial=0) <= PIECE:", "if True:", REACHED),
    Mutant("solver: margins err more than stated", "erm/problem.py", "return dimension if dimension <= PIECE else PIECE + -(-dimension // PIECE)", "return 1", ("../erm/test_solve.py", *REACHED)),
    Mutant("solver: public tolerance forgets the linear term", "erm/certifiable.py", "    half = linear_norm / (2.0 * regularization)\n", "    half = 0.0\n", REACHED),
    Mutant("solver: no room over the rounding errors", "erm/certifiable.py", "needed = ROOM * rounding.bound(longest)", "needed = 0.25 * rounding.bound(longest)", REACHED),
    Mutant("solver: no regularization is too small", "erm/certifiable.py", "if growth < MOST_GROWTH else math.inf", "if True else math.inf", (*REACHED, *DEFECTS)),
    Mutant("solver: gives up where values look alike", "erm/descent.py", "if after.value < point.value - rounding:", "if True:", REACHED),
    Mutant("solver: jumps across corners for ever", "erm/objective.py", "np.clip(mean, local, self.loss.smoothness)", "local", REACHED),
    Mutant("solver: the hinge has one attempt", "erm/hinge.py", "TO_THE_BOUNDARY = (0.995, 0.9, 0.5, 0.7)", "TO_THE_BOUNDARY = (0.995,)", REACHED),
    Mutant("solver: the hinge's public gap ignores rounding", "erm/certifiable.py", "needed = GAP_ROOM * rounding.bound(longest)", "needed = 0.01 * rounding.bound(longest)", REACHED),
    Mutant("solver: the kernel machine has one attempt", "erm/kernel/dual.py", "return _newton(gram, losses, total, gap, linear_start(gram, losses, total), progress)", "return found", REACHED),
    Mutant("solver: the kernel's public gap ignores the Gram matrix's error", "erm/kernel/gap.py", "+ gram_error) * slopes + gamma(1) * margin)", ") * slopes * 1e-6)", REACHED),
    Mutant("asked tolerance is not raised", "mechanisms/task.py", "**{asked: max(getattr(self, asked), least)}", "**{asked: getattr(self, asked)}", DEFECTS),
    Mutant("solver is asked for another tolerance than the task states", "estimators/fitting.py", "minimise(problem, tolerance=task.tolerance, gap=task.gap", "minimise(problem, tolerance=1e3 * task.tolerance, gap=task.gap", DEFECTS),
    Mutant("session: solved before the charge", "sessions/interactive.py", "        opened = charge.pay_for(", "        learner.solve()\n        opened = charge.pay_for(", ("../estimators/test_kernel_learner.py",)),
    Mutant("kernel machine claims the gap it steers by", "erm/kernel/hinge.py", "if provable and reached <= gap:", "if reached <= gap:", ("../erm/test_dual.py",)),
    Mutant("infinite epsilon adds noise", OUTPUT, "        if not self.guarantee.is_private:\n            return minimisers\n", "", DEFECTS),
    Mutant("certificate not checked", CERTIFICATE, "            certificate._check(record)\n", "", RELEASE),
    Mutant("claim not recomputed", CERTIFICATE, "if mechanism.guarantee.is_private and not mechanism.spends() <= mechanism.guarantee:", "if False:", RELEASE),
    Mutant("constants not compared", CERTIFICATE, 'if not _same(mechanism.constants(), record["constants"]):', "if False:", RELEASE),
    Mutant("words not compared", CERTIFICATE, "if not _same(self.to_dict(), record):", "if False:", RELEASE),
    Mutant("source of randomness not compared", CERTIFICATE, "if self.secure is not (self.randomness == SecureRandomness.description):", "if False:", RELEASE),
    Mutant("digests not checked", ARTIFACT, 'if _digest(members[name]) != manifest["sha256"][name]:', "if False:", RELEASE),
    Mutant("container not compared", ARTIFACT, "if release.to_bytes() != raw:", "if False:", RELEASE),
    Mutant("signature not checked", ARTIFACT, "        release._check_signature()\n", "", RELEASE),
    Mutant("pickles allowed", ARTIFACT, "read_array(io.BytesIO(content), allow_pickle=False)", "read_array(io.BytesIO(content), allow_pickle=True)", RELEASE),
    Mutant("bombs opened", ARTIFACT, "if not stored or sum(entry.file_size for entry in entries) > len(raw):", "if False:", RELEASE),
    Mutant("certificate of another model", ARTIFACT, "    if not agree:\n", "    if False:\n", RELEASE),
    Mutant("negative radius squared", OBJECTIVE, "quantile = max(radius, 0.0) / self.noise_scale", "quantile = radius / self.noise_scale", LAWS),
    Mutant("hockey stick of half the distance", CURVES, "dtype=float) - self.ratio**2 / 2.0) / self.ratio", "dtype=float) - self.ratio**2 / 4.0) / self.ratio", ACCOUNTING),
    Mutant("cancellation again", CURVES, "if self.ratio <= _NARROW:", "if False:", ACCOUNTING),
    Mutant("cancellation far out", CURVES, "np.where(x > _FAR,", "np.where(x > 1e9,", ACCOUNTING),
    Mutant("curves not rounded upwards", CURVES, "return np.minimum(found + exponent + _ROUNDING, 0.0)", "return np.minimum(found, 0.0)", ACCOUNTING),
    Mutant("epsilon rounded downwards", "accounting/conversions.py", "float(found) + 4.0 * precision", "float(found) - 4.0 * precision", ACCOUNTING),
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
    Mutant("search from the unsafe side", CALIBRATE, "        low, high = (middle, high) if holds(middle) else (low, middle)\n    return low", "        low, high = (middle, high) if holds(middle) else (low, middle)\n    return high", ACCOUNTING),
    Mutant("validation rows trained on", SEARCH_WAYS, "take(work, parts[place], expected), take(work, last, expected)", "take(work, np.append(parts[place], last), expected), take(work, last, expected)", SEARCH),
    Mutant("scored on the rows trained on", SEARCH_WAYS, "take(work, parts[place], expected), take(work, last, expected)", "take(work, parts[place], expected), take(work, parts[place], expected)", SEARCH),
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
    Mutant("mistakes above one", "selection/candidates.py", "parts = parts * work.rows.person_weights", "pass", SEARCH),
    Mutant("the choice for free", "accounting/calibrate.py", "return trial(order) + chosen + spread / (order - 1.0)", "return trial(order) + spread / (order - 1.0)", ACCOUNTING),
    Mutant("the choice at half its price", "accounting/calibrate.py", "chosen = 2.0 * (", "chosen = 1.0 * (", ACCOUNTING),
    Mutant("pure choices at twice an epsilon", "accounting/calibrate.py", "STOPPED_PURE = 3.0", "STOPPED_PURE = 2.0", ACCOUNTING),
    Mutant("ra12 as Procedure 3 prints it", CALIBRATE, "math.sqrt(quantile**2 + 2.0 * epsilon)", "math.sqrt(quantile + 2.0 * epsilon)", ACCOUNTING),
    Mutant("composition off by one", COMPOSE, "power = _power(spectrum, times)", "power = _power(spectrum, max(times - 1, 1))", ACCOUNTING),
    Mutant("composition off by one, tddl", TDDL, "return self.task.problems * self.probes_count", "return self.task.problems * self.probes_count - 1", QUESTIONS),
    Mutant("composition off by one, tdil", TDIL, "self.task.problems * self.rounds * (selection", "self.task.problems * (self.rounds - 1) * (selection", QUESTIONS),
    Mutant("composition off by one, pinp", PINP, "self.updates * (self.test_epsilon**2", "(self.updates - 1) * (self.test_epsilon**2", SESSIONS),
    *_scaled("session: drawn noise of a path", PATHS, "_integers(@2.0**DRAW_BITS@, shape", PATH_LAWS),
    *_scaled("session: noise of the sparse vector", "mechanisms/session/pinp.py", "return @2.0 * self.sensitivity / (self.epsilon@ - ", SESSIONS),
    *_scaled("session: noise of an answer, pinp", PINP, "add_gaussian(np.array([value]), @self.answer_scale@, randomness)", SESSIONS),
    Mutant("session: sqrt(K) dropped", FUNCTION, "return math.sqrt(facts.task.problems) * math.hypot", "return math.hypot", PATH_LAWS),
    Mutant("session: rounding of values for free", FUNCTION, "rounding = 2.0 * facts.evaluation_error", "rounding = 0.0 * facts.evaluation_error", PATH_LAWS),
    Mutant("session: one path for all functions", PATHS, "draws = _integers(2.0**DRAW_BITS, shape, randomness)", "draws = [row * shape[1] for row in _integers(2.0**DRAW_BITS, (shape[0], 1), randomness)]", PATH_LAWS),
    Mutant("session: independent noise", PATHS, "left = _to_grid(self._solve(cross.T).T)", "left = 0.0 * _to_grid(self._solve(cross.T).T)", PATH_LAWS),
    Mutant("session: answers leave before they are durable", "sessions/interactive.py", "            turn.append(records)\n", "", STATES),
    Mutant("session: a turn for what is known", "sessions/interactive.py", "enumerate(keys) if key not in self._known}", "enumerate(keys)}", TURNS),
    Mutant("session: a point drawn twice", "sessions/interactive.py", "for point in points if numbers_to_bytes(point) not in self._known]", "for point in points]", TURNS),
    Mutant("session: noise not given the others' answers", "sessions/interactive.py", "            self._take_up(turn.missed(len(self._known)))\n", "", TURNS),
    Mutant("session: a turn without the lock", "sessions/shared.py", 'f"session {self._place.session}"', 'f"session {os.getpid()}"', TURNS),
    Mutant("session: goes on where answers were forgotten", "sessions/shared.py", "if self._given < known:", "if False:", TURNS),
    Mutant("session: a forked child answers", "sessions/shared.py", "if os.getpid() != self._process:", "if False:", TURNS),
    Mutant("session: a vanished state goes on", "sessions/state.py", "        self._check_in_place()\n", "", STATES),
    Mutant("session: other records accepted", "sessions/opening.py", 'if learner.training_digest() != header["training"]:', "if False:", STATES),
    Mutant("kernel above its bound accepted", "features/kernel.py", "if not np.all(diagonal <= self.bound * (1.0 + ROUNDING)):", "if False:", ("../features",)),
    Mutant("composition off by one, ledger", "ledger/composition.py", "amounts = [*counted, requested]", "amounts = [*counted[1:], requested]", LEDGERS),
    Mutant("budget of each user alone", "ledger/ledger.py", "    if not total.admits(read_counted(connection, dataset), requested):", "    counted = read_counted(connection, dataset) if hasattr(ledger, '_seen') else []\n    object.__setattr__(ledger, '_seen', True)\n    if not total.admits(counted, requested):", DEFECTS),
    Mutant("share not checked", "ledger/ledger.py", "    if share is None:\n", "    if True:\n", ACCOUNTS),
    Mutant("an id charged twice", "ledger/ledger.py", "id or str(uuid4()))", "str(uuid4()))", ACCOUNTS),
    Mutant("an id used again once settled", "ledger/ledger.py", "if len(rows) > 1:", "if False:", ACCOUNTS),
    Mutant("an id for another cost", "ledger/ledger.py", "(ledger.dataset, ledger.account, requested):", "(ledger.dataset, ledger.account, amount):", ACCOUNTS),
    Mutant("service: a training for nothing", "service/jobs/training.py", "reserved = None if job.trial else _reserved(", "reserved = None if True else _reserved(", TRAININGS),
    Mutant("service: a restart pays again", "service/jobs/training.py", "offered.schema.digest, id=job.id)", "offered.schema.digest)", TRAININGS),
    Mutant("service: a result seen before it is paid", "service/jobs/results.py", '        .where(jobs.c.state == "done")\n', "", TRAININGS),
    Mutant("service: two results for one cost", "service/jobs/results.py", "if connection.scalar(select(table.c.id).where(table.c.id == job.id)) is None:", "connection.execute(table.delete().where(table.c.id == job.id))\n        if True:", TRAININGS),
    Mutant("service: an error tells what is in a cell", "service/jobs/training.py", "return str(error) if isinstance(error, PrivlearnError) else type(error).__name__", "return str(error)", TRAININGS),
    Mutant("service: an error tells the analyst", "service/jobs/training.py", "failure = _FAILED + _what_was_spent(store, job)", "failure = str(error)", TRAININGS),
    Mutant("service: the clock tells", "service/jobs/training.py", "        wait_for_end_of_slot(job.started, offered.settings.training_seconds)\n", "", TRAININGS),
    Mutant("service: rows are read before the cost is reserved", "service/jobs/training.py", "    reserved = None if job.trial else _reserved(offered, ledger, job, recipe, points)\n    schema, rows = rows_of(offered, job.trial)\n", "    schema, rows = rows_of(offered, job.trial)\n    reserved = None if job.trial else _reserved(offered, ledger, job, recipe, points)\n", TRAININGS),
    Mutant("service: another mechanism than was paid for", "service/jobs/training.py", "if reserved is not None and mechanism != reserved:", "if False:", TRAININGS),
    Mutant("service: a result's clock tells", "service/jobs/results.py", '"created": row.finished,', '"created": row.started,', TRAININGS),
    Mutant("service: a retried request pays again", "service/jobs/queue.py", "return _submitted_before(connection, analyst, request, key) or _insert(", "return _insert(", TRAININGS),
    Mutant("service: a key for another request", "service/jobs/queue.py", "row.request_digest != request.digest()", "False", TRAININGS),
    Mutant("service: a job taken from whoever runs it", "service/jobs/queue.py", "jobs.c.lease < as_text(now())", "jobs.c.lease < 'z'", TRAININGS),
    Mutant("service: a revoked key opens", "service/access/keys.py", "return not self.revoked and (", "return (", KEYS),
    Mutant("service: any secret opens", "service/access/keys.py", "same = hmac.compare_digest(expected, hashed(secret))", "same = bool(hashed(secret))", KEYS),
    Mutant("service: without a share the whole budget", "service/holder/datasets.py", "if share is None and analyst != HOLDER:", "if False:", KEYS),
    Mutant("service: a key for one data set opens all", "service/holder/datasets.py", "(caller.datasets is not None and name not in caller.datasets)", "False", KEYS),
    Mutant("settled ones not counted", "ledger/statement.py", 'entries.c.kind == "cancelled")', 'entries.c.kind != "reserved")', LEDGERS),
    Mutant("equal costs counted once", "ledger/statement.py", " for _ in range(row.times)]", "]", LEDGERS),
    Mutant("upgrade: a format that is not recorded", "storage/migrations/__init__.py", "PARTS[name].record(connection, _format_of(script))", "pass", UPGRADES),
    Mutant("upgrade: scripts in the wrong place", "storage/migrations/__init__.py", "(part.newest, version))", "(part.newest, part.newest))", UPGRADES),
    Mutant("upgrade: a newer store is rewritten", "storage/formats.py", "version > self.newest:", "False:", UPGRADES),
    Mutant("upgrade: an older store is used as it is", "storage/formats.py", "if version < self.newest:", "if False:", UPGRADES),
    Mutant("upgrade: those under way are not waited for", "storage/store.py", "            backend.exclude_readers(connection, MARKS & set(inspect(connection).get_table_names()))\n", "", UPGRADES),
    Mutant("upgrade: not in one transaction", "storage/store.py", "            yield connection\n            backend.check_rebuilt(connection)", "            yield connection.execution_options(isolation_level='AUTOCOMMIT')\n            backend.check_rebuilt(connection)", UPGRADES),
    Mutant("upgrade: two at the same time", "storage/store.py", "        announce_writing(connection)\n        with connection.begin():\n            backend.exclude_others(connection, \"tables\")", "        with connection.begin():", UPGRADES),
    Mutant("upgrade: a table that others refer to is lost", "storage/sqlite.py", 'driver.execute("PRAGMA foreign_keys = OFF")', "del driver", UPGRADES),
    Mutant("a note that is not recorded", "ledger/ledger.py", "                note=self.note,\n            )", "            )", UPGRADES),
    Mutant("PostgreSQL without the lock", "storage/postgresql.py", "connection.execute(select(func.pg_advisory_xact_lock(key)))", "assert key is not None", SHARED),
    Mutant("PostgreSQL reads from before the lock", "storage/postgresql.py", "READ COMMITTED, READ WRITE", "REPEATABLE READ, READ WRITE", SHARED),
    Mutant("PostgreSQL commits before the disk has it", "storage/postgresql.py", "ELSE 'on' END", "ELSE current_setting('synchronous_commit') END", SHARED),
    Mutant("PostgreSQL rounds costs", "storage/postgresql.py", "'extra_float_digits', '3'", "'extra_float_digits', '0'", LEDGERS),
    *_scaled("noise of function release", "mechanisms/session/function_release.py", "return cls(facts, guarantee, @_distance(facts) / (@ratio", ("../sessions/test_function_release.py",)),
    *_scaled("noise of tddl", TDDL, "points.T, @self.noise_scale@, randomness)", QUESTIONS),
    *_scaled("noise of tdil", TDIL, "add_gaussian(gap, @self.noise_scale@, randomness)", QUESTIONS),
    Mutant("selection twice too sharp, tdil", TDIL, "return self.selection_epsilon / (2.0 * self.sensitivity)", "return self.selection_epsilon / self.sensitivity", QUESTIONS),
    Mutant("wrong sensitivity of answers", "mechanisms/release/answers.py", "return task.minimiser_sensitivity + 2.0 * (distance + rounding)", "return 0.5 * task.minimiser_sensitivity + 2.0 * (distance + rounding)", AUDIT),
    Mutant("wrong sensitivity, zero_out as exchange", RELATION, "gradients=2,", "gradients=1,", AUDIT),
    Mutant("slack with the root of the curvature", TASK, "return self.loss.smoothness * self.weight_bound", "return self.loss.smoothness**0.5 * self.weight_bound", AUDIT),
    Mutant("slack skipped, seen by the audit", OBJECTIVE, "return factor * self.task.jacobian_slack", "return 0.0 * self.task.jacobian_slack", AUDIT),
    Mutant("half the noise drawn, seen by the audit", OBJECTIVE, "perturbation = ADD_NOISE[self.noise](nothing, self.noise_scale, randomness)", "perturbation = ADD_NOISE[self.noise](nothing, 0.5 * self.noise_scale, randomness)", AUDIT),
    Mutant("one noise for all classes, seen by the audit", OUTPUT, "return ADD_NOISE[self.noise](vectors, self.noise_scale, randomness).reshape(minimisers.shape)", "one = ADD_NOISE[self.noise](np.zeros_like(vectors[:1]), self.noise_scale, randomness)\n        return (vectors + one).reshape(minimisers.shape)", AUDIT),
    Mutant("noise drawn twice for a long minimiser", OUTPUT, "        # One row per problem: the multinomial", "        if float(minimisers[0, 0]) > 0:\n            ADD_NOISE[self.noise](minimisers, self.noise_scale, randomness)\n        # One row per problem: the multinomial", AUDIT),
    Mutant("half the noise of a share drawn, seen by the audit", SHARE, "randomness.discrete_gaussian(self.share_scale / self.step, dimension)", "randomness.discrete_gaussian(0.5 * self.share_scale / self.step, dimension)", WHOLE_RUNS),
    Mutant("half the noise of a list drawn, seen by the audit", HISTOGRAM, "astype(np.float64), noise_scale, randomness)", "astype(np.float64), 0.5 * noise_scale, randomness)", WHOLE_RUNS),
    Mutant("half a path drawn, seen by the audit", PATHS, "_integers(2.0**DRAW_BITS, shape", "_integers(0.5 * 2.0**DRAW_BITS, shape", WHOLE_RUNS),
    Mutant("half the noise of the sparse vector, seen by the audit", "mechanisms/session/pinp.py", "return 2.0 * self.sensitivity / (self.epsilon", "return self.sensitivity / (self.epsilon", WHOLE_RUNS),
    Mutant("half the noise of an answer, seen by the audit", PINP, "add_gaussian(np.array([value]), self.answer_scale, randomness)", "add_gaussian(np.array([value]), 0.5 * self.answer_scale, randomness)", WHOLE_RUNS),
    Mutant("intercept not regularised", "erm/objective.py", "        gradient += self.regularization * coefficients + self.linear\n", "        gradient += self.regularization * np.append(coefficients[:-1], 0.0) + self.linear\n", DEFECTS),
    Mutant("equal bounds accepted", "data/schema/columns.py", "if not lower < upper:", "if not lower <= upper:", DEFECTS),
    Mutant("draws repeated", "randomness.py", "def _draw(measurement: Measurement, size: int) -> Integers:\n    return np.array(measurement([0] * size), dtype=np.int64)", "_DRAWN: dict[int, Integers] = {}\n\n\ndef _draw(measurement: Measurement, size: int) -> Integers:\n    return _DRAWN.setdefault(size, np.array(measurement([0] * size), dtype=np.int64))", DEFECTS),
    Mutant("audit counts where it chose", "audit/empirical.py", "event.count(first[chosen:]), event.count(second[chosen:])", "event.count(first[:-chosen]), event.count(second[:-chosen])", AUDIT),
    Mutant("audit ignores delta", "audit/empirical.py", "np.maximum(at_least - delta, at_most)", "np.maximum(at_least, at_most)", AUDIT),
    Mutant("audit looks in one direction", "audit/empirical.py", "for first, second in ((one, other), (other, one)):", "for first, second in ((one, other),):", AUDIT),
    Mutant("noise shared among the missing too", SHARE, "math.sqrt(self.cohort.honest)\n", "math.sqrt(self.cohort.parties)\n", SHARES),
    Mutant("gap of the summed law forgotten", SHARE, "+ 10.0 * math.fsum(gaps)", "+ 0.0 * math.fsum(gaps)", SHARES),
    Mutant("rounding of the summands for free", SHARE, "sensitivity / self.step + math.sqrt(dimension)", "sensitivity / self.step", SHARES),
    Mutant("overflow of the noise forgotten", FIXED_POINT, "return values + TAIL", "return values + 0.0 * TAIL", SHARES),
    Mutant("overflow of the parties forgotten", FIXED_POINT, "self.parties * (self.bound / self.step + 1.0)", "(self.bound / self.step + 1.0)", SHARES),
    Mutant("no mask of one's own", MASKING_PARTY, "words + self_mask(keys.own, self._session, round, self._number)", "words + np.uint64(0)", MASKS),
    Mutant("pair masks all added", MASK, "total + mask if party == low else total - mask", "total + mask", MASKS),
    Mutant("one mask for all rounds", "multiparty/secure_sum/session.py", "tuple(RoundKeys(_fresh(), _fresh()) for _ in range(rounds))", "(RoundKeys(_fresh(), _fresh()),) * rounds", MASKS),
    Mutant("mask keys folded to 32 bits", MASK, "Cipher(ChaCha20(key, nonce)", "Cipher(ChaCha20(key[:4] * 8, nonce)", MASKS),
    Mutant("a round answered twice", MASKING_PARTY, "self._forget_before(letter.round + 1)", "self._forget_before(letter.round)", MASKS),
    Mutant("coordinator as a party", "multiparty/secure_sum/session.py", "if letter.sender == COORDINATOR:", "if False:", MASKS),
    Mutant("letter's signature not checked", "multiparty/secure_sum/session.py", ".verify(signature, content)", "", MASKS),
    Mutant("party without noise", PARTY_RUN, "if words is None else words) + noise", "if words is None else words)", RUNS),
    Mutant("party with half the noise", "multiparty/run/conversation.py", "NoiseShare(noise[0].scale,", "NoiseShare(noise[0].scale / 2,", RUNS),
    Mutant("any plan is signed", PARTY_RUN, "if digest != bytes.fromhex(self._plan.digest):", "if False:", RUNS),
    Mutant("others' sign-offs not checked", PARTY_RUN, "if not identity_of(self._plan, name).has_signed(", "if False and (", RUNS),
    Mutant("cost not final", PARTY_RUN, "self._reservation.commit()", "pass", RUNS),
    Mutant("signs before paying", PARTY_RUN, "self._reservation = self._reserve()", "pass", RUNS),
    Mutant("an old question answered", PARTY_RUN, "if number < self._next_question:", "if False:", RUNS),
    Mutant("a refusal about the rows leaves", PARTY_RUN, "return str(error) if isinstance(error, ProtocolError) else STAYS_HERE", "return str(error)", RUNS),
    Mutant("coefficients asked about not bounded", SUMMED, "cut = np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)", "cut = self.coefficients", HOSTILE),
    Mutant("coefficients that are not finite answered", PARTY_RUN, "if not np.isfinite(coefficients).all():", "if False:", HOSTILE),
    Mutant("warnings depend on the rows asked about", "multiparty/run/training.py", 'with np.errstate(all="ignore"):', "with np.errstate():", HOSTILE),
    Mutant("a question counted after computing", PARTY_RUN, "        self._next_question = number + 1\n        self._spend()\n        try:\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n", "        self._spend()\n        try:\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n            self._next_question = number + 1\n", RUNS),
    Mutant("a question paid for after computing", PARTY_RUN, "        self._spend()\n        try:\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n", "        try:\n            masked = self._sums[place.session].mask(place.round, self._noisy(question))\n            self._spend()\n", RUNS),
    Mutant("a question before the session costs", PARTY_RUN, "        self._sums[place.session].check_open(place.round)\n", "", RUNS),
    Mutant("a failed answer tells why", PARTY_RUN, "raise ProtocolError(STAYS_HERE) from None", "raise ProtocolError(_in_words(error)) from None", RUNS),
    Mutant("a failed answer does not end the run", PARTY_RUN, 'self.stopped = f"question {number} could', 'self.failed = f"question {number} could', RUNS),
    Mutant("failures of others' code leave", PARTY_RUN, '        except Exception as error:\n            self._tell(f"Refused', '        except PrivlearnError as error:\n            self._tell(f"Refused', RUNS),
    Mutant("minimisers after the sign-off", PARTY_RUN, '            if kind != "gradients"\n        }', '            if kind == "second_moments"\n        }', RUNS),
    Mutant("cohorts that can be split accepted", "multiparty/secure_sum/session.py", "if self.dropouts > most:", "if False:", LIARS),
    Mutant("one dropout too many", "multiparty/secure_sum/session.py", "if self.dropouts > most:", "if self.dropouts > most + 1:", LIARS),
    Mutant("one honest party too few", "multiparty/secure_sum/session.py", "(math.isqrt(4 * honest - 3) - 1) // 2", "(math.isqrt(4 * honest + 1) - 1) // 2", LIARS),
    Mutant("helpers not counted in a cohort", "multiparty/secure_sum/session.py", "_most_dropouts(self.parties - self.colluding)", "_most_dropouts(self.parties)", LIARS),
    Mutant("a part of the inbox is enough", MASKING_PARTY, 'self._require(len(contents), self._session.cohort.parties, "gave', 'self._require(len(contents), self._session.cohort.threshold, "gave', LIARS),
    Mutant("a part of the roster is enough", MASKING_PARTY, 'self._require(len(roster), self._session.cohort.parties, "adv', 'self._require(len(roster), self._session.cohort.threshold, "adv', MASKS),
    Mutant("set-up without everybody", "multiparty/secure_sum/coordinator.py", "needed = cohort.parties if step in (Step.KEYS, Step.SHARES) else cohort.threshold", "needed = cohort.threshold", MASKS),
    Mutant("starts without a sign-off", "multiparty/run/coordinator_run.py", "        if missing:", "        if False:", RUNS),
    Mutant("rounds not composed", DESCENT, 'kinds.count("gradients") * gradient**2', "gradient**2", PARTIES),
    Mutant("second moments for free", DESCENT, ' + kinds.count("second_moments") * moments**2', "", PARTIES),
    Mutant("second moments as for zero_out", RELATION, "moments=math.sqrt(2.0),", "moments=1.0,", PARTIES),
    Mutant("second moments without the class weight", DESCENT, "task.relation.moments * task.weight_bound * task.rows", "task.relation.moments * task.rows", PARTIES),
    Mutant("second moments of one row for a person of many", DESCENT, "task.weight_bound * task.rows_per_person + summation", "task.weight_bound + summation", PARTIES),
    Mutant("sqrt(K) dropped, descent", SUMMED, "return math.sqrt(self.task.problems) * (", "return 1.0 * (", PARTIES),
    Mutant("rounding of sums for free", SUMMED, "2.0 * SUM_ROUNDING * task.total", "0.0 * SUM_ROUNDING * task.total", PARTIES),
    Mutant("rounding to the grid for free", SUMMED, "math.sqrt(length) * 2.0**-SHARE_GRID_BITS", "0.0", PARTIES),
    Mutant("off-diagonal moments counted once", SUMMED, "np.where(rows == columns, 1.0, math.sqrt(2.0)))\n\n\ndef unpacked", "1.0)\n\n\ndef unpacked", PARTIES),
    Mutant("momentum dropped", DESCENT, "ahead = here + momentum * (here - before)", "ahead = here", PARTIES),
    Mutant("steps without the curvature's noise bound", DESCENT, "np.maximum(values + most, 0.0)", "np.maximum(values, 0.0)", PARTIES),
    Mutant("uniform mean counts all records", AGGREGATION, 'count = task.total if calibration == "weighted" else parties * smallest_party', "count = task.total", PARTIES),
    Mutant("solver's distance ignored, aggregation", AGGREGATION, "return exact + 2.0 * task.solver_distance", "return exact", PARTIES),
    Mutant("dropped-out party still counted", AGGREGATION, ".task.dimension) / present", ".task.dimension)", PARTIES),
    Mutant("psgd claims the limit's guarantee", SGD, "claim = Guarantee(epsilon * (1.0 + MARGIN)", "claim = Guarantee(guarantee.epsilon", PARTIES),
    Mutant("psgd raises Lambda as printed", SGD, "math.expm1(self.limit_epsilon / 4.0)", "math.expm1(self.task.loss.smoothness / 4.0)", PARTIES),
    Mutant("psgd draws its kept noise anew", TRUSTED, "if noise not in self._kept:", "if True:", PARTIES),
    Mutant("one party draws for all", TRUSTED, "range(len(self._parties) if noise.by_each else 1)", "range(1)", PARTIES),
    Mutant("survivors not counted", MASKING_PARTY, '        self._require(len(arrived), self._session.cohort.threshold, "sent a vector")\n', "", MASKS),
    *_scaled("choice of a quantile", QUANTILE, "scores = log_weights - @epsilon / (2.0 * rows * sensitivity)@ *", BOUGHT),
    *_scaled("noise of a histogram", HISTOGRAM, "astype(np.float64), @noise_scale@, randomness)", BOUGHT),
    Mutant("centre moves by one", QUANTILE, "centre_losses(_ordered(cells), points), 2,", "centre_losses(_ordered(cells), points), 1,", BOUGHT),
    Mutant("spread moves by one", QUANTILE, "centre_losses(_ordered(distances), points), 2,", "centre_losses(_ordered(distances), points), 1,", BOUGHT),
    Mutant("quantile of one row for a person of many", QUANTILE, "(2.0 * rows * sensitivity)", "(2.0 * sensitivity)", BOUGHT),
    Mutant("losses rounded before they are compared", QUANTILE, "(losses - losses.min())", "losses", BOUGHT),
    Mutant("cells equal to a bound count as beyond", QUANTILE, "np.maximum(above - beyond, beyond - from_here_on)", "np.abs(from_here_on - beyond)", BOUGHT),
    Mutant("rare values above a threshold of noise alone", HISTOGRAM, "return float(rows + noise_scale", "return float(noise_scale", BOUGHT),
    Mutant("rare values of one row for a person of many", HISTOGRAM, "return float(rows * norm.sf((threshold - rows) / noise_scale))", "return float(norm.sf((threshold - 1) / noise_scale))", BOUGHT),
    Mutant("histogram moves by one under replace_one", RELATION, "counts=math.sqrt(2.0),", "counts=1.0,", BOUGHT),
    Mutant("rare event for free", DISCOVERY, "zcdp_budget(epsilon, guarantee.delta - rare)", "zcdp_budget(epsilon, guarantee.delta)", BOUGHT),
    Mutant("anchors for free", DISCOVERY, "self.bounds * bound**2 + self.anchors * anchor**2", "self.bounds * bound**2", BOUGHT),
    Mutant("anchors not planned for", DISCOVERY, "BOUND_WEIGHT * (bounds + ANCHOR**2 * anchors)", "BOUND_WEIGHT * bounds", BOUGHT),
    Mutant("noise is sold", DISCOVERY, "        plan._refuse_noise()\n", "", BOUGHT),
    Mutant("bought before the charge", BUYING, "charge.pay_for(_reader(records, draft, plan, randomness))", "_reader(records, draft, plan, randomness)()", BOUGHT),
    Mutant("order of values shown", BUYING, "return sorted(value", "return list(value", BOUGHT),
    Mutant("all rows of a person counted", BUYING, "return rows.take(np.unique(owner, return_index=True)[1])", "return rows", BOUGHT),
    Mutant("table not checked before it is paid for", BUYING, "        encoder.encode(rows.slice(part.start, part.stop - part.start))\n", "        pass\n", BOUGHT),
    Mutant("receipt not recomputed", CERTIFICATE, "            check_receipt(receipt)\n", "            pass\n", BOUGHT),
    Mutant("seeded purchase called private", CERTIFICATE, " and all(part.secure for part in self.bought)", "", BOUGHT),
    Mutant("weak: a large epsilon", "guarantee.py", "guarantee.epsilon > LARGEST_EPSILON", "guarantee.epsilon > 2.0 * LARGEST_EPSILON", WEAK),
    Mutant("weak: a delta of 1/n", "guarantee.py", "guarantee.delta >= 1.0 / records", "guarantee.delta > 1.0 / records", WEAK),
    Mutant("weak: no word needed", "guarantee.py", "    if weak and not accepted:", "    if False:", WEAK),
    Mutant("weak: any word will do", "guarantee.py", "    if not isinstance(accepted, bool):", "    if False:", WEAK),
    Mutant("weak: a bought schema forgotten", WORK, "with_purchases(mechanism.guarantee, () if schema is None else schema.bought)", "mechanism.guarantee", WEAK),
    Mutant("weak: a certificate that keeps silent", CERTIFICATE, """            **({"weakness": self.weakness} if self.weakness and not self._is_first else {}),\n""", "", WEAK),
    Mutant("weak: a certificate without its purchases", CERTIFICATE, "weakness(with_purchases(self.guarantee, self.bought), self.records)", "weakness(self.guarantee, self.records)", WEAK),
    Mutant("weak: a part for the whole", PARTITION, "sum(candidate.task.total for candidate in self.candidates) + self.validation_rows", "self.candidates[0].task.total", WEAK),
    Mutant("weak: a purchase", BUYING, "        accept_weak_privacy=accept_weak_privacy,\n", "        accept_weak_privacy=True,\n", WEAK),
    Mutant("weak: a session", "sessions/interactive.py", "ledger=ledger, accept_weak_privacy=accept_weak_privacy", "ledger=ledger, accept_weak_privacy=True", WEAK),
    Mutant("weak: a plan of parties", "multiparty/run/plan.py", "check_strength(self._with_schema, self.total, self.accept_weak_privacy)", "self.mechanism  # noqa: B018", WEAK),
    Mutant("weak: verify calls it private", "cli/inspect.py", "    if proven.weakness:\n", "    if False:\n", WEAK_COMMANDS),
    Mutant("weak: a total bought in parts", "cli/train/train.py", "        check_strength(plan.total, records, learner.accept_weak_privacy)\n", "", WEAK_COMMANDS),
    Mutant("weak: an analyst decides", "service/service.py", "if weak and not offered.settings.accept_weak_privacy:", "if False:", WEAK_REQUESTS),
    Mutant("weak: a word taken back", "service/jobs/training.py", "check_strength(promise, offered.records, offered.settings.accept_weak_privacy)", "pass", WEAK_REQUESTS),
    Mutant("epsilon that nobody stated", LINEAR, "epsilon: float | None = None,", "epsilon: float = 1.0,", WEAK),
    Mutant("unrecorded and unsaid", "ledger/charge.py", "        if self.ledger is None:\n            _say", "        if False:\n            _say", WEAK),
    Mutant("unrecorded and said too often", "ledger/charge.py", "        if not (self.secure and self.promise.is_private):\n", "        if False:\n", WEAK),
    Mutant("callers: not looked at", BASE, "        if guarantee.is_private and randomness.secure:\n            check_callers()\n", "", CALLERS),
    Mutant("callers: of a search not looked at", "selection/search.py", "            check_callers()\n", "            pass\n", CALLERS),
    Mutant("callers: a fitted step", "estimators/callers.py", "bool(get_tags(step).requires_fit)", "False", CALLERS),
    Mutant("callers: a search in other processes", "estimators/callers.py", "(searching or not _is_harmless(module))", "not _is_harmless(module)", CALLERS),
    Mutant("callers: a tool that seeds the noise", BASE, "        if seeded and self.epsilon != math.inf:\n", "        if False:\n", CALLERS),
    Mutant("shares rounded up", "splitting.py", "rounded_down(share * exact(whole))", "float(share) * whole", BOUGHT),
    Mutant("unlisted labels weigh something", "estimators/fitting.py", "(~rows.ignored).astype(np.float64)", "np.ones(len(rows.ignored))", BOUGHT),
]  # fmt: skip


def main(only: str = "") -> int:
    chosen = [mutant for mutant in MUTANTS if only in mutant.name]
    if not chosen:  # pytest without a file would run every test there is
        raise SystemExit(f"no mutant's name contains {only!r}")
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(
            ROOT / "src" / "privlearn", source / "privlearn", ignore=shutil.ignore_patterns("__pycache__")
        )
        _require_pass(source, chosen)
        for mutant in chosen:
            killer = _killer(mutant, source)
            print(f"{mutant.name:<42} {killer or 'SURVIVES'}", flush=True)
            survivors += [] if killer else [mutant.name]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants were caught")
    return 1 if survivors else 0


def _killer(mutant: Mutant, source: Path) -> str | None:
    """Plant, run, restore; the first test that failed."""
    path = source / "privlearn" / mutant.file
    original = path.read_text()
    if original.count(mutant.old) != 1:
        raise SystemExit(
            f"{mutant.name}: its text occurs {original.count(mutant.old)} times in {mutant.file}, not once"
        )
    path.write_text(original.replace(mutant.old, mutant.new))
    try:
        return _first_failure(source, mutant.tests)
    finally:
        path.write_text(original)


def _require_pass(source: Path, chosen: list[Mutant]) -> None:
    tests = tuple(dict.fromkeys(name for mutant in chosen for name in mutant.tests))
    if failure := _first_failure(source, tests):
        raise SystemExit(f"without any mutation {failure} fails: mend that first")


def _first_failure(source: Path, tests: tuple[str, ...]) -> str | None:
    paths = [str(ROOT / "tests" / "privacy" / name) for name in tests]
    options = [
        "-x",
        "-q",
        "--tb=no",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-W",
        "default",
        "-m",
        "not slow",
    ]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    check = f"import privlearn, sys; sys.exit(not privlearn.__file__.startswith({str(source)!r}))"
    subprocess.run([sys.executable, "-c", check], env=environment, cwd=source, check=True)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *paths],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", run.stdout, re.MULTILINE)
    return failed.group(1).removeprefix("tests/") if failed else f"pytest ended with {run.returncode}"


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
