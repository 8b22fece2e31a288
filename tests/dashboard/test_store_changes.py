"""Removing, merging and editing stores, adding many, and what a store's page says of its crawls."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Conflict, InvalidField
from menuwatch.db.pool import Pool
from menuwatch.pipeline import store_changes, store_merge
from menuwatch.platforms.registry import platforms
from menuwatch.stores import service as stores
from tests.browser import history_data
from tests.browser.history_data import Planted, Words
from tests.dashboard.conftest import Sql

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def desert(sql: Sql, pool: Pool) -> Planted:
    return history_data.plant(sql)


def add(sql: Sql, slug: str, *, resolved: bool = False) -> int:
    key = slug if resolved else None
    statement = (
        "INSERT INTO dispensaries (platform, platform_dispensary_id, slug, name, name_raw, menu_url)"
        " VALUES ('dutchie', %s, %s, %s, %s, 'https://dutchie.com/dispensary/' || %s) RETURNING id"
    )
    return int(sql(statement, [key, slug, slug, slug, slug])[0][0])


def text(answer: httpx.Response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


async def add_rules(admin: httpx.AsyncClient, planted: Planted) -> None:
    """One rule for the store, and one for a product of it."""
    for scope in ({"store": str(planted.store)}, {"product_id": str(planted.product)}):
        rule = {"name": next(iter(scope)), "condition": "price_below", "amount": "5", **scope}
        assert (await admin.post("/admin/alerts/new", data=rule, headers=SAME)).status_code == 303


COUNTS = (
    "SELECT (SELECT count(*) FROM raw_crawl_payloads WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM store_crawls WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM catalog_products WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM product_history WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM alert_rules WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM task_live WHERE dispensary_id = %(id)s),"
    " (SELECT count(*) FROM dispensaries WHERE id = %(id)s)"
)


async def test_a_removed_store_takes_exactly_what_the_preview_counted(
    admin: httpx.AsyncClient, desert: Planted, sql: Sql, tmp_path: Path
) -> None:
    sql("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', %s)", [desert.store])
    await add_rules(admin, desert)
    (before,) = sql(COUNTS, {"id": desert.store})
    file = tmp_path / "storage" / f"payloads/chronicle/{desert.store}/3.json.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    page = await admin.get(f"/admin/stores/{desert.store}/remove")
    shown = re.findall(r'<th scope="row">([^<]+)</th><td class="num">([\d,]+)</td>', page.text)
    names = (
        "Payloads",
        "Crawls in the catalog",
        "Products",
        "Earlier product states",
        "Alert rules of the store",
        "Unfinished tasks",
    )
    assert dict(shown) == {"Alert rules of its products": "1"} | {
        name: f"{n:,}" for name, n in zip(names, before[:6], strict=True)
    }
    assert before[0] > 60
    answer = await admin.post(f"/admin/stores/{desert.store}/remove", headers=SAME)
    assert answer.headers["location"] == "/admin/stores"
    assert sql(COUNTS, {"id": desert.store}) == [(0, 0, 0, 0, 0, 0, 0)]
    assert not file.exists()
    cancelled = "SELECT role FROM task_history WHERE dispensary_id = %s AND status = 'cancelled'"
    assert sql(cancelled, [desert.store]) == [("payload_fetch",)]
    assert sql("SELECT count(*) FROM alert_rules") == [(0,)]
    assert sql("SELECT count(*) FROM audit_log WHERE action = 'store_removed'") == [(1,)]
    assert (await admin.get(f"/admin/stores/{desert.store}/remove")).status_code == 404


async def test_a_mistyped_store_is_removed(admin: httpx.AsyncClient, sql: Sql, pool: Pool) -> None:
    await admin.post("/admin/stores/new", data={"menu_url": "https://dutchie.com/dispensary/grean-leaf"}, headers=SAME)
    ((number,),) = sql("SELECT id FROM dispensaries WHERE slug = 'grean-leaf'")
    assert (await admin.post(f"/admin/stores/{number}/remove", headers=SAME)).status_code == 303
    assert sql("SELECT count(*) FROM dispensaries") == [(0,)]


async def test_a_file_that_another_store_shares_stays(pool: Pool, desert: Planted, sql: Sql, tmp_path: Path) -> None:
    other = history_data.plant(sql, Words(slug="second"))
    path = f"payloads/chronicle/{desert.store}/3.json.gz"
    moved = "UPDATE raw_crawl_payloads SET path = %s WHERE dispensary_id = %s AND path LIKE '%%/3.json.gz'"
    sql(moved, [path, other.store])
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    async with pool.connection() as conn:
        await store_changes.remove_store(conn, FileArchive(tmp_path), desert.store)
    assert file.exists()


async def test_a_merge_moves_exactly_what_the_preview_counted(
    admin: httpx.AsyncClient, desert: Planted, sql: Sql
) -> None:
    stays = add(sql, "green-leaf")
    sql("INSERT INTO worker_tasks (role, dispensary_id) VALUES ('payload_fetch', %s)", [desert.store])
    await add_rules(admin, desert)
    ((payloads, crawls, products, states, _, tasks, _),) = sql(COUNTS, {"id": desert.store})
    ((key,),) = sql("SELECT platform_dispensary_id FROM dispensaries WHERE id = %s", [desert.store])
    page = await admin.get(f"/admin/stores/{desert.store}/merge", params={"into": "green-leaf"})
    assert f'name="into" value="{stays}"' in page.text
    shown = re.findall(r'<th scope="row">([^<]+)</th><td class="num">([\d,]+)</td>', page.text)
    assert dict(shown) == {
        name: f"{n:,}"
        for name, n in {
            "Payloads": payloads,
            "Crawls in the catalog": crawls,
            "Products of this store alone": products,
            "Products of both stores": 0,
            "Earlier product states": states,
            "Alert rules": 2,
            "Finished tasks": 1,
        }.items()
    }
    assert (tasks, "1 unfinished task cancelled" in text(page)) == (1, True)
    answer = await admin.post(f"/admin/stores/{desert.store}/merge", data={"into": str(stays)}, headers=SAME)
    assert answer.headers["location"] == f"/admin/stores/{stays}"
    assert sql(COUNTS, {"id": desert.store}) == [(0, 0, 0, 0, 0, 0, 0)]
    assert sql(COUNTS, {"id": stays}) == [(payloads, crawls, products, states, 1, 0, 1)]
    assert sql("SELECT platform_dispensary_id FROM dispensaries WHERE id = %s", [stays]) == [(key,)]
    assert sql("SELECT count(*) FROM raw_crawl_payloads WHERE applied_at IS NOT NULL") == [(crawls,)]
    ((details,),) = sql("SELECT details FROM audit_log WHERE action = 'store_merged'")
    assert (details["into"], details["payloads"], details["crawls"], details["alert_rules"]) == (
        stays,
        payloads,
        crawls,
        2,
    )


async def test_a_merge_that_cannot_be_changes_nothing(
    pool: Pool, desert: Planted, sql: Sql, tmp_path: Path, admin: httpx.AsyncClient
) -> None:
    ((other,),) = sql(
        "INSERT INTO dispensaries (platform, slug, name, name_raw) VALUES ('weedmaps', 'w', 'w', 'w') RETURNING id"
    )
    before = sql(COUNTS, {"id": desert.store})
    archive = FileArchive(tmp_path)
    for into, why in ((other, "weedmaps"), (desert.store, "itself")):
        with pytest.raises(InvalidField, match=why):
            await store_merge.merge_stores(pool, archive, platforms(Settings()), desert.store, into)
    twin = history_data.plant(sql, Words(slug="twin"))
    with pytest.raises(Conflict, match="files"):
        await store_merge.merge_stores(pool, archive, platforms(Settings()), desert.store, twin.store)
    sql("UPDATE store_crawls SET payload_id = NULL WHERE dispensary_id = %s AND payload_id %% 2 = 0", [twin.store])
    page = await admin.get(f"/admin/stores/{desert.store}/merge", params={"into": "twin"})
    assert "no longer in the archive" in text(page)
    assert 'name="into" value=' not in page.text.split("</form>", 1)[1], "no button to merge them"
    assert sql(COUNTS, {"id": desert.store}) == before


async def test_the_menu_url_of_a_store_is_edited(admin: httpx.AsyncClient, sql: Sql, pool: Pool) -> None:
    number = add(sql, "grean-leaf")
    url = "https://dutchie.com/dispensary/green-leaf"
    answer = await admin.post(f"/admin/stores/{number}/edit", data={"menu_url": url}, headers=SAME)
    assert answer.status_code == 303
    assert sql("SELECT slug, name, menu_url FROM dispensaries") == [("green-leaf", "Green Leaf", url)]
    assert sql("SELECT role FROM task_live") == [("entry_point_discovery",)]
    answer = await admin.post(f"/admin/stores/{number}/edit", data={"menu_url": "https://example.com/x"}, headers=SAME)
    assert answer.status_code == 422
    resolved = add(sql, "blue", resolved=True)
    await admin.post(f"/admin/stores/{resolved}/edit", data={"menu_url": url}, headers=SAME)
    assert sql("SELECT slug, menu_url FROM dispensaries WHERE id = %s", [resolved]) == [("blue", url)]


async def test_a_store_is_hidden_renamed_and_placed(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    page = f"/admin/stores/{desert.store}"
    html = (await admin.get(page + "/edit")).text
    form = dict(
        re.findall(r'<input (?:id="f-[a-z]+"|type="hidden") name="([a-z_]+)"(?: type="text")? value="([^"]*)"', html)
    )
    sql("UPDATE dispensaries SET address = 'Moved Street 1' WHERE id = %s", [desert.store])
    changed = {**form, "shown": "no", "name": "Desert Bloom", "latitude": "33.4", "longitude": "-112.0"}
    answer = await admin.post(page + "/details", data=changed, headers=SAME)
    assert answer.status_code == 303
    seen = """SELECT shown, name, latitude, longitude, ARRAY(SELECT jsonb_object_keys(details_by_person) ORDER BY 1)
                FROM dispensaries WHERE id = %s"""
    saved = [(False, "Desert Bloom", 33.4, -112.0, ["latitude", "longitude", "name"])]
    assert sql(seen, [desert.store]) == saved, "what was not changed stays the platform's"
    assert sql("SELECT address FROM dispensaries WHERE id = %s", [desert.store]) == [("Moved Street 1",)]
    shown = text(await admin.get(page))
    assert "Public site hidden" in shown
    assert "Set by hand latitude, longitude, name" in shown
    answer = await admin.post(page + "/details", data={**changed, "name": "Other", "longitude": "west"}, headers=SAME)
    assert answer.status_code == 422
    assert "enter degrees, e.g. 39.7392" in text(answer)
    answer = await admin.post(page + "/details", data={**changed, "name": "Other", "state": "Atlantis"}, headers=SAME)
    assert "unknown state or province Atlantis" in text(answer)
    answer = await admin.post(page + "/details", data={**changed, "state": ""}, headers=SAME)
    assert "The platform’s value cannot be cleared. Enter another value or leave it unchanged." in text(answer)
    assert sql(seen, [desert.store]) == saved


async def test_many_urls_are_pasted_at_once(admin: httpx.AsyncClient, sql: Sql, pool: Pool) -> None:
    good = [f"https://dutchie.com/dispensary/shop-{n}" for n in range(3)]
    answer = await admin.post("/admin/stores/new", data={"menu_url": "\n".join(good)}, headers=SAME)
    assert answer.status_code == 303
    assert sql("SELECT count(*) FROM dispensaries") == [(3,)]
    pasted = "https://dutchie.com/dispensary/shop-3\nhttps://example.com/menu\n" + good[0]
    answer = await admin.post("/admin/stores/new", data={"menu_url": pasted}, headers=SAME)
    assert answer.status_code == 422
    assert sql("SELECT count(*) FROM dispensaries") == [(4,)]
    assert '<a href="/admin/stores/4">store 4</a>' in answer.text, "the one that was added"
    assert '<a href="/admin/stores/1">open store 1</a>' in answer.text, "the one that was known"
    left = re.search(r"<textarea[^>]*>([^<]*)</textarea>", answer.text)
    assert left is not None
    assert left[1].split() == ["https://example.com/menu", good[0]]
    assert "shop-0" in text(answer)


async def test_a_platform_is_chosen_from_those_that_are_crawled(admin: httpx.AsyncClient, sql: Sql) -> None:
    page = (await admin.get("/admin/stores/new")).text
    choices = page.partition('id="f-menu_platform"')[2].partition("</select>")[0]
    assert re.findall(r'value="(\w*)"', choices) == ["", "dutchie"]
    form = {"menu_url": "https://dutchie.com/dispensary/shop", "menu_platform": "leafly"}
    answer = await admin.post("/admin/stores/new", data=form, headers=SAME)
    assert answer.status_code == 422
    assert "unknown platform" in text(answer)
    answer = await admin.post("/admin/stores/new", data={**form, "menu_platform": "dutchie"}, headers=SAME)
    assert answer.status_code == 303
    assert sql("SELECT platform, slug FROM dispensaries") == [("dutchie", "shop")]


async def test_a_store_page_does_not_contradict_itself(admin: httpx.AsyncClient, desert: Planted, sql: Sql) -> None:
    sql(
        "UPDATE dispensaries SET last_crawled_at = now() - interval '2 days', last_attempt_at = now() - interval '16 seconds',"
        " last_error = 'HTTP 502' WHERE id = %s",
        [desert.store],
    )
    page = await admin.get(f"/admin/stores/{desert.store}")
    why = page.text[page.text.index('id="why-title"') :].split("</section>")[0]
    assert "HTTP 502" in why
    assert "overdue 1 d" in why, "the next crawl is never in the past"
    assert "Last successful crawl" in page.text
    assert "Last crawl" not in text(page)
    assert "Public page" not in page.text, "the public site does not have it"
    assert "overdue 1 d" in (await admin.get("/admin/stores")).text
    sql(
        "INSERT INTO task_schedules (name, role, platform, interval_hours, next_run_at) VALUES"
        " ('off', 'payload_fetch', 'dutchie', 1, now() + interval '5 minutes'),"
        " ('x', 'payload_fetch', 'other', 1, now() + interval '5 minutes'),"
        " ('every', 'payload_fetch', 'dutchie', 1, now() + interval '50 minutes')"
    )
    sql("UPDATE task_schedules SET enabled = false WHERE name = 'off'")
    for path in (f"/admin/stores/{desert.store}", "/admin/stores"):
        page = await admin.get(path)
        assert "overdue 1 d" not in page.text, "a schedule enqueues the next attempt"
        assert re.search("in (49|50) min", page.text)


async def test_a_failed_resolution_is_among_the_crawls(admin: httpx.AsyncClient, sql: Sql, pool: Pool) -> None:
    number = add(sql, "nowhere")
    sql(
        "INSERT INTO task_history (id, role, dispensary_id, platform, status, attempt, retry_count, max_retries, postpone_count,"
        " priority, created_at, completed_at, error_message, payload) VALUES (7, 'entry_point_discovery', %s, 'dutchie', 'failed',"
        " 1, 0, 3, 0, 0, now(), now(), 'not found', '{}')",
        [number],
    )
    sql("UPDATE dispensaries SET last_attempt_at = now(), last_error = 'not found' WHERE id = %s", [number])
    page = await admin.get(f"/admin/stores/{number}")
    assert "No crawls in the last 30 days" not in page.text
    assert 'href="/admin/tasks/7"' in page.text


async def test_a_rejected_menu_is_one_crawl(sql: Sql, pool: Pool) -> None:
    """Its payload, and not the task that failed with it; a failure of a later attempt is another one."""
    number = add(sql, "shop")
    for task, claimed in ((7, 10), (8, 30)):
        sql(
            "INSERT INTO task_history (id, role, dispensary_id, platform, status, attempt, retry_count, max_retries, postpone_count,"
            " priority, created_at, claimed_at, completed_at, error_message, payload)"
            " SELECT %s, 'payload_fetch', %s, 'dutchie', 'failed', 1, 0, 3, 0, 0, t, t + %s * interval '1 minute', now(), 'x', '{}'"
            " FROM (SELECT now() - interval '1 hour') x(t)",
            [task, number, claimed],
        )
        sql(
            "INSERT INTO raw_crawl_payloads (dispensary_id, task_id, platform, status, reason, fetched_at, path, bytes, raw_bytes,"
            " sha256, content_sha256)"
            " VALUES (%s, %s, 'dutchie', 'rejected', 'empty', now() - interval '40 minutes', 'p', 1, 1, 's', 's')",
            [number, task],
        )
    async with pool.connection() as conn:
        crawls = await stores.recent_crawls(conn, number)
    assert sorted((one.task_id, one.outcome) for one in crawls) == [(7, "rejected"), (8, "failed"), (8, "rejected")]


async def test_states_are_chosen_from_a_list(admin: httpx.AsyncClient) -> None:
    page = await admin.get("/admin/stores/new")
    assert '<option value="AZ">Arizona</option>' in page.text
