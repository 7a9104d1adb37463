"""Two workers over TLS on this machine against one process: seconds, passes, what a pass costs beside its work.

    python benchmarks/cluster.py                # 10^5 rows
    python benchmarks/cluster.py 2e2 1e5 1e6

Simulated census rows (seven columns) in a Parquet file per 125,000 of them, in a folder that is deleted at the end.
With few rows a pass is all overhead: messages, scheduling, encryption. Bytes are those that the caller sends and
receives, before encryption.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).parents[1]))

from privlearn import Cluster, PrivateLogisticRegression
from privlearn.data import open_records
from privlearn.data.datasets import census_schema, simulated_census
from privlearn.estimators.cluster.remote_rows import RemoteRows
from tests.support.dask_cluster import running_cluster

PIECE = 125_000


def write(folder: Path, rows: int) -> None:
    folder.mkdir()
    for start in range(0, rows, PIECE):
        people = simulated_census(min(PIECE, rows - start), seed=start)
        parquet.write_table(people, folder / f"{start:012}.parquet")


def fitted(rows: Any) -> tuple[float, PrivateLogisticRegression]:
    model = PrivateLogisticRegression(schema=census_schema(), epsilon=1.0, delta=1e-9, random_state=0)
    start = time.perf_counter()
    model.fit(rows)
    return time.perf_counter() - start, model


@contextmanager
def counted() -> Iterator[dict[str, float]]:
    """Passes over the rows and their seconds, bytes that the caller sends and receives."""
    from distributed.comm import tcp

    found = {"load": 0.0, "passes": 0, "seconds": 0.0, "bytes": 0}
    load, total, to_frames, from_frames = RemoteRows.load, RemoteRows.total, tcp.to_frames, tcp.from_frames

    def loaded(held: RemoteRows) -> None:
        start = time.perf_counter()
        load(held)
        found["load"] = time.perf_counter() - start
        found["bytes"] = 0  # of passes alone

    def summed(held: RemoteRows, *question: Any) -> list[Any]:
        start = time.perf_counter()
        answer = total(held, *question)
        found["seconds"] += time.perf_counter() - start
        found["passes"] += 1
        return answer

    async def sent(*message: Any, **settings: Any) -> Any:
        frames = await to_frames(*message, **settings)
        found["bytes"] += sum(memoryview(frame).nbytes for frame in frames)
        return frames

    async def received(frames: Any, **settings: Any) -> Any:
        found["bytes"] += sum(memoryview(frame).nbytes for frame in frames)
        return await from_frames(frames, **settings)

    RemoteRows.load, RemoteRows.total, tcp.to_frames, tcp.from_frames = loaded, summed, sent, received  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        RemoteRows.load, RemoteRows.total = load, total  # type: ignore[method-assign]
        tcp.to_frames, tcp.from_frames = to_frames, from_frames


def compare(cluster: Cluster, folder: Path, rows: int) -> str:
    here, known = fitted(open_records(folder, census_schema()))
    with counted() as found:
        there, model = fitted(cluster.open_records(folder))
    apart = float(np.linalg.norm(model.coefficients_ - known.coefficients_))
    passes = int(found["passes"])
    return (
        f"| {rows:,} | {here:.1f} | {there:.1f} | {found['load']:.1f} | {passes} | "
        f"{1e3 * found['seconds'] / passes:.0f} | {found['bytes'] / passes / 1e3:.0f} | {apart:.1g} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", type=float, default=[1e5])
    sizes = [int(rows) for rows in parser.parse_args().rows]
    print(
        "| rows | one process, s | two workers, s | reading, s | passes | ms per pass | kB per pass | apart |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as name,
        running_cluster(Path(name)) as running,
        running.connect() as cluster,
    ):
        write(Path(name) / "first", 200)
        fitted(cluster.open_records(Path(name) / "first"))  # workers import what they need
        for rows in sizes:
            write(Path(name) / str(rows), rows)
            print(compare(cluster, Path(name) / str(rows), rows), flush=True)


if __name__ == "__main__":
    main()
