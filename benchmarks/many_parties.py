"""Many parties: as real processes over TLS on this machine, or all in one process.

    python -m benchmarks.many_parties --parties 20 [--rows 200] [--rounds 2]
    python -m benchmarks.many_parties --simulated 1000 [--numbers 100]

Real: a coordinator and so many party processes, each with its own key, table and ledger; says how long starting took,
how long the run, and the processor time and memory. All are forked from one process that has loaded the libraries, so
that a machine holds many: what a process has for itself is its private memory. Simulated: one round of the secure sum
with so many parties and the coordinator in this process, without network; says the processor time of set-up and round,
of all of them together.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet

from privlearn import Schema
from privlearn.budget.ledger import Ledger
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.guarantee import Guarantee
from privlearn.parties import Cohort, NoiseShare
from privlearn.parties.run.identity import COORDINATOR_NAME, Identity, write_certificate
from tests.support.killed_runs import ForkedCommand
from tests.support.secure_sum import SecureSum

PROMISE = Guarantee(2.0, 1e-5)


def prepare(folder: Path, names: list[str], rows: int, rounds: int) -> int:
    """Tables, keys, ledgers, the plan and each party's settings; returns the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    schema: Schema = census_schema()
    schema.save(folder / "census.yaml")
    write_certificate(folder / "coordinator.crt", folder / "coordinator.tls.key", ["127.0.0.1"])
    identities = {name: Identity.generate() for name in (COORDINATOR_NAME, *names)}
    for name, identity in identities.items():
        identity.write(folder / f"{name}.key")
    for seed, name in enumerate(names):
        pyarrow.parquet.write_table(simulated_census(rows, seed=seed), folder / f"{name}.parquet")
        Ledger.create(folder / f"{name}.ledger", schema.name, PROMISE)
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nplan = "plan.toml"\nidentity = "{name}.key"\ncoordinator = "127.0.0.1:{port}"\n'
            f'certificate = "coordinator.crt"\nledger = "{name}.ledger"\nmax_epsilon = 2.0\nmax_delta = 1e-5\n'
            "wait_seconds = 3600\ntimeout_seconds = 3600\n"
        )
    (folder / "plan.toml").write_text(
        f'schema = "census.yaml"\nepsilon = 2.0\ndelta = 1e-5\nrounds = {rounds}\n[parties]\n'
        + "".join(f"{name} = {rows}\n" for name in names)
        + "[keys]\n"
        + "".join(f'{name} = "{identity.public}"\n' for name, identity in identities.items())
    )
    return port


def started(folder: Path, name: str, *arguments: str) -> ForkedCommand:
    return ForkedCommand(folder, list(arguments), folder / f"{name}.log")


@dataclass
class Use:
    """What a process has used so far, by the system's own account."""

    processor: float = 0.0
    private: float = 0.0

    def look(self, pid: int) -> None:
        """Look again, unless it has ended."""
        try:
            times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
            memory = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (OSError, IndexError):
            return
        kilobytes = sum(int(line.split()[1]) for line in memory if line.startswith("Private_"))
        self.processor = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
        self.private = max(self.private, kilobytes / 1024)


def real(parties: int, rows: int, rounds: int) -> None:
    names = [f"party{number}" for number in range(parties)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        port = prepare(folder, names, rows, rounds)
        began, signed = time.monotonic(), 0.0
        waits = ("--wait", "3600", "--timeout", "600")
        lead = started(folder, "coordinator", "coordinate", "plan.toml", "--port", str(port), *waits)
        others = [
            started(folder, name, "party", f"{name}.toml", "--data", f"{name}.parquet") for name in names
        ]
        log, used = folder / "coordinator.log", {process.pid: Use() for process in (lead, *others)}
        while lead.poll() is None:
            for pid, use in used.items():
                use.look(pid)
            if not signed and "signed the plan" in log.read_text():
                signed = time.monotonic() - began
            time.sleep(0.2)
        codes = [lead.wait(), *(party.wait() for party in others)]
        print(log.read_text(), end="")
    coordinator, *each = used.values()
    print(
        f"{parties} party processes: exit codes {sorted(set(codes))}; {signed:.0f} s until all had signed, "
        f"{time.monotonic() - began - signed:.0f} s from there to the end. Per party "
        f"{statistics.mean(use.processor for use in each):.1f} s of processor time and at most "
        f"{max(use.private for use in each):.0f} MB of its own; coordinator {coordinator.processor:.1f} s and "
        f"{coordinator.private:.0f} MB"
    )


def simulated(parties: int, numbers: int) -> None:
    cohort = Cohort(parties, dropouts=min(5, parties // 10), colluding=parties // 10)
    encoding = NoiseShare(1.0, cohort).encoding(bound=1.0)
    vector = encoding.encode(np.linspace(-1.0, 1.0, numbers))
    began = time.process_time()
    summation = SecureSum(cohort, numbers)
    set_up = time.process_time()
    total = encoding.decode(summation.total(dict.fromkeys(range(parties), vector)))
    ended = time.process_time()
    np.testing.assert_allclose(total, parties * np.linspace(-1.0, 1.0, numbers), atol=1e-6)
    print(
        f"{parties} parties in one process, {numbers} numbers: set-up {set_up - began:.0f} s, a round "
        f"{ended - set_up:.1f} s; per party {1e3 * (set_up - began) / parties:.0f} ms and "
        f"{1e3 * (ended - set_up) / parties:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parties", type=int, help="real processes")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--simulated", type=int, help="parties in one process")
    parser.add_argument("--numbers", type=int, default=100)
    chosen = parser.parse_args()
    if chosen.parties:
        real(chosen.parties, chosen.rows, chosen.rounds)
    if chosen.simulated:
        simulated(chosen.simulated, chosen.numbers)


if __name__ == "__main__":
    main()
