"""Saved views by API and command line: the same as in the dashboard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from menuwatch.accounts.saved_views import SCREENS
from menuwatch.dashboard import navigation
from menuwatch.db.pool import Pool
from tests.accounts.conftest import Make
from tests.commands import run_here
from tests.users_fixture import bearer


def test_every_screen_exists() -> None:
    assert set(SCREENS) <= {screen.path for screen in navigation.SCREENS}


async def test_a_users_own_views_by_api(make: Make, pool: Pool) -> None:
    anna, bob = [await bearer(pool, name=name, role="viewer") for name in ("anna", "bob")]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make()), base_url="http://menuwatch") as http:
        new = {"screen": "/tasks", "name": " Failed  today ", "query": "?q=state%3Afailed&cursor=abc"}
        view = (await http.post("/api/views", json=new, headers=anna)).json()
        assert view == {"id": view["id"], "screen": "/tasks", "name": "Failed today", "query": "q=state%3Afailed"}
        again = (await http.post("/api/views", json={**new, "query": ""}, headers=anna)).json()
        assert (again["id"], again["query"]) == (view["id"], "")
        assert (await http.get("/api/views", headers=anna)).json() == {"items": [again]}
        assert (await http.get("/api/views?screen=/stores", headers=anna)).json() == {"items": []}
        assert (await http.get("/api/views", headers=bob)).json() == {"items": []}
        assert (await http.delete(f"/api/views/{view['id']}", headers=bob)).status_code == 404
        for wrong in ({"screen": "/nowhere"}, {"name": " "}, {"name": "x" * 81}, {"query": f"q={'x' * 2001}"}):
            refused = await http.post("/api/views", json={**new, **wrong}, headers=anna)
            assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, f"#/{next(iter(wrong))}")
        assert (await http.delete(f"/api/views/{view['id']}", headers=anna)).json() == again
        assert (await http.get("/api/views", headers=anna)).json() == {"items": []}


async def test_views_of_a_user_by_command(
    database_url: str, pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    await bearer(pool, name="anna", role="viewer")

    async def run(*words: str) -> str:
        result = await asyncio.to_thread(run_here, ["views", *words])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    saved = json.loads(await run("save", "anna", "/tasks", "Failed today", "q=state%3Afailed", "--json"))
    assert (saved["screen"], saved["name"], saved["query"]) == ("/tasks", "Failed today", "q=state%3Afailed")
    assert json.loads(await run("list", "ANNA", "--json")) == [saved]
    assert json.loads(await run("list", "anna", "--screen", "/stores", "--json")) == []
    assert "Failed today" in await run("delete", "anna", str(saved["id"]))
    assert json.loads(await run("list", "anna", "--json")) == []
