"""Proxies on the dashboard: roles, errors beside the field, lists that are looked at first, and passwords that nobody sees."""

from __future__ import annotations

import re
from typing import Any

import httpx

from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.operations import proxies
from menuwatch.web.faces import Faces
from tests.dashboard.people import logged_in

SECRET = "planted-Secret-77"


async def _rows(pool: Pool, statement: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as conn:
        return await (await conn.execute(statement)).fetchall()


async def test_without_a_proxy_it_says_that_workers_cannot_start_and_how_to_add_one(
    admin: httpx.AsyncClient, viewer: httpx.AsyncClient, pool: Pool
) -> None:
    text = (await admin.get("/admin/proxies")).text
    assert "There is no proxy, so workers cannot start." in text
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
    assert "type it again" not in bad.text, "the first word on a field stands"
    assert 'value="Tempe"' in bad.text
    place = await admin.post("/admin/proxies/add", data={"proxy": f"http://u:{SECRET}@198.51.100.1:80", "state": "XX"})
    assert place.status_code == 422
    assert "XX is no state or province" in place.text
    assert SECRET not in place.text
    assert "type it again" in place.text
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


async def test_a_list_is_looked_at_before_it_is_brought_in(faces: Faces, pool: Pool) -> None:
    async with await logged_in(faces, pool, "lister", Role.OPERATOR) as browser:
        looked = await browser.post("/admin/proxies/import", data={"lines": LIST})
        assert looked.status_code == 200
        assert SECRET not in looked.text
        figures = re.findall(r'<div class="value">(\d+)</div>', looked.text)
        assert figures == ["2", "1", "1"], "proxies, lines that are none, repeated ones"
        assert await _rows(pool, "SELECT 1 FROM proxies") == [], "it was only looked at"
        (carried,) = re.findall(r'name="carried" value="([^"]+)"', looked.text)

        async with await logged_in(faces, pool, "other", Role.OPERATOR) as other:
            stolen = await other.post("/admin/proxies/import", data={"carried": carried, "how": "untested"})
            assert stolen.status_code == 422
            assert "another login" in stolen.text

        done = await browser.post("/admin/proxies/import", data={"carried": carried, "how": "later"})
        assert done.status_code == 303
        found = await _rows(
            pool, "SELECT host, is_active, password, last_error, probe_at > now() FROM proxies ORDER BY id"
        )
        assert [row[:2] for row in found] == [("198.51.100.1", False), ("198.51.100.3", False)]
        assert found[0][2] == f"{SECRET}-2", "the later line counts"
        assert found[0][3].startswith("not tested: ")
        assert found[0][4] is True
        said = await browser.get("/admin/proxies")
        assert "2 added; 1 line left out; 2 are tested by the workers within minutes." in said.text


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
    assert "up to 50 are tested at once" in refused.text


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
    assert "is no time zone" in wrong.text
    assert 'value="Mesa"' in wrong.text
    assert (await admin.post(path, data={**mine, "version": await version()})).status_code == 303
    assert await _rows(pool, "SELECT city, timezone FROM proxies") == [("Mesa", None)]


async def test_several_are_taken_out_and_removed_at_once(admin: httpx.AsyncClient, pool: Pool) -> None:
    ids = [(await proxies.add(pool, f"http://198.51.100.{n}:80")).id for n in range(3)]
    assert (await admin.post("/admin/proxies/disable", data={"id": ids[:2]})).status_code == 303
    assert await _rows(pool, "SELECT is_active, disabled_reason FROM proxies ORDER BY id") == [
        (False, "taken out by tester"),
        (False, "taken out by tester"),
        (True, None),
    ]
    assert (await admin.post("/admin/proxies/remove", data={"id": ids[1:]})).status_code == 303
    assert await _rows(pool, "SELECT id FROM proxies") == [(ids[0],)]
    none = await admin.post("/admin/proxies/remove", data={}, follow_redirects=True)
    assert "tick the proxies first" in none.text
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
