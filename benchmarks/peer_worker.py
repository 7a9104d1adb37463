"""Fits one library's models, in that library's own environment: a split and jobs in, a line of JSON per job out.

    python peer_worker.py FOLDER LIBRARY < jobs.json      the split of seed 0 is FOLDER/0.npz

The only file that imports the peers. Error and area under the ROC curve are of the model's scores, log-loss is of its
probabilities, if it has them. "seconds" is the processor time of ``fit`` alone, as other programs share
the machine. "peak_mb" is the whole process's largest resident size, the library and the same split included.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Job = dict[str, Any]
Split = Mapping[str, Any]
EXAMPLES = Path(__file__).parent.parent / "examples"
LEAST_PROBABILITY = 1e-15
"""Log-loss would be infinite after one certain and wrong answer."""


class Fitted(NamedTuple):
    """What a model says about rows: a score (or one per class), and probabilities of the classes if it has them."""

    scores: Callable[[Any], Any]
    probabilities: Callable[[Any], Any] | None


def fitted(model: Any, *rows: Any) -> Fitted:
    """A model with scikit-learn's interface."""
    model.fit(*rows)
    return Fitted(model.decision_function, getattr(model, "predict_proba", None))


def privlearn(job: Job, split: Split) -> Fitted:
    import privlearn as library

    settings = dict(job["settings"])
    kind = getattr(library, settings.pop("model", "PrivateLogisticRegression"))
    settings |= {name: job[name] for name in ("epsilon", "delta", "neighbours")} | {
        "random_state": job["seed"]
    }
    if job["encoding"] == "table":
        schema = library.Schema.load(EXAMPLES / f"{job['data']}.schema.yaml")
        return fitted(kind(schema=schema, **settings), split["X_train"])
    classes = list(range(split["classes"]))
    model = kind(norm_bound=1.0, classes=classes, **settings)
    return fitted(model, split["X_train"], split["y_train"])


def diffprivlib(job: Job, split: Split) -> Fitted:
    from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]

    model = LogisticRegression(
        epsilon=job["epsilon"],
        data_norm=1.0,
        fit_intercept=False,
        random_state=job["seed"],
        **job["settings"],
    )
    return fitted(model, split["X_train"], split["y_train"])


def interpret(job: Job, split: Split) -> Fitted:
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
    return fitted(model, split["X_train"], split["y_train"])


def opacus(job: Job, split: Split) -> Fitted:
    """DP-SGD with Poisson sampling; Opacus finds the noise for epsilon."""
    import torch  # type: ignore[import-not-found]
    from opacus import PrivacyEngine  # type: ignore[import-not-found]
    from torch.utils.data import DataLoader, TensorDataset  # type: ignore[import-not-found]

    class Rows(TensorDataset):  # type: ignore[misc]
        """A batch at once: one row at a time takes most of the time of a small model."""

        def __getitems__(self, numbers: list[int]) -> list[Any]:
            return [tensor[numbers] for tensor in self.tensors]

    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    settings, classes = job["settings"], int(split["classes"])
    rows = Rows(
        torch.tensor(split["X_train"], dtype=torch.float32),
        torch.tensor(split["y_train"], dtype=torch.long if classes > 2 else torch.float32),
    )
    outputs = classes if classes > 2 else 1
    model = torch.nn.Linear(
        rows.tensors[0].shape[1], outputs, bias=False
    )  # the intercept is among the features
    torch.nn.init.zeros_(model.weight)
    functional = torch.nn.functional
    loss = functional.cross_entropy if classes > 2 else functional.binary_cross_entropy_with_logits
    model, optimizer, batches = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=settings["lr"]),
        data_loader=DataLoader(rows, min(settings["batch"], len(rows) // 4), collate_fn=lambda batch: batch),
        target_epsilon=job["epsilon"],
        target_delta=job["delta"],
        epochs=settings["epochs"],
        max_grad_norm=settings["clip"],
    )
    for _ in range(settings["epochs"]):
        for features, labels in batches:
            optimizer.zero_grad()
            loss(model(features).squeeze(1), labels).backward()
            optimizer.step()
    weights = model._module.weight.detach().numpy().astype(float)
    return Fitted(
        lambda features: features @ weights.T,
        lambda features: softmax(per_class(features @ weights.T)),
    )


def scikit_learn(job: Job, split: Split) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(fit_intercept=False, max_iter=1000, **job["settings"])
    return fitted(model, split["X_train"], split["y_train"])


LIBRARIES: dict[str, Callable[[Job, Split], Fitted]] = {
    "privlearn": privlearn,
    "diffprivlib": diffprivlib,
    "opacus": opacus,
    "interpret": interpret,
    "scikit-learn": scikit_learn,
}


def main(folder: str, library: str) -> None:
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)
    split, loaded = read_split(Path(folder), jobs[0]["seed"]), jobs[0]["seed"]
    few = split | {name: split[name][:200] for name in ("X_train", "y_train")}
    LIBRARIES[library](jobs[0], few)  # imports are not part of a fit
    for job in jobs:
        if job["seed"] != loaded:
            split, loaded = read_split(Path(folder), job["seed"]), job["seed"]
        print(json.dumps(job | answer(library, job, split)), flush=True)


def read_split(folder: Path, seed: int) -> dict[str, Any]:
    """Vectors and labels; the rows of a table are files of their own."""
    split: dict[str, Any] = dict(np.load(folder / f"{seed}.npz"))
    for file in folder.glob(f"{seed}.*.feather"):
        from pyarrow import feather

        split[file.name.split(".")[1]] = feather.read_table(file)
    return split


def answer(library: str, job: Job, split: Split) -> dict[str, Any]:
    try:
        started = time.process_time()
        model = LIBRARIES[library](job, split)
        seconds = time.process_time() - started
        quality = judged(model, split)
    except Exception as problem:  # a cell that a library refuses is a result, too
        return {"refused": f"{type(problem).__name__}: {problem}"[:300]}
    return quality | {"seconds": round(seconds, 3), "peak_mb": peak_mb()}


def judged(model: Fitted, split: Split) -> dict[str, float]:
    """Error, AUC (the mean over the classes, each against the rest) and log-loss on the test rows."""
    truth = np.asarray(split["y_test"])
    scores = per_class(model.scores(split["X_test"]))
    quality = {
        "error": float(np.mean(scores.argmax(axis=1) != truth)),
        "auc": float(np.mean([auc(column, truth == label) for label, column in enumerate(scores.T)])),
    }
    if model.probabilities is not None:
        chances = np.asarray(model.probabilities(split["X_test"]))[np.arange(len(truth)), truth]
        quality["log_loss"] = float(-np.mean(np.log(np.clip(chances, LEAST_PROBABILITY, 1.0))))
    return quality


def per_class(scores: Any) -> Any:
    """One column per class, of two classes as well."""
    column = np.asarray(scores, dtype=float).reshape(len(scores), -1)
    return np.hstack([-column / 2, column / 2]) if column.shape[1] == 1 else column


def softmax(scores: Any) -> Any:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def auc(scores: Any, positive: Any) -> float:
    """How often a positive row's score is above a negative one's, ties counting half."""
    values, group = np.unique(scores, return_inverse=True)
    here = np.bincount(group[positive], minlength=len(values))
    others = np.bincount(group[~positive], minlength=len(values))
    below = np.cumsum(others) - others
    return float(here @ (below + others / 2) / (here.sum() * others.sum()))


def peak_mb() -> int:
    """From Linux's own count: getrusage's would include the process that started this one."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024)


if __name__ == "__main__":
    main(*sys.argv[1:])
