"""What a planted defect is, and the tests that are asked about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

NOISE = ("privacy/test_calibrated_noise.py", "mechanisms/test_noise.py")
EXACT = ("mechanisms/test_exact_noise.py",)
CENTRES = ("mechanisms/test_centring.py",)
SCORE_COUNTED = ("mechanisms/test_score_counts.py",)
CHOICES = ("mechanisms/test_selection.py",)
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
LEDGERS = ("ledger/test_arithmetic.py", "ledger/test_store.py", "ledger/test_sums.py")
ACCOUNTS = ("ledger/test_accounts.py",)
SHARED = ("ledger/test_postgresql_store.py", "ledger/test_processes.py")
UPGRADES = ("storage",)
QUESTIONS = ("mechanisms/test_tddl.py", "mechanisms/test_tdil.py")
TURNS = ("sessions/test_shared_session.py",)
OBJECTS = ("features/test_objects.py",)
SPANS = ("estimators/test_session_points.py",)
STATES = ("sessions/test_state.py",)
PATH_LAWS = ("mechanisms/test_function_release.py", "mechanisms/test_gaussian_path.py")
SESSIONS = ("mechanisms/test_sparse_vector.py",)
PARTIES = tuple(
    f"mechanisms/test_{name}.py" for name in ("noisy_descent", "aggregation", "psgd", "party_sensitivity")
)
SEARCH = ("privacy/test_search_privacy.py", "selection")
BOUGHT = ("mechanisms/test_quantile.py", "mechanisms/test_histogram.py", "discovery", "test_splitting.py")
COUNTED = ("mechanisms/test_counts.py",)
MEASURED = ("evaluation/test_evaluate.py",)
SIMULATED = ("evaluation/test_metrics.py",)
DECIDED = ("release/test_decision.py",)
EVALUATE_JOBS = ("service/test_evaluate_jobs.py",)
SHARES = ("multiparty/test_noise_share.py", "multiparty/test_fixed_point.py")
MASKS = (
    "multiparty/test_mask_keys.py",
    "multiparty/test_masked_sum.py",
    "multiparty/test_masked_traffic.py",
    "multiparty/test_masking_refusals.py",
)
REACHED = ("erm/test_certifiable.py",)
TRAININGS = ("service/test_jobs.py", "service/test_training.py")
GUEST_KINDS = ("extension/test_job_kind_guest.py",)
KERNEL_MODULES = ("extension/test_kernel_module.py",)
PAGES = ("service/pages/test_pages.py",)
KEYS = ("service/test_keys.py", "service/test_catalog.py")
LOGGED = ("service/test_log.py",)
SIGNED = ("service/test_signing.py",)
OPERATED = ("service/test_operating.py",)
PAGED = ("service/test_service.py", "service/test_paging.py")
WEAK = ("test_guarantee.py",)
WEAK_COMMANDS = ("cli/test_weak_privacy.py",)
WEAK_REQUESTS = ("service/test_weak_requests.py",)
CALLERS = ("estimators/test_callers.py",)
ROWS = ("data/test_cells.py", "data/test_hostile_tables.py", "data/test_schema.py")
LABELS = ("estimators/test_labels.py",)
PERSONS = ("data/test_persons.py", "data/test_template.py")
RUNS = ("multiparty/test_party_run.py", "multiparty/test_coordinator_run.py")
HOSTILE = ("multiparty/test_hostile_questions.py",)
WITNESS = ("multiparty/test_witness.py",)
COSTS = ("multiparty/test_purse.py",)
RESUMED = ("multiparty/test_resume.py",)
BLAMED = ("multiparty/test_opening.py",)
RECONNECTED = ("multiparty/test_reconnecting.py",)
LIARS = ("multiparty/test_lying_coordinator.py",)


@dataclass(frozen=True)
class Mutant:
    """A text in a source file, found exactly once, and what to put there; the tests that must notice, under tests/."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def scaled(name: str, file: str, old: str, tests: tuple[str, ...] = NOISE) -> Iterator[Mutant]:
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
