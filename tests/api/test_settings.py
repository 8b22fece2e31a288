"""Settings over HTTP: as the dashboard and `menuwatch config` show them, without secrets."""

from __future__ import annotations

from dataclasses import replace

from fastapi import FastAPI

from menuwatch.config.settings import Settings, variables
from tests.api.shop import Shop

SECRET = "hunter2-hunter2"


async def test_settings_are_listed_without_secrets(app: FastAPI, shop: Shop) -> None:
    settings = Settings(
        database_url=f"postgresql://menu:{SECRET}@db.example:5432/menus", secret_key=(SECRET,), host_rate=0.25
    )
    app.state.system = replace(app.state.system, settings=settings)
    answer = await shop.http.get("/api/settings")
    assert SECRET not in answer.text
    found = {one["variable"]: one for one in (await shop.ask("/api/settings"))["items"]}
    assert set(found) >= {variable for variable, *_ in variables()} | {"WEEDMAPS_BASE_URL", "WEEDMAPS_API_KEY"}
    assert (found["SECRET_KEY"]["value"], found["SECRET_KEY"]["secret"]) == ("set", True)
    assert found["DATABASE_URL"]["value"] == "postgresql://db.example:5432/menus"
    assert (found["HOST_RATE"]["value"], found["HOST_RATE"]["default"]) == ("0.25", "2")
    changed = await shop.ask("/api/settings", params={"changed": "true"})
    assert {one["variable"] for one in changed["items"]} == {"SECRET_KEY", "DATABASE_URL", "HOST_RATE"}


async def test_a_host_is_deleted(shop: Shop) -> None:
    await shop.execute("INSERT INTO hosts (host, rate, burst, concurrency, current_rate) VALUES ('h.test', 1, 1, 1, 1)")
    await shop.ask("/api/hosts/h.test/pause", method="POST")
    assert "paused" in (await shop.refused("/api/hosts/h.test", 409, method="DELETE"))["detail"]
    await shop.ask("/api/hosts/h.test/resume", method="POST")
    assert (await shop.ask("/api/hosts/h.test", method="DELETE"))["host"] == "h.test"
    await shop.refused("/api/hosts/h.test", 404)
