"""The pages as a browser's requests see them: who gets in, what other sites cannot do, what is said about errors."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import httpx2
import pytest

from privlearn import Ledger
from privlearn.data import PrivateBounds
from privlearn.server.access import Caller
from privlearn.server.holder import Owner
from privlearn.server.jobs.workers import RunningJob
from privlearn.server.pages.formatting import number, number_below
from privlearn.server.store import events
from tests.support.served import Served, serving
from tests.support.service_support import SCHEMA, load_clinic, write_clinic

OWN = {"Sec-Fetch-Site": "same-origin"}
ASKED = {"face": "session", "learner": "logistic", "epsilon": "0.5", "delta": "1e-6"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    owner = load_clinic(tmp_path_factory.mktemp("pages"))
    with serving(owner) as running:
        yield running


@contextmanager
def browsing(served: Served, who: str = "") -> Iterator[httpx2.Client]:
    """Return a client without a key, signed in as a browser is."""
    with httpx2.Client(base_url=served.url, headers=OWN, timeout=60.0, trust_env=False) as client:
        if who:
            assert sign_in(client, key_of(served, who)).status_code == 303
        yield client


def key_of(served: Served, who: str) -> str:
    holder: httpx2.Client = getattr(served, who)
    return holder.headers["Authorization"].removeprefix("Bearer ")


def sign_in(client: httpx2.Client, key: str, **more: str) -> httpx2.Response:
    return client.post("/sign-in", data={"key": key} | more)


def text_of(answer: httpx2.Response) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))


def once(answer: httpx2.Response) -> str:
    return re.findall(r'name="once" value="([0-9a-f]{32})"', answer.text)[-1]


# --- who gets in ---


def test_a_key_becomes_a_cookie_that_no_script_and_no_other_site_gets(served: Served) -> None:
    with browsing(served) as client:
        cookie = sign_in(client, key_of(served, "alice")).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert key_of(served, "alice").lower() not in cookie


def test_behind_tls_the_cookie_is_for_this_host_and_for_tls_alone(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    owner = load_clinic(tmp_path_factory.mktemp("proxied"), server="behind_proxy = true")
    with serving(owner, training=False) as served, browsing(served) as client:
        cookie = sign_in(client, key_of(served, "alice")).headers["set-cookie"]
    assert cookie.startswith("__Host-privlearn=")
    assert "secure" in cookie.lower()


@pytest.mark.parametrize(
    "address", ["/desk", "/sessions", "/releases", "/verify", "/console", "/keys", "/log"]
)
def test_a_visitor_without_a_login_is_sent_to_sign_in_and_back(served: Served, address: str) -> None:
    with browsing(served) as client:
        sent = client.get(address)
        assert sent.status_code == 303
        page = client.get(sent.headers["location"])
        assert f'name="next" value="{address}"' in page.text
        back = sign_in(client, key_of(served, "alice"), next=address)
        assert back.headers["location"] == address


@pytest.mark.parametrize("elsewhere", ["//evil.example", "/\\evil.example", "https://evil.example", "/\nx"])
def test_signing_in_leads_nowhere_else(served: Served, elsewhere: str) -> None:
    with browsing(served) as client:
        assert sign_in(client, key_of(served, "alice"), next=elsewhere).headers["location"] == "/"


def test_a_wrong_key_is_refused_on_the_page_and_not_repeated(served: Served) -> None:
    with browsing(served) as client:
        answer = sign_in(client, "pl_0123456789abcdef_wrong")
    assert answer.status_code == 401
    assert "his key is not valid" in text_of(answer)
    assert "pl_0123456789abcdef_wrong" not in answer.text
    assert "set-cookie" not in answer.headers


def test_signing_out_ends_the_login_itself(served: Served) -> None:
    with browsing(served, "alice") as client:
        kept = client.cookies["privlearn"]
        client.post("/sign-out")
        client.cookies.set("privlearn", kept)
        assert client.get("/desk").status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {},
    ],
    ids=["cross-site", "same-site", "other-origin", "unknown"],
)
def test_another_site_cannot_send_a_form_in_a_visitors_name(served: Served, headers: dict[str, str]) -> None:
    with browsing(served, "alice") as client:
        del client.headers["Sec-Fetch-Site"]
        answer = client.post("/desk/clinic/train", data=ASKED | {"act": "pay"}, headers=headers)
    assert answer.status_code == 403
    assert "from another site" in text_of(answer)


def test_a_browser_that_names_only_its_origin_may_send_forms(served: Served) -> None:
    with browsing(served, "alice") as client:
        del client.headers["Sec-Fetch-Site"]
        assert client.post("/sign-out", headers={"Origin": served.url}).status_code == 303


def test_each_role_has_its_own_pages(served: Served) -> None:
    with browsing(served, "alice") as client:
        assert [
            client.get(page).status_code for page in ("/console", "/console/clinic", "/keys", "/log")
        ] == [403] * 4
    with browsing(served, "holder") as client:
        assert client.get("/desk").status_code == 403


def test_pages_bear_a_policy_that_forbids_inline_script_and_style(served: Served) -> None:
    with browsing(served, "alice") as client:
        page = client.get("/desk/clinic/train", params=ASKED)
        style = client.get("/static/style.css")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert " style=" not in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "max-age" in style.headers["cache-control"]


# --- asking ---


def test_what_was_typed_stays_and_is_not_read_as_markup(served: Served) -> None:
    with browsing(served, "alice") as client:
        page = client.get("/desk/clinic/train", params=ASKED | {"epsilon": '"><script>alert(1)</script>'})
    assert page.status_code == 422
    assert "<script>alert" not in page.text
    assert 'value="&#34;&gt;&lt;script&gt;' in page.text
    assert "This is not a number" in page.text


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"epsilon": "-1"}, "epsilon", "above 0"),
        ({"epsilon": "nan"}, "epsilon", "not a number"),
        ({"epsilon": "1_0"}, "epsilon", "not a number"),
        ({"epsilon": "\uff11"}, "epsilon", "not a number"),
        ({"once": "0\x00"}, "", "not from this server"),
        ({"once": "0" * 300}, "", "not from this server"),
        ({"delta": "2"}, "delta", "in [0, 1)"),
        ({"face": "other"}, "face", "Choose one"),
        ({"epsilon": "9"}, "epsilon", "is too small"),
        ({"face": "machine", "delta": "0"}, "delta", ""),
        ({"learner": "unheard-of"}, "learner", ""),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_errors_stand_at_their_field_and_nothing_is_spent(
    served: Served, change: dict[str, str], field: str, reason: str
) -> None:
    before = served.spent()
    with browsing(served, "alice") as client:
        answer = client.post("/desk/clinic/train", data=ASKED | {"act": "pay", "once": "0" * 32} | change)
    assert answer.status_code == 422
    found = re.search(rf'id="{field}-wrong">([^<]*)<', answer.text)
    general = re.search(r'role="alert">([^<]*)<', answer.text)
    anywhere = general and not (field and reason)
    said = unescape(found.group(1) if found else general.group(1) if general and anywhere else "")
    assert said
    assert reason in said
    assert served.spent() == before


@pytest.mark.parametrize("id", ["no-id", "0%00", "0" * 16, "0" * 300, "%ED%A0%80"])
@pytest.mark.parametrize("page", ["jobs/{}", "jobs/{}/result", "releases/{}", "sessions/{}"])
def test_what_has_no_id_is_not_found(served: Served, page: str, id: str) -> None:
    """A database would refuse some of these itself, as if it were out of order."""
    with browsing(served, "alice") as client:
        answer = client.get(f"/{page.format(id)}")
    assert answer.status_code == 404
    assert ("nothing under this id" in answer.text) == (id != "0" * 16)
    with browsing(served) as stranger:
        assert stranger.get(f"/{page.format(id)}").status_code == 303


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("learner", ["logistic", "kernel"])
@pytest.mark.parametrize("face", ["session", "release", "points", "machine"])
def test_whatever_can_be_asked_for_is_estimated(served: Served, face: str, learner: str, delta: str) -> None:
    asked = {"face": face, "learner": learner, "epsilon": "0.5", "delta": delta}
    with browsing(served, "alice") as client:
        page = client.get("/desk/clinic/train", params=asked)
    if face == "machine" and delta == "0":
        assert page.status_code == 422
        return
    assert page.status_code == 200
    assert "Gain lost against epsilon" in page.text
    assert re.search(r"(Clear|Noisy|Drowned)\.", text_of(page))


def test_what_a_job_promises_counts_all_rows_of_a_person_and_what_was_bought(tmp_path: Path) -> None:
    place = write_clinic(tmp_path)
    receipt = PrivateBounds(
        bounds=("age upper",),
        epsilon=0.5,
        delta=0.0,
        neighbours="replace_one",
        records=300,
        rows_per_person=3,
        person=False,
        quantile_epsilon=0.5,
        randomness="os.urandom",
        secure=True,
    )
    schema = SCHEMA.model_copy(update={"rows_per_person": 3, "private_bounds": (receipt,)})
    schema.save(tmp_path / "clinic.schema.yaml")
    with serving(Owner.load(place), training=False) as served, browsing(served, "alice") as client:
        asked = served.alice.post(
            "/v1/jobs", json={"kind": "release", "dataset": "clinic", "epsilon": 0.5}
        ).json()
        told = text_of(client.get(f"/jobs/{asked['id']}"))
    assert "whether one person's records (up to 3) are in the data" in told
    assert "multiplied by at most 2.72" in told  # e: half of it was bought


def test_one_form_pays_once(served: Served) -> None:
    before = sum(served.spent())
    with browsing(served, "alice") as client:
        key = once(client.get("/desk/clinic/train", params=ASKED))
        sent = ASKED | {"act": "pay", "once": key}
        jobs = {client.post("/desk/clinic/train", data=sent).headers["location"] for _ in range(3)}
        other = client.post("/desk/clinic/train", data=sent | {"epsilon": "0.25"})
        trial = client.post("/desk/clinic/train", data=sent | {"act": "try"})
    assert len(jobs) == 1
    served.finished(jobs.pop().rpartition("/")[2])
    served.finished(trial.headers["location"].rpartition("/")[2])
    assert "already sent with other values" in text_of(other)
    assert once(other) != key
    assert sum(served.spent()) == pytest.approx(before + 0.5)


def test_public_points_are_sent_as_a_file(served: Served) -> None:
    points = "age,dose,sex\n10,1,female\n50,5,male\n90,9,female\n"
    sent = ASKED | {"face": "points", "learner": "kernel", "act": "try", "once": "1" * 32}
    with browsing(served, "alice") as client:
        wrong = client.post(
            "/desk/clinic/train", data=sent, files={"points": ("p.csv", "age,dose\n1,1\n", "text/csv")}
        )
        right = client.post("/desk/clinic/train", data=sent, files={"points": ("p.csv", points, "text/csv")})
    assert wrong.status_code == 422
    assert 'id="points-wrong"' in wrong.text
    job = served.finished(right.headers["location"].rpartition("/")[2])
    assert job["state"] == "done"


# --- sessions and releases ---


@pytest.fixture(scope="module")
def session(served: Served) -> str:
    return f"/sessions/{served.train('session', learner='logistic', delta=1e-6)}"


def test_a_file_comes_back_with_predictions(served: Served, session: str) -> None:
    rows = 'name,age,dose,sex\nÅsa,10,1,female\n\n"Bo, the other",90,9,male\n'
    with browsing(served, "alice") as client:
        answer = client.post(f"{session}/file", files={"rows": ("rows.csv", rows.encode(), "text/csv")})
    assert answer.headers["content-disposition"].startswith("attachment")
    lines = list(csv.reader(io.StringIO(answer.text)))
    added = ["prediction", "probability_healthy", "probability_ill"]
    assert lines[0] == ["name", "age", "dose", "sex", *added]
    assert [line[0] for line in lines[1:]] == ["Åsa", "Bo, the other"]
    assert {line[4] for line in lines[1:]} <= {"healthy", "ill"}
    assert [float(line[5]) + float(line[6]) for line in lines[1:]] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "rows-wrong"),
        (b"age,dose\n1,1\n", "'sex'"),
        (b"age,dose,sex\nold,1,male\n", "'age'"),
        (b"age,dose,sex\n1,1,unknown\n", "'sex'"),
        (b"age,dose,sex,note\n1,1,male,\xff\n", "rows-wrong"),
    ],
    ids=["empty", "no-column", "no-number", "no-category", "not-utf8"],
)
def test_a_file_that_cannot_be_read_is_refused_next_to_its_field(
    served: Served, session: str, content: bytes, reason: str
) -> None:
    with browsing(served, "alice") as client:
        answer = client.post(f"{session}/file", files={"rows": ("rows.csv", content, "text/csv")})
    assert answer.status_code == 422
    assert reason in unescape(answer.text)
    assert 'id="rows-wrong"' in answer.text


def test_one_point_is_answered_the_same_each_time(served: Served, session: str) -> None:
    point = {"column0": "40", "column1": "2", "column2": "male"}
    with browsing(served, "alice") as client:
        first, second = (client.post(f"{session}/point", data=point) for _ in range(2))
        wrong = client.post(f"{session}/point", data=point | {"column0": "old", "column1": ""})
    assert re.search(r"outcome: (healthy|ill)", text_of(first))
    assert first.text == second.text
    assert 'id="column0-wrong"' in wrong.text
    assert 'id="column1-wrong"' in wrong.text
    assert 'value="old"' in wrong.text


def test_a_session_is_its_analysts_own_and_can_be_closed(served: Served) -> None:
    address = f"/sessions/{served.train('session', learner='logistic', trial=True)}"
    with browsing(served, "bob") as client:
        assert client.get(address).status_code == 404
    with browsing(served, "holder") as client:
        page = client.get(address)
        assert page.status_code == 200
        assert "Predict and download" not in page.text
    with browsing(served, "alice") as client:
        assert client.get(f"{address}/certificate").json()["claim"]["epsilon"] == 0.5
        assert client.post(f"{address}/close").status_code == 303
        page = client.get(address)
    assert "This session is closed" in page.text
    assert "Predict and download" not in page.text


def test_a_release_is_fetched_and_verified(served: Served) -> None:
    release = served.train("release", learner="logistic", delta=1e-6)
    with browsing(served, "alice") as client:
        page = client.get(f"/releases/{release}").text
        assert "the constants support the claim" in page
        assert "What it learnt" in page
        assert "Above the noise: 0 of" in page
        assert f'href="/jobs/{release}/result"' in page
        content = client.get(f"/jobs/{release}/result").content
        good = client.post("/verify", files={"file": ("x.privlearn", content)})
        bad = client.post("/verify", files={"file": ("x.privlearn", content[:-20] + b"0" * 20)})
    assert "the constants support the claim" in good.text
    assert bad.status_code == 422
    assert 'id="file-wrong"' in bad.text


def test_looking_at_a_release_is_not_fetching_it(served: Served) -> None:
    release = served.train("release", learner="logistic", trial=True)
    with browsing(served, "alice") as client:
        client.get(f"/releases/{release}")
    fetched = [
        event for event in served.holder.get("/v1/events").json() if event["action"] == "fetched a release"
    ]
    assert all(event["details"]["release"] != release for event in fetched)


# --- the holder's side ---


def test_the_console_shows_what_each_analyst_has_spent(served: Served) -> None:
    served.train("session", learner="logistic", epsilon=0.125, delta=1e-7)
    statement = Ledger.open(served.store, "clinic").statement()
    with browsing(served, "holder") as client:
        page = text_of(client.get("/console/clinic"))
        keys = client.get("/keys").text
    assert f"{number_below(statement.left.epsilon)} epsilon left of 4" in page
    assert re.search(rf"alice epsilon 4 , delta 1e-5 {re.escape(number(statement.spent.epsilon))} ", page)
    assert key_of(served, "alice") not in keys
    assert key_of(served, "alice").split("_")[1] in keys


def test_only_the_holder_sees_how_far_a_job_is(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service = served.app.state.service
    job = served.train("release", trial=True)
    found = service.job(Caller("0", "holder"), job)
    monkeypatch.setattr(service._workers[0], "running_job", RunningJob(found, "pass 3, row 8,192 of 9,000"))
    with browsing(served, "holder") as client:
        assert "pass 3, row 8,192 of 9,000" in text_of(client.get("/console"))
    with browsing(served, "alice") as client:
        assert "pass 3" not in client.get(f"/jobs/{found.id}").text + client.get("/desk").text


def test_the_log_has_pages(served: Served) -> None:
    for _ in range(60):
        events.record(served.store, "nobody", "did nothing")
    with browsing(served, "holder") as client:
        assert client.get("/log", params={"before": 10**25}).status_code == 422
        first = client.get("/log").text
        older = re.search(r'href="(/log\?before=\d+)">Older', first)
        assert older is not None
        second = client.get(older.group(1)).text
    number_cell = re.compile(r'data-label="No." class="right">(\d+)<')
    newest, next_ones = (list(map(int, number_cell.findall(page))) for page in (first, second))
    assert newest == sorted(newest, reverse=True)
    assert len(newest) == 50
    assert next_ones[0] == newest[-1] - 1


def test_an_address_that_does_not_exist_is_said_on_a_page(served: Served) -> None:
    with browsing(served, "alice") as client:
        answer = client.get("/desk/nothing")
        unknown = client.get("/nowhere")
    for found in (answer, unknown):
        assert found.status_code == 404
        assert found.headers["content-type"].startswith("text/html")


def test_what_nobody_foresaw_is_a_page_that_says_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a cell of the table")

    monkeypatch.setattr(served.app.state.service, "datasets", fail)
    with browsing(served, "alice") as client:
        answer = client.get("/desk")
    assert answer.status_code == 500
    assert answer.headers["content-type"].startswith("text/html")
    assert "a cell" not in answer.text
    assert answer.headers["x-request-id"] in answer.text


def test_a_file_that_is_too_large_is_refused_on_a_page(served: Served) -> None:
    with browsing(served, "alice") as client:
        answer = client.post("/verify", files={"file": ("x.privlearn", b"0" * (33 << 20))})
    assert answer.status_code == 413
    assert "smaller batches" in text_of(answer)


@pytest.mark.parametrize("value", [0.1, 1e-6, 2.5, 1 / 3, 0.30000000000000004, 1e-10])
def test_what_is_shown_as_left_can_be_asked_for(value: float) -> None:
    assert float(number_below(value)) <= value
    assert float(number_below(value)) == pytest.approx(value, rel=1e-5)
