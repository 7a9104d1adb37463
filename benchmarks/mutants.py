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
LAWS = ("test_calibrated_noise.py", "test_exact_privacy_loss.py", "test_sensitivity.py")
DEFECTS = ("test_known_defects.py", "test_contract.py")
RELEASE = ("test_certificates.py", "test_release_file.py")
ACCOUNTING = ("../accounting",)
AUDIT = ("../audit",)
WHOLE_RUNS = ("../audit/test_whole_runs.py",)
LEDGERS = ("../ledger/test_arithmetic.py", "../ledger/test_store.py")
ACCOUNTS = ("../ledger/test_accounts.py",)
SHARED = ("../ledger/test_postgresql_store.py", "../ledger/test_processes.py")
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
RUNS = ("../multiparty/test_party_run.py", "../multiparty/test_coordinator_run.py")


@dataclass(frozen=True)
class Mutant:
    """A text in a source file, found exactly once, and what to put there."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


OUTPUT = "mechanisms/output.py"
OBJECTIVE = "mechanisms/objective.py"
NOISES = "mechanisms/noise.py"
TASK = "mechanisms/task.py"
CERTIFICATE = "release/certified.py"
ARTIFACT = "release/artifact.py"
LINEAR = "estimators/linear.py"
BASE = "estimators/base.py"
WORK = "estimators/work.py"
CALIBRATE = "accounting/calibrate.py"
CURVES = "accounting/curves.py"
COMPOSE = "accounting/compose.py"
TDDL = "mechanisms/tddl.py"
TDIL = "mechanisms/tdil.py"
PINP = "mechanisms/pinp.py"
FUNCTION = "mechanisms/function_release.py"
PATHS = "mechanisms/gaussian_path.py"
STOPPING = "mechanisms/random_stopping.py"
SCORED = "mechanisms/scored.py"
EVERY = "mechanisms/every_candidate.py"
PARTITION = "mechanisms/partition.py"
SEARCH_WAYS = "selection/ways.py"
QUANTILE = "mechanisms/quantile.py"
HISTOGRAM = "mechanisms/histogram.py"
DISCOVERY = "mechanisms/discovery.py"
BUYING = "discovery/buying.py"
DESCENT = "mechanisms/noisy_descent.py"
SGD = "mechanisms/psgd.py"
AGGREGATION = "mechanisms/local_aggregation.py"
SUMMED = "mechanisms/summed.py"
TRUSTED = "multiparty/trusted_sum.py"
PARTY_RUN = "multiparty/party_run.py"
SHARE = "multiparty/noise_share.py"
FIXED_POINT = "multiparty/fixed_point.py"
MASKING_PARTY = "multiparty/masking_party.py"
MASK = "multiparty/masks.py"


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
    yield from _scaled("drawn norm-Gamma noise", NOISES, "@math.fsum(exponentials)@ * scale")
    yield from _scaled("perturbation of the objective", OBJECTIVE, "fit(@perturbation@ / self.task.total")
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
    Mutant("gradient sensitivity halved", TASK, '2 if self.neighbours == "replace_one" else 1', "1", LAWS),
    Mutant("zero_out for free", TASK, '2 if self.neighbours == "replace_one" else 1', '2 if self.neighbours == "replace_one" else 1e-9', LAWS),
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
    Mutant("one norm-Gamma draw for all classes", NOISES, "noisy = np.array([row + _norm_gamma(row.size, scale, randomness) for row in np.atleast_2d(values)])", "noisy = np.atleast_2d(values) + _norm_gamma(values.shape[-1], scale, randomness)", DEFECTS),
    Mutant("noise a class for the multinomial loss", OUTPUT, "minimisers.reshape(self.task.problems, self.task.dimension)", "minimisers", NOISE),
    Mutant("values not rounded to the grid", NOISES, "return np.rint(values / step) * step + draws", "return values + draws", NOISE),
    Mutant("norm-Gamma not rounded to the grid", NOISES, "(np.rint(noisy / step) * step)", "noisy", NOISE),
    Mutant("grid as coarse as the noise", NOISES, "GRID_BITS = 44\n", "GRID_BITS = 1\n", NOISE),
    Mutant("norm of an exponential, not of a Gamma", NOISES, "math.fsum(exponentials)", "exponentials[0]", NOISE),
    Mutant("direction from a cube", NOISES, "direction / np.linalg.norm(direction)", "direction / np.max(np.abs(direction))", NOISE),
    Mutant("seeded generator called secure", "randomness.py", 'for tests and experiments only"\n    secure = False', 'for tests and experiments only"\n    secure = True', NOISE),
    Mutant("secure draws from a seed", "randomness.py", "        return SecureRandomness()\n", "        return SeededRandomness(0)\n", NOISE),
    Mutant("ledger charged after", WORK, "with owner.ledger.reserve(", "early = compute()\n    with owner.ledger.reserve(", DEFECTS),
    Mutant("commit skipped", WORK, "        reservation.commit()\n", "", DEFECTS),
    Mutant("classes from the data", "estimators/inputs.py", "if private and estimator.classes is None:", "if False:", DEFECTS),
    Mutant("norm bound from the data", "estimators/inputs.py", "if private and estimator.norm_bound is None:", "if False:", DEFECTS),
    Mutant("clip removed", "data/clip.py", "self._factor / np.maximum(np.sqrt(squares), self.clip_bound / largest)", "self._factor / (self.clip_bound / largest)", DEFECTS),
    Mutant("intercept outside the norm bound", "data/clip.py", "margin(self.dimension) / (math.sqrt(2.0) if fit_intercept else 1.0)", "margin(self.dimension)", DEFECTS),
    Mutant("NaN rows accepted", "data/clip.py", "if not np.isfinite(entries).all():", "if False:", DEFECTS),
    Mutant("solver returns what it has", "erm/descent.py", "if certified <= tolerance:", "if certified <= max(tolerance, 1e-4):", DEFECTS),
    Mutant("solver: a long text makes it fail", "erm/rows.py", "if np.max(lengths, initial=0) <= PIECE:", "if True:", REACHED),
    Mutant("solver: margins err more than stated", "erm/rows.py", "return dimension if dimension <= PIECE else PIECE + -(-dimension // PIECE)", "return 1", ("../erm/test_solve.py", *REACHED)),
    Mutant("solver: public tolerance forgets the linear term", "erm/certifiable.py", "    half = linear_norm / (2.0 * regularization)\n", "    half = 0.0\n", REACHED),
    Mutant("solver: no room over the rounding errors", "erm/certifiable.py", "needed = ROOM * rounding.bound(longest)", "needed = 0.25 * rounding.bound(longest)", REACHED),
    Mutant("solver: no regularization is too small", "erm/certifiable.py", "if growth < MOST_GROWTH else math.inf", "if True else math.inf", (*REACHED, *DEFECTS)),
    Mutant("solver: gives up where values look alike", "erm/descent.py", "if after.value < point.value - rounding:", "if True:", REACHED),
    Mutant("solver: jumps across corners for ever", "erm/objective.py", "np.clip(mean, local, self.loss.smoothness)", "local", REACHED),
    Mutant("solver: the hinge has one attempt", "erm/hinge.py", "TO_THE_BOUNDARY = (0.995, 0.9, 0.5, 0.7)", "TO_THE_BOUNDARY = (0.995,)", REACHED),
    Mutant("solver: the hinge's public gap ignores rounding", "erm/certifiable.py", "needed = GAP_ROOM * rounding.bound(longest)", "needed = 0.01 * rounding.bound(longest)", REACHED),
    Mutant("solver: the kernel machine has one attempt", "erm/dual.py", "return _newton(gram, losses, total, gap, linear_start(gram, losses, total), progress)", "return found", REACHED),
    Mutant("solver: the kernel's public gap ignores the Gram matrix's error", "erm/kernel_gap.py", "+ gram_error) * slopes + gamma(1) * margin)", ") * slopes * 1e-6)", REACHED),
    Mutant("asked tolerance is not raised", "mechanisms/task.py", "**{asked: max(getattr(self, asked), least)}", "**{asked: getattr(self, asked)}", DEFECTS),
    Mutant("solver is asked for another tolerance than the task states", "estimators/training.py", "minimise(problem, tolerance=task.tolerance, gap=task.gap", "minimise(problem, tolerance=1e3 * task.tolerance, gap=task.gap", DEFECTS),
    Mutant("session: solved before the charge", "sessions/opening.py", "    if ledger is None:\n        return _solved_state", "    learner.solve()\n    if ledger is None:\n        return _solved_state", TRAININGS),
    Mutant("kernel machine claims the gap it steers by", "erm/kernel_hinge.py", "if provable and reached <= gap:", "if reached <= gap:", ("../erm/test_dual.py",)),
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
    Mutant("hockey stick of half the distance", CURVES, "half, far = self.ratio / 2.0, at / self.ratio\n        return np.clip", "half, far = self.ratio / 4.0, at / self.ratio\n        return np.clip", ACCOUNTING),
    Mutant("slack added, not subtracted", CURVES, "delta(np.abs(at) - self.slack)", "delta(np.abs(at) + self.slack)", ACCOUNTING),
    Mutant("chord dropped", CURVES, "np.where(np.abs(at) < self.slack, chord,", "np.where(np.abs(at) < 0.0, chord,", ACCOUNTING),
    Mutant("composition of one", COMPOSE, "single.self_compose(times)", "single.self_compose(1)", ACCOUNTING),
    Mutant("Renyi without the order", COMPOSE, "math.log(order * (order - 1.0) * area)", "math.log(order * area)", ACCOUNTING),
    Mutant("search from the unsafe side", CALIBRATE, "        low, high = (middle, high) if holds(middle) else (low, middle)\n    return low", "        low, high = (middle, high) if holds(middle) else (low, middle)\n    return high", ACCOUNTING),
    Mutant("validation rows trained on", SEARCH_WAYS, "take(work, parts[place]), take(work, last)", "take(work, np.append(parts[place], last)), take(work, last)", SEARCH),
    Mutant("scored on the rows trained on", SEARCH_WAYS, "take(work, parts[place]), take(work, last)", "take(work, parts[place]), take(work, parts[place])", SEARCH),
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
    Mutant("the cheapest candidate counted", "mechanisms/search.py", "return max(candidate.renyi(order) for candidate in self.candidates)", "return min(candidate.renyi(order) for candidate in self.candidates)", SEARCH),
    Mutant("search not charged", "selection/search.py", "outcome = charged(self, way.search, way.run)", "outcome = way.run()", SEARCH),
    Mutant("mistakes above one", "selection/mistakes.py", "parts = parts * work.rows.person_weights", "pass", SEARCH),
    Mutant("the choice for free", "accounting/stopping.py", "return trial(order) + chosen + spread / (order - 1.0)", "return trial(order) + spread / (order - 1.0)", ACCOUNTING),
    Mutant("the choice at half its price", "accounting/stopping.py", "chosen = 2.0 * (", "chosen = 1.0 * (", ACCOUNTING),
    Mutant("pure choices at twice an epsilon", "accounting/stopping.py", "STOPPED_PURE = 3.0", "STOPPED_PURE = 2.0", ACCOUNTING),
    Mutant("ra12 as Procedure 3 prints it", CALIBRATE, "math.sqrt(quantile**2 + 2.0 * epsilon)", "math.sqrt(quantile + 2.0 * epsilon)", ACCOUNTING),
    Mutant("composition off by one", COMPOSE, "single.self_compose(times)", "single.self_compose(max(times - 1, 1))", ACCOUNTING),
    Mutant("composition off by one, tddl", TDDL, "return self.task.problems * self.probes_count", "return self.task.problems * self.probes_count - 1", QUESTIONS),
    Mutant("composition off by one, tdil", TDIL, "self.task.problems * self.rounds * (selection", "self.task.problems * (self.rounds - 1) * (selection", QUESTIONS),
    Mutant("composition off by one, pinp", PINP, "self.updates * (self.test_epsilon**2", "(self.updates - 1) * (self.test_epsilon**2", SESSIONS),
    *_scaled("session: drawn noise of a path", PATHS, "_integers(@2.0**DRAW_BITS@, shape", PATH_LAWS),
    *_scaled("session: noise of the sparse vector", "mechanisms/sparse_vector.py", "return @2.0 * self.sensitivity / (self.epsilon@ - ", SESSIONS),
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
    Mutant("budget of each user alone", "ledger/admission.py", "    if not total.admits(read_counted(connection, dataset), requested):", "    counted = read_counted(connection, dataset) if hasattr(ledger, '_seen') else []\n    object.__setattr__(ledger, '_seen', True)\n    if not total.admits(counted, requested):", DEFECTS),
    Mutant("share not checked", "ledger/admission.py", "    if share is None:\n", "    if True:\n", ACCOUNTS),
    Mutant("an id charged twice", "ledger/ledger.py", "id or str(uuid4()))", "str(uuid4()))", ACCOUNTS),
    Mutant("an id used again once settled", "ledger/admission.py", "if len(rows) > 1:", "if False:", ACCOUNTS),
    Mutant("an id for another cost", "ledger/admission.py", "(ledger.dataset, ledger.account, requested):", "(ledger.dataset, ledger.account, amount):", ACCOUNTS),
    Mutant("service: a training for nothing", "service/training.py", "budget = None if job.trial else JobBudget(ledger, job, offered.settings.training_seconds)", "budget = None", TRAININGS),
    Mutant("service: a restart pays again", "service/charging.py", "schema_digest, id=self.job.id)", "schema_digest)", TRAININGS),
    Mutant("service: a result seen before it is paid", "service/results.py", '        .where(jobs.c.state == "done")\n', "", TRAININGS),
    Mutant("service: two results for one cost", "service/results.py", "if connection.scalar(select(table.c.id).where(table.c.id == job.id)) is None:", "connection.execute(table.delete().where(table.c.id == job.id))\n        if True:", TRAININGS),
    Mutant("service: an error tells what is in a cell", "service/training.py", "return str(error) if isinstance(error, PrivlearnError) else type(error).__name__", "return str(error)", TRAININGS),
    Mutant("service: an error tells the analyst", "service/training.py", "failure = _FAILED + _what_was_spent(store, job)", "failure = str(error)", TRAININGS),
    Mutant("service: the clock tells", "service/training.py", "        wait_for_end_of_slot(job.started, offered.settings.training_seconds)\n", "", TRAININGS),
    Mutant("service: the budget's clock tells", "service/charging.py", "        wait_for_end_of_slot(self.job.started, self.slot / 2.0)\n", "", TRAININGS),
    Mutant("service: a result's clock tells", "service/results.py", '"created": row.finished,', '"created": row.started,', TRAININGS),
    Mutant("service: a retried request pays again", "service/jobs.py", "return _submitted_before(connection, analyst, request, key) or _insert(", "return _insert(", TRAININGS),
    Mutant("service: a key for another request", "service/jobs.py", "row.request_digest != request.digest()", "False", TRAININGS),
    Mutant("service: a job taken from whoever runs it", "service/jobs.py", "jobs.c.lease < as_text(now())", "jobs.c.lease < 'z'", TRAININGS),
    Mutant("service: a revoked key opens", "service/keys.py", "return not self.revoked and (", "return (", KEYS),
    Mutant("service: any secret opens", "service/keys.py", "same = hmac.compare_digest(expected, hashed(secret))", "same = bool(hashed(secret))", KEYS),
    Mutant("service: without a share the whole budget", "service/datasets.py", "if share is None and analyst != HOLDER:", "if False:", KEYS),
    Mutant("service: a key for one data set opens all", "service/datasets.py", "(caller.datasets is not None and name not in caller.datasets)", "False", KEYS),
    Mutant("settled ones not counted", "ledger/statement.py", 'entries.c.kind == "cancelled")', 'entries.c.kind != "reserved")', LEDGERS),
    Mutant("equal costs counted once", "ledger/statement.py", " for _ in range(row.times)]", "]", LEDGERS),
    Mutant("PostgreSQL without the lock", "storage/postgresql.py", "connection.execute(select(func.pg_advisory_xact_lock(key)))", "assert key is not None", SHARED),
    Mutant("PostgreSQL reads from before the lock", "storage/postgresql.py", "READ COMMITTED, READ WRITE", "REPEATABLE READ, READ WRITE", SHARED),
    Mutant("PostgreSQL commits before the disk has it", "storage/postgresql.py", "ELSE 'on' END", "ELSE current_setting('synchronous_commit') END", SHARED),
    Mutant("PostgreSQL rounds costs", "storage/postgresql.py", "'extra_float_digits', '3'", "'extra_float_digits', '0'", LEDGERS),
    *_scaled("noise of function release", "mechanisms/function_release.py", "return cls(facts, guarantee, @_distance(facts) / (@ratio", ("../sessions/test_function_release.py",)),
    *_scaled("noise of tddl", TDDL, "points.T, @self.noise_scale@, randomness)", QUESTIONS),
    *_scaled("noise of tdil", TDIL, "add_gaussian(gap, @self.noise_scale@, randomness)", QUESTIONS),
    Mutant("selection twice too sharp, tdil", TDIL, "return self.selection_epsilon / (2.0 * self.sensitivity)", "return self.selection_epsilon / self.sensitivity", QUESTIONS),
    Mutant("wrong sensitivity of answers", "mechanisms/answers.py", "return task.minimiser_sensitivity + 2.0 * (distance + rounding)", "return 0.5 * task.minimiser_sensitivity + 2.0 * (distance + rounding)", AUDIT),
    Mutant("wrong sensitivity, zero_out as exchange", TASK, '2 if self.neighbours == "replace_one" else 1', "1", AUDIT),
    Mutant("slack with the root of the curvature", TASK, "return self.loss.smoothness * self.weight_bound", "return self.loss.smoothness**0.5 * self.weight_bound", AUDIT),
    Mutant("slack skipped, seen by the audit", OBJECTIVE, "return factor * self.task.jacobian_slack", "return 0.0 * self.task.jacobian_slack", AUDIT),
    Mutant("half the noise drawn, seen by the audit", OBJECTIVE, "perturbation = ADD_NOISE[self.noise](nothing, self.noise_scale, randomness)", "perturbation = ADD_NOISE[self.noise](nothing, 0.5 * self.noise_scale, randomness)", AUDIT),
    Mutant("one noise for all classes, seen by the audit", OUTPUT, "return ADD_NOISE[self.noise](vectors, self.noise_scale, randomness).reshape(minimisers.shape)", "one = ADD_NOISE[self.noise](np.zeros_like(vectors[:1]), self.noise_scale, randomness)\n        return (vectors + one).reshape(minimisers.shape)", AUDIT),
    Mutant("noise drawn twice for a long minimiser", OUTPUT, "        # One row a problem: the multinomial", "        if float(minimisers[0, 0]) > 0:\n            ADD_NOISE[self.noise](minimisers, self.noise_scale, randomness)\n        # One row a problem: the multinomial", AUDIT),
    Mutant("half the noise of a share drawn, seen by the audit", SHARE, "randomness.discrete_gaussian(self.share_scale / self.step, dimension)", "randomness.discrete_gaussian(0.5 * self.share_scale / self.step, dimension)", WHOLE_RUNS),
    Mutant("half the noise of a list drawn, seen by the audit", HISTOGRAM, "astype(np.float64), noise_scale, randomness)", "astype(np.float64), 0.5 * noise_scale, randomness)", WHOLE_RUNS),
    Mutant("half a path drawn, seen by the audit", PATHS, "_integers(2.0**DRAW_BITS, shape", "_integers(0.5 * 2.0**DRAW_BITS, shape", WHOLE_RUNS),
    Mutant("half the noise of the sparse vector, seen by the audit", "mechanisms/sparse_vector.py", "return 2.0 * self.sensitivity / (self.epsilon", "return self.sensitivity / (self.epsilon", WHOLE_RUNS),
    Mutant("half the noise of an answer, seen by the audit", PINP, "add_gaussian(np.array([value]), self.answer_scale, randomness)", "add_gaussian(np.array([value]), 0.5 * self.answer_scale, randomness)", WHOLE_RUNS),
    Mutant("intercept not regularised", "erm/objective.py", "        gradient += self.regularization * coefficients + self.linear\n", "        gradient += self.regularization * np.append(coefficients[:-1], 0.0) + self.linear\n", DEFECTS),
    Mutant("equal bounds accepted", "data/columns.py", "if not lower < upper:", "if not lower <= upper:", DEFECTS),
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
    Mutant("one mask for all rounds", "multiparty/key_book.py", "tuple(RoundKeys(_fresh(), _fresh()) for _ in range(rounds))", "(RoundKeys(_fresh(), _fresh()),) * rounds", MASKS),
    Mutant("mask keys folded to 32 bits", MASK, "Cipher(ChaCha20(key, nonce)", "Cipher(ChaCha20(key[:4] * 8, nonce)", MASKS),
    Mutant("a round answered twice", MASKING_PARTY, "self._forget_before(letter.round + 1)", "self._forget_before(letter.round)", MASKS),
    Mutant("coordinator as a party", "multiparty/envelope.py", "if letter.sender == COORDINATOR:", "if False:", MASKS),
    Mutant("letter's signature not checked", "multiparty/envelope.py", ".verify(signature, content)", "", MASKS),
    Mutant("party without noise", PARTY_RUN, "words = words + share.draw(question.length, SecureRandomness())", "pass", RUNS),
    Mutant("party with half the noise", "multiparty/conversation.py", "NoiseShare(noise[0].scale,", "NoiseShare(noise[0].scale / 2,", RUNS),
    Mutant("any plan is signed", PARTY_RUN, "if digest != bytes.fromhex(self._plan.digest):", "if False:", RUNS),
    Mutant("others' sign-offs not checked", PARTY_RUN, "if not identity_of(self._plan, name).has_signed(", "if False and (", RUNS),
    Mutant("cost not final", PARTY_RUN, "self._reservation.commit()", "pass", RUNS),
    Mutant("signs before paying", PARTY_RUN, "self._reservation = self._reserve()", "pass", RUNS),
    Mutant("an old question answered", PARTY_RUN, "if number < self._next_question:", "if False:", RUNS),
    Mutant("a refusal about the rows leaves", PARTY_RUN, "public = isinstance(error, ProtocolError)", "public = True", RUNS),
    Mutant("starts without a sign-off", "multiparty/coordinator_run.py", "        if missing:", "        if False:", RUNS),
    Mutant("rounds not composed", DESCENT, 'kinds.count("gradients") * gradient**2', "gradient**2", PARTIES),
    Mutant("second moments for free", DESCENT, ' + kinds.count("second_moments") * moments**2', "", PARTIES),
    Mutant("second moments as for zero_out", DESCENT, 'apart = math.sqrt(2.0) if task.neighbours == "replace_one" else 1.0', "apart = 1.0", PARTIES),
    Mutant("second moments without the class weight", DESCENT, "apart * task.weight_bound * task.rows_per_person", "apart * task.rows_per_person", PARTIES),
    Mutant("second moments of one row for a person of many", DESCENT, "apart * task.weight_bound * task.rows_per_person", "apart * task.weight_bound", PARTIES),
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
    Mutant("survivors not counted", MASKING_PARTY, '        self._require(len(arrived), "sent a vector")\n', "", MASKS),
    *_scaled("choice of a quantile", QUANTILE, "scores = log_weights - @epsilon / (2.0 * rows * sensitivity)@ *", BOUGHT),
    *_scaled("noise of a histogram", HISTOGRAM, "astype(np.float64), @noise_scale@, randomness)", BOUGHT),
    Mutant("centre moves by one", QUANTILE, "centre_losses(_ordered(cells), points), 2,", "centre_losses(_ordered(cells), points), 1,", BOUGHT),
    Mutant("spread moves by one", QUANTILE, "centre_losses(_ordered(distances), points), 2,", "centre_losses(_ordered(distances), points), 1,", BOUGHT),
    Mutant("quantile of one row for a person of many", QUANTILE, "(2.0 * rows * sensitivity)", "(2.0 * sensitivity)", BOUGHT),
    Mutant("losses rounded before they are compared", QUANTILE, "(losses - losses.min())", "losses", BOUGHT),
    Mutant("cells equal to a bound count as beyond", QUANTILE, "np.maximum(above - beyond, beyond - from_here_on)", "np.abs(from_here_on - beyond)", BOUGHT),
    Mutant("rare values above a threshold of noise alone", HISTOGRAM, "return float(rows + noise_scale", "return float(noise_scale", BOUGHT),
    Mutant("rare values of one row for a person of many", HISTOGRAM, "return float(rows * norm.sf((threshold - rows) / noise_scale))", "return float(norm.sf((threshold - 1) / noise_scale))", BOUGHT),
    Mutant("histogram moves by one under replace_one", DISCOVERY, '(2.0 if guarantee.neighbours == "replace_one" else 1.0)', "1.0", BOUGHT),
    Mutant("rare event for free", DISCOVERY, "zcdp_budget(epsilon, guarantee.delta - rare)", "zcdp_budget(epsilon, guarantee.delta)", BOUGHT),
    Mutant("anchors for free", DISCOVERY, "self.bounds * bound**2 + self.anchors * anchor**2", "self.bounds * bound**2", BOUGHT),
    Mutant("anchors not planned for", DISCOVERY, "BOUND_WEIGHT * (bounds + ANCHOR**2 * anchors)", "BOUND_WEIGHT * bounds", BOUGHT),
    Mutant("noise is sold", DISCOVERY, "        plan._refuse_noise()\n", "", BOUGHT),
    Mutant("bought before the charge", BUYING, "    with ledger.reserve(", "    compute()\n    with ledger.reserve(", BOUGHT),
    Mutant("purchase not committed", BUYING, "        reservation.commit()\n", "", BOUGHT),
    Mutant("order of values shown", BUYING, "return sorted(value", "return list(value", BOUGHT),
    Mutant("all rows of a person counted", BUYING, "return rows.take(np.unique(owner, return_index=True)[1])", "return rows", BOUGHT),
    Mutant("table not checked before it is paid for", BUYING, "        encoder.encode(rows.slice(part.start, part.stop - part.start))\n", "        pass\n", BOUGHT),
    Mutant("receipt not recomputed", CERTIFICATE, "            check_receipt(receipt)\n", "            pass\n", BOUGHT),
    Mutant("seeded purchase called private", CERTIFICATE, " and all(part.secure for part in self.bought)", "", BOUGHT),
    Mutant("shares rounded up", "splitting.py", "rounded_down(share * exact(whole))", "float(share) * whole", BOUGHT),
    Mutant("unlisted labels weigh something", "estimators/training.py", "(~rows.ignored).astype(np.float64)", "np.ones(len(rows.ignored))", BOUGHT),
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
