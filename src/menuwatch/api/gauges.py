"""The figures of the database as Prometheus reads them; docs/reference/metrics.md has the same families, held together by a test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from menuwatch.operations.figures import Figures


class Gauges(Collector):
    """One reading, as gauges. A family without a sample is one that could not be read, or of which there is nothing."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        f = self._figures
        yield _one("menuwatch_database_up", "Whether the database answered.", int(f.up))
        yield _one("menuwatch_figures_seconds", "How long reading these figures took, in seconds.", f.seconds)
        yield _one("menuwatch_figures_missing", "Groups of figures that could not be read in time.", len(f.missing))
        yield from self._queue()
        yield from self._workers()
        yield from self._schedules()
        yield from self._payloads()
        yield from self._upkeep()
        yield from self._analytics()
        yield from self._fetched()
        yield from self._hosts()
        yield from self._images()
        yield from self._alerts()
        yield from self._crawls()

    def _queue(self) -> Iterator[Metric]:
        f, role = self._figures, ("role",)
        depth = _many(
            "menuwatch_queue_tasks",
            "Live tasks by role and state: ready, scheduled, parked, active.",
            ("role", "state"),
        )
        age = _many(
            "menuwatch_queue_oldest_ready_seconds", "How long the oldest ready task has been due, in seconds.", role
        )
        retries = _many("menuwatch_queue_retries_waiting", "Tasks that wait for another attempt.", role)
        stale = _many(
            "menuwatch_queue_stale_tasks", "Tasks whose worker fell silent and that were not taken back yet.", role
        )
        for one in f.queue:
            depth.add_metric((one.role, one.state), one.n)
            if one.state == "ready" and one.oldest_ready is not None:
                age.add_metric((one.role,), one.oldest_ready)
            if one.state == "active":
                stale.add_metric((one.role,), one.stale)
        for name in sorted({one.role for one in f.queue}):
            retries.add_metric((name,), sum(one.retrying for one in f.queue if one.role == name))
        yield from (depth, age, retries, stale)
        ended = _many(
            "menuwatch_tasks_ended_last_hour",
            "Tasks that ended in the last hour, by role and outcome: completed, failed, cancelled.",
            ("role", "outcome"),
        )
        for (name, outcome), n in sorted(f.ended.items()):
            ended.add_metric((name, outcome), n)
        yield ended

    def _workers(self) -> Iterator[Metric]:
        found = self._figures.workers
        by_status = _many("menuwatch_workers", "Registered workers by status.", ("status",))
        for status, n in found.by_status.items() if found else ():
            by_status.add_metric((status,), n)
        yield by_status
        yield _one(
            "menuwatch_workers_silent",
            "Workers that did not stop and have given no sign for two minutes.",
            None if found is None else found.silent,
        )
        yield _one(
            "menuwatch_workers_oldest_heartbeat_seconds",
            "Age of the oldest last heartbeat of the workers that did not stop, in seconds.",
            None if found is None else found.oldest_heartbeat,
        )

    def _schedules(self) -> Iterator[Metric]:
        found = self._figures.schedules
        yield _one(
            "menuwatch_schedules_late",
            "Enabled schedules that have been due for more than two minutes.",
            None if found is None else found.late,
        )
        yield _one(
            "menuwatch_schedules_late_seconds",
            "How long the latest of them has been due, in seconds; 0 where none is late.",
            None if found is None else found.late_seconds,
        )
        yield _one(
            "menuwatch_schedules_failing",
            "Enabled schedules whose last firing failed.",
            None if found is None else found.failing,
        )
        yield _one(
            "menuwatch_schedules_next_due_timestamp_seconds",
            "When the next schedule is due, in seconds since the epoch.",
            None if found is None else found.next_due,
        )

    def _payloads(self) -> Iterator[Metric]:
        f = self._figures
        recent = _many(
            "menuwatch_payloads_last_hour", "Payloads fetched in the last hour, by their status now.", ("status",)
        )
        for status, n in f.recent_payloads.items():
            recent.add_metric((status,), n)
        yield recent
        yield _one("menuwatch_payloads_quarantined", "Payloads that wait in quarantine for somebody.", f.quarantined)

    def _upkeep(self) -> Iterator[Metric]:
        f = self._figures
        oldest = None if f.holders is None else max((holder.seconds for holder in f.holders), default=0)
        yield _one(
            "menuwatch_database_oldest_transaction_seconds",
            "Age of the oldest open transaction that keeps ended rows from being cleaned away, in seconds; 0: none.",
            oldest,
        )
        done = _many(
            "menuwatch_upkeep_done_timestamp_seconds",
            "When each duty of upkeep was last done, in seconds since the epoch.",
            ("duty",),
        )
        failing = _many("menuwatch_upkeep_failing", "1 where the last try of a duty failed.", ("duty",))
        for one in f.upkeep:
            if one.done_at is not None:
                done.add_metric((one.duty,), one.done_at)
            failing.add_metric((one.duty,), int(one.failing))
        yield from (done, failing)

    def _analytics(self) -> Iterator[Metric]:
        found = self._figures.analytics
        yield _one(
            "menuwatch_analytics_refreshed_timestamp_seconds",
            "When the figures for analysts were last made, in seconds since the epoch.",
            None if found is None else found.refreshed,
        )
        yield _one(
            "menuwatch_analytics_refresh_seconds",
            "How long making them took, in seconds.",
            None if found is None else found.seconds,
        )
        yield _one(
            "menuwatch_analytics_failing",
            "1 where making them anew failed the last time.",
            None if found is None else int(found.failing),
        )

    def _fetched(self) -> Iterator[Metric]:
        requests = _counts(
            "menuwatch_fetch_requests",
            "Requests that were ever made, by host and what came of them.",
            ("host", "verdict"),
        )
        size = _counts("menuwatch_fetch_bytes", "Size of all answers, decoded, in bytes.", ("host",))
        waited = _counts(
            "menuwatch_fetch_wait_seconds", "Time that requests waited for the host's budget, in seconds.", ("host",)
        )
        took = _counts("menuwatch_fetch_seconds", "Time that requests took, in seconds.", ("host",))
        for host, of_host in groupby(self._figures.fetched, key=lambda one: one.host):
            rows = list(of_host)
            for one in rows:
                requests.add_metric((host, one.verdict), one.requests)
            size.add_metric((host,), sum(one.bytes for one in rows))
            waited.add_metric((host,), sum(one.waited for one in rows))
            took.add_metric((host,), sum(one.took for one in rows))
        yield from (requests, size, waited, took)

    def _hosts(self) -> Iterator[Metric]:
        pace = _many("menuwatch_host_pace", "Requests a second that the host is asked at present, at most.", ("host",))
        is_open = _many("menuwatch_host_open", "1 while the host is asked, 0 while nobody asks it.", ("host",))
        closed = _many(
            "menuwatch_host_closed",
            "1 for the reason that nobody asks it: paused, circuit, cooling.",
            ("host", "reason"),
        )
        leases = _many("menuwatch_host_leases", "Identities that talk to the host now.", ("host",))
        for one in self._figures.hosts:
            pace.add_metric((one.host,), one.pace)
            is_open.add_metric((one.host,), int(one.code is None))
            for reason in ("paused", "circuit", "cooling"):
                closed.add_metric((one.host, reason), int(one.code == reason))
            leases.add_metric((one.host,), one.leases)
        yield from (pace, is_open, closed, leases)
        proxies = _many("menuwatch_proxies", "Proxies by state: active, inactive, disabled.", ("state",))
        for state, n in self._figures.proxies.items():
            proxies.add_metric((state,), n)
        yield proxies

    def _images(self) -> Iterator[Metric]:
        found = self._figures.images
        waiting = _many(
            "menuwatch_images_waiting",
            "Pictures that are not there yet: queued by menus, addresses waiting for a download, failed (given up).",
            ("state",),
        )
        if found is not None:
            for state, n in (("queued", found.queued), ("waiting", found.waiting), ("failed", found.failed)):
                waiting.add_metric((state,), n)
        yield waiting
        yield _one(
            "menuwatch_images_oldest_due_seconds",
            "How long the first of the addresses has been due for a download, in seconds; 0: none is.",
            None if found is None else found.oldest_due or 0,
        )

    def _alerts(self) -> Iterator[Metric]:
        found = self._figures.alerts
        yield _one(
            "menuwatch_alert_events_waiting",
            "Events of alert rules that were not put into a message yet: digests wait for their time.",
            None if found is None else found.events,
        )
        yield _one(
            "menuwatch_alert_deliveries_pending",
            "Messages that their receiver has not got and that are tried again.",
            None if found is None else found.pending,
        )
        yield _one(
            "menuwatch_alert_deliveries_oldest_pending_seconds",
            "Age of the oldest of them, in seconds; 0: none is pending.",
            None if found is None else found.oldest or 0,
        )
        kept = _many(
            "menuwatch_alert_deliveries",
            "Messages that are kept, by state: waiting, sending, delivered, failed.",
            ("status",),
        )
        if found is not None:
            for status in ("waiting", "sending", "delivered", "failed"):
                kept.add_metric((status,), found.by_status.get(status, 0))
        yield kept

    def _crawls(self) -> Iterator[Metric]:
        found = self._figures.crawls
        yield _one("menuwatch_crawls_running", "Search crawls that run.", None if found is None else found.running)
        yield _one(
            "menuwatch_crawl_pages_under_way",
            "Pages of theirs that were submitted and have not come.",
            None if found is None else found.under_way,
        )
        yield _one(
            "menuwatch_crawls_late_seconds",
            "How long the first of them has been due to be looked at, in seconds; 0: none is. Grows where no server has its provider.",
            None if found is None else found.late or 0,
        )
        yield _one(
            "menuwatch_crawl_deliveries_waiting",
            "What was brought for them and was not read yet.",
            None if found is None else found.waiting,
        )
        yield _one(
            "menuwatch_crawl_deliveries_oldest_seconds",
            "How long the first of it has been due to be read, in seconds; 0: nothing is.",
            None if found is None else found.oldest or 0,
        )


class PictureCounts(Collector):
    """What this process did for `GET /img`: results that were kept on disk already, and those that were made."""

    def __init__(self, *, kept: int = 0, made: int = 0, room: int | None = None, used: int | None = None) -> None:
        """`used` and `room` in bytes."""
        self._kept, self._made, self._room, self._used = kept, made, room, used

    def collect(self) -> Iterator[Metric]:
        asked = _counts(
            "menuwatch_image_cache_requests", "Resized pictures asked for, by result: hit, miss.", ("result",)
        )
        asked.add_metric(("hit",), self._kept)
        asked.add_metric(("miss",), self._made)
        yield asked
        yield _one("menuwatch_image_cache_bytes", "Resized pictures on disk, in bytes.", self._used)
        yield _one("menuwatch_image_cache_room_bytes", "Room for them (IMAGE_CACHE_MB), in bytes.", self._room)


def _one(name: str, text: str, value: float | None) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _many(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _counts(name: str, text: str, labels: tuple[str, ...]) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=labels)
