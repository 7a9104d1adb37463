"""Count the files of the source that five flows touch: the number of files a reader opens to follow one.

Each flow runs in a process of its own, with every library already imported, under a profiler that records the files of
the functions that are called. Run it by `python tools/house.py --flows`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def count_files() -> dict[str, int]:
    """Return the number of files that each flow touches."""
    counts = {}
    for name in FLOWS:
        command = [sys.executable, "-m", "tools.flows", name]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        counts[name] = len(json.loads(result.stdout.splitlines()[-1]))
    return counts


@contextmanager
def recorder() -> Any:
    """Collect the files of privlearn whose functions are called inside the block, in all threads."""
    import privlearn

    source, files = str(Path(privlearn.__file__).parent), dict[str, None]()

    def record(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(source) and frame.f_code.co_name != "<module>":
            files.setdefault(name[len(source) + 1 :])

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def fit() -> list[str]:
    """Fit a logistic regression on a table with a schema and a ledger."""
    from privlearn import Guarantee, Ledger, PrivateLogisticRegression
    from privlearn.data.datasets import census_schema, simulated_census

    table, directory = simulated_census(2000, seed=1), tempfile.mkdtemp()
    ledger = Ledger.create(f"{directory}/budget.db", "census", Guarantee(5.0, 1e-5))

    def once() -> None:
        PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=census_schema(), ledger=ledger).fit(table)

    return _files_of(once)


def train() -> list[str]:
    """Train from a CSV file in the shell."""
    import pyarrow.csv
    from typer.testing import CliRunner

    from privlearn.cli import app
    from privlearn.data.datasets import census_schema, simulated_census

    directory = Path(tempfile.mkdtemp())
    pyarrow.csv.write_csv(simulated_census(2000, seed=1), directory / "census.csv")
    census_schema().save(directory / "schema.yaml")
    words = [
        "train",
        str(directory / "census.csv"),
        "--schema",
        str(directory / "schema.yaml"),
        "--epsilon",
        "1",
    ]

    def once() -> None:
        result = CliRunner().invoke(
            app, [*words, "--delta", "1e-6", "--out", str(directory / "m.privlearn"), "--force"]
        )
        assert result.exit_code == 0, result.output

    return _files_of(once)


def job() -> list[str]:
    """Ask a server for a training by HTTP, and let it run the job."""
    from privlearn.server.holder.catalog import Catalogs
    from privlearn.server.holder.settings import Owner
    from privlearn.server.jobs import queue
    from privlearn.server.jobs.running import run_job
    from tests.support import served
    from tests.support.service_support import write_clinic

    owner = Owner.load(write_clinic(Path(tempfile.mkdtemp())))
    with recorder() as files, served.serving(owner, training=False) as running:
        catalogs = Catalogs(owner)

        def once() -> None:
            request = {"kind": "release", "dataset": "clinic", "epsilon": 0.1}
            answer = running.alice.post("/v1/jobs", json=request)
            assert answer.status_code == 202, answer.text
            claimed = queue.claim(running.store)
            assert claimed is not None
            assert not run_job(running.store, catalogs.now, claimed)

        once()
        files.clear()  # of the start; threads that were started under the recorder are recorded
        once()
        return list(files)


def verification() -> list[str]:
    """Verify a release file."""
    from privlearn import PrivateLogisticRegression, verify
    from privlearn.data.datasets import census_schema, simulated_census

    path = Path(tempfile.mkdtemp()) / "m.privlearn"
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, schema=census_schema())
    model.fit(simulated_census(2000, seed=1)).release_.save(path)
    return _files_of(lambda: verify(path))


def session() -> list[str]:
    """Answer one point of an interactive session."""
    import numpy as np

    from privlearn import Guarantee
    from privlearn.estimators.kernel_learner import KernelLearner
    from privlearn.sessions.interactive import InteractivePredictor

    rng, guarantee = np.random.default_rng(0), Guarantee(1.0, 1e-6)
    X = rng.normal(size=(200, 2))
    learner = KernelLearner(norm_bound=3.0, classes=[0, 1], guarantee=guarantee).fit(
        X, (X[:, 0] > 0).astype(int)
    )
    predictor = InteractivePredictor(learner, guarantee, state=f"{tempfile.mkdtemp()}/session.db")
    predictor.predict(X[:1])
    return _files_of(lambda: predictor.predict(rng.normal(size=(1, 2))), warm=False)


FLOWS: dict[str, Callable[[], list[str]]] = {
    "fit": fit,
    "shell train": train,
    "request and job": job,
    "verification": verification,
    "session answer": session,
}


def _files_of(flow: Callable[[], object], warm: bool = True) -> list[str]:
    """Return the files that a flow touches; run once before, so that caches and late imports do not count."""
    if warm:
        flow()
    with recorder() as files:
        flow()
    return list(files)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    print(json.dumps(FLOWS[sys.argv[1]]()))
