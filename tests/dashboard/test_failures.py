"""Failures by cause: what is grouped, in which time, and where a group leads."""

from __future__ import annotations

import re
from html import unescape

import httpx

from menuwatch.db.pool import Pool
from tests.dashboard import task_rows as given


def link(page: httpx.Response, text: str) -> str:
    """Where a link with that text leads."""
    found = re.search(rf'<a[^>]* href="([^"]+)"[^>]*>{re.escape(text)}<', page.text)
    assert found is not None, page.text
    return unescape(found[1])


async def test_groups_and_where_they_lead(admin: httpx.AsyncClient, pool: Pool) -> None:
    shops = [await given.store(pool, f"s-{n}") for n in range(3)]
    for n, shop in enumerate(shops):
        await given.over(pool, error=f"dutchie answered HTTP 502 to page {n} of 9", of=shop)
    last = await given.over(pool, error="store 62f1 is not known", role="product_refresh")
    await given.over(pool, "completed")
    page = await admin.get("/admin/failures")
    assert "4 failures of 2 causes" in page.text
    assert "dutchie answered HTTP 502 to page # of #" in page.text
    assert f'href="/admin/tasks/{last}"' in page.text
    assert page.text.count("last <time") == 1, "what happened once has one time"
    found = await admin.get(link(page, "dutchie answered HTTP 502 to page # of #"))
    assert len(re.findall(r'id="task-\d+"', found.text)) == 3
    preview = await admin.get(link(page, "Retry…"))
    assert "Retry 3 tasks?" in preview.text
    one = await admin.get("/admin/failures", params={"role": "product_refresh", "window": "7d"})
    assert "1 failure of 1 cause;" in one.text
    assert "HTTP 502" not in one.text


async def test_each_window_and_all_that_is_kept(admin: httpx.AsyncClient, pool: Pool) -> None:
    number = await given.over(pool, error="long ago")
    await given.over(pool, error="just now")
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM unnest(ARRAY[9, 10]) d"
        )
        await conn.execute(
            "UPDATE task_history SET created_at = created_at - interval '9 days', claimed_at = claimed_at - interval '9 days', "
            "started_at = started_at - interval '9 days', completed_at = completed_at - interval '9 days' WHERE id = %s",
            [number],
        )
    for window, there in (("1h", False), ("24h", False), ("7d", False), ("all", True)):
        page = await admin.get("/admin/failures", params={"window": window})
        assert "just now" in page.text
        assert ("long ago" in page.text) is there, window
    found = await admin.get(link(page, "long ago"))
    assert f'id="task-{number}"' in found.text, "its search has no beginning either"


async def test_nothing_failed_and_a_wrong_filter(admin: httpx.AsyncClient) -> None:
    assert "No failed tasks" in (await admin.get("/admin/failures")).text
    for wrong, said in (
        ({"window": "2h"}, "'2h' is not one of 1h, 24h, 7d, all"),
        ({"role": "x"}, "'x' is not one of"),
    ):
        page = await admin.get("/admin/failures", params=wrong)
        assert page.status_code == 422
        assert said in unescape(page.text)


async def test_status_tabs_and_a_mute(admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool) -> None:
    shop = await given.store(pool, "shop")
    await given.over(pool, error="menus.test refused", of=shop)
    mended = await given.store(pool, "mended")
    await given.over(pool, error="no such menu", of=mended)
    await given.over(pool, "completed", of=mended)
    page = await admin.get("/admin/failures")
    assert {name: int(n) for name, n in re.findall(r">(\w+) <span class=\"n\">(\d+)<", page.text)} == {
        "All": 2, "Open": 1, "Resolved": 1, "Muted": 0,
    }  # fmt: skip
    assert re.search(r'data-count="/failures"><span class="n">1</span>', page.text), "only the open one needs somebody"
    assert "no such menu" not in (await admin.get("/admin/failures", params={"status": "open"})).text
    form = dict(re.findall(r'name="(cause|role|platform)" value="([^"]+)"', page.text))
    assert "Mute…" not in (await viewer.get("/admin/failures")).text
    assert (await viewer.post("/admin/failures/mute", data={**form, "reason": "x"})).status_code == 403
    await admin.post("/admin/failures/mute", data={**form, "reason": "", "length": ""})
    assert "menus.test refused" not in (await admin.get("/admin/failures", params={"status": "muted"})).text
    answer = await admin.post("/admin/failures/mute", data={**form, "reason": "they know", "length": "86400"})
    assert answer.status_code == 303
    muted = await admin.get("/admin/failures", params={"status": "muted"})
    assert "they know" in muted.text
    assert "no such menu" not in muted.text
    await admin.post("/admin/failures/unmute", data=form)
    assert "menus.test refused" in (await admin.get("/admin/failures", params={"status": "open"})).text
