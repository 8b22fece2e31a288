"""`menuwatch crawl`: what the dashboard does, on the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import Result

from menuwatch.core.errors import Refused
from menuwatch.db.pool import Pool
from menuwatch.search_crawl.pages import PageArchive
from tests.commands import run_here
from tests.dashboard.crawl_rows import half_done

Run = Callable[..., Awaitable[Result]]


@pytest.fixture
def run(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("MENUWATCH_HOME", str(tmp_path))
    monkeypatch.delenv("SERPWATCH_TOKEN", raising=False)

    async def invoke(*words: object, code: int = 0, given: bytes | None = None) -> Result:
        found = await asyncio.to_thread(run_here, ["crawl", *map(str, words)], given)
        if code == 2:
            # The entry point prints it, and ends with that code.
            assert isinstance(found.exception, Refused), (found.output, found.exception)
        else:
            assert found.exit_code == code, (found.output, found.exception)
        return found

    return invoke


async def test_start_list_and_cancel(run: Run, tmp_path: Path) -> None:
    assert "No search crawls" in (await run("list")).stderr
    words = tmp_path / "words.txt"
    words.write_text("\ufeffdog leash\n\n  phone   case \n", encoding="utf-8")
    started = await run("start", "LED lamp", "--file", words, "--pages", 3, "--country", "DE", "--json")
    job = json.loads(started.stdout)
    assert (job["keywords"], job["max_pages"], job["country"]) == (["LED lamp", "dog leash", "phone case"], 3, "de")
    assert (job["provider"], job["pages"], job["pending"]) == ("identities", 3, 3)
    said = await run("start", "--file", "-", given=b"one\ntwo\n")
    assert f"Started crawl {job['id'] + 1}: 2 keywords at cj, fetched by identities" in said.stdout
    listed = json.loads((await run("list", "--json")).stdout)
    assert [one["id"] for one in listed] == [job["id"] + 1, job["id"]]
    assert "dog leash" in (await run("list", "--status", "running")).stdout
    assert f"Cancelled crawl {job['id']}." in (await run("cancel", job["id"])).stdout
    assert "only a running crawl can be cancelled" in str((await run("cancel", job["id"], code=2)).exception)
    assert [one["status"] for one in json.loads((await run("list", "--json")).stdout)] == ["running", "cancelled"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give at least one keyword"),
        (("lamp", "\x1b"), "keyword 2 of 2 contains a control or invalid character"),
        (("lamp", "--provider", "serpwatch"), "serpwatch requires SERPWATCH_TOKEN"),
        (("lamp", "--gap-min", "nan"), "--gap-min: gap_min_seconds must be 1 to 3,600, not nan"),
        (("lamp", "--gap-max", 4), "--gap-max: gap_min_seconds (5) must not exceed gap_max_seconds (4): give both"),
        (("lamp", "--retries", 11), "--retries: max_retries must be 0 to 10, not 11"),
        (("lamp", "--mixing", 0), "--mixing: mixing_threshold must be 1 to 1,000, not 0"),
        (("lamp", "--retry-base", -1), "--retry-base: retry_base_minutes must be 0 to 1,440, not -1"),
        (("lamp", "--pages", 101), "--pages: max_pages must be 1 to 100, not 101"),
        (("lamp", "--file", "/nowhere/at/all"), "--file /nowhere/at/all: No such file"),
    ],
)
async def test_what_cannot_be_started(run: Run, words: tuple[object, ...], said: str) -> None:
    assert said in str((await run("start", *words, code=2)).exception)


async def test_the_pace_comes_from_options_and_settings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWL_GAP_MAX_SECONDS", "90")
    monkeypatch.setenv("CRAWL_MAX_RETRIES", "1")
    words = ("--gap-min", 20, "--mixing", 4, "--retry-base", 2.5)
    job = json.loads((await run("start", "lamp", *words, "--json")).stdout)
    names = ("gap_min_seconds", "gap_max_seconds", "mixing_threshold", "max_retries", "retry_base_minutes")
    assert [job[name] for name in names] == [20, 90, 4, 1, 2.5]
    monkeypatch.setenv("CRAWL_GAP_MAX_SECONDS", "100")
    shown = (await run("show", job["id"])).output
    assert "20 to 90 s apart, 1 retry, the first after 2.5 min" in shown, "a running crawl keeps its values"


async def test_archived_pages_are_read_again(run: Run, pool: Pool, tmp_path: Path) -> None:
    assert "No crawl has an archived page." in (await run("reparse", "--all")).stderr
    for words in ((), (1, "--all")):
        assert "give either the id of a crawl or --all" in str((await run("reparse", *words, code=2)).exception)
    assert "crawl 77 does not exist" in str((await run("reparse", 77, code=2)).exception)
    job = await half_done(pool)
    path = PageArchive(tmp_path / "storage").put(job.id, 4, 1, b"<html>")
    async with pool.connection() as conn:
        await conn.execute("UPDATE crawl_attempts SET path = %s WHERE item_id = 4", (path,))
    for words in ((job.id, "--json"), ("--all", "--dry-run", "--json")):
        (found,) = json.loads((await run("reparse", *words)).stdout)
        assert (found["job_id"], found["pages"], found["changed"], found["unreadable"]) == (job.id, 1, 0, 1)
        assert found["errors"][0]["path"] == path
    assert f"crawl {job.id}, {path}: " in (await run("reparse", job.id)).stderr


async def test_show_products_and_retry(run: Run, pool: Pool) -> None:
    job = await half_done(pool)
    text = (await run("show", job.id)).output
    assert "28 of 62 known so far (45 %), 1 of them failed" in text
    assert "no answer" in text
    figures = json.loads((await run("show", job.id, "--json")).stdout)
    assert {one["url_type"]: one["completed"] for one in figures["by_type"]} == {"search": 1, "product": 26}
    found = json.loads((await run("products", job.id, "--search", "größe", "--limit", 5, "--json")).stdout)
    assert len(found) == 5
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    assert "Score" in (await run("products", job.id)).stdout
    assert "1 page of crawl" in (await run("retry", job.id)).stdout
    assert "no page of crawl" in str((await run("retry", job.id, code=2)).exception)
    assert "crawl 99 does not exist" in str((await run("products", 99, code=2)).exception)
