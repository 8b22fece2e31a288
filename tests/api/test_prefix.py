"""Below a path prefix the API says addresses with it, and takes bodies of the same size."""

from __future__ import annotations

import httpx
from fastapi import FastAPI

from menuwatch.db.pool import Pool
from menuwatch.web.faces import Faces
from tests.people import bearer


async def test_below_a_prefix(app: FastAPI, pool: Pool) -> None:
    faces = Faces(api=app, dashboard=app, site=app, prefix="/menus")
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(faces), base_url="http://menuwatch", headers=await bearer(pool)
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
