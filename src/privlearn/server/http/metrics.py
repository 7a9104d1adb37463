"""Prometheus metrics of this process and of the store. Budgets are those of the holder's console."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from privlearn.budget.ledger import Ledger
from privlearn.server.jobs.queue import count_by_state
from privlearn.server.service import Service

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """Counters of this process since its start."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "privlearn_requests", "Requests answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "privlearn_request_seconds",
            "Time to answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._predictions = Counter(
            "privlearn_predictions", "Rows answered in sessions.", registry=self._registry
        )

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its time."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_predictions(self, rows: int) -> None:
        """Count rows that sessions have answered."""
        self._predictions.inc(rows)

    def text(self, service: Service) -> bytes:
        """Return these metrics and those of the store in Prometheus' text format."""
        stored = CollectorRegistry()
        stored.register(_Stored(service))
        return bytes(generate_latest(self._registry) + generate_latest(stored))


class _Stored(Collector):
    """Jobs by state and budgets, which all server processes share; and this process's trainings beyond their slot."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterator[Metric]:
        return iter(())  # so that registering does not read the store

    def collect(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("privlearn_jobs", "Trainings by state.", labels=("state",))
        for state, count in count_by_state(self._service.store).items():
            jobs.add_metric((state,), count)
        yield jobs
        labels = ("dataset", "part")
        epsilon = GaugeMetricFamily(
            "privlearn_budget_epsilon", "Epsilon of a data set's budget.", labels=labels
        )
        delta = GaugeMetricFamily("privlearn_budget_delta", "Delta of a data set's budget.", labels=labels)
        for name in self._service.catalog.owner.datasets:
            standing = Ledger(self._service.store, name).standing()
            for part in ("total", "spent", "reserved", "left"):
                amount = getattr(standing, part)
                epsilon.add_metric((name, part), amount.epsilon)
                delta.add_metric((name, part), amount.delta)
        slots = CounterMetricFamily(
            "privlearn_slot_overruns",
            "Trainings that took longer than their first slot.",
            labels=("dataset",),
        )
        for name in self._service.catalog.owner.datasets:
            slots.add_metric((name,), self._service.overruns[name])
        yield from (epsilon, delta, slots)
