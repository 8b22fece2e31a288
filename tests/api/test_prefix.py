"""Below a path prefix the API says addresses with it, and takes bodies of the same size."""

from __future__ import annotations

import re

import httpx
from fastapi import FastAPI

from menuwatch.db.pool import Pool
from menuwatch.web.routing import Apps
from tests.users_fixture import bearer


async def test_below_a_prefix(app: FastAPI, pool: Pool) -> None:
    apps = Apps(api=app, dashboard=app, site=app, prefix="/menus")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(apps), base_url="http://menuwatch", headers=await bearer(pool)
    ) as http:
        made = await http.post("/menus/api/tokens", json={"name": "one", "scopes": ["read"]})
        assert made.status_code == 201, made.text
        assert made.headers["location"] == f"/menus/api/tokens/{made.json()['token']['id']}"
        assert (await http.get(made.headers["location"])).status_code == 200
        large = b'{"tasks": []' + b" " * 1_500_000 + b"}"
        answer = await http.post(
            "/menus/api/job-queue/enqueue-batch", content=large, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code != 413, answer.text
        answer = await http.post("/menus/api/tasks", content=large, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413


async def test_what_a_problem_is_opens_below_a_prefix(app: FastAPI, pool: Pool) -> None:
    apps = Apps(api=app, dashboard=app, site=app, prefix="/menus")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(apps), base_url="http://menuwatch", headers=await bearer(pool)
    ) as http:
        missing = await http.get("/menus/api/tasks/")
        assert (missing.status_code, missing.json()["detail"]) == (
            404,
            "there is nothing at this URL: remove the slash at the end",
        )
        assert "location" not in missing.headers
        page = await http.get(missing.url.join(missing.json()["type"]))
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        (link,) = re.findall('href="([^"]*docs)"', page.text)
        docs = await http.get(page.url.join(link))
        assert docs.status_code == 200
        for link in re.findall('href="([^"#]*problems/missing|[^"]*openapi.json)"', docs.text):
            assert (await http.get(docs.url.join(link))).status_code == 200, link
        refused = await http.put("/menus/api/tasks")
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST")
