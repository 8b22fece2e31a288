"""The schedules: what they say, what is changed, and what becomes of two who change one at once."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import httpx
import pytest

from menuwatch.dashboard.charts.timelines import ScheduleLane, day_strip
from menuwatch.db.pool import Pool
from menuwatch.queue.schedules import timetable as schedule_day
from menuwatch.queue.schedules.model import Schedule
from tests.dashboard import task_rows as given

NOW = datetime(2026, 11, 22, 10, 20, tzinfo=UTC)


@pytest.fixture
async def schedule(pool: Pool) -> int:
    """A schedule that fires in two hours."""
    found: int = await given.one(
        pool,
        "INSERT INTO task_schedules (name, role, interval_hours, next_run_at) "
        "VALUES ('fetch_all', 'payload_fetch', 4, now() + interval '2 hours') RETURNING id",
    )
    return found


def version(page: httpx.Response) -> str:
    """The version that a form was made from."""
    found = re.search(r'name="version" value="([^"]+)"', page.text)
    assert found is not None
    return found[1]


def form(page: httpx.Response, **changed: str) -> dict[str, str]:
    """What the form of a schedule would send."""
    kept = {"interval_hours": "4", "priority": "0", "role": "payload_fetch", "platform": "dutchie", "enabled": "1"}
    return {**kept, "version": version(page), **changed}


async def test_what_a_schedule_says(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    page = await admin.get("/admin/schedules")
    assert ("in 1 h" in page.text, "never" in page.text, "every 4 h" in page.text) == (True, True, True)
    assert "fetch_all fires at" in page.text, "the picture in words"
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE task_schedules SET next_run_at = now() - interval '3 hours', last_run_at = now() - interval '7 hours', "
            "last_task_count = 1, last_error = %s",
            ["<b>the database went away</b>"],
        )
    page = await admin.get("/admin/schedules")
    assert ("late by 3 h" in page.text, "1 task enqueued" in page.text) == (True, True)
    assert "&lt;b&gt;the database went away" in page.text
    assert "<b>the" not in page.text
    async with pool.connection() as conn:
        await conn.execute("UPDATE task_schedules SET enabled = false")
    page = await admin.get("/admin/schedules")
    assert ("fetch_all is disabled" in page.text, "late by" in page.text) == (True, False)


async def test_none_and_one_that_does_not_exist(admin: httpx.AsyncClient) -> None:
    assert "No schedules" in (await admin.get("/admin/schedules")).text
    assert (await admin.get("/admin/schedules/77")).status_code == 404


async def test_run_now_and_its_history(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    nothing = await admin.post(f"/admin/schedules/{schedule}/run")
    assert nothing.status_code == 303
    await given.store(pool)
    await admin.post(f"/admin/schedules/{schedule}/run")
    assert await given.one(pool, "SELECT count(*) FROM task_live WHERE role = 'payload_fetch'") == 1
    page = await admin.get(f"/admin/schedules/{schedule}")
    assert ("no stores due" in page.text, ">enqueued<" in page.text) == (True, True)
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO schedule_runs (schedule_id, fire_at, ran_at, task_count, error) "
            "SELECT %s, now() - n * interval '1 hour', now(), n, CASE WHEN n = 40 THEN 'refused' END FROM generate_series(1, 40) n",
            [schedule],
        )
    seen: list[str] = []
    path: str | None = f"/admin/schedules/{schedule}"
    while path is not None:
        page = await admin.get(path)
        rows = page.text[page.text.index("<tbody>") : page.text.index("</tbody>")]
        seen += re.findall(r'data-label="Planned for"[^>]*><time[^>]* datetime="([^"]+)"', rows)
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = unescape(following[1]) if following else None
    assert len(seen) == 42
    assert seen == sorted(seen, reverse=True)
    assert "refused" in page.text, "the oldest is last"


async def test_a_schedule_is_added_and_removed(admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool) -> None:
    assert 'href="/admin/schedules/add"' in (await admin.get("/admin/schedules")).text
    assert 'value="4"' in (await admin.get("/admin/schedules/add")).text
    values = {"name": "fetch_az", "role": "payload_fetch", "platform": "dutchie", "interval_hours": "0.5",
              "priority": "7", "state_code": "az", "enabled": "1"}  # fmt: skip
    for wrong, says in (
        ({"name": ""}, "1 to 80 printable characters"),
        ({"name": "7"}, "could be mistaken for the id"),
        ({"interval_hours": "often"}, "a number of hours from 0.01"),
        ({"state_code": "ZZ"}, "unknown state"),
        ({"role": "analytics_refresh"}, "covers all states"),
    ):
        page = await admin.post("/admin/schedules/add", data={**values, **wrong})
        assert (page.status_code, says in unescape(page.text)) == (422, True), (wrong, page.text)
        assert 'value="7"' in page.text, "what was typed is kept"
    assert (await viewer.post("/admin/schedules/add", data=values)).status_code == 403
    assert (await admin.post("/admin/schedules/add", data=values)).headers["location"] == "/admin/schedules"
    assert "fetch_az created: every 30 min." in (await admin.get("/admin/schedules")).text
    again = await admin.post("/admin/schedules/add", data=values)
    assert (again.status_code, "exists already" in again.text) == (422, True)
    row = "SELECT concat_ws(' ', role, interval_hours::float8, priority, state_code, enabled) FROM task_schedules"
    assert await given.one(pool, row) == "payload_fetch 0.5 7 AZ t"
    number = await given.one(pool, "SELECT id FROM task_schedules")
    assert f'action="/admin/schedules/{number}/remove"' in (await admin.get(f"/admin/schedules/{number}")).text
    assert (await viewer.post(f"/admin/schedules/{number}/remove")).status_code == 403
    assert (await admin.post(f"/admin/schedules/{number}/remove")).status_code == 303
    assert await given.one(pool, "SELECT count(*) FROM task_schedules") == 0


async def test_switching_off_and_on(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    for on in (False, True):
        await admin.post(f"/admin/schedules/{schedule}/switch", data={"on": str(int(on))})
        assert await given.one(pool, "SELECT enabled FROM task_schedules") is on


async def test_a_change_and_a_stale_one(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    path = f"/admin/schedules/{schedule}"
    mine = await admin.get(path)
    # A firing meanwhile is no change by anybody.
    await admin.post(f"{path}/run")
    answer = await admin.post(path, data=form(mine, interval_hours="0.5", priority="7", state_code="az"))
    assert answer.status_code == 303
    row = "SELECT interval_hours::float8 || ' ' || priority || ' ' || state_code FROM task_schedules"
    assert await given.one(pool, row) == "0.5 7 AZ"
    # The form sends every field: on record, and in the audit, is what is another one now.
    done = "SELECT details FROM audit_log WHERE action = 'schedule_changed'"
    assert await given.one(pool, done) == {
        "before": {"interval_hours": "4", "priority": 0, "state_code": None},
        "after": {"interval_hours": "0.5", "priority": 7, "state_code": "AZ"},
    }
    assert "interval hours:</span> 4 → 0.5" in (await admin.get("/admin/audit")).text
    stale = await admin.post(path, data=form(mine, priority="9"))
    assert stale.status_code == 412
    text = unescape(stale.text)
    assert "Both versions" in text
    assert re.search(r"Priority.*?<ins class=\"after\">9</ins>.*?<del class=\"before\">7</del>", text, re.DOTALL)
    assert 'value="9"' in text, "what was typed is kept"
    assert await given.one(pool, row) == "0.5 7 AZ"
    again = await admin.post(path, data=form(stale, priority="9"))
    assert again.status_code == 303
    assert await given.one(pool, "SELECT priority FROM task_schedules") == 9


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"interval_hours": "soon"}, "enter a number of hours from 0.01"),
        ({"interval_hours": "0"}, "36 seconds"),
        ({"interval_hours": "NaN"}, "36 seconds"),
        ({"interval_hours": ""}, "required"),
        ({"priority": "1001"}, "too large"),
        ({"role": "product_refresh"}, "is not one of"),
        ({"platform": "nowhere"}, "is not one of"),
        ({"state_code": "ZZ"}, "unknown state"),
    ],
)
async def test_what_cannot_be_used_is_said_beside_its_field(
    admin: httpx.AsyncClient, pool: Pool, schedule: int, changed: dict[str, str], said: str
) -> None:
    page = await admin.get(f"/admin/schedules/{schedule}")
    answer = await admin.post(f"/admin/schedules/{schedule}", data=form(page, **changed))
    assert answer.status_code == 422
    (name,) = changed
    wrong = re.search(rf'class="wrong" id="h-{name}">([^<]*)<', answer.text)
    assert wrong is not None
    assert said in unescape(wrong[1])


async def test_a_days_crawls_are_planned(admin: httpx.AsyncClient, pool: Pool) -> None:
    for n in range(4):
        await given.store(pool, f"s-{n}")
    page = await admin.get("/admin/schedules/resync")
    assert "4 stores that can be crawled" in page.text
    day = (datetime.now(UTC) + timedelta(days=1)).date()
    good: dict[str, Any] = {"batches": "2", "day": day.isoformat(), "timezone": "America/Phoenix"}
    for field, value, said in [
        ("batches", "0", "too small"),
        ("batches", "", "enter the number of batches per day"),
        ("day", "tomorrow", "is not a date"),
        ("day", date(2020, 1, 1).isoformat(), "not for 2020-01-01"),
        ("timezone", "America/Nowhere", "unknown time zone 'America/Nowhere'"),
    ]:
        answer = await admin.post("/admin/schedules/resync", data={**good, field: value})
        assert answer.status_code == 422
        assert said in unescape(answer.text), (field, value)
    answer = await admin.post("/admin/schedules/resync", data=good)
    assert answer.headers["location"] == "/admin/schedules"
    assert await given.one(pool, "SELECT count(*) FROM resync_plan WHERE day = %s", [day]) == 4
    assert (await admin.post("/admin/schedules/resync", data=good)).status_code == 303


async def test_a_search_for_stores(admin: httpx.AsyncClient, pool: Pool) -> None:
    wrong = await admin.post("/admin/schedules/discovery", data={"platform": "dutchie", "state_code": "ZZ"})
    assert wrong.status_code == 422
    assert "unknown state" in unescape(wrong.text)
    answer = await admin.post("/admin/schedules/discovery", data={"platform": "dutchie", "state_code": "az"})
    number = int(answer.headers["location"].rpartition("/")[2])
    assert await given.one(pool, "SELECT payload ->> 'state' FROM worker_tasks WHERE id = %s", [number]) == "AZ"


def _schedule(**more: Any) -> Schedule:
    values: dict[str, Any] = {
        "id": 1, "name": "all", "role": "payload_fetch", "platform": "dutchie", "enabled": True, "interval_hours": Decimal(6),
        "priority": 0, "state_code": None, "catch_up": "once", "last_run_at": None, "next_run_at": NOW + timedelta(hours=1),
        "cron": None, "timezone": None, "paused_at": None,
        "late_seconds": 0, "last_task_count": None, "last_error": None, "created_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    return Schedule(**{**values, **more})


async def test_firings_of_the_next_day(pool: Pool) -> None:
    async def hours(schedule: Schedule) -> list[float]:
        async with pool.connection() as conn:
            return [(at - NOW) / timedelta(hours=1) for at in await schedule_day.next_runs(conn, schedule, NOW)]

    assert await hours(_schedule()) == [1, 7, 13, 19]
    late = _schedule(next_run_at=NOW - timedelta(hours=7))
    # Due since seven hours: once at once, then on the grid (−7, −1, 5, 11 …).
    assert await hours(late) == [0, 5, 11, 17, 23]
    assert await hours(_schedule(enabled=False)) == []
    # 02:00 and 14:00 in Phoenix are 09:00 and 21:00 UTC; it is 10:20 UTC.
    cron = _schedule(cron="0 2,14 * * *", timezone="America/Phoenix", next_run_at=NOW.replace(hour=21, minute=0))
    assert await hours(cron) == [pytest.approx(10 + 40 / 60), pytest.approx(22 + 40 / 60)]


async def test_a_cron_line_is_previewed_and_saved(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    path = f"/admin/schedules/{schedule}"
    page = await admin.get(path)
    line = {"interval_hours": "", "cron": "02:30", "timezone": "America/Phoenix"}
    shown = await admin.post(path, data=form(page, **line, preview="1"))
    times = re.findall(r"\d{4}-\d\d-\d\d 09:30:00 UTC", shown.text)
    assert (shown.status_code, len(set(times))) == (200, 5), "02:30 in Phoenix is 09:30 UTC all year"
    assert await given.one(pool, "SELECT cron FROM task_schedules") is None, "nothing was saved"
    wrong = await admin.post(path, data=form(page, **{**line, "cron": "0 25 * * *"}))
    assert (wrong.status_code, wrong.text.count('class="wrong"')) == (422, 1)
    assert (await admin.post(path, data=form(page, **line))).status_code == 303
    assert "daily at 02:30 America/Phoenix" in (await admin.get("/admin/schedules")).text
    due = await given.one(pool, "SELECT next_run_at FROM task_schedules")
    assert (due.astimezone(UTC).hour, due.minute) == (9, 30)
    page = await admin.get(path)
    assert (await admin.post(path, data=form(page, interval_hours="6"))).status_code == 303, "by an interval again"
    assert await given.one(pool, "SELECT (cron, timezone) IS NULL AND interval_hours = 6 FROM task_schedules") is True


async def test_all_are_paused_and_those_that_were_enabled_resume(
    admin: httpx.AsyncClient, pool: Pool, schedule: int
) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO task_schedules (name, role, interval_hours, enabled, next_run_at) "
            "VALUES ('off', 'payload_fetch', 4, false, now())"
        )
    enabled = "SELECT array_agg(enabled ORDER BY id) FROM task_schedules"
    assert (await admin.post("/admin/schedules/pause")).status_code == 303
    assert await given.one(pool, enabled) == [False, False]
    page = (await admin.get("/admin/schedules")).text
    assert (">paused<" in page, ">disabled<" in page, "Resume all (1)" in page) == (True, True, True)
    path = f"/admin/schedules/{schedule}"
    data = form(await admin.get(path), priority="7", enabled="")
    assert (await admin.post(path, data=data)).status_code == 303
    assert (await admin.post("/admin/schedules/resume")).status_code == 303
    assert await given.one(pool, enabled) == [True, False], "the other one was disabled before"


async def test_how_many_runs_succeeded(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO schedule_runs (schedule_id, fire_at, ran_at, error) "
            "SELECT %s, now() - n * interval '1 day', now(), CASE WHEN n %% 10 = 0 THEN 'refused' END "
            "FROM generate_series(1, 40) n",
            [schedule],
        )
    assert "(93.1 %)" in (await admin.get(f"/admin/schedules/{schedule}")).text, "27 of the 29 of the last 30 days"


def test_the_strip_says_in_words_what_it_draws() -> None:
    lanes = [
        ScheduleLane(name="<all>", moments=[(NOW + timedelta(hours=h), None) for h in (1, 7)]),
        ScheduleLane(name="off", moments=[], off=True),
        ScheduleLane(name="often", moments=[(NOW + timedelta(minutes=n), None) for n in range(1440)]),
        ScheduleLane(name="planned crawls", moments=[(NOW + timedelta(hours=h), 10 * h) for h in (1, 2)]),
    ]
    picture = str(day_strip(lanes, NOW))
    for said in ("&lt;all&gt; fires at 11:20, 17:20 UTC", "off is disabled", "planned crawls: 30 in the next 24 hours"):
        assert said in picture
    assert picture.count('class="firing"') == 2 + 96, (
        "two marks; and of what fires each minute a bar for each quarter of an hour"
    )
    assert picture.count("15 runs in 15 minutes") == 96
    assert "<all>" not in picture
    assert " style=" not in picture


async def test_states_of_discovery_are_chosen(admin: httpx.AsyncClient, pool: Pool) -> None:
    path = "/admin/schedules/discovery"
    assert "is off" in (await admin.get(path)).text
    nothing = await admin.post(f"{path}/states", data={"platform": "dutchie", "where": "chosen"})
    assert nothing.status_code == 303
    enabled = "SELECT string_agg(state_code, ' ' ORDER BY state_code) FROM task_schedules WHERE role = 'store_discovery' AND enabled"
    assert await given.one(pool, enabled) is None
    await admin.post(f"{path}/states", data={"platform": "dutchie", "where": "chosen", "state": ["AZ", "NV"]})
    assert await given.one(pool, enabled) == "AZ NV"
    page = (await admin.get(path)).text
    assert re.findall(r'value="(\w\w)" id="state-\w\w" data-keep checked', page) == ["AZ", "NV"]
    await admin.post(f"{path}/states", data={"platform": "dutchie", "where": "off", "state": ["AZ"]})
    assert await given.one(pool, enabled) is None
