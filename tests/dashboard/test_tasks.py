"""The tasks: what the list finds and counts, what a wrong search is told, what is done to one and to many, and by whom."""

from __future__ import annotations

import re
from html import unescape

import httpx
import pytest

from menuwatch.db.pool import Pool
from menuwatch.operations import task_tabs
from tests.dashboard import tasks as given
from tests.dashboard.crew import enter

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
    assert "There are no tasks yet" in page.text
    assert tab(page, "All") == "0"
    first = await given.waiting(pool)
    assert shown(await admin.get("/admin/tasks")) == [first]
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
    monkeypatch.setattr(task_tabs, "SECONDS", 0.0)
    await given.over(pool)
    await given.waiting(pool)
    await given.claimed(pool)
    await given.waiting(pool)
    tabs = ("All", "Failed", "Pending", "Claimed")
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["3", "1", "1", "1"]
    monkeypatch.setattr(task_tabs, "SMALL", 0)
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["…", "…", "…", "1"]
    monkeypatch.setattr(task_tabs, "SECONDS", 10.0)
    page = await admin.get("/admin/tasks")
    assert [tab(page, name) for name in tabs] == ["3", "1", "1", "1"]


@pytest.mark.parametrize(
    ("q", "said"),
    [
        ("role:payload_ftch", "there is no role 'payload_ftch'"),
        ("502 stat:x", "From character 5: there is no qualifier stat:"),
        ('error:"open', "the quote is not closed"),
        ("store:nowhere", "'nowhere' does not exist"),
        ("platform:nowhere", "'nowhere' is not known"),
        ("created:yesterday", "What would be right"),
        ("x" * 2001, "longer than 2,000 characters"),
        ("a\x00b", "no text has"),
        ("role:<script>alert(1)</script>", "there is no role"),
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
    assert len(copied) == 4


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
        ("scheduled_for", "soon", "is no date with a time"),
        ("payload", "[1]", "an object is needed"),
        ("payload", "{", "this is no JSON in line 1"),
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
    for passed in ("waits for its turn already", "went well"):
        assert passed in page.text
    assert await given.one(pool, "SELECT count(*) FROM task_live") == 1, "nothing was done yet"
    form = {"act": "retry", "all": "1", "q": "502", "expected": "3", "priority": "20"}
    answer = await admin.post("/admin/tasks/bulk", data=form)
    assert answer.headers["location"] == "/admin/tasks?q=502"
    assert await given.one(pool, "SELECT count(*) FROM task_live WHERE priority = 20") == 3
    ticked = await admin.get("/admin/tasks/bulk", params={"act": "cancel", "id": [waits, 1]})
    assert "Cancel 1 task?" in ticked.text
    assert "over already" in ticked.text
    await admin.post("/admin/tasks/bulk", data={"act": "cancel", "ids": f"{waits},1", "expected": "1"})
    assert await given.one(pool, "SELECT status FROM worker_tasks WHERE id = %s", [waits]) == "cancelled"
    assert "Nothing is ticked" in (await admin.get("/admin/tasks/bulk", params={"act": "cancel"})).text


async def test_far_more_than_was_shown_is_shown_anew(admin: httpx.AsyncClient, pool: Pool) -> None:
    for _ in range(30):
        await given.over(pool, role="analytics_refresh")
    answer = await admin.post("/admin/tasks/bulk", data={"act": "retry", "all": "1", "expected": "2"})
    assert answer.status_code == 409
    assert "When you looked it was 2 tasks" in answer.text
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
            assert act not in page.text, (path, act)
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
    assert "by worker w-1" not in page
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
