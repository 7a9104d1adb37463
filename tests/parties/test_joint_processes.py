"""Three party processes and a coordinator: a regression, its evaluation, and a proxy between."""

from __future__ import annotations

from pathlib import Path

import pytest

from privlearn.data import Schema
from privlearn.release import verify
from privlearn.statistics.evaluation import Evaluation
from tests.support.connect_proxy import ConnectProxy
from tests.support.killed_runs import ForkedSite
from tests.support.run_cases import KEYS, SCHEMA, SIZES

pytest.importorskip("flwr", reason="the extra `multiparty` is not installed")


def test_a_regression_and_its_evaluation(tmp_path: Path) -> None:
    site = ForkedSite(tmp_path, schema="ages.yaml", epsilon=1.5, delta=5e-6, rounds=3)
    ages = SCHEMA.to_dict() | {"target": {"name": "age", "lower": 17, "upper": 90}}
    Schema.from_dict(ages).save(tmp_path / "ages.yaml")
    try:
        site.start()
        assert site.exit_code("coordinator") == 0, site.log("coordinator")
        assert [site.exit_code(name) for name in SIZES] == [0, 0, 0]
        proven = verify(tmp_path / "plan.privlearn")
        assert proven.certificate.mechanism.task.loss.name == "huber"
        (tmp_path / "plan.privlearn").rename(tmp_path / "ages.privlearn")
        agreement = ['release = "ages.privlearn"', "epsilon = 0.5", "delta = 5e-6", 'by = ["sex"]']
        agreement += ["[parties]", *(f"{name} = {size}" for name, size in SIZES.items())]
        agreement += ["[keys]", *(f"{name} = {key!r}" for name, key in KEYS.items())]
        (tmp_path / "plan.toml").write_text("\n".join(agreement))
        site.start()
        assert site.exit_code("coordinator") == 0, site.log("coordinator")
        assert [site.exit_code(name) for name in SIZES] == [0, 0, 0]
    finally:
        site.end()
    assert "Question 1 of 1 (counts): 3 of 3 parties" in site.log("coordinator")
    written = (tmp_path / "plan.privlearn").read_bytes()
    assert all((tmp_path / f"{name}.privlearn").read_bytes() == written for name in SIZES)
    told = Evaluation.load(tmp_path / "plan.privlearn")
    assert told.records == sum(SIZES.values())
    assert {group.column for group in told.groups} == {"sex", "party"}
    assert [site.spent(name) for name in SIZES] == [2.0, 2.0, 2.0]


def test_parties_behind_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They connect outwards only, each through the proxy that its environment names."""
    site, proxy = ForkedSite(tmp_path, rounds=2), ConnectProxy()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with proxy.serving():
        try:
            site.start()
            assert site.exit_code("coordinator") == 0, site.log("coordinator")
            assert [site.exit_code(name) for name in SIZES] == [0, 0, 0]
        finally:
            site.end()
    assert len(proxy.asked_for) >= len(SIZES)
    assert set(proxy.asked_for) == {f"127.0.0.1:{site.port}"}
