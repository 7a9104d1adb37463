"""A kind of job, defined here and named in the holder's file, is asked for, paid, done and shown like the others."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from markupsafe import Markup
from pydantic import Field, JsonValue

from privlearn import Ledger
from privlearn.accounting import pure_renyi
from privlearn.client import Client, TrainingFailed
from privlearn.data import Schema
from privlearn.errors import BudgetExceeded, DataError, InvalidParameter, SchemaError
from privlearn.guarantee import Guarantee
from privlearn.mechanisms.noise import add_laplace
from privlearn.randomness import SecureRandomness
from privlearn.server import Conflict, NotFound
from privlearn.server.api import requests
from privlearn.server.holder import Catalog, OfferedDataSet, Owner
from privlearn.server.job_kinds import (
    JOB_KINDS,
    JobContext,
    JobFields,
    JobKind,
    PersonRows,
    Result,
    load_job_kinds,
    register_job_kind,
)
from privlearn.server.jobs import JobRequest, ResultInfo, queue, results
from privlearn.server.jobs import running as training
from privlearn.server.store import open_store
from tests.support.cli_support import Run
from tests.support.served import Served, serving
from tests.support.service_support import write_clinic

PLACE = f"{__name__}:Count"
ILL: dict[str, Any] = {"column": "outcome", "value": "ill"}


class CountFields(JobFields):
    """The records to count."""

    column: str = Field(max_length=64, description="A column of the schema.")
    value: str = Field(max_length=64, description="The value that is counted.")


@dataclass(frozen=True)
class LaplaceCount:
    """A person changes a count by at most 1 (`PersonRows`), so Laplace noise of scale 1/epsilon is epsilon-private."""

    guarantee: Guarantee
    name: ClassVar[str] = "laplace_count"

    @property
    def noise_scale(self) -> float:
        return 1.0 / self.guarantee.epsilon

    def renyi(self, order: float) -> float:
        return pure_renyi(self.guarantee.epsilon, order)


class Count(JobKind[CountFields, LaplaceCount]):
    """How many records have a value."""

    name: ClassVar[str] = "count"
    title: ClassVar[str] = "a noisy count"
    about: ClassVar[str] = "How many records have a value, with noise."
    fields = CountFields
    example: ClassVar[Mapping[str, JsonValue]] = {"column": "sex", "value": "female"}

    def calibrate(self, context: JobContext[CountFields]) -> LaplaceCount:
        schema = context.offered.schema
        known = {*schema.columns, *([schema.target.name] if schema.target else ())}
        if context.fields.column not in known:
            raise InvalidParameter(f"column must be one of {', '.join(sorted(known))}")
        return LaplaceCount(Guarantee(context.guarantee.epsilon, 0.0, context.guarantee.neighbours))

    def run(
        self, context: JobContext[CountFields], mechanism: LaplaceCount, persons: PersonRows, job_id: str
    ) -> Result:
        column, value = context.fields.column, context.fields.value

        def cell_of(block: pa.Table) -> Any:
            """Return 0 for rows with the value, -1 for others and missing ones: no cell may make a job fail."""
            return np.where(pc.fill_null(pc.equal(block[column], value), False), 0, -1)

        noisy = add_laplace(persons.count([column], cell_of, 1), mechanism.noise_scale, SecureRandomness())[0]
        certificate = {"claim": mechanism.guarantee.to_dict(), "noise_scale": mechanism.noise_scale}
        return Result(certificate, json.dumps({"count": noisy}).encode(), "application/json")

    def page_part(self, result: ResultInfo, content: bytes) -> Markup:
        number = Markup("<p>About <b>{}</b> records.</p>").format(round(json.loads(content)["count"]))
        return number + super().page_part(result, content)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    JOB_KINDS.pop(Count.name, None)


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    path = write_clinic(tmp_path)
    path.write_text(f'{path.read_text()}\n[extensions]\njob_kinds = ["{PLACE}"]\n')
    return Owner.load(path)


@pytest.fixture
def served(owner: Owner) -> Iterator[Served]:
    with serving(owner) as running:
        yield running


@pytest.fixture
def idle(owner: Owner) -> Iterator[Served]:
    """Serve requests without jobs: no training process is started for them."""
    with serving(owner, training=False) as running:
        yield running


def key_of(client: httpx2.Client) -> str:
    return client.headers["Authorization"].removeprefix("Bearer ")


def body(**changes: Any) -> dict[str, Any]:
    return {"kind": "count", "dataset": "clinic", "epsilon": 1.0, **ILL} | changes


def test_through_the_interface(served: Served) -> None:
    alice = served.alice
    assert {kind["name"] for kind in alice.get("/v1/kinds").json()} == {
        "release", "session", "evaluate", "describe", "regression", "count"
    }  # fmt: skip
    told = alice.post("/v1/estimates", json=body()).json()
    assert (told["mechanism"], told["guarantee"]["epsilon"], told["rows"]) == ("laplace_count", 1.0, 300)
    assert served.spent() == (0.0, 0.0)
    asked = [alice.post("/v1/jobs", json=body(), headers={"Idempotency-Key": "k"}).json() for _ in range(2)]
    assert asked[0]["id"] == asked[1]["id"]
    done = served.finished(asked[0]["id"])
    assert (done["kind"], done["fields"]) == ("count", ILL)
    assert served.spent() == (1.0, 0.0)
    (entry,) = Ledger.open(served.store, "clinic").statement().entries
    assert (entry.reservation, entry.purpose) == (done["id"], "count (laplace_count)")
    described = alice.get(f"/v1/results/{done['result']}").json()
    assert described["certificate"]["noise_scale"] == 1.0
    fetched = alice.get(f"/v1/results/{done['result']}/content")
    assert fetched.headers["content-type"] == "application/json"
    assert 0.0 < fetched.json()["count"] < 300.0
    assert [found["id"] for found in alice.get("/v1/results", params={"kind": "count"}).json()] == [
        done["id"]
    ]
    assert done["id"] in [found["id"] for found in alice.get("/v1/jobs").json()]
    assert served.bob.get(f"/v1/results/{done['result']}").status_code == 404
    assert alice.post(f"/v1/sessions/{done['result']}/predictions", json=[]).status_code == 404
    assert "asked for a noisy count" in str(served.holder.get("/v1/events").json())


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"column": "income"}, 422),
        ({"value": 3}, 422),
        ({"learner": "logistic"}, 422),
        ({"public_points": []}, 422),
        ({"epsilon": 5.0}, 409),
        ({"kind": "sum"}, 404),
        ({"kind": None}, 400),
    ],
)
def test_what_is_refused_costs_nothing(idle: Served, changes: dict[str, Any], status: int) -> None:
    answer = idle.alice.post("/v1/jobs", json=body(**changes))
    assert answer.status_code == status, answer.text
    assert idle.spent() == (0.0, 0.0)


def test_its_price_has_a_least_epsilon_too(idle: Served) -> None:
    for address in ("/v1/jobs", "/v1/estimates"):
        answer = idle.alice.post(address, json=body(epsilon=1e-7))
        assert answer.status_code == 422
        assert "the data set's minimum" in answer.json()["detail"]


def test_its_fields_have_a_size(idle: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class Long(CountFields):
        value: str = Field(description="Of any length.")

    monkeypatch.setattr(Count, "fields", Long)
    monkeypatch.setattr(requests, "body_of", requests.body_of.__wrapped__)
    for address in ("/v1/jobs", "/v1/estimates"):
        answer = idle.alice.post(address, json=body(value="x" * 20_000))
        assert answer.status_code == 413
        assert "longer than 16384 bytes" in answer.json()["detail"]
    assert idle.alice.get("/v1/jobs").json() == []


@pytest.mark.parametrize("trial", [False, True])
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": "n" * 200}, "1 to 200 printable characters"),
        ({"guarantee": Guarantee(2.0)}, "more than was requested"),
        ({"guarantee": Guarantee(1.0, 0.0, "zero_out")}, ""),
    ],
    ids=["long purpose", "too dear", "other neighbours"],
)
def test_a_plan_that_cannot_be_paid_for_is_refused_when_asked_for(
    idle: Served, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], reason: str, trial: bool
) -> None:
    """A trial too: it is there to find out."""
    sound = Count.calibrate
    changed = type("Changed", (LaplaceCount,), {"name": wrong.get("name", "laplace_count")})

    def calibrate(self: Count, context: JobContext[CountFields]) -> LaplaceCount:
        facts = vars(sound(self, context)) | {k: v for k, v in wrong.items() if k != "name"}
        return changed(**facts)

    monkeypatch.setattr(Count, "calibrate", calibrate)
    answer = idle.alice.post("/v1/jobs", json=body(trial=trial))
    assert answer.status_code == 422
    assert reason in answer.json()["detail"]
    assert idle.alice.get("/v1/jobs").json() == []


def test_a_curve_without_a_value_is_refused_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_clinic(tmp_path, dataset='composition = "renyi"')
    path.write_text(f'{path.read_text()}\n[extensions]\njob_kinds = ["{PLACE}"]\n')
    monkeypatch.setattr(LaplaceCount, "renyi", lambda *_: math.nan)
    with serving(Owner.load(path), training=False) as served:
        answer = served.alice.post("/v1/jobs", json=body())
    assert answer.status_code == 422
    assert "Renyi curve must be positive and finite" in answer.json()["detail"]


def test_a_defect_of_its_plan_is_one_sentence(
    idle: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> LaplaceCount:
        raise ValueError("a cell, perhaps")

    monkeypatch.setattr(Count, "calibrate", broken)
    for address in ("/v1/jobs", "/v1/estimates"):
        caplog.clear()
        answer = idle.alice.post(address, json=body())
        assert answer.status_code == 500
        assert "Report the id in instance to the holder" in answer.json()["detail"]
        assert "cell" not in answer.text
        assert "Traceback" not in answer.text
        assert [record.name for record in caplog.records if record.levelname == "ERROR"] == [
            "privlearn.service.failures"
        ]
    assert idle.alice.get("/v1/jobs").json() == []


def test_the_interface_describes_it(idle: Served) -> None:
    found = idle.alice.get("/v1/openapi.json").json()
    members = found["components"]["schemas"]["CountRequest"]["properties"]
    common = {"kind", "dataset", "epsilon", "delta", "trial", "note", "purpose", "legal_basis"}
    assert set(members) == {*common, "column", "value"}
    content = found["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert {"$ref": "#/components/schemas/CountRequest"} in content["schema"]["oneOf"]


def test_through_the_client(served: Served) -> None:
    with Client(served.url, key_of(served.alice)) as client:
        assert client.estimate("clinic", kind="count", epsilon=0.5, **ILL)["mechanism"] == "laplace_count"
        job = client.ask("count", "clinic", epsilon=0.5, **ILL)
        made = job.result()
        assert "count" in json.loads(made.content)
        assert client.result(job.id) == made
        assert client.results("count") == [made.record]
        with pytest.raises(BudgetExceeded):
            client.ask("count", "clinic", epsilon=4.0, **ILL)
        trial = client.ask("count", "clinic", epsilon=4.0, trial=True, **ILL).result()
        assert json.loads(trial.content)["count"] > 500.0  # of 2000 made-up rows
        opened = client.open_session("clinic", epsilon=0.5, delta=1e-6)
        assert client.result(opened.id).content == b""
        with pytest.raises(Conflict, match="stays on the server"):
            client._connection.get(f"/results/{opened.id}/content", accept="*/*")
    assert served.spent() == (1.0, 0.0)


def test_through_the_shell(served: Served, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVLEARN_KEY", key_of(served.alice))
    monkeypatch.setenv("PRIVLEARN_SERVER", served.url)
    assert "column, value" in " ".join(run("ask", "kinds").stdout.split())
    told = run(
        "ask", "job", "count", "clinic", "--epsilon", 0.5, "--field", "column=outcome", "--field", "value=ill",
        "--out", tmp_path / "count.json",
    )  # fmt: skip
    assert told.code == 0, told.stderr
    assert "count" in json.loads((tmp_path / "count.json").read_text())
    shown = json.loads(run("ask", "--json", "jobs").stdout)
    again = run("ask", "result", shown[0]["id"], "--out", tmp_path / "again.json")
    assert again.code == 0, again.stderr
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "count.json").read_bytes()
    assert "NAME=VALUE" in run("ask", "job", "count", "clinic", "--epsilon", 0.5, "--field", "ill").stderr


def test_on_its_page(served: Served) -> None:
    done = served.finished(served.alice.post("/v1/jobs", json=body()).json()["id"])
    with httpx2.Client(
        base_url=served.url, headers={"Sec-Fetch-Site": "same-origin"}, trust_env=False
    ) as browser:
        browser.post("/sign-in", data={"key": key_of(served.alice)})
        page = browser.get(f"/jobs/{done['id']}").text
        assert "A noisy count on clinic" in page
        assert all(f"<td>{asked}</td>" in page for asked in ILL.values())
        assert "About <b>" in page
        assert f'href="/jobs/{done["id"]}/result"' in page
        assert "a noisy count" in browser.get("/desk").text
        content = browser.get(f"/jobs/{done['id']}/result")
        assert content.json() == served.alice.get(f"/v1/results/{done['id']}/content").json()
        assert content.headers["content-disposition"].startswith("attachment")


def test_its_job_is_shown_when_the_kind_is_gone(served: Served) -> None:
    done = served.finished(served.alice.post("/v1/jobs", json=body()).json()["id"])
    del JOB_KINDS[Count.name]
    with httpx2.Client(
        base_url=served.url, headers={"Sec-Fetch-Site": "same-origin"}, trust_env=False
    ) as browser:
        browser.post("/sign-in", data={"key": key_of(served.alice)})
        page = browser.get(f"/jobs/{done['id']}")
        assert page.status_code == 200
        assert "no longer has the kind count" in page.text
        assert f'href="/jobs/{done["id"]}/result"' in page.text
        assert "count" in browser.get(f"/jobs/{done['id']}/result").json()


def test_a_kind_finds_results_of_its_analyst_alone(submitted: tuple[str, Catalog, str]) -> None:
    store, catalog, job = submitted
    assert run_next(store, catalog) == ""
    assert results.find(store, "alice", job).id == results.find(store, None, job).id == job
    with pytest.raises(NotFound):
        results.find(store, "bob", job)


@pytest.fixture
def submitted(owner: Owner) -> tuple[str, Catalog, str]:
    """Store, data sets, and a job that waits for this process to run it."""
    load_job_kinds(owner.extensions.job_kinds)
    store, catalog = open_store(owner), Catalog(owner, Catalog(owner).check())
    request = JobRequest("clinic", "count", 1.0, fields=ILL)
    return store, catalog, queue.submit(store, "alice", request, Guarantee(1.0), "").id


def run_next(store: str, catalog: Catalog) -> str:
    claimed = queue.claim(store)
    assert claimed is not None
    return training.run_job(store, catalog, claimed)


def balance(store: str) -> tuple[float, float]:
    statement = Ledger.open(store, "clinic").statement()
    return statement.spent.epsilon, statement.reserved.epsilon


def test_its_cost_is_reserved_before_a_row_is_read(
    submitted: tuple[str, Catalog, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, catalog, job = submitted
    balances = []

    def read(_: OfferedDataSet) -> pa.Table:
        balances.append(balance(store))
        raise DataError("column 'age' has missing cells")

    monkeypatch.setattr(OfferedDataSet, "read_rows", read)
    assert "missing cells" in run_next(store, catalog)
    assert balances == [(0.0, 1.0)]
    assert queue.find(store, job).failure == (
        "the job failed on the holder's side; the holder's pages and log have the reason; its cost stands"
    )


def test_what_its_run_says_of_the_rows_is_for_the_holder(
    submitted: tuple[str, Catalog, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it looks like the ledger's refusal, which the analyst reads."""
    store, catalog, job = submitted

    def refuse(*_: object) -> Result:
        raise BudgetExceeded("there are 17 who are ill")

    monkeypatch.setattr(Count, "run", refuse)
    assert "17" in run_next(store, catalog)
    assert queue.find(store, job).failure == (
        "the job failed on the holder's side; the holder's pages and log have the reason; its cost stands"
    )


def test_it_goes_on_after_its_process_died_and_makes_one_result(
    submitted: tuple[str, Catalog, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, catalog, job = submitted
    with monkeypatch.context() as patch:
        patch.setattr(queue, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_next(store, catalog)
    assert results.find_all(store, None) == []
    queue.expire_leases(store)
    assert run_next(store, catalog) == ""
    assert [found.id for found in results.find_all(store, None)] == [job]
    assert balance(store) == (1.0, 0.0)


def test_a_plan_that_costs_more_than_was_asked_for_is_not_run(
    submitted: tuple[str, Catalog, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, catalog, _ = submitted
    cheap = Count.calibrate
    monkeypatch.setattr(
        Count, "calibrate", lambda self, asked: replace(cheap(self, asked), guarantee=Guarantee(2.0))
    )
    assert "more than was requested" in run_next(store, catalog)
    assert balance(store) == (0.0, 0.0)


def test_a_kind_that_the_holder_took_away_fails_unpaid(submitted: tuple[str, Catalog, str]) -> None:
    store, catalog, job = submitted
    del JOB_KINDS[Count.name]
    assert "does not do this kind" in run_next(store, catalog)
    assert queue.find(store, job).failure.endswith("nothing was spent")
    assert balance(store) == (0.0, 0.0)


@pytest.mark.parametrize("cells", [[], [None], [None, None]], ids=str)
def test_it_answers_whatever_the_rows_hold(cells: list[None]) -> None:
    rows = PersonRows(pa.table({"outcome": pa.array(cells, pa.string())}), counting())
    asked: Any = SimpleNamespace(fields=CountFields(**ILL))
    found = Count().run(asked, LaplaceCount(Guarantee(1.0)), rows, "job")
    assert math.isfinite(json.loads(found.content or b"")["count"])


def counting(**persons: Any) -> Schema:
    outcome = {"type": "category", "values": ["ill", "well"]}
    return Schema.from_dict({"name": "clinic", "columns": {"outcome": outcome}} | persons)


MANY = pa.table({"who": ["one"] * 50 + ["two", "three"], "outcome": ["ill"] * 50 + ["well"] * 2})


@pytest.mark.parametrize(
    ("persons", "expected"),
    [({"person": "who"}, 1.0), ({"rows_per_person": 50}, 1.0), ({"one_row_per_person": True}, 50.0)],
    ids=lambda persons: str(persons),
)
def test_a_person_of_fifty_rows_counts_once(
    persons: dict[str, Any], expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same noise: a kind that knows nothing of persons cannot count more of one than its price covers."""
    monkeypatch.setattr(f"{__name__}.add_laplace", lambda exact, scale, randomness: exact)
    asked: Any = SimpleNamespace(fields=CountFields(**ILL))
    plan = LaplaceCount(Guarantee(1.0))
    assert plan.noise_scale == 1.0
    found = Count().run(asked, plan, PersonRows(MANY, counting(**persons)), "job")
    assert json.loads(found.content or b"")["count"] == pytest.approx(expected, abs=2.0**-14)


def test_numbers_are_summed_with_the_same_weights() -> None:
    """Of any number of rows, in any blocks: clipped to [0, 1], and a row outside the cells is nowhere."""
    table = pa.table({"who": ["a", "a", "b", "c", "c"], "number": [0.5, 1.5, math.nan, -3.0, 1.0]})
    rows = PersonRows(table, counting(person="who"))

    def cell_of(block: pa.Table) -> Any:
        assert block.column_names == ["number"]
        return np.array([0, 0, 0, 7, 1])[: len(block)]

    summed = rows.count(["number"], cell_of, 2, size_of=lambda block: block["number"].to_numpy())
    assert summed.tolist() == [0.75, 0.5]
    assert PersonRows(table.slice(0, 0), counting(person="who")).count(["number"], cell_of, 2).tolist() == [
        0.0,
        0.0,
    ]


def test_several_numbers_for_one_row_are_refused() -> None:
    """Else one person would weigh as much as their kind has numbers for them."""
    rows = PersonRows(MANY, counting(person="who"))
    for cell_of, size_of in (
        (lambda block: np.zeros(3 * block.num_rows, int), None),
        (lambda block: np.zeros(block.num_rows, int), lambda block: np.ones(3 * block.num_rows)),
    ):
        with pytest.raises(InvalidParameter, match="one number per row"):
            rows.count(["outcome"], cell_of, 1, size_of=size_of)


def test_a_kind_that_takes_rows_for_a_table_fails() -> None:
    rows: Any = PersonRows(MANY, counting(person="who"))
    for careless in (
        lambda: rows["outcome"],
        lambda: len(rows),
        lambda: list(rows),
        lambda: rows.column("who"),
    ):
        with pytest.raises((TypeError, AttributeError)):
            careless()
    assert repr(rows) == "<PersonRows>"


def test_own_kinds_weigh_persons_by_the_schema() -> None:
    """Every other kind in this repository takes bare rows on purpose, and hands them to a reader that weighs."""
    sources = {kind.name: inspect.getsource(type(kind).run) for kind in JOB_KINDS.values()}
    readers = ("train(context, mechanism, persons.raw_rows())", "read_cells(", ".read(persons.raw_rows())")
    assert sources.keys() == {"release", "session", "evaluate", "describe", "regression"}
    for source in sources.values():
        assert source.count("persons.raw_rows()") == sum(source.count(reader) for reader in readers)


def test_registering() -> None:
    register_job_kind(Count())
    register_job_kind(Count())  # as a second server in one process does
    with pytest.raises(InvalidParameter, match="already"):
        register_job_kind(type("Other", (Count,), {})())
    with pytest.raises(InvalidParameter, match="not a valid name"):
        register_job_kind(type("Other", (Count,), {"name": "no/kind"})())
    taken = type("Taken", (CountFields,), {"__annotations__": {"epsilon": float}})
    with pytest.raises(InvalidParameter, match="every job has the fields epsilon"):
        register_job_kind(type("Other", (Count,), {"name": "other", "fields": taken})())


class ForRows(Count):
    """A kind as it was written when `run` received bare rows."""

    name: ClassVar[str] = "for_rows"

    def run(self, context: Any, mechanism: Any, rows: Any, job_id: str) -> Result:
        raise AssertionError("it is refused before it could count a row")


class Nameless(JobKind[CountFields, LaplaceCount]):
    """One that does not say what it is."""

    calibrate = Count.calibrate
    run = Count.run


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module:Count", "No module named 'no_such_module'"),
        (f"{__name__}:Nothing", "has no attribute 'Nothing'"),
        ("builtins:dict", "not a subclass of JobKind"),
        (f"{__name__}:Nameless", "Nameless has no name, title, about, fields"),
        (f"{__name__}:ForRows", r"must take \(context, mechanism, persons, job_id\)"),
        ("broken_kind:Count", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_kind_that_cannot_be_loaded_ends_the_server_with_a_sentence(
    tmp_path: Path, run: Run, place: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_kind.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SchemaError, match=rf"{place} cannot be loaded: .*{reason}"):
        load_job_kinds([place])
    path = write_clinic(tmp_path)
    path.write_text(f'{path.read_text()}\n[extensions]\njob_kinds = ["{place}"]\n')
    told = run("serve", path, "--port", 0)
    assert told.code == 1
    assert place in "".join(told.stderr.split())
    assert "Traceback" not in told.stderr


def test_results_of_a_job_that_failed_are_not_there(served: Served) -> None:
    with Client(served.url, key_of(served.alice)) as client:
        with pytest.raises(NotFound):
            client.result("0" * 16)
        with pytest.raises(TrainingFailed, match="its cost stands"):
            client.ask("count", "clinic", epsilon=0.5, column="age", value="ill").result()
