"""A run over Flower, from either side. Flower is imported only when a run starts."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from privlearn.errors import InvalidParameter
from privlearn.parties.run.agreement import Agreement
from privlearn.parties.run.checkpoints import Journal
from privlearn.parties.run.conversation import Report
from privlearn.parties.run.coordinator_run import CoordinatorRun
from privlearn.parties.run.identity import Identity
from privlearn.parties.run.party_run import PartyRun
from privlearn.release.artifact import Outcome


def lead(
    agreement: Agreement,
    identity: Identity,
    *,
    host: str,
    port: int,
    certificate: Path,
    key: Path,
    wait: float,
    timeout: float,
    report: Report,
    journal: Journal | None = None,
    end: bool = False,
) -> Outcome | None:
    """Serve the parties as their coordinator, from sign-off to release, or from where a journal ends.

    With ``end``, only stop the parties of an earlier run.
    """
    _prepare_flower()
    from privlearn.parties.flower.apps import FlowerExchange, server_app
    from privlearn.parties.flower.link import FlowerLink

    _silence_flower()
    link = FlowerLink(agreement)
    releases: list[Outcome] = []

    def work(grid: Any) -> None:
        needed, names = agreement.cohort.threshold, list(agreement.parties)
        exchange = FlowerExchange(grid, link.nodes, names, needed, wait, timeout, report)
        run = CoordinatorRun(agreement, identity, exchange, report, journal)
        if end:
            exchange.gather()
            run.end("the coordinator ended the run")
        else:
            releases.append(run.train())

    with link.serving(host, port, certificate, key):
        link.run(server_app(work))
    return releases[0] if releases else None


def take_part(
    run: PartyRun,
    identity: Identity,
    *,
    coordinator: str,
    certificate: Path,
    wait: float,
    timeout: float,
    report: Report,
) -> None:
    """Answer the coordinator until the run has ended."""
    if run.finished:
        return
    _prepare_flower()
    from privlearn.parties.flower.apps import client_app
    from privlearn.parties.flower.node import FlowerNode

    _silence_flower()
    node = FlowerNode(coordinator, certificate, identity, report)
    with node.connection(wait):
        node.serve(client_app(run), lambda: run.finished, lambda: run.progress, timeout)


def _prepare_flower() -> None:
    """Turn off Flower's telemetry before it is imported."""
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    try:
        import flwr  # noqa: F401
    except ImportError:
        raise InvalidParameter(
            "runs of several parties need Flower. Run: pip install 'privlearn[multiparty]'"
        ) from None


def _silence_flower() -> None:
    """Turn off Flower's log lines after it is imported; they would hide the run's."""
    for name in ("flwr", "httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
