"""A run over Flower, from either side. Flower is imported here and in the `flower_` modules only, once it is used."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.multiparty.run.conversation import Tell
from privlearn.multiparty.run.coordinator_run import CoordinatorRun
from privlearn.multiparty.run.identity import Identity
from privlearn.multiparty.run.joint_plan import JointPlan
from privlearn.multiparty.run.journal import Journal
from privlearn.multiparty.run.party_run import PartyRun
from privlearn.release.outcome import Outcome


def lead(
    plan: JointPlan,
    identity: Identity,
    *,
    host: str,
    port: int,
    certificate: Path,
    key: Path,
    wait: float,
    patience: float,
    tell: Tell,
    journal: Journal | None = None,
) -> Outcome:
    """Serve the plan's parties as their coordinator, from sign-off to release, or from where a journal ends."""
    _prepare_flower()
    from privlearn.multiparty.flower.apps import FlowerExchange, server_app
    from privlearn.multiparty.flower.link import FlowerLink

    _silence_flower()
    link = FlowerLink(plan)
    releases: list[Outcome] = []

    def work(grid: Any) -> None:
        needed = plan.cohort.threshold
        exchange = FlowerExchange(grid, link.nodes, list(plan.parties), needed, wait, patience, tell)
        releases.append(CoordinatorRun(plan, identity, exchange, tell, journal).train())

    with link.serving(host, port, certificate, key):
        link.run(server_app(work))
    return releases[0]


def take_part(
    run: PartyRun,
    identity: Identity,
    *,
    coordinator: str,
    certificate: Path,
    wait: float,
    patience: float,
    tell: Tell,
) -> None:
    """Answer the coordinator until the run has ended."""
    if run.finished:
        return
    _prepare_flower()
    from privlearn.multiparty.flower.apps import client_app
    from privlearn.multiparty.flower.node import FlowerNode

    _silence_flower()
    node = FlowerNode(coordinator, certificate, identity, tell)
    with node.connected(wait):
        node.serve(client_app(run), lambda: run.finished, patience)


def _prepare_flower() -> None:
    """Before Flower is imported: it shall not call home."""
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    try:
        import flwr  # noqa: F401
    except ImportError:
        raise InvalidParameter(
            "runs of several parties need Flower: pip install 'privlearn[multiparty]'"
        ) from None


def _silence_flower() -> None:
    """After it is imported: its log lines would hide the run's."""
    for name in ("flwr", "httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
