"""Where a form leads: to a page, never to an address that only takes forms. Also without a Referer, which browsers may leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.accounts.model import Role
from menuwatch.db.pool import Pool
from menuwatch.web.routing import Apps
from tests.api.whole_server import Whole, whole
from tests.dashboard.conftest import ORIGIN
from tests.dashboard.users_fixture import logged_in

GIVEN: dict[str, Any] = {
    "name": "given", "scope": "read", "expires": "90d", "version": "x", "proxy": "http://203.0.113.9:80", "untested": "on",
    "of": "tasks", "query": "", "ids": "999", "id": "999", "act": "retry", "reason": "r", "role": "viewer", "on": "1",
    "menu_url": "https://dutchie.com/dispensary/x", "interval_hours": "4", "priority": "1", "command": "pause", "pod": "p",
}  # fmt: skip


@pytest.fixture
def server(pool: Pool, tmp_path: Path) -> Whole:
    return whole(pool, tmp_path)


async def _leads(browser: httpx.AsyncClient, path: str, seen: set[str], **headers: str) -> str | None:
    """The page that the form leads to, which opens (those of `seen` do); None where the answer is the page."""
    answer = await browser.post(path, data=GIVEN, headers=headers)
    assert answer.status_code < 500, path
    if answer.status_code != 303:
        return None
    there = answer.headers["location"]
    # 404 says that what the form was about does not exist, with a way on.
    if there not in seen:
        page = await browser.get(there, follow_redirects=True)
        assert page.status_code in (200, 404), (path, there)
        seen.add(there)
    return str(there)


async def test_every_form_leads_to_a_page(server: Whole, pool: Pool) -> None:
    posts = sorted({
        path for method, path in server.routes() if method == "POST" and path.startswith("/admin/") and path != "/admin/logout"
    })  # fmt: skip
    assert len(posts) > 50
    found: dict[str, str | None] = {}
    seen: set[str] = set()
    async with await logged_in(server.asgi, pool, "maria", Role.ADMIN) as browser:
        for path in posts:
            found[path] = await _leads(browser, path, seen)
            await _leads(browser, path, seen, Referer=ORIGIN + path)
            if "999" in path:  # and numbers that exist by now, whatever they name
                await _leads(browser, path.replace("999", "1"), seen)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server.asgi), base_url=ORIGIN) as anonymous:
        for path in posts:
            answer = await anonymous.post(path, headers={"Sec-Fetch-Site": "same-origin"})
            assert answer.status_code != 303 or "%2Frevoke" not in answer.headers["location"], path
    assert found["/admin/account/tokens/999/revoke"] == "/admin/account/tokens"
    assert sum(there is not None for there in found.values()) > 25


async def test_the_page_that_a_form_came_from_is_gone_back_to(apps: Apps, pool: Pool) -> None:
    async with await logged_in(apps, pool, "maria", Role.ADMIN) as browser:
        for referer, there in (
            ("/admin/users/tokens?cursor=x", "/admin/users/tokens?cursor=x"),
            ("/admin/tasks?q=a%20b", "/admin/tasks?q=a%20b"),
            ("/admin/account/tokens/8/revoke", "/admin/account/tokens"),
            ("/admin", "/admin/"),
            ("/elsewhere", "/admin/account/tokens"),
        ):
            answer = await browser.post("/admin/account/tokens/9/revoke", headers={"Referer": ORIGIN + referer})
            assert (answer.status_code, answer.headers["location"]) == (303, there), referer
