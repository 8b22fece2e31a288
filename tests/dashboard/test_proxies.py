"""Proxies on the dashboard: roles, errors beside the field, lists that are looked at first, and passwords that nobody sees."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import httpx
import pytest

from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.proxies import service as proxies
from menuwatch.web.routing import Apps
from tests.dashboard.users_fixture import logged_in

SECRET = "planted-Secret-77"


async def _rows(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()


async def test_without_a_proxy_it_says_that_workers_cannot_start_and_how_to_add_one(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool
) -> None:
    text = (await admin.get("/admin/proxies")).text
    assert "No proxies: workers cannot start." in text
    assert 'href="/admin/proxies/add"' in text
    looked = (await viewer.get("/admin/proxies")).text
    assert "workers cannot start" in looked
    assert "/admin/proxies/add" not in looked
    added = await proxies.add(pool, "http://198.51.100.1:1")
    async with pool.connection() as conn:
        await proxies.disable(conn, [added.id])
    assert "No active proxy: 1 disabled." in (await admin.get("/admin/proxies")).text


async def test_what_is_wrong_stands_beside_the_field_and_the_password_nowhere(
    admin: httpx.AsyncClient, pool: Pool
) -> None:
    bad = await admin.post("/admin/proxies/add", data={"proxy": f"http://u:{SECRET}@host:99999", "city": "Tempe"})
    assert bad.status_code == 422
    assert SECRET not in bad.text
    assert 'aria-invalid="true"' in bad.text
    assert "the port of a proxy is a number from 1 to 65535" in bad.text
    assert "enter it again" not in bad.text, "the first word on a field stands"
    assert 'value="Tempe"' in bad.text
    place = await admin.post("/admin/proxies/add", data={"proxy": f"http://u:{SECRET}@198.51.100.1:80", "state": "XX"})
    assert place.status_code == 422
    assert "XX is not a state or province" in place.text
    assert SECRET not in place.text
    assert "enter it again" in place.text
    assert await _rows(pool, "SELECT 1 FROM proxies") == []


async def test_one_is_added_without_a_test_and_shown_without_its_password(admin: httpx.AsyncClient, pool: Pool) -> None:
    given = {"proxy": f"http://u:{SECRET}@198.51.100.1:80", "state": "az", "country": "US", "untested": "1"}
    made = await admin.post("/admin/proxies/add", data=given)
    assert made.status_code == 303
    assert await _rows(pool, "SELECT host, port, state, is_active FROM proxies") == [("198.51.100.1", 80, "AZ", True)]
    for path in (made.headers["location"], "/admin/proxies", "/admin/proxies?q=198.51&status=active"):
        page = await admin.get(path)
        assert page.status_code == 200
        assert "http://u@198.51.100.1:80" in page.text
        assert SECRET not in page.text
        assert SECRET not in str(page.headers)


LIST = f"""host,port,username,password,state
198.51.100.1,80,u,{SECRET},AZ
198.51.100.2,99999,u,{SECRET},AZ
198.51.100.1,80,u,{SECRET}-2,AZ
198.51.100.3,80,,,
"""


async def test_a_list_is_looked_at_before_it_is_brought_in(apps: Apps, pool: Pool) -> None:
    async with await logged_in(apps, pool, "lister", Role.OPERATOR) as browser:
        looked = await browser.post("/admin/proxies/import", data={"lines": LIST})
        assert looked.status_code == 200
        assert SECRET not in looked.text
        figures = re.findall(r'<div class="value">(\d+)</div>', looked.text)
        assert figures == ["2", "1", "1"], "proxies, lines that are none, repeated ones"
        assert await _rows(pool, "SELECT 1 FROM proxies") == [], "it was only looked at"
        (carried,) = re.findall(r'name="carried" value="([^"]+)"', looked.text)

        async with await logged_in(apps, pool, "other", Role.OPERATOR) as other:
            stolen = await other.post("/admin/proxies/import", data={"carried": carried, "how": "untested"})
            assert stolen.status_code == 422
            assert "another login" in stolen.text

        done = await browser.post("/admin/proxies/import", data={"carried": carried, "how": "later"})
        assert done.status_code == 303
        found = await _rows(
            pool, "SELECT host, is_active, password, last_error, probe_at > now() FROM proxies ORDER BY id"
        )
        assert [row[:2] for row in found] == [("198.51.100.1", False), ("198.51.100.3", False)]
        assert found[0][2] == f"{SECRET}-2", "the last line is used"
        assert found[0][3].startswith("not tested: ")
        assert found[0][4] is True
        said = await browser.get("/admin/proxies")
        assert "2 added; 1 line skipped; 2 are tested in the background, usually within minutes." in said.text


async def test_an_empty_list_and_too_many_to_test_are_refused(admin: httpx.AsyncClient) -> None:
    empty = await admin.post("/admin/proxies/import", data={"lines": "  \n# none\n"})
    assert empty.status_code == 422
    assert "the list is empty" in empty.text
    many = "\n".join(f"198.51.100.{n}:80" for n in range(51))
    looked = await admin.post("/admin/proxies/import", data={"lines": many})
    assert "Test each now" not in looked.text
    (carried,) = re.findall(r'name="carried" value="([^"]+)"', looked.text)
    refused = await admin.post("/admin/proxies/import", data={"carried": carried, "how": "test"})
    assert refused.status_code == 422
    assert "up to 50 can be tested immediately" in refused.text


async def test_where_one_stands_is_edited_and_a_stale_edit_shows_both(admin: httpx.AsyncClient, pool: Pool) -> None:
    added = await proxies.add(pool, "http://198.51.100.1:80", city="Tempe", state="AZ", country="US")
    path = f"/admin/proxies/{added.id}"

    async def version() -> str:
        return re.findall(r'name="version" value="([^"]+)"', (await admin.get(path)).text)[0]

    first = await version()
    place = {"city": "Toronto", "state": "ON", "country": "CA", "timezone": "America/Toronto"}
    assert (await admin.post(path, data={**place, "version": first})).status_code == 303
    assert await _rows(pool, "SELECT city, state, country, timezone FROM proxies") == [tuple(place.values())]

    mine = {"city": "Mesa", "state": "AZ", "country": "US", "timezone": ""}
    stale = await admin.post(path, data={**mine, "version": first})
    assert stale.status_code == 412
    assert '<del class="before">Toronto</del>' in stale.text
    assert '<ins class="after">Mesa</ins>' in stale.text
    wrong = await admin.post(path, data={**mine, "timezone": "Mars/Base", "version": await version()})
    assert wrong.status_code == 422
    assert "unknown time zone" in wrong.text
    assert 'value="Mesa"' in wrong.text
    assert (await admin.post(path, data={**mine, "version": await version()})).status_code == 303
    assert await _rows(pool, "SELECT city, timezone FROM proxies") == [("Mesa", None)]


async def test_several_are_taken_out_and_removed_at_once(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = [(await proxies.add(pool, f"http://198.51.100.{n}:80")).id for n in range(3)]
    assert (await admin.post("/admin/proxies/disable", data={"id": ids[:2]})).status_code == 303
    assert await _rows(pool, "SELECT is_active, disabled_reason FROM proxies ORDER BY id") == [
        (False, "disabled by tester"),
        (False, "disabled by tester"),
        (True, None),
    ]
    assert (await admin.post("/admin/proxies/remove", data={"id": ids[1:]})).status_code == 303
    assert await _rows(pool, "SELECT id FROM proxies") == [(ids[0],)]
    none = await admin.post("/admin/proxies/remove", data={}, follow_redirects=True)
    assert "select proxies first" in none.text
    assert len(await _rows(pool, "SELECT id FROM proxies")) == 1
    deeds = await _rows(pool, "SELECT action, count(*)::int, min(via) FROM audit_log GROUP BY 1 ORDER BY 1")
    assert deeds == [("proxy_disabled", 2, "dashboard"), ("proxy_removed", 2, "dashboard")]


async def test_pages_hold_fifty_and_filters_stay(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO proxies (host, port, city) SELECT '198.51.100.' || n % 250, 1000 + n, CASE WHEN n > 3 THEN 'Tempe' END "
            "FROM generate_series(1, 120) n"
        )
    first = await admin.get("/admin/proxies?q=tempe")
    assert first.text.count('name="id"') == 50
    (link,) = re.findall(r'rel="next" href="([^"]+)"', first.text)
    second = await admin.get(link.replace("&amp;", "&"))
    (link,) = re.findall(r'rel="next" href="([^"]+)"', second.text)
    third = await admin.get(link.replace("&amp;", "&"))
    assert (second.text.count('name="id"'), third.text.count('name="id"')) == (50, 17)
    assert 'rel="next"' not in third.text
    assert (await admin.get("/admin/proxies?cursor=nonsense")).text.count('name="id"') == 50


async def test_a_viewer_changes_nothing(viewer: httpx.AsyncClient, pool: Pool) -> None:
    added = await proxies.add(pool, f"http://u:{SECRET}@198.51.100.1:80")
    page = (await viewer.get(f"/admin/proxies/{added.id}")).text
    assert 'method="post" action="/admin/proxies' not in page
    assert SECRET not in page
    data = {"id": added.id, "city": "x", "proxy": "http://198.51.100.9:1"}
    for path in ("/add", "/import", "/test", "/enable", "/disable", "/remove", f"/{added.id}"):
        assert (await viewer.post(f"/admin/proxies{path}", data=data)).status_code == 403, path
    assert await _rows(pool, "SELECT id, city, is_active FROM proxies") == [(added.id, None, True)]


async def _four(pool: Pool) -> list[int]:
    """An active proxy, one that fails, one not tested yet, a disabled one; the first two have the tag `a`."""
    ids = [(await proxies.add(pool, f"http://198.51.100.{n}:80")).id for n in range(1, 5)]
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET tags = '{a}' WHERE id = ANY (%s)", [ids[:2]])
        await conn.execute(
            "UPDATE proxies SET is_active = false, last_error = 'refused', probe_state = 'failed', deactivated_at = now(), "
            "probe_at = now() + interval '1 hour' WHERE id = %s",
            [ids[1]],
        )
        await conn.execute(
            "UPDATE proxies SET is_active = false, last_error = 'not tested: soon', probe_state = 'untested', "
            "probe_at = now() + interval '1 min' WHERE id = %s",
            [ids[2]],
        )
        await proxies.disable(conn, [ids[3]], "too dear")
    return ids


async def _state(pool: Pool) -> list[tuple[Any, ...]]:
    return await _rows(
        pool,
        "SELECT is_active, disabled_at IS NOT NULL, probe_state, probe_at <= now() + interval '1 s' FROM proxies ORDER BY id",
    )


def _shown(page: httpx.Response) -> list[int]:
    return [int(one) for one in re.findall(r'name="id" value="(\d+)" id="proxy-', page.text)]


async def test_untested_is_a_state_of_its_own(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = await _four(pool)
    page = await admin.get("/admin/proxies")
    tabs = re.findall(r'\?status=(\w+)"[^>]*>\w+ <span class="n">(\d+)', page.text)
    assert dict(tabs) == {"active": "1", "failing": "0", "untested": "1", "inactive": "1", "disabled": "1"}
    assert page.text.count('<span class="badge dot none">untested</span>') == 1
    assert _shown(await admin.get("/admin/proxies?status=untested")) == [ids[2]]
    assert _shown(await admin.get("/admin/proxies?status=inactive")) == [ids[1]]
    one = (await admin.get(f"/admin/proxies/{ids[2]}")).text
    assert "Untested: not tested: soon. No request uses it yet." in one


async def test_tags_are_edited_and_filter_the_list(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = await _four(pool)
    path = f"/admin/proxies/{ids[0]}"
    version = re.findall(r'name="version" value="([^"]+)"', (await admin.get(path)).text)[0]
    wrong = await admin.post(path, data={"tags": "ok, no/slash", "version": version})
    assert (wrong.status_code, "invalid tag &#39;no/slash&#39;" in wrong.text) == (422, True)
    assert 'value="ok, no/slash"' in wrong.text
    assert (await admin.post(path, data={"tags": "Zed, b  a", "version": version})).status_code == 303
    assert await _rows(pool, "SELECT tags FROM proxies ORDER BY id LIMIT 1") == [(["a", "b", "zed"],)]
    stale = await admin.post(path, data={"tags": "mine", "version": version})
    assert (stale.status_code, '<ins class="after">mine</ins>' in stale.text) == (412, True)
    assert _shown(await admin.get("/admin/proxies?tag=A")) == ids[:2]
    page = await admin.get("/admin/proxies?tag=b")
    assert (_shown(page), "1–1 of 1 proxy" in page.text) == ([ids[0]], True)
    assert '<option value="a">a (2)</option>' in page.text


@pytest.mark.parametrize(
    ("sort", "order"),
    [("", [1, 2, 3]), ("-id", [3, 2, 1]), ("latency", [3, 1, 2]), ("-failures", [2, 1, 3]), ("-success", [3, 1, 2])],
)
async def test_the_list_is_sorted(admin: httpx.AsyncClient, pool: Pool, sort: str, order: list[int]) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO proxies (host, port, avg_response_time_ms, failure_count) "
            "SELECT '198.51.100.' || n, 80, CASE n WHEN 1 THEN 200 WHEN 3 THEN 90 END, CASE n WHEN 2 THEN 2 ELSE 0 END "
            "FROM generate_series(1, 3) n"
        )
        await conn.execute(
            "INSERT INTO proxy_scores (host, proxy_id, good, bad, as_of) "
            "SELECT 'h' || n, id, n, 4 - n, now() FROM proxies, generate_series(1, 2) n WHERE port = 80 AND host <> '198.51.100.2'"
        )
        await conn.execute(
            "UPDATE proxy_scores SET bad = 0 WHERE proxy_id = (SELECT id FROM proxies WHERE host = '198.51.100.3')"
        )
    page = await admin.get(f"/admin/proxies?sort={sort}")
    hosts = re.findall(r'title="http://198\.51\.100\.(\d):80"', page.text)
    assert [int(one) for one in hosts] == order
    assert page.text.count("aria-sort=") == 1


def _plan(page: httpx.Response) -> tuple[int, dict[str, str]]:
    """How many would change, and how many are skipped for what."""
    (would,) = re.findall(r'<dt>Will change</dt><dd class="strong">(\d+)</dd>', page.text)
    skipped = re.findall(
        r'<dt>Skipped</dt><dd><span class="strong">(\d+)</span> <span class="soft">([^<]+)<', page.text
    )
    return int(would), {why: n for n, why in skipped}


def _confirm(page: httpx.Response) -> dict[str, list[str]]:
    """The fields of the form that does it."""
    form = page.text[page.text.index('<form method="post" action="/admin/proxies/bulk"') :].partition("</form>")[0]
    given: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form):
        given.setdefault(name, []).append(value)
    return given


async def test_all_matching_are_changed_as_the_preview_says(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = await _four(pool)
    before = await _state(pool)
    page = await admin.get("/admin/proxies/bulk?act=disable&all=1&tag=a")
    assert _plan(page) == (2, {})
    assert await _state(pool) == before, "it was only looked at"
    await admin.post("/admin/proxies/bulk", data={**_confirm(page), "reason": "rest"})
    assert await _rows(pool, "SELECT id, disabled_reason FROM proxies WHERE disabled_at IS NOT NULL ORDER BY id") == [
        (ids[0], "rest"),
        (ids[1], "rest"),
        (ids[3], "too dear"),
    ]
    enable = await admin.get("/admin/proxies/bulk?act=enable&all=1")
    assert _plan(enable) == (3, {"untested: a worker tests them soon": "1"})
    await admin.post("/admin/proxies/bulk", data=_confirm(enable))
    assert await _state(pool) == [
        (False, False, "untested", True),
        (False, False, "untested", True),
        (False, False, "untested", False),
        (False, False, "untested", True),
    ], "workers test them now"
    forced = await admin.get("/admin/proxies/bulk?act=enable&all=1&force=1")
    assert _plan(forced) == (4, {})
    await admin.post("/admin/proxies/bulk", data=_confirm(forced))
    assert await _state(pool) == [(True, False, None, None)] * 4
    audited = await _rows(
        pool, "SELECT action, details ->> 'proxies' FROM audit_log WHERE action LIKE 'proxies%' ORDER BY id"
    )
    assert audited == [
        ("proxies_disabled", str(ids[:2])),
        ("proxies_enabled", str([ids[0], ids[1], ids[3]])),
        ("proxies_enabled", str(ids)),
    ]


async def test_a_selection_that_changed_since_the_preview_is_shown_again(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = await _four(pool)
    page = await admin.get("/admin/proxies/bulk?act=remove&all=1&tag=a")
    async with pool.connection() as conn:
        await conn.execute("UPDATE proxies SET tags = '{a}' WHERE id = %s", [ids[2]])
    again = await admin.post("/admin/proxies/bulk", data=_confirm(page))
    assert (again.status_code, "nothing was done" in again.text, _plan(again)) == (409, True, (3, {}))
    assert len(await _rows(pool, "SELECT 1 FROM proxies")) == 4
    done = await admin.post("/admin/proxies/bulk", data=_confirm(again), follow_redirects=True)
    assert "3 proxies removed." in done.text
    assert await _rows(pool, "SELECT id FROM proxies") == [(ids[3],)]


async def test_many_are_tested_by_the_workers_and_tagged(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = await _four(pool)
    page = await admin.get("/admin/proxies/bulk?act=test&all=1")
    assert _plan(page) == (3, {"disabled": "1"})
    await admin.post("/admin/proxies/bulk", data=_confirm(page))
    assert [row[3] for row in await _state(pool)] == [True, True, True, None]
    tag = await admin.get("/admin/proxies/bulk", params={"act": "tag", "id": ids[1:3]})
    assert "Will change" not in tag.text
    bad = await admin.get("/admin/proxies/bulk", params={"act": "tag", "id": ids[1:3], "new_tag": "a b"})
    assert (bad.status_code, 'class="wrong"' in bad.text) == (422, True)
    good = await admin.get("/admin/proxies/bulk", params={"act": "tag", "id": ids[1:3], "new_tag": "A"})
    assert _plan(good) == (1, {"already tagged": "1"})
    await admin.post("/admin/proxies/bulk", data=_confirm(good))
    assert await _rows(pool, "SELECT id FROM proxies WHERE tags = '{a}' ORDER BY id") == [(one,) for one in ids[:3]]
    untag = await admin.get("/admin/proxies/bulk", params={"act": "untag", "all": "1", "new_tag": "a"})
    await admin.post("/admin/proxies/bulk", data=_confirm(untag))
    assert await _rows(pool, "SELECT id FROM proxies WHERE tags <> '{}'") == []


async def test_nothing_is_changed_without_a_selection(admin: httpx.AsyncClient, viewer: httpx.AsyncClient) -> None:
    none = await admin.get("/admin/proxies/bulk?act=remove", follow_redirects=True)
    assert "No proxies selected" in none.text
    unknown = await admin.get("/admin/proxies/bulk?act=burn&all=1", follow_redirects=True)
    assert "Choose what to do with the proxies." in unknown.text
    refused = await admin.post("/admin/proxies/bulk", data={"act": "burn", "all": "1"}, follow_redirects=True)
    assert "is not an action for proxies: use one of test, enable" in refused.text
    assert (await viewer.get("/admin/proxies/bulk?act=remove&all=1")).status_code == 403
    assert (await viewer.post("/admin/proxies/bulk", data={"act": "remove", "all": "1"})).status_code == 403


async def test_a_proxy_has_its_day_by_hour_and_by_host(admin: httpx.AsyncClient, pool: Pool) -> None:
    added = await proxies.add(pool, "http://198.51.100.1:80")
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO fetch_attempts (host, proxy_id, verdict, blame, reaction, bytes, elapsed_ms, attempted_at) "
            "SELECT CASE WHEN n <= 8 THEN 'one.example' ELSE 'two.example' END, %s, CASE WHEN n <= 2 THEN 'blocked' WHEN n = 9 THEN "
            "'proxy_down' ELSE 'ok' END, 'none', 'return', 500000, 250, now() FROM generate_series(1, 10) n",
            [added.id],
        )
    text = (await admin.get(f"/admin/proxies/{added.id}")).text
    counts = json.loads(html.unescape(re.findall(r'id="chart-requests-data">(.*?)</script>', text)[0]))
    assert [(one["label"], one["values"][-1]) for one in counts["series"]] == [
        ("Succeeded", 7),
        ("Failed", 1),
        ("Refused", 2),
    ]
    latency = json.loads(html.unescape(re.findall(r'id="chart-latency-data">(.*?)</script>', text)[0]))
    assert latency["series"][0]["values"][-1] == 0.25
    rates = re.findall(r'aria-label="block rate ([^"]+)"', text)
    assert rates == ["25.0 %", "0.0 %"]
    assert "5.0 MB" in text
