"""Processes of real runs killed with SIGKILL at random moments and started again: how the runs end, and what they cost.

    python -m benchmarks.killed_runs [--runs 100] [--seed 0]

Each run is three party processes and a coordinator, as from the shell, over TLS. One or two of them are killed, each a
random while after a random line of the coordinator's screen, and started again with the same command. After every run
it is checked that there is a release that verifies or an error in words on each screen, that no reservation is left,
that each party paid for every sum that it is in, and for no question that was not asked (tests/support/killed_runs.py).
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from tests.support.killed_runs import killed_run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    endings: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        with tempfile.TemporaryDirectory() as folder:
            try:
                ending = killed_run(Path(folder), seed)
                how = "release" if ending.release else "statement"
                told = ", ".join((*ending.kills, *([] if ending.release else [ending.words])))
            except AssertionError as error:
                how, told = "FAILED", str(error)
        endings[how] += 1
        print(f"{seed:4}  {how}: {told}", flush=True)
    print(", ".join(f"{count} {how}" for how, count in endings.items()))
    raise SystemExit(endings["FAILED"] > 0)


if __name__ == "__main__":
    main()
