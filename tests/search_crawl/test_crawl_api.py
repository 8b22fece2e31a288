"""Starting, looking, ending over HTTP; what cannot be used is refused with the place where it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.core.errors import InvalidField
from menuwatch.db.pool import Pool
from menuwatch.search_crawl.pages import PageArchive
from menuwatch.search_crawl.service import parse_keywords
from tests.search_crawl.world import HOST, Catalogue, Manners, Process, Service, Shop, next_event
from tests.users_fixture import bearer

REMOVED = f"{HOST}/product/1002"
JOBS = "/api/crawl/jobs"


class Desk:
    def __init__(self, pool: Pool, http: httpx.AsyncClient, process: Process, service: Service, clock: ManualClock):
        self.pool, self.http, self.process, self.service, self.clock = pool, http, process, service, clock

    async def finish(self) -> None:
        while (at := await next_event(self.pool, self.service)) is not None:
            self.clock.advance(max(at - self.clock.now(), timedelta(0)))
            await self.process.turn()

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.http.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def desk(pool: Pool, tmp_path: Path) -> AsyncIterator[Desk]:
    clock = ManualClock(datetime.now(UTC) + timedelta(hours=1))  # ahead of what the API writes down
    shop = Shop(Catalogue(("lamp", "mug"), pages=2, per_page=6, shared=2), removed=frozenset({REMOVED}))
    service = Service(clock, shop, Random(2), Manners(lost=0.0, failed=0.05, blocked=0.05))
    process = Process(pool, clock, shop, service, tmp_path, 1)
    there: dict[str, Any] = {"sites": {shop.name: shop}, "providers": {service.name: service}}
    app = create_app(
        AppContext(pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=Settings(home=tmp_path), **there)
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers=await bearer(pool)
    ) as http:
        yield Desk(pool, http, process, service, clock)


async def test_a_crawl_from_start_to_end(desk: Desk, tmp_path: Path) -> None:
    answer = await desk.http.post(JOBS, json={"keywords": [" lamp ", "mug", "LAMP"], "max_pages": 2, "country": "US"})
    started = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"{JOBS}/1"), answer.text
    assert started["keywords"] == ["lamp", "mug"]
    assert (started["site"], started["provider"], started["status"]) == ("shop", "service", "running")
    assert (started["created_by"], started["country"], started["pages"], started["pending"]) == ("tester", "us", 2, 2)
    await desk.finish()
    job = await desk.get(f"{JOBS}/1")
    # 2 keywords x 2 pages; 4 own products and 2 of the other on each of them.
    assert (job["status"], job["pages"], job["completed"], job["failed"], job["products"]) == (
        "completed",
        20,
        20,
        0,
        15,
    )
    assert (job["progress"], job["seconds_left"], job["pending"], job["submitted"]) == (1.0, None, 0, 0)
    assert [(one["url_type"], one["pages"], one["removed"]) for one in job["by_type"]] == [
        ("search", 2, 0),
        ("pagination", 2, 0),
        ("product", 16, 1),
    ]
    assert sum(one["pages"] for one in job["by_keyword"]) == 20
    made = job["attempts"]
    assert made["submissions"] == len(desk.service.asked) == made["good"] + made["bad"] > 20
    assert made["retries"] == made["submissions"] - 20
    assert sum(one["submissions"] for one in job["timeline"]) == made["submissions"]
    assert [one["id"] for one in (await desk.get(JOBS, status="completed"))["items"]] == [1]
    assert (await desk.get(JOBS, status="running"))["items"] == []
    await check_lists(desk, tmp_path)


async def check_lists(desk: Desk, storage: Path) -> None:
    """Lists in pages: nothing is lost or shown twice."""
    items = [one async for one in walk(desk, f"{JOBS}/1/items")]
    assert len({one["url"] for one in items}) == len(items) == 20
    assert [one["id"] for one in items] == sorted(one["id"] for one in items)
    gone = [one for one in items if one["removed"]]
    assert [(one["url"], one["status"]) for one in gone] == [(REMOVED, "completed")]
    assert len((await desk.get(f"{JOBS}/1/items", url_type="search"))["items"]) == 2
    assert (await desk.get(f"{JOBS}/1/items", status="failed"))["items"] == []
    attempts = [one async for one in walk(desk, f"{JOBS}/1/attempts")]
    assert len(attempts) == len(desk.service.asked)
    times = [one["submitted_at"] for one in attempts]
    assert times == sorted(times, reverse=True)
    good = next(one for one in attempts if one["ok"] and one["url_type"] == "search")
    assert PageArchive(storage).read(good["path"]).startswith(b'{"keyword"')
    products = [one async for one in walk(desk, f"{JOBS}/1/products")]
    assert len({one["id"] for one in products}) == len(products) == 15
    assert [one["score"] for one in products] == sorted((one["score"] for one in products), reverse=True)
    assert all(0 < one["score"] <= 100 for one in products)
    assert len((await desk.get(f"{JOBS}/1/products", search="THING 100"))["items"]) == sum(
        "Thing 100" in one["name"] for one in products
    )
    one = await desk.get(f"{JOBS}/1/products/{products[0]['id']}")
    assert [variant["name"] for variant in one["variants"]] == ["Size 0", "Size 1"]
    assert one["variants"][1]["price"] == one["price_max"]


async def walk(desk: Desk, path: str) -> AsyncIterator[Any]:
    cursor: dict[str, str] = {}
    while True:
        page = await desk.get(path, limit=7, **cursor)
        for one in page["items"]:
            yield one
        if page["next"] is None:
            return
        cursor = {"cursor": page["next"]}


async def test_cancelled_and_retried(desk: Desk) -> None:
    await desk.http.post(JOBS, json={"keywords": ["lamp", "mug"], "max_pages": 1})
    await desk.process.submit()
    cancelled = (await desk.http.post(f"{JOBS}/1/cancel")).json()
    assert (cancelled["status"], cancelled["failed"], cancelled["next_submission_at"]) == ("cancelled", 2, None)
    assert (await desk.http.post(f"{JOBS}/1/cancel")).status_code == 409
    await desk.finish()  # the page comes, and nobody wants it
    job = await desk.get(f"{JOBS}/1")
    assert (job["status"], job["products"], len(desk.service.asked)) == ("cancelled", 0, 1)
    again = (await desk.http.post(f"{JOBS}/1/retry")).json()
    assert (again["pages"], again["job"]["status"], again["job"]["cancelled_at"]) == (2, "running", None)
    await desk.finish()
    job = await desk.get(f"{JOBS}/1")
    assert (job["status"], job["failed"], job["completed"]) == ("completed", 0, 10)
    answer = await desk.http.post(f"{JOBS}/1/retry")
    assert (answer.status_code, answer.json()["detail"]) == (409, "no page of crawl 1 has failed")
    for path in ("99", "99/items", "99/attempts", "99/products", "1/products/99"):
        assert (await desk.http.get(f"{JOBS}/{path}")).status_code == 404
    assert (await desk.http.post(f"{JOBS}/99/cancel")).status_code == 404


async def test_a_crawl_keeps_the_pace_it_was_started_with(desk: Desk) -> None:
    """Row 252 of the old documents: delays and retries are tuned without a change of code."""
    pace = {
        "gap_min_seconds": 40,
        "gap_max_seconds": 60.5,
        "mixing_threshold": 2,
        "max_retries": 0,
        "retry_base_minutes": 1,
    }
    started = (await desk.http.post(JOBS, json={"keywords": ["lamp", "mug"], "max_pages": 1, **pace})).json()
    assert {name: started[name] for name in pace} == pace
    assert started["seconds_left"] == round(2 * 50.25)
    await desk.http.post(JOBS, json={"keywords": ["lamp"], "max_pages": 1})
    assert [(one["gap_min_seconds"], one["max_retries"]) for one in (await desk.get(JOBS))["items"]] == [
        (5, 3),
        (40, 0),
    ]
    desk.service.manners.failed = 1.0
    with capture_logs() as logs:
        await desk.finish()
    times = [at for at, order in desk.service.asked if order.reference.startswith("crawl-1-")]
    assert len(times) == 2, "no retries"
    assert timedelta(seconds=40) <= times[1] - times[0]
    asked = [at for at, order in desk.service.asked if order.reference.startswith("crawl-2-")]
    assert len(asked) == 4, "the other one has the three retries of the settings"
    assert {(one["job_id"], one["succeeded"], one["failed"], one["products"]) for one in completed(logs)} == {
        (1, 0, 2, 0),
        (2, 0, 1, 0),
    }


async def test_the_log_says_how_a_crawl_ended(desk: Desk) -> None:
    """Row 232 of the old documents: the line of a completed crawl has succeeded and failed."""
    desk.service.manners.failed = desk.service.manners.blocked = 0.0
    desk.process.reader._sites["shop"].broken = frozenset({f"{HOST}/product/1001"})  # type: ignore[attr-defined]
    await desk.http.post(JOBS, json={"keywords": ["lamp"], "max_pages": 1})
    before = (await desk.get(f"{JOBS}/1"))["created_at"]
    with capture_logs() as logs:
        await desk.finish()
    job = await desk.get(f"{JOBS}/1")
    assert (job["pages"], job["completed"], job["failed"], job["products"]) == (7, 6, 1, 4), "one is no longer sold"
    took = datetime.fromisoformat(job["completed_at"]) - datetime.fromisoformat(before)
    (line,) = completed(logs)
    assert {name: line[name] for name in ("job_id", "succeeded", "failed", "products", "duration_seconds")} == {
        "job_id": 1,
        "succeeded": 6,
        "failed": 1,
        "products": 4,
        "duration_seconds": round(took.total_seconds()),
    }


def completed(logs: list[Any]) -> list[Any]:
    return [one for one in logs if one.get("action") == "crawl_completed"]


async def test_what_cannot_be_asked(desk: Desk) -> None:
    good: dict[str, Any] = {"keywords": ["lamp"]}
    for body, status, said in (
        ({}, 422, "keywords"),
        ({"keywords": []}, 400, "give at least one keyword"),
        ({"keywords": "lamp"}, 422, "keywords"),
        ({**good, "gap_min_seconds": 16}, 400, "gap_min_seconds (16) must not exceed gap_max_seconds (15): give both"),
        ({**good, "gap_max_seconds": 4}, 400, "gap_min_seconds (5) must not exceed gap_max_seconds (4): give both"),
        ({**good, "gap_min_seconds": 0.5}, 422, "gap_min_seconds"),
        ({**good, "gap_max_seconds": "10"}, 422, "gap_max_seconds"),
        ({**good, "mixing_threshold": 0}, 422, "mixing_threshold"),
        ({**good, "max_retries": 11}, 422, "max_retries"),
        ({**good, "max_retries": 1.5}, 422, "max_retries"),
        ({**good, "retry_base_minutes": 1441}, 422, "retry_base_minutes"),
        ({"keywords": ["lamp", 7]}, 422, "keywords[1]"),
        ({"keywords": ["lamp", " \t "]}, 400, "keyword 2 of 2 is empty"),
        ({"keywords": ["lamp", "a\x07b"]}, 400, "keyword 2 of 2 contains a control or invalid character"),
        ({"keywords": ["lamp", "a\x00b"]}, 422, "keywords[1]"),
        ({"keywords": ["x" * 101]}, 400, "keyword 1 of 1 has 101 characters; the maximum is 100"),
        ({"keywords": ["!?"]}, 400, "keyword 1 of 1 contains no letter or digit"),
        ({"keywords": [f"word {n}" for n in range(10_000)]}, 400, "10,000 keywords: a crawl takes at most 200"),
        (good | {"max_pages": 0}, 422, "max_pages"),
        (good | {"max_pages": 101}, 422, "max_pages"),
        (good | {"site": "nowhere"}, 400, "unknown site 'nowhere'; use one of: shop"),
        (good | {"provider": "serpwatch"}, 400, "serpwatch requires SERPWATCH_TOKEN"),
        (good | {"country": "usa"}, 422, "country"),
        (good | {"country": "u1"}, 400, "country must be two letters"),
        (good | {"keyword": "x"}, 422, "keyword"),
    ):
        answer = await desk.http.post(JOBS, json=body)
        assert answer.status_code == status, (body, answer.text)
        assert said in answer.json()["detail"], answer.text[:500]
        assert answer.json()["errors"]
    assert (await desk.get(JOBS))["items"] == []


def test_keywords_as_they_are_searched_for() -> None:
    assert parse_keywords(["  LED   Lamp ", "led lamp", "Größe", "größe"]) == ("LED Lamp", "Größe")
    assert parse_keywords(["می\u200cخواهم"]) == ("می\u200cخواهم",)
    odd = ("a\u202eb", "la\u200bmp", "a\u2066b\u2069", "\ufefflamp")
    for bad in ("a\u2028b", "a\x85b", "\ud800", "a\x1bb", "\ufdd0", *odd):
        with pytest.raises(InvalidField, match="keyword 1 of 1"):
            parse_keywords([bad])
    assert len(parse_keywords([f"word {n}" for n in range(200)])) == 200
