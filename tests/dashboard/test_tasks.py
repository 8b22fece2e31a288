"""The tasks: what the list finds and counts, what a wrong search is told, what is done to one and to many, and by whom."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from menuwatch.db.pool import Pool
from menuwatch.queue import counts
from tests.dashboard import task_rows as given
from tests.dashboard.conftest import ORIGIN
from tests.dashboard.worker_rows import enter

HOSTILE = "<script>alert(1)</script> \"quoted\" 'single' {{ 7 * 7 }}"


def shown(page: httpx.Response) -> list[int]:
    """The tasks of a list, in its order."""
    return [int(number) for number in re.findall(r'id="task-(\d+)"', page.text)]


def tab(page: httpx.Response, name: str) -> str:
    """What a tab counts."""
    found = re.search(rf">{name} <span class=\"n\"[^>]*>([^<]*)<", page.text)
    assert found is not None, page.text
    return found[1]


async def test_the_list_with_none_one_and_many(admin: httpx.AsyncClient, pool: Pool) -> None:
    page = await admin.get("/admin/tasks")
    assert page.status_code == 200
    assert "No tasks yet" in page.text
    assert tab(page, "All") == "0"
    first = await given.waiting(pool)
    page = await admin.get("/admin/tasks")
    assert shown(page) == [first]
    ids = [await given.over(pool) for _ in range(120)]
    newest = sorted([first, *ids], reverse=True)
    page = await admin.get("/admin/tasks")
    assert shown(page) == newest[:50]
    assert (tab(page, "All"), tab(page, "Failed"), tab(page, "Pending")) == ("121", "120", "1")
    seen = shown(page)
    while following := re.search(r'rel="next" href="([^"]+)"', page.text):
        page = await admin.get(unescape(following[1]))
        seen += shown(page)
    assert seen == newest
    assert "Next page" not in page.text
    assert shown(await admin.get("/admin/tasks?cursor=no-cursor")) == newest[:50]


async def test_sorting_page_sizes_and_which_rows_are_shown(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = sorted(
        [
            await given.waiting(pool, "payload_fetch", await given.store(pool)),
            *[await given.over(pool) for _ in range(59)],
        ]
    )
    page = await admin.get("/admin/tasks?rows=25&q=role:payload_fetch")
    assert (shown(page), "1–25 of 60 tasks" in page.text) == (ids[::-1][:25], True)
    following = re.search(r'rel="next" href="([^"]+)"', page.text)
    assert following is not None
    page = await admin.get(unescape(following[1]))
    assert (shown(page), "26–50 of 60 tasks" in page.text) == (ids[::-1][25:50], True)
    head = re.search(
        r'<th scope="col" aria-sort="descending"><a class="sort" href="([^"]+)" data-stay>Task<', page.text
    )
    assert head is not None
    page = await admin.get(unescape(head[1]))
    assert shown(page) == ids[:25], "the other way round, from the first page, with as many rows"
    assert 'aria-sort="ascending"' in page.text
    following = re.search(r'rel="next" href="([^"]+)"', page.text)
    assert following is not None
    assert shown(await admin.get(unescape(following[1]))) == ids[25:50]
    for odd in ("rows=7", "sort=payload", "rows=x&sort=--id"):
        page = await admin.get(f"/admin/tasks?{odd}")
        assert (shown(page), "1–50 of 60 tasks" in page.text) == (ids[::-1][:50], True)


async def test_stale_tasks_are_recovered_by_a_button(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool
) -> None:
    task = await given.waiting(pool)
    for path in ("/admin/tasks", "/admin/job-queue"):
        assert 'action="/admin/tasks/recover-stale"' in (await admin.get(path)).text
        assert "recover-stale" not in (await viewer.get(path)).text
    await given.claimed(pool)
    for silent, recovered in (("5 minutes", 0), ("11 minutes", 1)):
        # STALE_AFTER_MINUTES is 10.
        async with pool.connection() as conn:
            await conn.execute("UPDATE task_live SET claimed_at = now() - %s::interval", [silent])
        answer = await admin.post("/admin/tasks/recover-stale", headers={"Referer": f"{ORIGIN}/admin/job-queue"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/job-queue")
        said = f"{recovered} stale task{'' if recovered == 1 else 's'} recovered (no heartbeat for 10 min)."
        assert said in (await admin.get("/admin/job-queue")).text
    assert await given.one(pool, "SELECT state FROM task_live WHERE id = %s", [task]) == "r"
    assert (await viewer.post("/admin/tasks/recover-stale")).status_code == 403


async def test_tabs_count_what_the_search_finds_and_keep_it(admin: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool)
    await given.over(pool, error="HTTP 403 by the host", of=shop)
    await given.over(pool, error="timeout", of=shop)
    await given.over(pool, "completed", of=shop)
    other = await given.over(pool, error="HTTP 403 again")
    waits = await given.waiting(pool, "payload_fetch", shop)
    page = await admin.get("/admin/tasks", params={"q": "state:failed store:green-leaf"})
    assert (tab(page, "All"), tab(page, "Failed"), tab(page, "Completed"), tab(page, "Pending")) == ("4", "2", "1", "1")
    assert len(shown(page)) == 2
    assert re.search(r'aria-current="page">Failed ', page.text)
    pending = re.search(r'href="([^"]+)" data-stay>Pending ', page.text)
    assert pending is not None
    assert shown(await admin.get(unescape(pending[1]))) == [waits]
    assert other in shown(await admin.get("/admin/tasks", params={"q": '"HTTP 403"'}))
    await given.claimed(pool)
    page = await admin.get("/admin/tasks", params={"q": "state:claimed,running"})
    assert shown(page) == [waits]
    assert (tab(page, "Claimed"), tab(page, "Pending")) == ("1", "0")


async def test_tabs_wait_for_small_tables_and_give_up_large_ones(
    admin: httpx.AsyncClient, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine so busy that there is no time at all: what a small table holds is counted, and what workers have in any case."""
    monkeypatch.setattr(counts, "TAB_SECONDS", 0.0)
    await given.over(pool)
    await given.waiting(pool)
    await given.claimed(pool)
    await given.waiting(pool)
    tabs = ("All", "Failed", "Pending", "Claimed")
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["3", "1", "1", "1"]
    monkeypatch.setattr(counts, "SMALL_TABLE", 0)
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["…", "…", "…", "1"]
    monkeypatch.setattr(counts, "TAB_SECONDS", 10.0)
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["3", "1", "1", "1"]


@pytest.mark.parametrize(
    ("q", "said"),
    [
        ("role:payload_ftch", "unknown role 'payload_ftch'"),
        ("502 stat:x", "From character 5: unknown qualifier stat:"),
        ('error:"open', "the quote is not closed"),
        ("store:nowhere", "'nowhere' does not exist"),
        ("platform:nowhere", "unknown platform 'nowhere"),
        ("created:yesterday", "Try"),
        ("x" * 2001, "longer than 2,000 characters"),
        ("a\x00b", "an invalid character"),
        ("role:<script>alert(1)</script>", "unknown role"),
    ],
)
async def test_a_wrong_search_says_what_is_wrong_and_keeps_what_was_typed(
    admin: httpx.AsyncClient, q: str, said: str
) -> None:
    page = await admin.get("/admin/tasks", params={"q": q})
    assert page.status_code == 422
    assert said in unescape(page.text)
    assert 'aria-invalid="true"' in page.text
    assert "<script>alert" not in page.text
    kept = re.search(r'<input id="q"[^>]* value="([^"]*)"', page.text)
    assert kept is not None
    assert unescape(kept[1]).replace("\x00", "") == q.replace("\x00", "")


async def test_suggestions_where_the_cursor_stands(admin: httpx.AsyncClient, pool: Pool) -> None:
    await given.store(pool)
    found = (await admin.get("/admin/tasks/suggest", params={"q": "state:fai timeout", "at": 9})).json()
    assert [(one["text"], one["start"], one["end"]) for one in found] == [("failed", 6, 9)]
    found = (await admin.get("/admin/tasks/suggest", params={"q": "store:gre", "at": 9})).json()
    assert found[0]["text"] == "green-leaf"
    assert (await admin.get("/admin/tasks/suggest", params={"q": "", "at": 0})).json()[0]["text"] == "role:"


async def test_hostile_texts_are_texts(admin: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool, name=HOSTILE)
    payload = '{"n": 123456789012345678901234567890, "price": 1.10, "x": "</pre><script>alert(2)</script>"}'
    number = await given.over(
        pool, error=HOSTILE, of=shop, payload=payload, result='{"note": "<img src=x onerror=alert(3)>"}'
    )
    for path in ("/admin/tasks", f"/admin/tasks/{number}", "/admin/failures", f"/admin/tasks/{number}/clone"):
        page = await admin.get(path)
        assert page.status_code == 200
        for raw in ("<script>alert", "<img src=x", "</pre><script"):
            assert raw not in page.text, path
        assert "{{ 7 * 7 }}" in unescape(page.text) or path.endswith("clone")
    page = await admin.get(f"/admin/tasks/{number}")
    assert "123456789012345678901234567890" in page.text, "big numbers keep every digit"
    assert "1.10" in page.text


@pytest.mark.parametrize("state", ["pending", "later", "claimed", "completed", "failed", "cancelled"])
async def test_a_task_in_every_state(admin: httpx.AsyncClient, pool: Pool, state: str) -> None:
    if state in ("completed", "failed", "cancelled"):
        number, acts = await given.over(pool, state), {"Retry", "Clone…"}
    elif state == "later":
        number, acts = await given.waiting(pool, due="2100-01-01"), {"Run it now", "Clone…", "Cancel"}
    else:
        number, acts = await given.waiting(pool), {"Run it now", "Clone…", "Cancel"}
        if state == "claimed":
            await given.claimed(pool)
            acts = {"Clone…", "Cancel"}
    page = await admin.get(f"/admin/tasks/{number}")
    assert page.status_code == 200
    head = page.text[page.text.index("<h1>") : page.text.index('<div class="two">')]
    assert {one for one in ("Retry", "Run it now", "Clone…", "Cancel") if f">{one}<" in head} == acts
    assert "Enqueued" in page.text
    copied = [unescape(one) for one in re.findall(r'data-copy="([^"]*)"', page.text)]
    assert f'curl -H "Authorization: Bearer $MENUWATCH_TOKEN" http://menuwatch/api/tasks/{number}' in copied
    assert len(copied) == 5


async def test_what_is_gone_is_told_from_what_never_was(admin: httpx.AsyncClient, pool: Pool) -> None:
    number = await given.over(pool)
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM task_history")
    gone = await admin.get(f"/admin/tasks/{number}")
    assert gone.status_code == 404
    assert "TASK_HISTORY_DAYS" in gone.text
    never = await admin.get(f"/admin/tasks/{number + 7}")
    assert never.status_code == 404
    assert f"the newest is {number}" in never.text
    assert (await admin.get("/admin/tasks/0")).status_code == 404
    for odd in ("99999999999999999999", "x1", "-1"):
        assert (await admin.get(f"/admin/tasks/{odd}")).status_code == 404


async def test_retry_cancel_and_priority_of_one(admin: httpx.AsyncClient, pool: Pool) -> None:
    failed = await given.over(pool, role="analytics_refresh")
    answer = await admin.post(f"/admin/tasks/{failed}/retry")
    assert answer.status_code == 303
    number = int(answer.headers["location"].rpartition("/")[2])
    assert number > failed
    waits = "SELECT priority FROM task_live WHERE id = %s"
    assert await given.one(pool, waits, [number]) == 10
    await admin.post(f"/admin/tasks/{number}/priority", data={"priority": "-5"})
    assert await given.one(pool, waits, [number]) == -5
    assert (await admin.post(f"/admin/tasks/{number}/priority", data={"priority": "5000"})).status_code == 422
    await admin.post(f"/admin/tasks/{number}/cancel", data={"reason": "not needed"})
    over = "SELECT status || ': ' || error_message FROM task_history WHERE id = %s"
    assert await given.one(pool, over, [number]) == "cancelled: not needed"
    again = await admin.post(f"/admin/tasks/{number}/priority", data={"priority": "3"})
    assert again.status_code == 303, "back to where it came from, which says why"
    actions = "SELECT array_agg(action ORDER BY id) FROM audit_log WHERE actor = 'tester'"
    assert await given.one(pool, actions) == ["task_retried", "task_priority_changed", "task_cancelled"]


async def test_a_higher_priority_goes_first_at_its_store(admin: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool)
    numbers = [await given.waiting(pool, "product_refresh", shop, payload=f'{{"payload_id": {n}}}') for n in (1, 2, 3)]
    await admin.post(f"/admin/tasks/{numbers[2]}/priority", data={"priority": "50"})
    assert await given.claimed(pool) == numbers[2]


async def test_a_clone_with_what_is_different(admin: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool)
    number = await given.over(pool, "completed", of=shop)
    form = await admin.get(f"/admin/tasks/{number}/clone")
    assert f'value="{shop}"' in form.text
    values = {"dispensary_id": str(shop), "priority": "25", "scheduled_for": "2099-05-01T10:30", "payload": ""}
    answer = await admin.post(f"/admin/tasks/{number}/clone", data=values)
    new = int(answer.headers["location"].rpartition("/")[2])
    row = "SELECT role || ' ' || priority || ' ' || (scheduled_for AT TIME ZONE 'UTC') FROM worker_tasks WHERE id = %s"
    assert await given.one(pool, row, [new]) == "payload_fetch 25 2099-05-01 10:30:00"
    for field, value, said in [
        ("dispensary_id", "999", "store 999 does not exist"),
        ("dispensary_id", "many", "a whole number"),
        ("priority", "1001", "too large"),
        ("scheduled_for", "soon", "enter a time such as"),
        ("payload", "[1]", "enter a JSON object"),
        ("payload", "{", "invalid JSON in line 1"),
        ("payload", '{"a": "\\u0000"}', "cannot be stored"),
    ]:
        refused = await admin.post(f"/admin/tasks/{number}/clone", data={**values, field: value})
        assert refused.status_code == 422
        assert said in unescape(refused.text), (field, value)
        assert value in unescape(refused.text), "what was typed is kept"


async def test_many_are_shown_before_they_are_hit(admin: httpx.AsyncClient, pool: Pool) -> None:
    for number in range(3):
        await given.over(pool, error=f"HTTP 502 at page {number}", of=await given.store(pool, f"s-{number}"))
    await given.over(pool, "completed")
    waits = await given.waiting(pool)
    page = await admin.get("/admin/tasks/bulk", params={"act": "retry", "all": "1", "q": ""})
    assert "Retry 3 tasks?" in page.text
    for passed in ("already queued", "completed"):
        assert passed in page.text
    assert await given.one(pool, "SELECT count(*) FROM task_live") == 1, "nothing was done yet"
    form = {"act": "retry", "all": "1", "q": "502", "expected": "3", "priority": "20"}
    answer = await admin.post("/admin/tasks/bulk", data=form)
    assert answer.headers["location"] == "/admin/tasks?q=502"
    assert 'comes first in <a href="/admin/tasks">Tasks</a>' in (await admin.get("/admin/tasks?q=502")).text
    assert await given.one(pool, "SELECT count(*) FROM task_live WHERE priority = 20") == 3
    ticked = await admin.get("/admin/tasks/bulk", params={"act": "cancel", "id": [waits, 1]})
    assert "Cancel 1 task?" in ticked.text
    assert "already finished" in ticked.text
    await admin.post("/admin/tasks/bulk", data={"act": "cancel", "ids": f"{waits},1", "expected": "1"})
    assert await given.one(pool, "SELECT status FROM worker_tasks WHERE id = %s", [waits]) == "cancelled"
    for act in ("retry", "cancel"):
        stays = await admin.get("/admin/tasks/bulk", params={"act": act, "q": "state:failed"})
        assert (stays.status_code, stays.headers["location"]) == (303, "/admin/tasks?q=state%3Afailed")
        assert "No tasks selected" in (await admin.get(stays.headers["location"])).text


async def test_far_more_than_was_shown_is_shown_anew(admin: httpx.AsyncClient, pool: Pool) -> None:
    for store in range(30):
        await given.over(pool, of=store)
    answer = await admin.post("/admin/tasks/bulk", data={"act": "retry", "all": "1", "expected": "2"})
    assert answer.status_code == 409
    assert "The selection changed from 2 tasks" in answer.text
    nothing = await admin.post("/admin/tasks/bulk", data={"act": "cancel"})
    assert nothing.status_code == 303
    assert await given.one(pool, "SELECT count(*) FROM task_live") == 0


async def test_whoever_only_looks_sees_no_buttons_and_can_do_nothing(
    viewer: httpx.AsyncClient, admin: httpx.AsyncClient, pool: Pool
) -> None:
    number = await given.over(pool)
    for path in ("/admin/tasks", f"/admin/tasks/{number}", "/admin/failures", "/admin/schedules"):
        page = await viewer.get(path)
        assert page.status_code == 200
        for act in (">Retry", ">Cancel<", ">Cancel…", ">Clone", ">Enqueue work", ">Run now", ">Disable"):
            assert act not in page.text.partition("</main>")[0], (path, act)
    for method, path in [
        ("GET", "/admin/tasks/bulk?act=retry"),
        ("POST", "/admin/tasks/bulk"),
        ("POST", f"/admin/tasks/{number}/retry"),
        ("POST", f"/admin/tasks/{number}/cancel"),
        ("POST", f"/admin/tasks/{number}/priority"),
        ("GET", f"/admin/tasks/{number}/clone"),
        ("POST", f"/admin/tasks/{number}/clone"),
        ("POST", "/admin/schedules/1/run"),
        ("POST", "/admin/schedules/1/switch"),
        ("POST", "/admin/schedules/1"),
        ("GET", "/admin/schedules/resync"),
        ("POST", "/admin/schedules/discovery"),
    ]:
        assert (await viewer.request(method, path)).status_code == 403, path
    assert await given.one(pool, "SELECT count(*) FROM task_live") == 0


async def test_cancel_is_offered_only_where_something_can_be_cancelled(admin: httpx.AsyncClient, pool: Pool) -> None:
    await given.over(pool)
    waits = await given.waiting(pool)
    for q, offered in (("", True), ("state:pending", True), ("state:failed", False), ("state:failed,pending", True)):
        page = await admin.get("/admin/tasks", params={"q": q})
        assert ("act=cancel" in page.text) == offered, q
        assert ('value="cancel"' in page.text) == offered, q
    await admin.post(f"/admin/tasks/{waits}/cancel")
    assert "act=cancel" not in (await admin.get("/admin/tasks")).text


async def test_the_status_names_screens_and_counts_slots_only_of_workers_that_claim(
    admin: httpx.AsyncClient, pool: Pool
) -> None:
    """A worker that is paused has slots, and offers none."""
    task = await given.waiting(pool)
    page = (await admin.get(f"/admin/tasks/{task}")).text
    assert "no worker is online" in page
    assert "`" not in page.partition('<p class="why">')[2].partition("</p>")[0]
    await enter(pool, "w-1")
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_registry SET status = 'paused'")
    page = (await admin.get(f"/admin/tasks/{task}")).text
    why = page.partition('<p class="why">')[2].partition("</section>")[0]
    assert "paused" in why
    assert "`" not in why
    assert "busy" not in why
    assert 'href="/admin/workers"' in why


def facet(page: httpx.Response, name: str) -> dict[str, tuple[str, str]]:
    """Count and address of each value of a facet, by its label."""
    part = page.text.partition(f'<details id="facet-{name}"')[2].partition("</details>")[0]
    found = re.findall(
        r'<li><a href="([^"]+)"[^>]*><span class="clip">([^<]+)</span>(?: <span class="n">([^<]+)</span>)?</a>', part
    )
    return {unescape(label): (count, unescape(href)) for href, label, count in found}


async def test_facets_count_what_the_search_finds_and_narrow_it(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute("""UPDATE queue_settings SET platform_hosts = '{"dutchie": ["dutchie.com"]}'""")
    await enter(pool, "w-1")
    green, blue = await given.store(pool), await given.store(pool, "blue", "Blue Door")
    ids = [
        await given.over(pool, of=green),
        await given.over(pool, of=green),
        await given.over(pool, "completed", of=blue),
    ]
    refresh = await given.over(pool, "completed", of=blue, role="product_refresh")
    page = await admin.get("/admin/tasks")
    counts = {
        name: {label: n for label, (n, _) in facet(page, name).items()} for name in ("role", "state", "host", "store")
    }
    assert {label: n for label, n in counts["role"].items() if n != "0"} == {
        "payload_fetch": "3",
        "product_refresh": "1",
    }
    assert counts["state"] | {"failed": "2", "completed": "2", "pending": "0"} == counts["state"]
    assert counts["host"] == {"dutchie.com": "3"}, "a refresh requests nothing"
    assert counts["store"] == {"Green Leaf": "2", "Blue Door": "2"}
    assert [n for n, _ in facet(page, "worker").values()] == ["4"]
    assert facet(page, "age")["last hour"][0] == "4"
    # One click narrows, another one in another facet narrows further, and the chip of a term removes it.
    page = await admin.get(facet(page, "store")["Blue Door"][1])
    assert shown(page) == [refresh, ids[2]]
    page = await admin.get(facet(page, "role")["payload_fetch"][1])
    assert shown(page) == [ids[2]]
    (store_chip,) = re.findall(r'href="([^"]+)" data-stay aria-label="Remove store:blue"', page.text)
    page = await admin.get(unescape(store_chip))
    assert shown(page) == sorted(ids, reverse=True)
    page = await admin.get(facet(page, "role")["payload_fetch"][1])
    assert len(shown(page)) == 4, "the same click again takes it away"
    (without,) = re.findall(r'class="without" href="([^"]+)" data-stay aria-label="Exclude payload_fetch"', page.text)
    assert shown(await admin.get(unescape(without))) == [refresh]
    # The tabs count all states, and lead to theirs whatever was excluded.
    page = await admin.get("/admin/tasks", params={"q": "-state:completed"})
    assert (tab(page, "All"), tab(page, "Completed")) == ("4", "2")
    assert "All matching (2)" in page.text
    completed = re.search(r'href="([^"]+)" data-stay>Completed ', page.text)
    assert completed is not None
    assert len(shown(await admin.get(unescape(completed[1])))) == 2


async def test_facets_are_left_out_where_counting_takes_too_long(
    admin: httpx.AsyncClient, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await given.over(pool)
    monkeypatch.setattr(counts, "SMALL_TABLE", 0)
    monkeypatch.setattr(counts, "FACET_SECONDS", 0.0)
    page = await admin.get("/admin/tasks")
    assert facet(page, "role")["payload_fetch"][0] == "", "without a count"
    assert "facet-store" not in page.text


async def test_tasks_are_found_by_the_names_that_screens_show(admin: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool, name="Green Leaf Phoenix Midtown")
    await given.store(pool, "blue-1", "Blue Door")
    await given.store(pool, "blue-2", "Blue Door")
    await enter(pool, "w-1")
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_registry SET friendly_name = 'Ada', pod = 'Xylos'")
    done, held = await given.over(pool, of=shop), await given.waiting(pool)
    for q in ('store:"green leaf phoenix midtown"', "worker:ada", "worker:Xylos/Ada", "worker:w-1"):
        page = await admin.get("/admin/tasks", params={"q": q})
        assert (page.status_code, shown(page)) == (200, [done]), q
    await given.claimed(pool)
    assert shown(await admin.get("/admin/tasks", params={"q": "worker:Ada"})) == [held, done], "w-1 claimed it"
    for q, said in (
        ('x store:"Blue Door"', ("From character 3", "several stores are called", "blue-1", "blue-2")),
        ("worker:Zoe", ("'Zoe' does not exist",)),
    ):
        page = await admin.get("/admin/tasks", params={"q": q})
        assert page.status_code == 422
        wrong = unescape(page.text).partition('id="q-wrong"')[2].partition("</div>")[0]
        assert all(text in wrong for text in said), wrong


async def test_views_are_ones_own(viewer: httpx.AsyncClient, admin: httpx.AsyncClient, pool: Pool) -> None:
    saved = {"of": "/tasks", "name": "  Failed   today ", "query": "q=state%3Afailed+ended%3A%3E%3D-24h&cursor=abc"}
    answer = await viewer.post("/admin/views", data=saved)
    assert answer.headers["location"] == "/admin/tasks?q=state%3Afailed+ended%3A%3E%3D-24h"
    page = await viewer.get("/admin/tasks", params={"q": "state:failed ended:>=-24h"})
    assert 'aria-current="true">Failed today<' in page.text
    assert "Failed today" not in (await admin.get("/admin/tasks")).text
    await viewer.post("/admin/views", data={**saved, "query": "q=state%3Astale"})
    assert await given.one(pool, "SELECT string_agg(query, ' ') FROM saved_views") == "q=state%3Astale"
    number = await given.one(pool, "SELECT id FROM saved_views")
    await admin.post(f"/admin/views/{number}/remove")
    assert await given.one(pool, "SELECT count(*) FROM saved_views") == 1, "not hers to remove"
    for wrong in ({**saved, "name": " "}, {**saved, "of": "/nowhere"}, {**saved, "name": "x" * 81}):
        await viewer.post("/admin/views", data=wrong)
    await viewer.post(f"/admin/views/{number}/remove")
    assert await given.one(pool, "SELECT count(*) FROM saved_views") == 0


async def test_workers_have_their_names(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "w-1")
    number = await given.over(pool)
    by = re.compile(r'<a class="clip" href="/admin/workers/w-1" title="w-1">W-1</a>')
    assert len(by.findall((await admin.get("/admin/tasks")).text)) == 1
    page = (await admin.get(f"/admin/tasks/{number}")).text
    assert len(by.findall(page)) == 2, "the fact, and the step"
    assert '<span class="sub wrap">w-1</span>' in page
    async with pool.connection() as conn:
        await conn.execute("DELETE FROM worker_registry")
    assert 'title="w-1">w-1</a>' in (await admin.get("/admin/tasks")).text, "who is forgotten is named by the id"


@pytest.mark.parametrize(
    "screen",
    ["stores?state=AZ", "products?q=haze", "payloads?status=ok", "failures?window=7d", "proxies?status=active", "workers?pod=Xylos"],
)  # fmt: skip
async def test_every_screen_with_filters_has_saved_views(viewer: httpx.AsyncClient, screen: str) -> None:
    path, _, query = screen.partition("?")
    assert "Save this view" not in (await viewer.get(f"/admin/{path}")).text, "there is nothing to save"
    await viewer.post("/admin/views", data={"of": f"/{path}", "name": "Mine", "query": query})
    assert f'<a href="/admin/{screen}" data-stay>Mine</a>' in (await viewer.get(f"/admin/{path}")).text
    page = (await viewer.get(f"/admin/{screen}")).text
    assert 'aria-current="true">Mine<' in page
    assert "Save this view" in page


async def test_tasks_are_sorted_by_their_end_over_all_pages(admin: httpx.AsyncClient, pool: Pool) -> None:
    live = [await given.waiting(pool, role) for role in ("analytics_refresh", "store_discovery", "payload_fetch")]
    ended = [await given.over(pool, "completed", role=role) for role in ("payload_fetch", "product_refresh") * 14]
    async with pool.connection() as conn:
        # The one that was enqueued first ended last.
        for age, number in enumerate(ended):
            await conn.execute(
                "UPDATE task_history SET claimed_at = NULL, started_at = created_at, completed_at = now() - %s * interval '1 second'"
                " WHERE id = %s",
                [age, number],
            )
    for sort, order in (("-ended", [*ended, *reversed(live)]), ("ended", [*reversed(ended), *live])):
        page = await admin.get(f"/admin/tasks?sort={sort}&rows=25")
        assert 'aria-sort="' + ("descending" if sort == "-ended" else "ascending") in page.text
        first = shown(page)
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        assert following is not None
        second = shown(await admin.get(unescape(following[1])))
        assert first + second == order
    # The cursor of one order is none of another: its first page is shown.
    page = await admin.get(unescape(following[1]).replace("sort=ended", "sort=id"))
    assert "is not valid: this is the first page" in page.text
    # From the last of those that ended on, the others follow.
    page = await admin.get("/admin/tasks?sort=-ended&q=role:product_refresh+state:completed")
    assert shown(page) == ended[1::2]


async def test_what_cannot_be_sorted_says_so(admin: httpx.AsyncClient, pool: Pool) -> None:
    first, second = await given.over(pool), await given.over(pool)
    page = await admin.get("/admin/tasks?sort=-ended&q=state:failed")
    assert shown(page) == [second, first], "by their numbers"
    assert "Time is sortable for all or completed tasks" in page.text
    assert (
        "sort=-ended"
        not in re.sub(r"<form.*?</form>|<details.*?</details>", "", page.text, flags=re.DOTALL)
        .replace("sort=-ended&amp;q", "")
        .split("<thead>")[1]
        .split("</thead>")[0]
    )
    page = await admin.get("/admin/tasks")
    assert "Sortable: Task and Time (finish time)." in page.text
    assert 'href="/admin/tasks?sort=-ended"' in page.text
