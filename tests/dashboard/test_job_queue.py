"""The job queue: what is shown of each pod, and work that is asked for by hand."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from menuwatch.dashboard.pages.timeline import moves
from menuwatch.db.pool import Pool
from tests.dashboard.worker_rows import enter, hold

ENQUEUE = "/admin/job-queue/enqueue"


async def stores(
    pool: Pool, *, state: str = "AZ", count: int = 3, prefix: str = "s", crawled: str = "now()"
) -> list[int]:
    """Stores that can be crawled, the last crawl at that time."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "INSERT INTO dispensaries (name, name_raw, slug, platform, menu_url, state, platform_dispensary_id, crawl_enabled, "
            f"last_crawled_at) SELECT 'Store ' || n, 'Store ' || n, '{prefix}-' || n, 'dutchie', 'https://x/' || n, '{state}', "
            f"'{prefix}' || n, true, {crawled} FROM generate_series(1, {count}) n RETURNING id"
        )
        return [row[0] for row in await cursor.fetchall()]


async def waiting(pool: Pool) -> list[tuple[str, int | None, int]]:
    async with pool.connection() as conn:
        cursor = await conn.execute("SELECT role, dispensary_id, priority FROM task_live ORDER BY id")
        return await cursor.fetchall()


async def test_a_pod_filters_what_is_in_hand(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", pod="Xylos")
    await enter(pool, "bruno", pod="Kryll & <sons>")
    first, second = await hold(pool, "ada"), await hold(pool, "bruno")
    page = (await admin.get("/admin/job-queue")).text
    assert f"/admin/tasks/{first}" in page
    assert f"/admin/tasks/{second}" in page
    assert 'href="/admin/job-queue?pod=Kryll+%26+%3Csons%3E"' in page
    one = (await admin.get("/admin/job-queue", params={"pod": "Kryll & <sons>"})).text
    assert f"/admin/tasks/{first}" not in one
    assert f"/admin/tasks/{second}" in one
    assert "Running on Kryll &amp; &lt;sons&gt;" in one
    gone = (await admin.get("/admin/job-queue?pod=Vantor")).text
    assert "Pod Vantor not found: showing all pods." in gone
    assert f"/admin/tasks/{first}" in gone


async def test_what_is_next_stands_in_the_order_of_claiming(admin: httpx.AsyncClient, pool: Pool) -> None:
    found = await stores(pool)
    async with pool.connection() as conn:
        for store, role, priority in zip(
            found, ("payload_fetch", "product_discovery", "payload_fetch"), (0, 20, 10), strict=True
        ):
            await conn.execute(
                "INSERT INTO worker_tasks (role, dispensary_id, priority) VALUES (%s, %s, %s)", [role, store, priority]
            )
    page = (await admin.get("/admin/job-queue")).text
    assert re.findall(r"priority (\d+)", page) == ["20", "10", "0"]
    assert "3 ready · 0 scheduled · 0 of 0 slots busy." in page
    assert "No worker is running" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("role=dancing", "&#39;dancing&#39; is not one of payload_fetch"),
        ("role=payload_fetch&scope=everybody", "&#39;everybody&#39; is not one of store, state, due, all"),
        ("role=payload_fetch", "enter the store&#39;s name, slug or ID"),
        ("role=payload_fetch&store=<b>", "store &#39;&lt;b&gt;&#39; does not exist"),
        ("role=payload_fetch&scope=state", "choose a state"),
        ("role=payload_fetch&scope=state&state=ZZ", "no stores in &#39;ZZ&#39;: stores exist in AZ"),
        ("role=payload_fetch&scope=all", "payload_fetch needs a store or a group of stores"),
        ("role=store_discovery&scope=due", "store_discovery does not work on single stores: choose “All stores”"),
        ("role=entry_point_discovery&scope=due", "for several stores, use one of: payload_fetch, product_discovery"),
        ("role=payload_fetch&priority=soon", "a whole number from -1,000 to 1,000, not &#39;soon&#39;"),
        ("role=payload_fetch&priority=9999", "9,999 is too large"),
    ],
)
async def test_what_cannot_be_asked_for_is_said_beside_the_field(
    admin: httpx.AsyncClient, pool: Pool, query: str, said: str
) -> None:
    await stores(pool)
    answer = await admin.get(f"{ENQUEUE}?{query}")
    assert answer.status_code == 422
    assert said in answer.text
    again = await admin.post(ENQUEUE, data=dict(part.split("=") for part in query.split("&")))
    assert (again.status_code, said in again.text) == (422, True)
    assert await waiting(pool) == []


async def test_one_store_is_named_by_its_slug_and_does_not_wait_twice(admin: httpx.AsyncClient, pool: Pool) -> None:
    first, *_ = await stores(pool)
    form = {"role": "payload_fetch", "scope": "store", "store": "s-1", "priority": "20"}
    shown = (await admin.get(ENQUEUE, params=form)).text
    assert "<strong>1 task</strong> of payload_fetch for Store 1, priority 20." in shown
    assert await waiting(pool) == []
    assert (await admin.post(ENQUEUE, data=form)).headers["location"] == "/admin/job-queue"
    assert await waiting(pool) == [("payload_fetch", first, 20)]
    again = (await admin.get(ENQUEUE, params=form)).text
    assert "<strong>0 tasks</strong>" in again
    assert "Already queued" in again
    await admin.post(ENQUEUE, data=form)
    assert len(await waiting(pool)) == 1


async def test_stores_that_are_due_are_counted_and_then_enqueued(admin: httpx.AsyncClient, pool: Pool) -> None:
    due = await stores(pool, count=4, crawled="now() - interval '30 days'")
    await stores(pool, count=2, prefix="fresh")
    await stores(pool, count=3, prefix="ca", state="CA", crawled="NULL")
    async with pool.connection() as conn:
        await conn.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = %s", [due[0]])
        await conn.execute("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', %s)", [due[1]])
        await conn.execute("UPDATE task_live SET uniq = 1 WHERE dispensary_id = %s", [due[1]])
    form = {"role": "payload_fetch", "scope": "due", "state": "az"}
    shown = (await admin.get(ENQUEUE, params=form)).text
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd[^>]*>([\d,]+)", shown))
    assert facts == {"Stores": "6", "Skipped": "1", "Not due yet": "2", "Already queued": "1", "New tasks": "2"}
    assert "Enqueue 2 tasks" in shown
    await admin.post(ENQUEUE, data=form)
    assert "2 tasks enqueued: payload_fetch." in (await admin.get("/admin/job-queue")).text
    assert await waiting(pool) == [
        ("payload_fetch", store, priority) for store, priority in zip(due[1:], (0, 10, 10), strict=True)
    ]
    everywhere = (await admin.get(ENQUEUE, params={"role": "payload_fetch", "scope": "due"})).text
    assert "Enqueue 3 tasks" in everywhere
    state = (await admin.get(ENQUEUE, params={"role": "payload_fetch", "scope": "state", "state": "CA"})).text
    assert "Enqueue 3 tasks" in state


async def test_work_for_the_whole_installation(admin: httpx.AsyncClient, pool: Pool) -> None:
    await admin.post(ENQUEUE, data={"role": "analytics_refresh", "scope": "all"})
    assert await waiting(pool) == [("analytics_refresh", None, 10)]


async def test_a_viewer_sees_the_queue_and_not_the_form(viewer: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada")
    page = (await viewer.get("/admin/job-queue")).text
    assert "Xylos" in page
    assert "Enqueue" not in page
    assert (await viewer.get(ENQUEUE)).status_code == 403
    assert (await viewer.post(ENQUEUE, data={"role": "analytics_refresh", "scope": "all"})).status_code == 403
    assert await waiting(pool) == []


async def test_the_timeline_of_nobody_and_of_somebody(admin: httpx.AsyncClient, pool: Pool) -> None:
    assert "No tasks in this period" in (await admin.get("/admin/job-queue/timeline")).text
    await enter(pool, "ada")
    await hold(pool, "ada")
    page = (await admin.get("/admin/job-queue/timeline?hours=1&pod=Xylos")).text
    assert 'aria-label="1 task, 0 failed' in page
    assert (await admin.get("/admin/job-queue/timeline?hours=99")).status_code == 422


async def test_the_address_of_a_timeline_holds_its_time(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada")
    number = await hold(pool, "ada")
    running = (await admin.get("/admin/job-queue/timeline?pod=Xylos")).text
    assert 'data-live="tasks,workers,hosts"' in running
    # What the script is given, and what is there without it: the task, its worker's tasks of that time, and links to zoom.
    assert f'"bars":[[{number},' in running
    assert f'href="/admin/tasks/{number}"' in running
    assert "/admin/tasks?q=worker%3Aada%20ended%3A%3E%3D" in running
    links = dict(re.findall(r'data-zoom="(\w+)" href="([^"]+)"', running))
    assert sorted(links) == ["earlier", "in", "out"]
    earlier = (await admin.get(links["earlier"].replace("&amp;", "&"))).text
    assert 'data-live=""' in earlier
    assert "No tasks in this period" in earlier, "Ada's task began just now"
    assert '<option value="Xylos" selected>' in earlier
    assert 'data-zoom="later"' in earlier


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=2026-01-01T00:00:00Z", "give both `since` and `until`, or `hours`"),
        (
            "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
            "`since` must be before `until`, by at most 24 hours",
        ),
        ("since=2026-01-01T00:00:00Z&until=2026-01-03T00:00:00Z", "by at most 24 hours"),
        ("since=2999-01-01T00:00:00Z&until=2999-01-01T01:00:00Z", "not in the future"),
        ("since=yesterday&until=2026-01-01", "since"),
    ],
)
async def test_a_time_that_is_none_is_refused(admin: httpx.AsyncClient, query: str, said: str) -> None:
    answer = await admin.get(f"/admin/job-queue/timeline?{query}")
    assert answer.status_code in {400, 422}
    assert said.replace("`", "") in re.sub("<[^>]+>|`", "", answer.text)


async def test_events_of_a_timeline_lead_to_their_hosts_and_workers(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "a/da")
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO host_events (host, kind, reason) VALUES ('a.com:8080', 'circuit_opened', '<refused>')"
        )
    page = (await admin.get("/admin/job-queue/timeline")).text
    assert 'href="/admin/hosts/a.com%3A8080"' in page
    assert 'href="/admin/workers/a%2Fda"' in page
    assert "Circuit opened" in page
    assert "&lt;refused&gt;" in page


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("since", "until", "led"),
    [
        # Up to now: there is no later, and zooming out ends now.
        (NOON - 2 * HOUR, NOON, {
            "earlier": (NOON - 3 * HOUR, NOON - HOUR), "in": (NOON - 1.5 * HOUR, NOON - 0.5 * HOUR), "out": (NOON - 4 * HOUR, NOON),
        }),
        (NOON - 6 * HOUR, NOON - 4 * HOUR, {
            "earlier": (NOON - 7 * HOUR, NOON - 5 * HOUR), "later": (NOON - 5 * HOUR, NOON - 3 * HOUR),
            "in": (NOON - 5.5 * HOUR, NOON - 4.5 * HOUR), "out": (NOON - 7 * HOUR, NOON - 3 * HOUR),
        }),
        # A day is the longest, ten seconds the shortest.
        (NOON - 25 * HOUR, NOON - HOUR, {
            "earlier": (NOON - 37 * HOUR, NOON - 13 * HOUR), "later": (NOON - 24 * HOUR, NOON),
            "in": (NOON - 19 * HOUR, NOON - 7 * HOUR),
        }),
        (NOON - timedelta(seconds=10), NOON, {
            "earlier": (NOON - timedelta(seconds=15), NOON - timedelta(seconds=5)), "out": (NOON - timedelta(seconds=20), NOON),
        }),
    ],
)  # fmt: skip
def test_links_zoom_around_the_middle_and_never_past_now(
    since: datetime, until: datetime, led: dict[str, tuple[datetime, datetime]]
) -> None:
    assert {name: span for name, _, span in moves(since, until, NOON)} == led
