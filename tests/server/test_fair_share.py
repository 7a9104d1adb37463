"""Turns: shared out fairly, given back, and never more than there is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from privlearn.server import Busy, TooLarge, TooMany
from privlearn.server.http import FairShare


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def test_lines_take_turns_and_none_has_more_than_half_while_it_asks_for_more() -> None:
    async def act() -> list[str]:
        turns, order, most = FairShare(4, "places"), [], 0
        inside: list[str] = []

        async def ask(name: str) -> None:
            nonlocal most
            async with turns.acquire(name):
                order.append(name)
                inside.append(name)
                most = max(most, inside.count("alice"))
                await asyncio.sleep(0.001)
                inside.remove(name)

        asking = [asyncio.create_task(ask("alice")) for _ in range(50)]
        await asyncio.sleep(0)
        asking += [asyncio.create_task(ask("bob")) for _ in range(2)]
        await asyncio.gather(*asking)
        assert most == 2
        return order

    order = run(act())
    assert order.count("bob") == 2
    assert "bob" in order[:4]


def test_what_is_too_much_is_refused_and_what_fits_exactly_is_not() -> None:
    async def act() -> None:
        turns = FairShare(10, "memory")
        async with turns.acquire("alice", 10):
            pass
        with pytest.raises(TooLarge, match="memory"):
            async with turns.acquire("alice", 11):
                pass

    run(act())


def test_who_waits_too_long_is_told_whose_fault_it_is() -> None:
    async def act() -> None:
        turns = FairShare(2, "places", timeout=0.01)
        async with turns.acquire("alice", 2):
            with pytest.raises(TooMany, match="your other requests"):
                async with turns.acquire("alice"):
                    pass
            with pytest.raises(Busy, match="in use"):
                async with turns.acquire("bob"):
                    pass
        async with turns.acquire("bob", 2):  # nothing was lost
            pass
        assert not turns._taken
        assert not turns._queues

    run(act())


def test_a_cancelled_wait_keeps_nothing() -> None:
    async def act() -> None:
        turns = FairShare(1, "places")

        async def ask() -> None:
            async with turns.acquire("bob"):
                pass

        async with turns.acquire("alice"):
            waiting = asyncio.create_task(ask())
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(1), turns.acquire("carol"):
            pass

    run(act())
