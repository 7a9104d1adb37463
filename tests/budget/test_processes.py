"""Several processes on one budget, and processes that die in the middle."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import pytest

from privlearn import Ledger
from privlearn.budget import Cost
from privlearn.errors import BudgetExceeded
from privlearn.guarantee import Guarantee
from tests.support.forked import child_context
from tests.support.raw_store import counted, execute, is_file

COST = Cost(Guarantee(0.01, 1e-8))


def spend_all(ledger: Ledger, worker: int) -> int:
    """Reserves until refused; every fifth reservation is given back. Returns how many were committed."""
    committed = 0
    for step in range(1000):
        try:
            reservation = ledger.reserve(COST, f"worker {worker}")
        except BudgetExceeded:
            break
        if step % 5 == 4:
            reservation.cancel()
        else:
            reservation.commit()
            committed += 1
    return committed


def race(ledger: Ledger, rivals: list[Ledger], start: Barrier, worker: int, results: Any) -> None:
    for rival in rivals:
        start.wait()
        with suppress(BudgetExceeded):
            rival.reserve(COST, f"worker {worker}")
    results.put(spend_all(ledger, worker))


def test_eight_processes_together_spend_no_more_than_there_is(store: str) -> None:
    """First they race for budgets that have room for one of them, then they use up a larger one."""
    ledger = Ledger.create(store, "census", Guarantee(0.6, 1e-6))
    rivals = [Ledger.create(store, f"race {number}", COST.guarantee) for number in range(12)]
    context = child_context()
    start, results = context.Barrier(8), context.Queue()
    workers = [context.Process(target=race, args=(ledger, rivals, start, n, results)) for n in range(8)]
    for worker in workers:
        worker.start()
    committed = sum(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0

    assert [counted(store, rival.dataset) for rival in rivals] == [Decimal("0.01")] * 12
    # A worker may be refused while another holds a reservation it gives back: then a little is left over.
    assert Decimal("0.5") <= counted(store, "census") <= Decimal("0.6")
    assert ledger.statement().spent.epsilon == pytest.approx(0.01 * committed)
    assert ledger.statement().reserved.epsilon == 0.0
    if is_file(store):
        assert execute(store, "PRAGMA integrity_check") == [("ok",)]


def spend_and_tell(ledger: Ledger, outside: Connection) -> None:
    """Every release is told after its cost is final, until there is no budget left."""
    with suppress(BudgetExceeded):
        while True:
            with ledger.reserve(COST, "a release") as reservation:
                reservation.commit()
            outside.send("released")


def test_one_of_eight_is_killed_and_the_others_use_up_the_rest(store: str) -> None:
    ledger = Ledger.create(store, "census", Guarantee(0.8, 1e-5))
    victim, told = start_child(compute_for_ever, ledger)
    assert told.recv() == "computing"
    others = [start_child(spend_and_tell, ledger) for _ in range(7)]
    assert others[0][1].poll(60), "the child never released anything"
    kill(victim)
    released = sum(received(outside) for _, outside in others)
    for child, _ in others:
        child.join()
        assert child.exitcode == 0
    assert counted(store, "census") == Decimal("0.8")
    assert released == 79, "every cost was released, but for the one that the victim had in hand"


def release_for_ever(ledger: Ledger, outside: Connection) -> None:
    """Reserve, compute, commit, and only then let the result out."""
    step = 0
    while True:
        with ledger.reserve(COST, "a release") as reservation:
            time.sleep(0.001)
            reservation.commit()
        outside.send(step)
        step += 1


def compute_for_ever(ledger: Ledger, outside: Connection) -> None:
    with ledger.reserve(COST, "a release"):
        outside.send("computing")
        time.sleep(3600)


def start_child(
    target: Callable[[Ledger, Connection], None], ledger: Ledger
) -> tuple[multiprocessing.Process, Connection]:
    context = child_context()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=target, args=(ledger, there))
    child.start()
    there.close()
    return child, here


def kill(child: multiprocessing.Process) -> None:
    child.kill()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def received(outside: Connection) -> int:
    """Messages that left the child before it died."""
    count = 0
    try:
        while True:
            outside.recv()
            count += 1
    except EOFError:
        return count
    finally:
        outside.close()


def test_killed_at_random_moments_nothing_left_that_was_not_paid(store: str) -> None:
    ledger = Ledger.create(store, "census", Guarantee(1000.0, 1e-3))
    chance = random.Random(2)
    released, children = 0, 25 if is_file(store) else 10
    for _ in range(children):
        child, outside = start_child(release_for_ever, ledger)
        assert outside.poll(60), "the child never released anything"
        time.sleep(chance.uniform(0.0, 0.04))
        kill(child)
        released += received(outside)

        statement = Ledger.open(ledger.store, "census").statement()
        assert released <= len([e for e in statement.entries if e.state == "committed"])
        assert Decimal(released) * Decimal("0.01") <= counted(store, "census")
    assert released >= children
    # A crash wastes at most what the dead process had reserved, or committed and not yet sent: one cost each.
    assert counted(store, "census") <= (released + children) * Decimal("0.01")
    ledger.reserve(COST, "after the crashes").commit()


def test_killed_while_computing_wastes_the_cost(store: str) -> None:
    ledger = Ledger.create(store, "census", Guarantee(0.01, 1e-6))
    child, outside = start_child(compute_for_ever, ledger)
    assert outside.recv() == "computing"
    kill(child)
    outside.close()
    assert ledger.statement().reserved.epsilon == 0.01
    with pytest.raises(BudgetExceeded):
        ledger.reserve(COST, "once more")


def test_killed_inside_a_transaction_changes_nothing(store: str) -> None:
    ledger = Ledger.create(store, "census", Guarantee(1.0, 1e-6))
    before = ledger.statement()
    child, outside = start_child(stop_inside_a_transaction, ledger)
    assert outside.recv() == "written"
    kill(child)
    outside.close()
    if is_file(store):
        assert os.path.exists(store + "-journal"), "the child died before it wrote to the file"
    assert ledger.statement() == before
    ledger.reserve(COST, "the lock is free again").commit()


def stop_inside_a_transaction(ledger: Ledger, outside: Connection) -> None:
    from privlearn.budget import tables as stores
    from privlearn.budget.reservation import append

    with stores.writing(ledger.store, "census") as connection:
        if is_file(ledger.store):
            connection.exec_driver_sql("PRAGMA cache_spill = ON")
            connection.exec_driver_sql("PRAGMA cache_size = 1")
        # In a file, more than fits into memory, so that pages reach it uncommitted.
        for number in range(2000 if is_file(ledger.store) else 2):
            append(
                connection,
                dataset="census",
                kind="reserved",
                reservation=str(number),
                epsilon=0.1,
                delta=0.0,
                account="",
            )
        outside.send("written")
        time.sleep(3600)
