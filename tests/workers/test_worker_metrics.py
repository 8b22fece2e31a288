"""What a worker counts of itself, as Prometheus reads it."""

from __future__ import annotations

import socket
import time
import urllib.request
from random import Random

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from menuwatch.queue.model import Role
from menuwatch.workers.engine.metrics import WorkerMetrics, serve_metrics


def figures(measures: WorkerMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    registry = CollectorRegistry()
    registry.register(measures)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }


def test_a_new_worker_says_zero() -> None:
    found = figures(WorkerMetrics())
    assert found["menuwatch_worker_claimed_tasks_total", ()] == 0
    assert found["menuwatch_worker_claim_seconds_count", ()] == 0
    assert found["menuwatch_worker_heartbeats_total", ()] == 0
    assert ("menuwatch_worker_last_heartbeat_timestamp_seconds", ()) not in found, "it has had none"


def test_everything_that_is_counted_is_exposed() -> None:
    running = [7]
    measures = WorkerMetrics(now=lambda: 1_700_000_000.5)
    measures.introduce(worker_id="w-1", name="Xylos", pod="p", slots=9, running=lambda: running[0])
    measures.claimed(3, 0.004, (0.2, 0.02, 40))
    measures.claimed(0, 0.0003)
    measures.settled(0.03)
    measures.ended(Role.PAYLOAD_FETCH, "completed", 2.0)
    measures.ended("payload_fetch", "retried", 70.0, n=2)
    measures.ended_many(Role.PRODUCT_REFRESH, "completed", [0.02] * 5)
    measures.lost()
    measures.recovered(4)
    measures.beat()
    measures.fetching(idle=lambda: running[0] + 2, leases=lambda: 3)
    for verdict, waited in (("ok", 0.0), ("ok", 0.02), ("rate_limited", 40.0)):
        measures.requested("dutchie.com", verdict, waited)
    running[0] = 8
    found = figures(measures)
    for name, labels, value in (
        ("worker_info", {"worker_id": "w-1", "name": "Xylos", "pod": "p"}, 1),
        ("worker_slots", {}, 9),
        ("worker_running_tasks", {}, 8),
        ("worker_claimed_tasks_total", {}, 3),
        ("worker_claim_seconds_count", {}, 2),
        ("worker_claim_seconds_sum", {}, 0.0043),
        ("worker_claim_seconds_bucket", {"le": "0.0005"}, 1),
        ("worker_claim_seconds_bucket", {"le": "0.005"}, 2),
        ("worker_pickup_seconds_bucket", {"le": "0.05"}, 1),
        ("worker_pickup_seconds_bucket", {"le": "+Inf"}, 3),
        ("worker_settle_seconds_count", {}, 1),
        ("worker_attempts_total", {"role": "payload_fetch", "outcome": "completed"}, 1),
        ("worker_attempts_total", {"role": "payload_fetch", "outcome": "retried"}, 2),
        ("worker_attempts_total", {"role": "product_refresh", "outcome": "completed"}, 5),
        ("worker_run_seconds_sum", {"role": "payload_fetch"}, 142.0),
        ("worker_run_seconds_count", {"role": "product_refresh"}, 5),
        ("worker_lost_tasks_total", {}, 1),
        ("worker_recovered_tasks_total", {}, 4),
        ("worker_heartbeats_total", {}, 1),
        ("worker_last_heartbeat_timestamp_seconds", {}, 1_700_000_000.5),
        ("worker_fetch_requests_total", {"host": "dutchie.com", "verdict": "ok"}, 2),
        ("worker_fetch_requests_total", {"host": "dutchie.com", "verdict": "rate_limited"}, 1),
        ("worker_fetch_wait_seconds_bucket", {"le": "0.05"}, 2),
        ("worker_fetch_wait_seconds_sum", {}, 40.02),
        ("worker_idle_identities", {}, 10),
        ("worker_leases", {}, 3),
    ):
        key = "menuwatch_" + name, tuple(sorted(labels.items()))
        assert abs(found[key] - value) < 1e-9, (key, found[key])


def test_buckets_count_what_is_at_or_below_their_bound() -> None:
    rng = Random(3)
    durations = [rng.choice([0.001, 0.05, 1.0, 1800.0, rng.random() * 3000]) for _ in range(2000)]
    one, many = WorkerMetrics(), WorkerMetrics()
    many.ended_many("product_refresh", "completed", durations)
    for duration in durations:
        one.ended("product_refresh", "completed", duration)
    found = figures(many)
    counted = {
        labels: value for (name, labels), value in found.items() if name == "menuwatch_worker_run_seconds_bucket"
    }
    assert len(counted) > 10
    for labels, value in counted.items():
        assert value == sum(duration <= float(dict(labels)["le"]) for duration in durations), labels
    assert counted == {k[1]: v for k, v in figures(one).items() if k[0] == "menuwatch_worker_run_seconds_bucket"}


def test_each_worker_of_a_pod_has_a_port_of_its_own() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1] - 2
    measures = WorkerMetrics()
    with serve_metrics(measures, host="127.0.0.1", port=port, ordinal=2) as chosen:
        assert chosen == port + 2
        measures.ended("payload_fetch", "completed", 1.0)
        with urllib.request.urlopen(f"http://127.0.0.1:{chosen}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        assert 'menuwatch_worker_attempts_total{outcome="completed",role="payload_fetch"} 1.0' in text
        with capture_logs() as logs, serve_metrics(WorkerMetrics(), host="127.0.0.1", port=port, ordinal=2) as other:
            assert other is None
        assert [(line["action"], line["log_level"]) for line in logs] == [("metrics_unavailable", "warning")]
    with serve_metrics(WorkerMetrics(), host="127.0.0.1", port=port, ordinal=2) as again:
        assert again == chosen, "the port is free again at once"
    with serve_metrics(WorkerMetrics(), host="127.0.0.1", port=0, ordinal=3) as none:
        assert none is None


def test_a_batch_costs_next_to_nothing() -> None:
    """Measured at 0.13 µs a task; a loaded machine gets ten times that before this says no."""
    measures, durations = WorkerMetrics(), [0.001 * n for n in range(200)]
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        measures.ended_many(Role.PRODUCT_REFRESH, "completed", durations)
        best = min(best, (time.perf_counter() - began) / len(durations))
    assert best < 1.5e-6
