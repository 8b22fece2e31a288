"""The schedules: what they say, what is changed, and what becomes of two who change one at once."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import httpx
import pytest

from menuwatch.dashboard.svg.day_strip import Lane, day_strip
from menuwatch.db.pool import Pool
from menuwatch.operations import schedule_day
from menuwatch.schedules.model import Schedule
from tests.dashboard import tasks as given

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
    assert ("in 1 h" in page.text, "never" in page.text, ">4 h<" in page.text) == (True, True, True)
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
    assert "There are no schedules" in (await admin.get("/admin/schedules")).text
    assert (await admin.get("/admin/schedules/77")).status_code == 404


async def test_run_now_and_its_history(admin: httpx.AsyncClient, pool: Pool, schedule: int) -> None:
    nothing = await admin.post(f"/admin/schedules/{schedule}/run")
    assert nothing.status_code == 303
    await given.store(pool)
    await admin.post(f"/admin/schedules/{schedule}/run")
    assert await given.one(pool, "SELECT count(*) FROM task_live WHERE role = 'payload_fetch'") == 1
    page = await admin.get(f"/admin/schedules/{schedule}")
    assert ("nothing was due" in page.text, ">enqueued<" in page.text) == (True, True)
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
        seen += re.findall(r'data-label="Planned for"[^>]*>([^<]+)<', rows)
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = unescape(following[1]) if following else None
    assert len(seen) == 42
    assert seen == sorted(seen, reverse=True)
    assert "refused" in page.text, "the oldest is last"


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
        ({"interval_hours": "soon"}, "is no number of hours"),
        ({"interval_hours": "0"}, "36 seconds"),
        ({"interval_hours": "NaN"}, "36 seconds"),
        ({"interval_hours": ""}, "this is needed"),
        ({"priority": "1001"}, "too large"),
        ({"role": "product_refresh"}, "is not one of"),
        ({"platform": "nowhere"}, "is not one of"),
        ({"state_code": "ZZ"}, "does not exist"),
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
        ("batches", "", "is needed"),
        ("day", "tomorrow", "is no date"),
        ("day", date(2020, 1, 1).isoformat(), "not for 2020-01-01"),
        ("timezone", "America/Nowhere", "'America/Nowhere' does not exist"),
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
    assert "does not exist" in unescape(wrong.text)
    answer = await admin.post("/admin/schedules/discovery", data={"platform": "dutchie", "state_code": "az"})
    number = int(answer.headers["location"].rpartition("/")[2])
    assert await given.one(pool, "SELECT payload ->> 'state' FROM worker_tasks WHERE id = %s", [number]) == "AZ"


def _schedule(**more: Any) -> Schedule:
    values: dict[str, Any] = {
        "id": 1, "name": "all", "role": "payload_fetch", "platform": "dutchie", "enabled": True, "interval_hours": Decimal(6),
        "priority": 0, "state_code": None, "catch_up": "once", "last_run_at": None, "next_run_at": NOW + timedelta(hours=1),
        "last_task_count": None, "last_error": None, "created_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    return Schedule(**{**values, **more})


def test_firings_of_the_next_day() -> None:
    assert [(at - NOW) / timedelta(hours=1) for at in schedule_day.firings(_schedule(), NOW)] == [1, 7, 13, 19]
    late = _schedule(next_run_at=NOW - timedelta(hours=7))
    # Due since seven hours: once at once, then on the grid (−7, −1, 5, 11 …).
    assert [(at - NOW) / timedelta(hours=1) for at in schedule_day.firings(late, NOW)] == [0, 5, 11, 17, 23]
    assert schedule_day.firings(_schedule(enabled=False), NOW) == []


def test_the_strip_says_in_words_what_it_draws() -> None:
    lanes = [
        Lane(name="<all>", moments=[(NOW + timedelta(hours=h), None) for h in (1, 7)]),
        Lane(name="off", moments=[], off=True),
        Lane(name="often", moments=[(NOW + timedelta(minutes=n), None) for n in range(1440)]),
        Lane(name="planned crawls", moments=[(NOW + timedelta(hours=h), 10 * h) for h in (1, 2)]),
    ]
    picture = str(day_strip(lanes, NOW))
    for said in ("&lt;all&gt; fires at 11:20, 17:20 UTC", "off is disabled", "planned crawls: 30 in the next 24 hours"):
        assert said in picture
    assert picture.count('class="firing"') == 3, "what fires each minute is one band"
    assert "<all>" not in picture
    assert " style=" not in picture
