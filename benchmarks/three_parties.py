"""Party processes and a coordinator on Adult, split 5, 25 and 70 %, against one holder of all: test error.

    PRIVLEARN_DATA=... python benchmarks/three_parties.py [--loss logistic|huber_hinge] [--seed 0] [--kill]

Everything is started as from a shell: keys, ledgers, `privlearn coordinate` and three times `privlearn party`, over TLS
on this machine's loopback. With --kill the plan allows one dropout, for which there must be four parties, and the
largest is killed mid-run. The single holder uses objective perturbation, the product's default, on the same split;
noise is secure, so figures vary.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from privlearn import PrivateLogisticRegression, PrivateSVC, Schema
from privlearn.data.datasets import load_adult
from privlearn.release import Release

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
EPSILON, DELTA = 1.0, 1e-5
THREE = {"east": 0.05, "north": 0.25, "west": 0.70}
FOUR = {"east": 0.05, "north": 0.15, "south": 0.10, "west": 0.70}
SINGLE = {"logistic": PrivateLogisticRegression, "huber_hinge": PrivateSVC}


def privlearn(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "privlearn", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def start(folder: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("wb") as log:
        command = [sys.executable, "-m", "privlearn", *arguments]
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)


def prepare(folder: Path, parts: dict[str, Any], loss: str, dropouts: int) -> int:
    """Tables, keys, ledgers, the plan and each party's settings; returns the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    Schema.load(SCHEMA).save(folder / "adult.schema.yaml")
    keys = privlearn(folder, "identity", "coordinator", "--host", "127.0.0.1")
    for name, part in parts.items():
        pyarrow.parquet.write_table(part, folder / f"{name}.parquet")
        keys += privlearn(folder, "identity", name)
        budget = ["--ledger", f"{name}.ledger", "--epsilon", str(EPSILON), "--delta", str(DELTA)]
        privlearn(folder, "budget", "create", "adult", *budget)
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nplan = "plan.toml"\nidentity = "{name}.key"\n'
            f'coordinator = "127.0.0.1:{port}"\ncertificate = "coordinator.crt"\n'
            f'ledger = "{name}.ledger"\ndataset = "adult"\nmax_epsilon = {EPSILON}\nmax_delta = {DELTA}\n'
        )
    (folder / "plan.toml").write_text(
        f'schema = "adult.schema.yaml"\nepsilon = {EPSILON}\ndelta = {DELTA}\nloss = "{loss}"\ndropouts = {dropouts}\n'
        "[parties]\n"
        + "".join(f"{name} = {part.num_rows}\n" for name, part in parts.items())
        + f"[keys]\n{keys}"
    )
    return port


def run(folder: Path, names: Iterable[str], port: int, killed: str | None) -> Release:
    lead = start(folder, "coordinator", "coordinate", "plan.toml", "--port", str(port))
    parties = {
        name: start(folder, name, "party", f"{name}.toml", "--data", f"{name}.parquet") for name in names
    }
    if killed is not None:
        while "Answered question 3" not in (folder / f"{killed}.log").read_text():
            time.sleep(0.05)
        parties[killed].kill()
    code = lead.wait()
    print((folder / "coordinator.log").read_text(), end="")
    codes = {name: party.wait() for name, party in parties.items()}
    print(f"exit codes: coordinator {code}, parties {codes}")
    return Release.load(folder / "plan.privlearn")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loss", choices=SINGLE, default="logistic")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    chosen = parser.parse_args()
    table, schema = load_adult(), Schema.load(SCHEMA)
    order = np.random.default_rng(chosen.seed).permutation(table.num_rows)
    train, test = np.split(order, [int(0.8 * len(order))])
    fractions = FOUR if chosen.kill else THREE
    cuts = np.cumsum([int(fraction * len(train)) for fraction in list(fractions.values())[:-1]])
    parts = {name: table.take(rows) for name, rows in zip(fractions, np.split(train, cuts), strict=True)}
    held_out = table.take(test)
    truth = np.array(held_out[schema.target.name].to_pylist())  # type: ignore[union-attr]
    single = SINGLE[chosen.loss](epsilon=EPSILON, delta=DELTA, schema=schema).fit(table.take(train))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        port = prepare(folder, parts, chosen.loss, dropouts=int(chosen.kill))
        release = run(folder, parts, port, "west" if chosen.kill else None)
    error = float(np.mean(release.model.predict(held_out) != truth))
    print(f"{len(parts)} parties {error:.4f}, single holder {1 - single.score(held_out, truth):.4f}", end="")
    print(f" ({chosen.loss}, epsilon {EPSILON:g}, delta {DELTA:g}); {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
