"""Describe a planted defect: where it goes, and the tests that must notice it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.planted.pattern import Site, changed_source, sites

NOISE = ("privacy/test_calibrated_noise.py", "mechanisms/test_noise.py")
EXACT = ("mechanisms/test_exact_noise.py",)
INTEGERS = ("test_randomness.py",)
COPIES = ("privacy/test_copied_process.py",)
CENTRES = ("mechanisms/test_centring.py",)
LOCATED = ("mechanisms/test_locations.py",)
SCORE_COUNTED = ("mechanisms/test_score_counts.py",)
CHOICES = ("mechanisms/test_selection.py",)
FEW_ROWS = ("privacy/test_few_rows.py",)
CONTRADICTIONS = ("release/test_contradictions.py",)
CHOICE_ROUNDING = ("mechanisms/test_selection_rounding.py",)
LAWS = (
    "privacy/test_calibrated_noise.py",
    "privacy/test_exact_privacy_loss.py",
    "privacy/test_sensitivity.py",
)
SOFTMAX = ("privacy/test_softmax.py", "privacy/test_calibrated_noise.py")
DEFECTS = ("privacy/test_known_defects.py", "privacy/test_contract.py")
RELEASE = ("release/test_certificates.py", "release/test_release_file.py")
FUNCTIONS = ("accounting/test_functions.py",)
ACCOUNTING = ("accounting",)
AUDIT = ("audit",)
WHOLE_RUNS = ("audit/test_whole_runs.py",)
LEDGERS = ("budget/test_arithmetic.py", "budget/test_store.py", "budget/test_totals.py")
ACCOUNTS = ("budget/test_accounts.py",)
SHARED = ("budget/test_postgresql_store.py", "budget/test_processes.py")
UPGRADES = ("budget/storage",)
QUESTIONS = ("mechanisms/test_tddl.py", "mechanisms/test_tdil.py")
TURNS = ("sessions/test_shared_session.py",)
OBJECTS = ("features/test_objects.py",)
SPANS = ("estimators/test_session_points.py",)
STATES = ("sessions/test_state.py",)
FROZEN = ("sessions/test_frozen_learner.py",)
PATH_LAWS = ("mechanisms/test_function_release.py", "mechanisms/test_gaussian_path.py")
SESSIONS = ("mechanisms/test_sparse_vector.py",)
PARTIES = tuple(
    f"mechanisms/test_{name}.py" for name in ("noisy_descent", "aggregation", "psgd", "party_sensitivity")
)
SEARCH = ("privacy/test_search_privacy.py", "estimators/selection")
BOUGHT = (
    "mechanisms/test_quantile.py",
    "mechanisms/test_histogram.py",
    "statistics/discovery",
    "budget/test_split.py",
)
COUNTED = ("mechanisms/test_counts.py",)
MEASURED = ("statistics/evaluation/test_evaluate.py",)
SIMULATED = ("statistics/evaluation/test_metrics.py",)
DECIDED = ("release/test_decision.py",)
EVALUATE_JOBS = ("server/test_evaluate_jobs.py",)
SHARES = ("parties/test_noise_share.py", "parties/test_fixed_point.py")
MASKS = (
    "parties/test_mask_keys.py",
    "parties/test_masked_sum.py",
    "parties/test_masked_traffic.py",
    "parties/test_masking_refusals.py",
)
REACHED = ("solvers/test_certifiable.py",)
TRAININGS = ("server/test_jobs.py", "server/test_training.py")
GUEST_KINDS = ("extension/test_job_kind_guest.py",)
KERNEL_MODULES = ("extension/test_kernel_module.py",)
PAGES = ("server/pages/test_pages.py",)
KEYS = ("server/test_keys.py", "server/test_catalog.py")
LOGGED = ("server/test_log.py",)
SIGNED = ("server/test_signing.py",)
OPERATED = ("server/test_operating.py",)
PAGED = ("server/test_service.py", "server/test_paging.py")
WEAK = ("test_guarantee.py",)
WEAK_COMMANDS = ("cli/test_weak_privacy.py",)
WEAK_REQUESTS = ("server/test_weak_requests.py",)
CALLERS = ("estimators/test_callers.py",)
ROWS = ("data/test_cells.py", "data/test_hostile_tables.py", "data/test_schema.py")
LABELS = ("estimators/test_labels.py",)
PERSONS = ("data/test_persons.py", "data/test_template.py")
RUNS = ("parties/test_party_run.py", "parties/test_coordinator_run.py")
HOSTILE = ("parties/test_hostile_questions.py",)
WITNESS = ("parties/test_witness.py",)
COSTS = ("parties/test_run_budget.py",)
RESUMED = ("parties/test_resume.py",)
BLAMED = ("parties/test_opening.py",)
RECONNECTED = ("parties/test_reconnecting.py",)
LIARS = ("parties/test_lying_coordinator.py",)


@dataclass(frozen=True)
class Mutant:
    """A change of one piece of Python code.

    `address` is "module:qualified name" of the function, class or constant that contains the code ("module:" for the
    module itself). There `old` must match exactly once (see pattern.py); `new` takes its place, and an empty `new`
    removes it. One of `tests`, relative to the directory tests, must fail.
    """

    name: str
    address: str
    old: str
    new: str
    tests: tuple[str, ...]

    def file(self, root: Path) -> Path:
        """Return the file to change, in the repository or a copy of it."""
        path = root / "src" / self.address.split(":")[0].replace(".", "/")
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def matches(self, module: ast.Module) -> list[Site]:
        """Return where the pattern matches; exactly one position is expected."""
        return sites(module, self.address.split(":")[1], self.old, self.new)

    def planted(self, source: str) -> str:
        """Return the source with the defect, normalised: without comments and formatting."""
        module = ast.parse(source)
        positions = self.matches(module)
        if len(positions) != 1:
            raise LookupError(
                f"{self.name}: the pattern matches {len(positions)} times in {self.address}, not once"
            )
        return changed_source(module, positions[0])


@dataclass(frozen=True)
class TextMutant:
    """A change of text inside a file that is not Python, or inside a long string such as a generated SQL query.

    `path` is relative to the repository; `old` must occur exactly once in the file.
    """

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def file(self, root: Path) -> Path:
        return root / self.path

    def planted(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise LookupError(
                f"{self.name}: the text occurs {source.count(self.old)} times in {self.path}, not once"
            )
        return source.replace(self.old, self.new)


def scaled(name: str, address: str, old: str, tests: tuple[str, ...] = NOISE) -> Iterator[Mutant]:
    """Yield two mutants that halve and double the factor after the sign @ in `old`."""
    before, after = old.split("@")
    for word, factor in (("halved", 0.5), ("doubled", 2.0)):
        yield Mutant(f"{name} {word}", address, before + after, f"{before}{factor} * {after}", tests)
