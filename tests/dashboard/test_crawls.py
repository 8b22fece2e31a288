"""Search crawls on the dashboard: starting, looking, cancelling, retrying, and who may."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.web import paging
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.dashboard.crawl_rows import BLOCKED, PROVIDERS, SITES, half_done

AT = "/admin/crawls"


@pytest.fixture
def apps(pool: Pool, tmp_path: Path) -> Apps:
    system = AppContext(
        pool=pool,
        archive=FileArchive(tmp_path / "storage"),
        platforms={},
        settings=Settings(),
        sites=SITES,
        providers=PROVIDERS,
    )
    app = create_dashboard(system, Traffic(), Live(pool))
    return Apps(api=app, dashboard=app, site=app)


async def one(pool: Pool, query: str) -> tuple[Any, ...]:
    async with pool.connection() as conn:
        row = await (await conn.execute(query)).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return tuple(row)


async def test_archived_pages_are_read_again(admin: httpx.AsyncClient, pool: Pool) -> None:
    job = await half_done(pool)
    at = f"{AT}/{job.id}"
    assert "Read pages again" in (await admin.get(at)).text
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE crawl_attempts SET path = 'crawls/1/4-1.html.gz' WHERE item_id = 4 AND job_id = %s", (job.id,)
        )
    answer = await admin.post(f"{at}/reparse")
    assert (answer.status_code, answer.headers["location"]) == (303, at)
    said = "0 archived pages read again: 0 changed, 0 unreadable, 1 no longer archived."
    assert said in (await admin.get(at)).text


async def test_one_is_started_with_a_keyword_on_each_line(admin: httpx.AsyncClient, pool: Pool) -> None:
    assert "No search crawls yet" in (await admin.get(AT)).text
    form = {
        "keywords": " led  lamp \r\n\r\ndog leash\r\nLED lamp\r\n",
        "site": "cj",
        "provider": "serpwatch",
        "country": "US",
    }
    started = await admin.post(AT, data={**form, "max_pages": "4"})
    assert started.status_code == 303
    page = (await admin.get(started.headers["location"])).text
    assert "started with 2 keywords" in page
    kept = "SELECT site, provider, keywords, max_pages, country, created_by FROM crawl_jobs"
    assert await one(pool, kept) == ("cj", "serpwatch", ["led lamp", "dog leash"], 4, "us", "tester")
    assert "led lamp, dog leash" in (await admin.get(AT)).text
    assert await one(pool, "SELECT count(*) FROM audit_log WHERE action = 'crawl_started'") == (1,)
    kept = "SELECT gap_min_seconds, gap_max_seconds, mixing_threshold, max_retries, retry_base_minutes FROM crawl_jobs"
    assert await one(pool, kept) == (5, 15, 15, 3, 15)
    pace = {"gap_min_seconds": "2.5", "mixing_threshold": "3", "max_retries": "0", "retry_base_minutes": "0"}
    slow = (await admin.post(AT, data={**form, **pace})).headers["location"]
    assert await one(pool, kept + " ORDER BY id DESC LIMIT 1") == (2.5, 15, 3, 0, 0)
    assert "2.5 to 15 s" in (await admin.get(slow)).text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"keywords": "  \n "}, "give at least one keyword"),
        ({"keywords": "lamp\nle\x07d"}, "keyword 2 of 2 contains a control or invalid character"),
        ({"keywords": "\n".join(f"lamp {n}" for n in range(201))}, "201 keywords: a crawl takes at most 200"),
        ({"keywords": "lamp", "max_pages": "0"}, "0 is too small: from 1 to 100"),
        ({"keywords": "lamp", "max_pages": "ten"}, "a whole number from 1 to 100"),
        ({"keywords": "lamp", "site": "elsewhere"}, "elsewhere&#39;; use one of: cj"),
        ({"keywords": "lamp", "country": "Germany"}, "two letters"),
        ({"keywords": "lamp", "gap_min_seconds": "0"}, "enter a number from 1 to 3,600, not"),
        ({"keywords": "lamp", "gap_min_seconds": "16"}, "gap_min_seconds (16) must not exceed gap_max_seconds (15)"),
        ({"keywords": "lamp", "max_retries": "11"}, "11 is too large: from 0 to 10"),
    ],
)
async def test_what_cannot_be_started_is_said_beside_the_field(
    admin: httpx.AsyncClient, pool: Pool, form: dict[str, str], said: str
) -> None:
    answer = await admin.post(AT, data=form)
    assert answer.status_code == 422
    assert re.search(rf'class="wrong"[^>]*>[^<]*{re.escape(said)}', answer.text)
    assert form.get("country", "") in answer.text
    assert await one(pool, "SELECT count(*) FROM crawl_jobs") == (0,)


async def test_a_job_in_the_midst_of_its_work(admin: httpx.AsyncClient, pool: Pool) -> None:
    job = await half_done(pool)
    listed = (await admin.get(AT)).text
    assert "28 of 62" in listed, "27 pages came, and one has failed"
    figures = (await admin.get(f"{AT}/{job.id}")).text
    for text in ("28 of 62 pages known so far", "Best products", "1 no longer sold", "titled Just a moment"):
        assert text in figures
    assert figures.count("<title>") > 5, "bars of the timeline"
    failed = (await admin.get(f"{AT}/{job.id}/pages?status=failed")).text
    assert failed.count('<td class="long">') == 1
    assert "no answer" in failed
    assert (await admin.get(f"{AT}/{job.id}/pages?status=lost")).status_code == 422
    submissions = (await admin.get(f"{AT}/{job.id}/submissions")).text
    assert submissions.count("failed</span>") == 3
    assert submissions.count("in progress</span>") == 1
    assert BLOCKED in submissions


async def test_products_are_walked_searched_and_shown(admin: httpx.AsyncClient, pool: Pool) -> None:
    job = await half_done(pool, found=140)
    at = f"{AT}/{job.id}/products"

    def scores(text: str) -> list[float]:
        return [float(score) for score in re.findall(r'aria-label="score ([0-9.]+) of 100"', text)]

    first = (await admin.get(at)).text
    link = re.findall(r'rel="next" href="([^"]+)"', first)[0]
    second = (await admin.get(link.replace("&amp;", "&"))).text
    walked = scores(first) + scores(second)
    assert len(walked) == 66
    assert walked == sorted(walked, reverse=True)
    found = (await admin.get(f"{at}?q=Größe+%26+Co&keyword=led+lamp")).text
    assert len(scores(found)) == 22, "every third of 70, from the second, and one of them never came"
    assert "No matching products" in (await admin.get(f"{at}?q=nothing+of+it")).text
    assert (await admin.get(f"{at}?keyword=cat")).status_code == 422
    odd = paging.encode("no score", 1)
    assert (await admin.get(f"{at}?cursor={odd}")).status_code == 200, "its first page is shown instead"
    (number,) = await one(pool, "SELECT id FROM crawl_products WHERE site_product_id = '7011'")
    product = (await admin.get(f"{at}/{number}")).text
    assert "with a very long name" in product
    assert product.count("Red-") == 3
    assert (await admin.get(f"{at}/999")).status_code == 404
    assert (await admin.get(f"{AT}/999")).status_code == 404


async def test_failed_pages_are_retried_and_a_job_is_cancelled(admin: httpx.AsyncClient, pool: Pool) -> None:
    job = await half_done(pool)
    assert (await admin.post(f"{AT}/{job.id}/retry")).status_code == 303
    assert await one(pool, "SELECT count(*) FROM crawl_queue WHERE status = 'failed'") == (0,)
    again = await admin.post(f"{AT}/{job.id}/retry", headers={"referer": f"http://menuwatch{AT}/{job.id}"})
    assert "no page of crawl" in (await admin.get(again.headers["location"])).text
    assert (await admin.post(f"{AT}/{job.id}/cancel")).status_code == 303
    page = (await admin.get(f"{AT}/{job.id}")).text
    assert "is cancelled: no more pages are submitted" in page
    assert f'action="{AT}/{job.id}/cancel"' not in page
    assert "Resume 35 pages" in page
    assert await one(pool, "SELECT status FROM crawl_jobs") == ("cancelled",)


async def test_a_viewer_looks_and_changes_nothing(viewer: httpx.AsyncClient, pool: Pool) -> None:
    job = await half_done(pool)
    for path in ("", f"/{job.id}", f"/{job.id}/products", f"/{job.id}/pages", f"/{job.id}/submissions"):
        answer = await viewer.get(AT + path)
        assert answer.status_code == 200
        assert f'method="post" action="{AT}' not in answer.text
    for path in ("", f"/{job.id}/cancel", f"/{job.id}/retry"):
        assert (await viewer.post(AT + path, data={"keywords": "lamp"})).status_code == 403
    assert await one(pool, "SELECT count(*) FROM crawl_jobs") == (1,)
