"""The coordinator's page: what its screen says, on this machine, read only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from privlearn.errors import InvalidParameter
from privlearn.parties.run import StatePage
from tests.support.ports import free_port
from tests.support.run_cases import Wire, agreement_of


def fetched(port: int, path: str = "/", **request: str) -> str:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", **request)  # type: ignore[arg-type]
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return str(answer.read().decode())


def test_a_run_on_the_page_and_on_the_screen() -> None:
    agreement, screen, port = agreement_of(), list[str](), free_port()
    page = StatePage(agreement, screen.append)
    wire = Wire(agreement)
    wire.coordinator._report = page.report
    with page.serving(port):
        assert "Nothing yet." in fetched(port)
        wire.coordinator.train()
        told, state = fetched(port), json.loads(fetched(port, "/state.json"))
    assert [entry["message"] for entry in state["run"]] == screen
    assert all(line in told for line in screen)
    assert agreement.fingerprint in told
    assert "<script" not in told


def test_it_takes_no_command_and_ends_with_the_run() -> None:
    page, port = StatePage(agreement_of(), print), free_port()
    with page.serving(port):
        for asked in ({"path": "/stop"}, {"method": "POST"}, {"path": "/state.json", "method": "DELETE"}):
            with pytest.raises(urllib.error.HTTPError):
                fetched(port, **asked)
        with pytest.raises(InvalidParameter, match="another"), page.serving(port):
            pass
    with pytest.raises(urllib.error.URLError):
        fetched(port)


def test_what_a_party_writes_is_no_markup() -> None:
    page = StatePage(agreement_of(), lambda line: None)
    page.report("north refused: <script>alert(1)</script>")
    assert "<script" not in page.to_html()
