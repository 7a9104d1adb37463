"""A long history: how long a reservation and every page take when the ledger has many entries.

    python benchmarks/ledger.py [--entries 100000] [--rounds 20] [--store postgresql://...]

A server's database is filled with so many paid trainings (two entries each: reserved, committed), half of them
releases and half sessions that were closed, by four analysts, as the server itself would have written them. Then
reservations are made in it, and every page and list is fetched over HTTP, a few at the end of the list too. Printed is
the median of the rounds, on the clock and of a processor (which a busy machine hardly changes); then the same with
1/100 of the entries.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from sqlalchemy import insert, select

from privlearn import Guarantee, Ledger
from privlearn.budget.composition import Amount, Cost
from privlearn.budget.storage import excluding, reading
from privlearn.budget.tables import entries, sums
from privlearn.budget.totals import WHOLE, PartTotals, totals_from_row, totals_to_columns
from privlearn.parties.listening import listen
from privlearn.server.access.keys import create_key
from privlearn.server.holder.settings import Owner
from privlearn.server.server import configuration, make_app
from privlearn.server.service import Service
from privlearn.server.store.tables import events, jobs, results
from privlearn.server.timing import as_text, now

ANALYSTS = ("alice", "bob", "carol", "dave")
BATCH = 5000
COST = Amount(0.001, 1e-12)
SCHEMA = """
name: clinic
columns:
  age: {type: number, lower: 0, upper: 120}
  sex: {type: category, values: [female, male]}
target: {name: state, classes: [ill, well]}
"""
OWNER = """
[limits]
requests_per_minute = 100000000
jobs_per_day = 100000000

[datasets.clinic]
table = "clinic.csv"
schema = "clinic.yaml"
epsilon = 100000.0
delta = 1e-3
training_seconds = 0.1
"""


def make_owner(folder: Path, store: str | None) -> Owner:
    rows = "".join(
        f"{20 + n % 60},{'female' if n % 2 else 'male'},{'ill' if n % 3 else 'well'}\n" for n in range(1000)
    )
    (folder / "clinic.csv").write_text("age,sex,state\n" + rows)
    (folder / "clinic.yaml").write_text(SCHEMA)
    server = f'[server]\nledger = "{store}"\n' if store else ""
    shares = "".join(
        f"\n[analysts.{name}]\nclinic = {{ epsilon = 50000.0, delta = 1e-4 }}\n" for name in ANALYSTS
    )
    (folder / "owner.toml").write_text(server + OWNER + shares)
    return Owner.load(folder / "owner.toml")


@contextmanager
def serving(owner: Owner) -> Iterator[tuple[str, Service]]:
    service = Service(owner)
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(configuration(make_app(service), owner))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", service
        finally:
            server.should_exit = True
            thread.join()


def made_by_the_server(url: str, key: str) -> dict[str, str]:
    """One of each kind, to be copied."""
    found = {}
    with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120) as client:
        for kind in ("release", "session"):
            asked = client.post(
                "/v1/jobs", json={"kind": kind, "dataset": "clinic", "epsilon": 0.5, "delta": 1e-9}
            )
            asked.raise_for_status()
            found[kind] = asked.json()["id"]
            while client.get(f"/v1/jobs/{found[kind]}?wait=20").json()["state"] not in ("done", "failed"):
                pass
    return found


def fill(store: str, models: dict[str, str], trainings: int) -> None:
    """Copies of those two, each with its entries, sums and lines of the log."""
    with reading(store) as connection:
        copied = {
            kind: (
                connection.execute(select(jobs).where(jobs.c.id == id)).one()._mapping,
                connection.execute(select(results).where(results.c.id == id)).one()._mapping,
            )
            for kind, id in models.items()
        }
        last_entry = connection.scalars(select(entries.c.id).order_by(entries.c.id.desc())).first() or 0
        standing = _standing(connection)
    rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in (jobs, results, entries, sums, events)}
    for number in range(trainings):
        kind, analyst, moment = ("release", "session")[number % 2], ANALYSTS[number % 4], as_text(now())
        job, result = (dict(row) for row in copied[kind])
        id = secrets.token_hex(8)
        rows[jobs].append(
            job
            | {"id": id, "analyst": analyst, "idempotency_key": None, "finished": moment, "created": moment}
        )
        rows[results].append(result | {"id": id, "closed": kind == "session"})
        for state in ("reserved", "committed"):
            last_entry += 1
            rows[entries].append(_entry(id, analyst, state, moment))
            for whose in (WHOLE, analyst):
                count, counted = standing.get(whose, (0, PartTotals()))
                standing[whose] = count + 1, counted.after(state, COST)
                named = {
                    "dataset": "clinic",
                    "account": whose,
                    "part": "",
                    "number": count + 1,
                    "entry": last_entry,
                }
                rows[sums].append(named | totals_to_columns(standing[whose][1]))
        rows[events].append(
            {"time": moment, "actor": analyst, "action": "asked", "dataset": "clinic", "details": {"job": id}}
        )
    for table, added in rows.items():
        for start in range(0, len(added), BATCH):
            with excluding(store, "data set clinic") as connection:  # so that nobody waits for long
                connection.execute(insert(table), added[start : start + BATCH])


def _standing(connection: Any) -> dict[str, tuple[int, PartTotals]]:
    found = connection.execute(select(sums).order_by(sums.c.number)).all()
    return {row.account: (row.number, totals_from_row(row)) for row in found}


def _entry(id: str, analyst: str, state: str, moment: str) -> dict[str, Any]:
    blank = dict.fromkeys(
        ("epsilon", "delta", "purpose", "schema_digest", "account", "part", "file_name", "note")
    )
    named = blank | {"dataset": "clinic", "reservation": id, "kind": state, "time": moment}
    if state == "reserved":
        texts = {"purpose": "a release", "schema_digest": "", "part": "", "file_name": "", "note": ""}
        named |= texts | {"epsilon": COST.epsilon, "delta": COST.delta, "account": analyst}
    return named


@dataclass(frozen=True)
class Time:
    """Milliseconds, medians: on the clock, and of a processor (of server and client together)."""

    clock: float
    processor: float


def median_ms(call: Callable[[], Any], rounds: int) -> Time:
    clocks, processors = [], []
    for _ in range(rounds):
        began, worked = time.perf_counter(), time.process_time()
        call()
        clocks.append(time.perf_counter() - began)
        processors.append(time.process_time() - worked)
    return Time(1000 * statistics.median(clocks), 1000 * statistics.median(processors))


PAGES = {
    "holder": ("/console", "/console/clinic", "/sessions", "/releases", "/log", "/keys"),
    "alice": ("/desk", "/desk/clinic", "/desk/clinic/train", "/sessions", "/releases"),
}
LISTS = (
    "/v1/jobs",
    "/v1/results",
    "/v1/results?kind=release",
    "/v1/results?kind=session",
    "/v1/datasets/clinic/budget",
)


def measure(url: str, service: Service, rounds: int) -> dict[str, Time]:
    store = service.store
    found = {}
    ledger = Ledger.open(store, "clinic").of_account("alice", Guarantee(50000.0, 1e-4))
    found["reserve"] = median_ms(lambda: ledger.reserve(Cost(Guarantee(0.001, 1e-12)), "a benchmark"), rounds)
    found["reserve and commit"] = median_ms(
        lambda: ledger.reserve(Cost(Guarantee(0.001, 1e-12)), "a benchmark").commit(), rounds
    )
    found["standing"] = median_ms(ledger.standing, rounds)
    keys = {"holder": create_key(store, "holder"), "alice": create_key(store, "analyst", "alice")}
    for who, key in keys.items():
        with httpx2.Client(base_url=url, timeout=120, headers={"Authorization": f"Bearer {key}"}) as client:
            for address in (*LISTS, *(("/v1/events", "/metrics") if who == "holder" else ())):
                found[f"{who} {address}"] = median_ms(partial(client.get, address), rounds)
        with httpx2.Client(base_url=url, timeout=120) as browser:
            browser.post("/sign-in", data={"key": key}, headers={"Sec-Fetch-Site": "same-origin"})
            last = f"/releases?before={_nearly_the_oldest(store, who)}"
            for address in (*PAGES[who], last):
                answer = browser.get(address)
                assert answer.status_code == 200, (address, answer.status_code)
                found[f"{who} {address.partition('=')[0]}"] = median_ms(partial(browser.get, address), rounds)
    with httpx2.Client(
        base_url=url, headers={"Authorization": f"Bearer {keys['alice']}"}, timeout=120
    ) as client:
        body = {"dataset": "clinic", "epsilon": 0.01, "delta": 1e-10}
        found["alice POST /v1/jobs"] = median_ms(
            lambda: client.post("/v1/jobs", json={"kind": "release"} | body).raise_for_status(),
            min(rounds, 5),
        )
    return found


def _nearly_the_oldest(store: str, who: str) -> str:
    """Id of a release near the end of the list."""
    query = select(jobs.c.id).where(jobs.c.kind == "release").order_by(jobs.c.finished).limit(1).offset(30)
    if who != "holder":
        query = query.where(jobs.c.analyst == who)
    with reading(store) as connection:
        return str(connection.scalar(query))


def run(count: int, rounds: int, store: str | None) -> dict[str, Time]:
    with tempfile.TemporaryDirectory() as folder:
        owner = make_owner(Path(folder), store)
        with serving(owner) as (url, service):
            models = made_by_the_server(url, create_key(service.store, "analyst", "alice"))
            fill(service.store, models, count // 2)
            found = measure(url, service, rounds)
            found["check of every sum"] = median_ms(Ledger.open(service.store, "clinic").check, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--store", help="an empty PostgreSQL database; then without the short run")
    chosen = parser.parse_args()
    long = show(chosen.entries, run(chosen.entries, chosen.rounds, chosen.store))
    if not chosen.store:
        fewer = max(chosen.entries // 100, 2)
        short = show(fewer, run(fewer, chosen.rounds, None))
        ratio = max(long[name].processor / short[name].processor for name in ("reserve", "standing"))
        print(f"reserving and standing take {ratio:.1f} times the processor of a short history, at most")


def show(count: int, found: dict[str, Time]) -> dict[str, Time]:
    print(f"{f'{count:,} entries':34} {'ms':>10} {'processor':>10}")
    for name, one in found.items():
        print(f"{name:34} {one.clock:10.1f} {one.processor:10.1f}")
    pages = [one for name, one in found.items() if " /" in name and "POST" not in name]
    slowest = (max(getattr(one, name) for one in pages) for name in ("clock", "processor"))
    print("slowest page or list: {:.0f} ms, {:.0f} ms of a processor\n".format(*slowest), flush=True)
    return found


if __name__ == "__main__":
    main()
