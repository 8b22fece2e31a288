"""The sentence of the overview, and what it says needs somebody."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from menuwatch.dashboard.attention import health
from menuwatch.dashboard.staffing import advice
from menuwatch.operations.overview import (
    ClosedHost,
    Crew,
    Drain,
    LateSchedule,
    Overview,
    ProxyCounts,
    RoleLoad,
    StoreCounts,
)
from menuwatch.tasks.capacity import Capacity
from tests.dashboard.crew import NOW

CREW = Crew(live=15, claiming=15, backing_off=0, paused=0, silent=0, slots=45, pods=3)


def load(ready: int = 0, completed: int = 100, failed: int = 0, stale: int = 0) -> RoleLoad:
    return RoleLoad(
        role="payload_fetch",
        ready=ready,
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
            claimed_tasks=0,
            running_tasks=0,
            completed_last_hour=completed,
            failed_last_hour=failed,
            active_workers=15,
            avg_duration_sec=2.0,
            tasks_per_worker_hour=10.0,
            estimated_hours_to_drain=0.5,
        ),
    )


WELL = Overview(
    at=NOW, roles=[load()], series=[], drain=Drain(worker_hours=0, hours=0, needed={1: 0, 4: 0, 8: 0}, unknown=[]), workers=CREW,
    late_schedules=[], closed_hosts=[], proxies=ProxyCounts(known=8, active=8, down=0, disabled=0),
    stores=StoreCounts(known=10, crawled=10, never=0, stale=0), quarantined=0,
)  # fmt: skip


def crew(**changes: int) -> Crew:
    return msgspec.structs.replace(CREW, **changes)


def test_nothing_to_do_is_called_well() -> None:
    found = health(WELL, 0)
    assert (found.kind, found.needs) == ("good", ())
    assert found.sentence == "All is well: 15 workers are there, and nothing waits for them."
    drain = Drain(worker_hours=7.5, hours=0.5, needed={1: 8, 4: 2, 8: 1}, unknown=[])
    busy = health(replace(WELL, roles=[load(ready=75)], drain=drain), 0)
    assert busy.sentence == "All is well: 15 workers are there, and what waits is done in about 30 min."


@pytest.mark.parametrize(
    ("seen", "causes", "kind", "text", "path"),
    [
        (
            replace(WELL, workers=crew(live=0, claiming=0), roles=[load(ready=3)]),
            0,
            "bad",
            "No worker is running. 3 tasks wait.",
            "/workers",
        ),
        (replace(WELL, workers=crew(live=0, claiming=0)), 0, "bad", "No worker is running.", "/workers"),
        (
            replace(WELL, workers=crew(claiming=0, paused=15), roles=[load(ready=1)]),
            0,
            "bad",
            "No worker takes new tasks: all 15 are paused.",
            "/workers",
        ),
        (replace(WELL, workers=crew(paused=1)), 0, "warn", "1 worker is paused.", "/workers?state=paused"),
        (
            replace(WELL, workers=crew(claiming=7, backing_off=8)),
            0,
            "warn",
            "8 of 15 workers are backing off: the machine is full.",
            "/workers",
        ),
        (
            replace(WELL, workers=crew(silent=2)),
            0,
            "warn",
            "2 workers sent no heartbeat for two minutes or longer.",
            "/workers?state=silent",
        ),
        (
            replace(WELL, roles=[load(stale=2)]),
            0,
            "warn",
            "2 tasks are held by a silent worker.",
            "/tasks?q=state:stale",
        ),
        (
            replace(WELL, roles=[load(completed=96, failed=4)]),
            2,
            "warn",
            "4 tasks failed for good in the last hour, of 2 causes.",
            "/failures?window=1h",
        ),
        (
            replace(WELL, roles=[load(completed=90, failed=10)]),
            1,
            "bad",
            "10 tasks failed for good in the last hour, of 1 cause.",
            "/failures?window=1h",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=0, active=0, down=0, disabled=0)),
            0,
            "bad",
            "There is no proxy yet: workers do not start without one.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=4, active=0, down=3, disabled=1)),
            0,
            "bad",
            "No proxy is active: nothing can be crawled.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=8, active=7, down=1, disabled=0)),
            0,
            "warn",
            "1 of 8 proxies is down.",
            "/proxies",
        ),
        (
            replace(WELL, proxies=ProxyCounts(known=8, active=1, down=5, disabled=2)),
            0,
            "bad",
            "5 of 8 proxies are down.",
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
            0,
            "bad",
            "dutchie.com is not asked for another 5 min: 403 from every proxy.",
            "/hosts",
        ),
        (
            replace(WELL, closed_hosts=[ClosedHost(host="dutchie.com", code="blocked", reason=None, until=None)]),
            0,
            "bad",
            "dutchie.com is not asked until somebody opens it: no reason given.",
            "/hosts",
        ),
        (
            replace(
                WELL,
                late_schedules=[
                    LateSchedule(id=1, name="resync", due_at=NOW - timedelta(minutes=7), error="no stores")
                ],
            ),
            0,
            "warn",
            "The schedule resync should have fired 7 min ago: no stores.",
            "/schedules",
        ),
        (
            replace(WELL, late_schedules=[LateSchedule(id=n, name="s", due_at=NOW, error=None) for n in (1, 2)]),
            0,
            "warn",
            "2 schedules should have fired already.",
            "/schedules",
        ),
        (
            replace(WELL, stores=StoreCounts(known=10, crawled=8, never=0, stale=3)),
            0,
            "warn",
            "3 of 8 stores have an old menu: none for twice the interval.",
            "/stores?freshness=stale",
        ),
        (
            replace(WELL, quarantined=1),
            0,
            "warn",
            "1 payload is in quarantine: not readable as a menu.",
            "/payloads?status=quarantined",
        ),
    ],
)
def test_what_needs_somebody_is_said_with_the_place(
    seen: Overview, causes: int, kind: str, text: str, path: str
) -> None:
    found = health(seen, causes)
    (need,) = found.needs
    assert (need.kind, need.text, need.path) == (kind, text, path)
    assert found.kind == kind
    assert found.sentence == (
        "Something is wrong and needs you now." if kind == "bad" else "It works, but one thing needs somebody to look."
    )


def test_the_worst_comes_first_and_all_are_counted() -> None:
    hosts = [ClosedHost(host=f"h{n}", code="blocked", reason="x", until=None) for n in range(5)]
    found = health(replace(WELL, quarantined=2, closed_hosts=hosts, workers=crew(live=0, claiming=0)), 0)
    assert [need.kind for need in found.needs] == ["bad"] * 5 + ["warn"]
    assert found.needs[4].text == "2 more hosts are not asked."
    assert found.sentence == "5 things are wrong and need you now."


@pytest.mark.parametrize(
    ("worker_hours", "ready", "living", "text"),
    [
        (0.0, 0, 15, "Nothing waits: no more workers are needed for now."),
        (None, 2, 15, "2 tasks wait, and none of that kind was completed in the last hour: there is no pace to go by."),
        (30.0, 300, 0, "300 tasks wait and nobody works: 30 workers would have it done within an hour."),
        (30.0, 300, 10, "300 tasks wait, which takes about 3 h. With 20 more workers it would be done within an hour."),
        (10.0, 100, 10, "100 tasks wait, which takes about 1 h: 10 workers are enough."),
        (0.001, 1, 1, "1 task waits, which takes less than a minute: 1 worker is enough."),
    ],
)
def test_advice_says_how_many_workers_it_takes(worker_hours: float | None, ready: int, living: int, text: str) -> None:
    needed = {h: None if worker_hours is None else -int(-worker_hours // h) for h in (1, 4, 8)}
    hours = None if worker_hours is None or not living else worker_hours / living
    assert advice(Drain(worker_hours=worker_hours, hours=hours, needed=needed, unknown=[]), ready, living) == text


def test_paused_workers_are_not_enough() -> None:
    drain = Drain(worker_hours=30.0, hours=6.0, needed={1: 30, 4: 8, 8: 4}, unknown=[])
    assert advice(drain, 300, 10, paused=10) == (
        "300 tasks wait, and all 10 workers are paused: nothing is taken until they are resumed."
    )
    assert advice(drain, 300, 10, paused=5).endswith("With 25 more workers it would be done within an hour.")
