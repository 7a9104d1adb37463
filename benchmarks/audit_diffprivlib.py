"""Point the audit at diffprivlib 0.6.6: does it find what is wrong there?

    python benchmarks/audit_diffprivlib.py              some 15,000 fits, minutes
    python benchmarks/audit_diffprivlib.py --runs 1000  quicker, weaker bounds

diffprivlib goes into a virtual environment of its own, .venv-peers/diffprivlib, made on the first run; this file is
also the worker that fits there. Exits with 1 unless the known defects are found and settings without them pass.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from peer_environments import peer_python

LARGE_NORM = 100.0


def main(runs: int) -> int:
    from privlearn import Guarantee
    from privlearn.audit import audit_fits

    python = peer_python("diffprivlib")

    def audited(subject: str, parameters: dict[str, Any], **settings: Any) -> Any:
        facts = {"norm_bound": parameters["data_norm"], "seed": 1} | settings
        report = audit_fits(_fits(python, parameters), Guarantee(1.0), subject=subject, **facts)
        print(report, "\n", flush=True)
        return {finding.check for finding in report.failures}

    sound = {"epsilon": 1.0, "data_norm": 1.0, "fit_intercept": False, "n_jobs": 1}
    few = {"labels": (0, 1, 2), "runs": 64}
    found = [
        audited("diffprivlib, data_norm 1", sound, runs=max(64, runs // 4)),
        audited(f"diffprivlib, data_norm {LARGE_NORM:g}", sound | {"data_norm": LARGE_NORM}, runs=runs),
        audited("diffprivlib, three classes, one worker", sound, **few),
        audited("diffprivlib, three classes, two workers", sound | {"n_jobs": 2}, **few),
        audited("diffprivlib, two workers, no seed", sound | {"n_jobs": 2, "random_state": None}, **few),
    ]
    print(f"exact epsilon at data_norm {LARGE_NORM:g}, row silenced: {exact_epsilon(LARGE_NORM):.3f}")
    refuted, shared = {"empirical epsilon"}, {"independent noise"}
    return 0 if found == [set(), refuted, set(), refuted | shared, shared | {"fresh noise"}] else 1


def exact_epsilon(norm: float, epsilon: float = 1.0, strength: float = 1.0) -> float:
    """Largest privacy loss of its output in one dimension, from its own constants (mechanisms/vector.py)."""
    from privlearn.audit.densities import Grid, objective_densities
    from privlearn.audit.neighbours import Pair, Records
    from privlearn.mechanisms import Task
    from privlearn.solvers import Logistic

    total, left = 5, epsilon - 2.0 * math.log1p(0.25 * norm / strength)
    if left <= 0:
        strength, left = 0.25 * norm / math.expm1(epsilon / 4.0), epsilon / 2.0
    mechanism = SimpleNamespace(
        task=Task(Logistic(), total, 1, 1, strength / total, 1e-10, "replace_one"),
        effective_regularization=strength / total,
        noise="norm_gamma",
        noise_scale=2.0 * norm / left,
    )
    pair = Pair("row silenced", Records.of(np.array([[norm]])), Records.of(np.array([[0.0]])))
    return objective_densities(mechanism, pair, Grid.around(np.zeros(1), 20.0, 400_001)).worst_loss


def _fits(python: Path, parameters: dict[str, Any]) -> Any:
    """Fit in the other environment, all seeds in one process: one row of coefficients per class."""

    def fits(X: Any, y: Any, seeds: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            asked, answered = Path(folder) / "asked.npz", Path(folder) / "answered.npy"
            np.savez(asked, X=X, y=y, seeds=seeds, parameters=json.dumps(parameters))
            command = [str(python), __file__, "--worker", str(asked), str(answered)]
            subprocess.run(command, check=True)
            return np.load(answered)

    return fits


def work(asked: Path, answered: Path) -> None:
    """In diffprivlib's environment: fit once for each seed."""
    import warnings

    from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]

    warnings.simplefilter("ignore")
    given = np.load(asked)
    parameters = json.loads(str(given["parameters"]))
    coefficients = []
    for seed in given["seeds"].tolist():
        model = LogisticRegression(**({"random_state": seed} | parameters))
        coefficients.append(model.fit(given["X"], given["y"]).coef_)
    np.save(answered, np.array(coefficients))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4000, help="fits on each of two neighbours")
    parser.add_argument("--worker", nargs=2, type=Path, metavar=("ASKED", "ANSWERED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(*options.worker)
    else:
        raise SystemExit(main(options.runs))
