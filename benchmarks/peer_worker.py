"""Fits one library's models, in that library's own environment: a split and jobs in, a line of JSON a job out.

    python peer_worker.py FOLDER LIBRARY < jobs.json      the split of seed 0 is FOLDER/0.npz

The only file that imports the peers. "seconds" is the processor time of ``fit`` alone, as other programs share
the machine. "peak_mb" is the whole process's largest resident size, the library and the same split included.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Job = dict[str, Any]
Split = Mapping[str, Any]
Predict = Callable[[Any], Any]


def privlearn(job: Job, split: Split) -> Predict:
    import privlearn as library

    settings = dict(job["settings"])
    if "total_regularization" in settings:
        settings["regularization"] = settings.pop("total_regularization") / len(split["y_train"])
    model = getattr(library, settings.pop("model", "PrivateLogisticRegression"))(
        epsilon=job["epsilon"],
        delta=job["delta"],
        neighbours=job["neighbours"],
        norm_bound=1.0,
        classes=[0, 1],
        fit_intercept=False,  # it is among the features
        random_state=job["seed"],
        **settings,
    )
    return model.fit(split["X_train"], split["y_train"]).predict  # type: ignore[no-any-return]


def diffprivlib(job: Job, split: Split) -> Predict:
    from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]

    model = LogisticRegression(
        epsilon=job["epsilon"],
        data_norm=1.0,
        fit_intercept=False,
        random_state=job["seed"],
        **job["settings"],
    )
    return model.fit(split["X_train"], split["y_train"]).predict  # type: ignore[no-any-return]


def interpret(job: Job, split: Split) -> Predict:
    from interpret.privacy import DPExplainableBoostingClassifier  # type: ignore[import-not-found]

    model = DPExplainableBoostingClassifier(
        epsilon=job["epsilon"],
        delta=job["delta"],
        feature_types=split["kinds"].tolist(),
        privacy_bounds=split["bounds"],
        random_state=job["seed"],
        n_jobs=1,
        **job["settings"],
    )
    return model.fit(split["X_train"], split["y_train"]).predict  # type: ignore[no-any-return]


def opacus(job: Job, split: Split) -> Predict:
    """DP-SGD with Poisson sampling; Opacus finds the noise for epsilon."""
    import torch  # type: ignore[import-not-found]
    from opacus import PrivacyEngine  # type: ignore[import-not-found]
    from torch.utils.data import DataLoader, TensorDataset  # type: ignore[import-not-found]

    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    settings = job["settings"]
    rows = TensorDataset(
        torch.tensor(split["X_train"], dtype=torch.float32),
        torch.tensor(split["y_train"], dtype=torch.float32),
    )
    model = torch.nn.Linear(rows.tensors[0].shape[1], 1, bias=False)  # the intercept is among the features
    torch.nn.init.zeros_(model.weight)
    model, optimizer, batches = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=settings["lr"]),
        data_loader=DataLoader(rows, batch_size=min(settings["batch"], len(rows) // 4)),
        target_epsilon=job["epsilon"],
        target_delta=job["delta"],
        epochs=settings["epochs"],
        max_grad_norm=settings["clip"],
    )
    for _ in range(settings["epochs"]):
        for features, labels in batches:
            optimizer.zero_grad()
            scores = model(features).flatten()
            torch.nn.functional.binary_cross_entropy_with_logits(scores, labels).backward()
            optimizer.step()
    weights = model._module.weight.detach().numpy().ravel()
    return lambda features: (features @ weights > 0).astype(int)


def scikit_learn(job: Job, split: Split) -> Predict:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(fit_intercept=False, max_iter=1000, **job["settings"])
    return model.fit(split["X_train"], split["y_train"]).predict  # type: ignore[no-any-return]


LIBRARIES: dict[str, Callable[[Job, Split], Predict]] = {
    "privlearn": privlearn,
    "diffprivlib": diffprivlib,
    "opacus": opacus,
    "interpret": interpret,
    "scikit-learn": scikit_learn,
}


def main(folder: str, library: str) -> None:
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)
    split, loaded = dict(np.load(Path(folder) / f"{jobs[0]['seed']}.npz")), jobs[0]["seed"]
    few = split | {name: split[name][:200] for name in ("X_train", "y_train")}
    LIBRARIES[library](jobs[0], few)  # imports are not part of a fit
    for job in jobs:
        if job["seed"] != loaded:
            split, loaded = dict(np.load(Path(folder) / f"{job['seed']}.npz")), job["seed"]
        print(json.dumps(job | answer(library, job, split)), flush=True)


def answer(library: str, job: Job, split: Split) -> dict[str, Any]:
    try:
        started = time.process_time()
        predict = LIBRARIES[library](job, split)
        seconds = time.process_time() - started
        error = float(np.mean(np.asarray(predict(split["X_test"])) != split["y_test"]))
    except Exception as problem:  # a cell that a library refuses is a result, too
        return {"refused": f"{type(problem).__name__}: {problem}"[:300]}
    return {"error": error, "seconds": round(seconds, 3), "peak_mb": peak_mb()}


def peak_mb() -> int:
    """From Linux's own count: getrusage's would include the process that started this one."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
