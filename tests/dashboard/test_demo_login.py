"""The login link of a demo: one click in a demo, nothing anywhere else."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import pytest

from menuwatch.accounts import users
from menuwatch.accounts.passwords import Passwords
from menuwatch.core import logging as telemetry
from menuwatch.db.pool import Pool
from menuwatch.web.routing import Apps
from tests.dashboard.conftest import ORIGIN, alone

TOKEN = "the-token-of-this-demo"
LINK = "/admin/login/demo"


def _browser(apps: Apps, *, address: str = "127.0.0.1") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(apps, client=(address, 1)), base_url=ORIGIN)


@pytest.fixture
async def demo(pool: Pool, tmp_path: Path) -> Apps:
    await users.first_admin(pool, Passwords(memory_kib=1024), must_change=False)
    return alone(pool, tmp_path, demo_token=TOKEN)


async def test_one_click_opens_the_dashboard_without_another_password(demo: Apps) -> None:
    log = io.StringIO()
    telemetry.configure("console", "debug", log)
    async with _browser(demo) as http:
        answer = await http.get(LINK, params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/admin/")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        overview = await http.get("/admin/")
        assert overview.status_code == 200
        assert "/admin/tasks" in overview.text, "the navigation of an admin, not of somebody who must choose a password"
        assert (await http.get(LINK, params={"token": TOKEN})).status_code == 303, "the link lives as long as the demo"
    assert "login/demo" in log.getvalue()
    assert TOKEN not in log.getvalue()


@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], TOKEN + "x", "é"])
async def test_a_wrong_link_logs_nobody_in(demo: Apps, token: str | None) -> None:
    async with _browser(demo) as http:
        answer = await http.get(LINK, params={} if token is None else {"token": token})
        assert answer.status_code == 404
        assert not http.cookies


async def test_another_machine_is_refused(demo: Apps) -> None:
    async with _browser(demo, address="192.0.2.7") as http:
        assert (await http.get(LINK, params={"token": TOKEN})).status_code == 404
        assert not http.cookies


async def test_an_ordinary_installation_has_no_such_address(pool: Pool, tmp_path: Path) -> None:
    await users.first_admin(pool, Passwords(memory_kib=1024))
    async with _browser(alone(pool, tmp_path)) as http:
        for token in ("", "None", TOKEN):
            assert (await http.get(LINK, params={"token": token})).status_code == 404
        assert not http.cookies
