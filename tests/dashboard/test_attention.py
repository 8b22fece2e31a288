"""The sentence of the overview, and what it says needs somebody."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from menuwatch.dashboard.pages.workers import advice
from menuwatch.ops.assessment import Level, assess
from menuwatch.ops.overview import (
    ClosedHost,
    Crew,
    Drain,
    LateSchedule,
    Overview,
    ProxyCounts,
    RoleLoad,
    StoreCounts,
    Supervisor,
)
from menuwatch.queue.capacity import Capacity, WorkersNeeded
from menuwatch.queue.failures import OpenFailures
from tests.dashboard.worker_rows import NOW

CREW = Crew(live=15, claiming=15, backing_off=0, paused=0, stopping=0, silent=0, slots=45, pods=3)


def load(ready: int = 0, completed: int = 100, failed: int = 0, stale: int = 0) -> RoleLoad:
    return RoleLoad(
        role="payload_fetch",
        ready=ready,
        blocked=0,
        scheduled=0,
        retrying=0,
        claimed=0,
        running=stale,
        stale=stale,
        oldest_ready_seconds=None,
        capacity=Capacity(
            role="payload_fetch",
            pending_tasks=ready,
            ready_tasks=ready,
            blocked_tasks=0,
            blocked_by=[],
            claimed_tasks=0,
            running_tasks=0,
            completed_last_hour=completed,
            failed_last_hour=failed,
            active_workers=15,
            avg_duration_sec=2.0,
            tasks_per_worker_hour=10.0,
            estimated_hours_to_drain=0.5,
            workers_needed=WorkersNeeded(for_1_hour=None, for_4_hours=None, for_8_hours=None),
        ),
    )


WELL = Overview(
    at=NOW, roles=[load()], drain=Drain(worker_hours=0, hours=0, needed={1: 0, 4: 0, 8: 0}, unknown=[]), workers=CREW,
    late_schedules=[], closed_hosts=[], proxies=ProxyCounts(known=8, active=8, down=0, disabled=0),
    stores=StoreCounts(known=10, crawled=10, never=0, stale=0), quarantined=0, failures=OpenFailures(tasks=0, causes=0),
)  # fmt: skip


def crew(**changes: int) -> Crew:
    return msgspec.structs.replace(CREW, **changes)


def test_nothing_to_do_is_called_well() -> None:
    found = assess(WELL)
    assert (found.level, found.findings) == (Level.OK, ())
    assert found.sentence == "Healthy: 15 workers online, queue empty."
    drain = Drain(worker_hours=7.5, hours=0.5, needed={1: 8, 4: 2, 8: 1}, unknown=[])
    busy = assess(replace(WELL, roles=[load(ready=75)], drain=drain))
    assert busy.sentence == "Healthy: 15 workers online, backlog clears in about 30 min."


@pytest.mark.parametrize(
    ("seen", "level", "text", "path"),
    [
        (
            replace(WELL, workers=crew(live=0, claiming=0), roles=[load(ready=3)]),
            "critical",
            "No worker is running. 3 tasks pending.",
            "/workers",
        ),
        (replace(WELL, workers=crew(live=0, claiming=0)), "critical", "No worker is running.", "/workers"),
        (
            replace(WELL, workers=crew(claiming=0, paused=15), roles=[load(ready=1)]),
            "critical",
            "No worker claims new tasks: all 15 are paused.",
            "/workers",
        ),
        (replace(WELL, workers=crew(paused=1)), "warning", "1 worker is paused.", "/workers?state=paused"),
        (
            replace(WELL, workers=crew(claiming=7, backing_off=8), roles=[load(ready=1)]),
            "warning",
            "8 of 15 workers are backing off: CPU or memory is full.",
            "/workers",
        ),
        (
            replace(WELL, workers=crew(silent=2)),
            "warning",
            "2 workers without a heartbeat for two minutes or longer.",
            "/workers?state=silent",
        ),
        (
            replace(WELL, roles=[load(stale=2)]),
            "warning",
            "2 tasks are stale: the worker stopped sending heartbeats.",
            "/tasks?q=state:stale",
        ),
        (
            replace(WELL, roles=[load(completed=96, failed=9)], failures=OpenFailures(tasks=4, causes=2)),
            "warning",
            "4 tasks failed in the last hour and did not succeed since (2 causes).",
            "/failures?window=1h&status=open",
        ),
        (
            replace(WELL, roles=[load(completed=90, failed=10)], failures=OpenFailures(tasks=10, causes=1)),
            "critical",
            "10 tasks failed in the last hour and did not succeed since (1 cause).",
            "/failures?window=1h&status=open",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=0, active=0, down=0, disabled=0)),
            "critical",
            "No proxies: workers cannot start.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=4, active=0, down=3, disabled=1)),
            "critical",
            "No active proxy: no menus can be crawled.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=106, active=0, down=0, disabled=0)),
            "critical",
            "No active proxy yet: 106 of 106 untested; each is activated once its test succeeds.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=106, active=90, down=2, disabled=0)),
            "warning",
            "2 of 106 proxies are inactive, 14 untested.",
            "/proxies",
        ),
        (
            replace(WELL, workers=crew(live=0, claiming=0), supervisor=Supervisor(desired=0, error=None)),
            "critical",
            "No worker is running: the supervisor is scaled to 0.",
            "/workers",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=8, active=7, down=1, disabled=0)),
            "warning",
            "1 of 8 proxies is inactive.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=8, active=1, down=5, disabled=2)),
            "critical",
            "5 of 8 proxies are inactive.",
            "/proxies",
        ),
        (
            replace(
                WELL,
                closed_hosts=[
                    ClosedHost(
                        host="dutchie.com",
                        code="circuit",
                        reason="403 from every proxy.",
                        until=NOW + timedelta(minutes=5),
                    )
                ],
            ),
            "critical",
            "dutchie.com is blocked for another 5 min (circuit open): 403 from every proxy.",
            "/hosts/dutchie.com",
        ),
        (
            replace(WELL, closed_hosts=[ClosedHost(host="dutchie.com", code="paused", reason=None, until=None)]),
            "critical",
            "dutchie.com is blocked (paused by an operator): no reason given.",
            "/hosts/dutchie.com",
        ),
        (
            replace(
                WELL,
                late_schedules=[
                    LateSchedule(id=1, name="resync", due_at=NOW - timedelta(minutes=7), error="no stores")
                ],
            ),
            "warning",
            "Schedule resync is overdue by 7 min: no stores.",
            "/schedules",
        ),
        (
            replace(WELL, late_schedules=[LateSchedule(id=n, name="s", due_at=NOW, error=None) for n in (1, 2)]),
            "warning",
            "2 schedules are overdue.",
            "/schedules",
        ),
        (
            replace(WELL, stores=StoreCounts(known=10, crawled=8, never=0, stale=3)),
            "warning",
            "3 of 8 stores are stale: no successful crawl in twice the interval.",
            "/stores?freshness=stale",
        ),
        (
            replace(WELL, quarantined=1),
            "warning",
            "1 payload in quarantine: review needed.",
            "/quarantine",
        ),
    ],
)
def test_what_needs_somebody_is_said_with_the_place(seen: Overview, level: str, text: str, path: str) -> None:
    found = assess(seen)
    (one,) = found.findings
    assert (one.level, one.detail, one.path) == (level, text, path)
    assert found.level == level
    assert found.sentence == ("Critical: 1 issue." if level == "critical" else "Degraded: 1 issue.")


def test_workers_that_stop_are_not_called_paused() -> None:
    seen = replace(WELL, roles=[load(ready=3)], workers=crew(live=1, claiming=0, stopping=1))
    (one,) = assess(seen).findings
    assert (one.detail, one.mend) == ("No worker claims new tasks: the only one is stopping.", "menuwatch worker")
    (one,) = assess(replace(seen, workers=crew(live=3, claiming=0, paused=1, backing_off=1, stopping=1))).findings
    assert one.detail == "No worker claims new tasks: all 3 are paused, backing off or stopping."
    assert one.mend == "menuwatch workers resume"


def test_without_an_active_proxy_the_missing_workers_are_mended_by_adding_one() -> None:
    """`menuwatch up` starts none without an active proxy: to run it again would not help."""
    none = ProxyCounts(known=0, active=0, down=0, disabled=0)
    seen = replace(WELL, workers=crew(live=0, claiming=0), proxies=none, roles=[load(ready=1)])
    for supervisor, then in ((Supervisor(desired=1, error="none can start now"), ""), (None, ", then menuwatch up")):
        found = assess(replace(seen, supervisor=supervisor))
        assert [one.check for one in found.findings] == ["workers", "proxies"]
        workers = found.findings[0]
        assert workers.detail == "No worker is running: workers start once a proxy is active. 1 task pending."
        assert workers.mend == (
            "menuwatch proxies add http://USER:PASSWORD@HOST:PORT (in the dashboard: Proxies, “Add a proxy”)" + then
        )
        assert (workers.path, workers.act) == ("/proxies", "Add a proxy")


def test_failures_that_are_mended_and_an_idle_machine_that_others_use_are_no_issue() -> None:
    assert assess(replace(WELL, roles=[load(completed=10, failed=90)])).level == Level.OK, "each succeeded since"
    assert assess(replace(WELL, workers=crew(claiming=0, backing_off=15))).level == Level.OK, "nothing is ready"


def test_the_worst_comes_first_and_all_are_counted() -> None:
    hosts = [ClosedHost(host=f"h{n}", code="paused", reason="x", until=None) for n in range(7)]
    found = assess(replace(WELL, quarantined=2, closed_hosts=hosts, workers=crew(live=0, claiming=0)))
    assert [one.level for one in found.findings] == ["critical"] * 7 + ["warning"]
    assert found.findings[6].detail == "2 more are blocked."
    assert found.sentence == "Critical: 7 issues."


@pytest.mark.parametrize(
    ("worker_hours", "ready", "living", "text"),
    [
        (0.0, 0, 15, "Queue empty: no more workers needed."),
        (None, 2, 15, "2 tasks ready; not enough data to estimate: no such task completed in the last hour."),
        (30.0, 300, 0, "300 tasks ready, no worker online: start 30 workers to finish within an hour."),
        (30.0, 300, 10, "300 tasks ready, done in about 3 h. Add 20 workers to finish within an hour."),
        (10.0, 100, 10, "100 tasks ready, done in about 1 h: 10 workers are enough."),
        (0.001, 1, 1, "1 task ready, done in less than a minute: 1 worker is enough."),
    ],
)
def test_advice_says_how_many_workers_it_takes(worker_hours: float | None, ready: int, living: int, text: str) -> None:
    needed = {h: None if worker_hours is None else -int(-worker_hours // h) for h in (1, 4, 8)}
    hours = None if worker_hours is None or not living else worker_hours / living
    assert advice(Drain(worker_hours=worker_hours, hours=hours, needed=needed, unknown=[]), ready, living) == text


def test_paused_workers_are_not_enough() -> None:
    drain = Drain(worker_hours=30.0, hours=6.0, needed={1: 30, 4: 8, 8: 4}, unknown=[])
    assert advice(drain, 300, 10, paused=10) == (
        "300 tasks ready, but all 10 workers are paused: resume them to continue."
    )
    assert advice(drain, 300, 10, paused=5).endswith("Add 25 workers to finish within an hour.")
