"""`/api/visitors` and `menuwatch visitors`. Expected figures are those of the views that are put down by hand."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from fastapi import FastAPI

from menuwatch.core.errors import Refused
from tests.api.shop import Shop
from tests.commands import run_here

Run = Callable[..., Awaitable[Result]]
TODAY = datetime.now(UTC).date()
BEFORE = TODAY - timedelta(days=1)


@pytest.fixture
async def visited(shop: Shop) -> Shop:
    """Two days: 10 views by 4 visitors, then 20 by 3."""
    for day, country, region, city, kind, *counts in (
        (BEFORE, "US", "Arizona", "Phoenix", "home", 4, 2, 2),
        (BEFORE, "US", "Arizona", "Phoenix", "product", 5, 2, 1),
        (BEFORE, "", "", "", "search", 1, 1, 1),
        (TODAY, "GB", "England", "London", "product", 20, 3, 3),
    ):
        await shop.execute(
            "INSERT INTO visitor_days VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [day, country, region, city, kind, *counts],
        )
    await shop.execute(
        "INSERT INTO visitor_pages VALUES (%s, 'product', '1-a', 5, 2), (%s, 'product', '1-a', 20, 3)", [BEFORE, TODAY]
    )
    return shop


async def test_a_period_as_a_whole(visited: Shop) -> None:
    found = await visited.ask(f"/api/visitors?since={BEFORE}")
    assert (found["since"], found["until"]) == (str(BEFORE), str(TODAY + timedelta(days=1)))
    assert (found["views"], found["daily_uniques_mean"], found["views_without_place"]) == (30, 3.5, 1)
    assert found["geography"] is None
    assert found["days"] == [
        {"day": str(BEFORE), "views": 10, "daily_uniques": 4, "views_without_place": 1},
        {"day": str(TODAY), "views": 20, "daily_uniques": 3, "views_without_place": 0},
    ]
    assert [(one["kind"], one["views"]) for one in found["kinds"]] == [("product", 25), ("home", 4), ("search", 1)]
    assert len((await visited.ask("/api/visitors"))["days"]) == 30


async def test_places_and_pages(visited: Shop) -> None:
    found = await visited.ask(f"/api/visitors/places?since={BEFORE}")
    assert [(one["country"], one["views"], one["daily_uniques_mean"]) for one in found["items"]] == [
        ("GB", 20, 1.5),
        ("US", 9, 1.5),
        (None, 1, 0.5),
    ]
    found = await visited.ask(f"/api/visitors/places?since={BEFORE}&by=city&country=us&limit=1")
    assert found["items"] == [
        {"country": "US", "region": "Arizona", "city": "Phoenix", "views": 9, "share": 0.3, "daily_uniques_mean": 1.5}
    ]
    found = await visited.ask(f"/api/visitors/pages?since={BEFORE}&kind=product")
    assert found["items"] == [
        {"kind": "product", "page": "1-a", "path": "/p/1-a", "views": 25, "daily_uniques_mean": 2.5}
    ]
    assert (await visited.ask("/api/visitors/pages?kind=brand"))["items"] == []


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        (
            "/api/visitors?since=2026-11-20&until=2026-11-20",
            400,
            "since (2026-11-20) must be before until (2026-11-20)",
        ),
        ("/api/visitors?since=2020-01-01", 400, "at most 400 are allowed"),
        ("/api/visitors?since=yesterday", 422, "since"),
        ("/api/visitors?day=1", 422, "day"),
        ("/api/visitors/places?by=street", 422, "country, region, city"),
        ("/api/visitors/places?country=USA", 422, "a two-letter country code"),
        ("/api/visitors/places?region=%00", 422, "NUL"),
        ("/api/visitors/pages?kind=home", 422, "product, store, brand"),
        ("/api/visitors/pages?limit=201", 422, "at most 200"),
    ],
)
async def test_what_cannot_be_answered_says_why(shop: Shop, path: str, status: int, says: str) -> None:
    answer = await shop.http.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.text


async def test_it_takes_a_login(app: FastAPI, shop: Shop) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as nobody:
        for path in ("/api/visitors", "/api/visitors/places", "/api/visitors/pages"):
            assert (await nobody.get(path)).status_code == 401


@pytest.fixture
def run(visited: Shop, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))

    async def invoke(*words: str) -> Result:
        return await asyncio.to_thread(run_here, ["visitors", *words])

    return invoke


async def test_the_commands_say_what_the_api_says(visited: Shop, run: Run) -> None:
    whole = json.loads((await run("days", "--since", str(BEFORE), "--json")).stdout)
    expected = await visited.ask(f"/api/visitors?since={BEFORE}")
    expected.pop("geography")
    assert whole == expected
    places = json.loads((await run("places", "--by", "city", "--since", "1d", "--json")).stdout)
    assert places == (await visited.ask(f"/api/visitors/places?by=city&since={BEFORE}"))["items"]
    pages = list(csv.DictReader(StringIO((await run("pages", "--format", "csv")).stdout)))
    assert [(one["page"], one["views"]) for one in pages] == [("1-a", "25")]


async def test_tables_name_daily_uniques_as_such(run: Run) -> None:
    found = await run("days", "--since", str(BEFORE))
    assert "Daily uniques" in found.stdout
    assert "30 views in 2 days, 3.5 daily uniques on average; product 25, home 4, search 1" in found.stderr
    found = await run("places", "--since", str(BEFORE))
    assert "Daily uniques (mean)" in found.stdout
    assert "66.7 %" in found.stdout
    assert "No visitors in that period." in (await run("days", "--since", "2026-01-01", "--until", "2026-01-03")).output


async def test_a_wrong_period_or_kind_is_refused(run: Run) -> None:
    found = await run("days", "--since", "2026-11-20", "--until", "2026-11-20")
    assert isinstance(found.exception, Refused)
    found = await run("pages", "--kind", "home")
    assert found.exit_code == 2
    assert "use product, store or brand" in " ".join(found.output.replace("│", " ").split())
