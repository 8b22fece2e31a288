"""The log on the pages of a task and of a worker."""

from __future__ import annotations

import html
import re
import sys
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from menuwatch.db.pool import Pool
from menuwatch.workers import logs
from menuwatch.workers.logs import NewLine
from tests.dashboard.task_rows import one, over, waiting
from tests.dashboard.worker_rows import enter

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _present(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end at the time of the test, which may be long after this file was imported."""
    monkeypatch.setattr(sys.modules[__name__], "NOW", datetime.now(UTC))


async def _store(pool: Pool, *lines: NewLine, worker: str = "w-1") -> None:
    async with pool.connection() as conn:
        await logs.insert(conn, worker, lines)


def _section(page: str) -> str:
    found = re.search(r'<section class="card" id="logs".*?</section>', page, re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", found[0])).split())


async def test_lines_of_a_task(admin: httpx.AsyncClient, pool: Pool) -> None:
    task = await over(pool)
    path = f"/admin/tasks/{task}"
    assert "No log lines" in _section((await admin.get(path)).text)
    details = '{"role": "payload_fetch", "host": "<b>", "pages": 3, "exception": "Traceback\\n  <script>"}'
    await _store(
        pool,
        NewLine(at=NOW - timedelta(minutes=8), level="info", action="a", message="<i>first</i>", task_id=task, attempt=1),
        NewLine(at=NOW - timedelta(minutes=7), level="error", action="b", message="second", task_id=task, attempt=1, details=details),
        NewLine(at=NOW - timedelta(minutes=7), level="info", action="c", message="of the worker"),
        NewLine(
            at=NOW - timedelta(minutes=6), level="warning", action="log_lines_dropped", message="3 log lines dropped",
            dropped=3, dropped_since=NOW - timedelta(minutes=7),
        ),
    )  # fmt: skip
    page = (await admin.get(path)).text
    assert "<i>first" not in page
    assert "<script>\n" not in page
    section = _section(page)
    assert section.index("<i>first</i>") < section.index("second"), "oldest first"
    assert "host= <b> " in section
    assert "pages= 3" in section
    assert "Traceback Traceback <script>" in section
    assert "role=" not in section, "the page says it above"
    assert "of the worker" not in section
    assert "3 log lines of its workers were dropped while it ran" in section
    warnings = _section((await admin.get(f"{path}?level=warning")).text)
    assert "second" in warnings
    assert "first" not in warnings
    await one(pool, "DELETE FROM log_lines WHERE level = 'error' RETURNING 1")
    assert "No warnings or errors" in _section((await admin.get(f"{path}?level=warning")).text)
    await one(pool, "UPDATE log_lines SET at = now() WHERE seq > 2 RETURNING 1")
    await one(pool, "DELETE FROM log_lines WHERE seq = 1 RETURNING 1")
    assert "Log lines deleted" in _section((await admin.get(path)).text)


async def test_a_task_that_waits_has_no_log_yet(admin: httpx.AsyncClient, pool: Pool) -> None:
    section = _section((await admin.get(f"/admin/tasks/{await waiting(pool)}")).text)
    assert "No log lines yet" in section


async def test_the_page_of_a_task_is_live_until_its_last_lines_are_stored(admin: httpx.AsyncClient, pool: Pool) -> None:
    task = await over(pool)
    assert 'data-live=""' in (await admin.get(f"/admin/tasks/{task}")).text
    await one(pool, "UPDATE task_history SET completed_at = now() RETURNING 1")
    assert 'data-live="tasks,workers,logs"' in (await admin.get(f"/admin/tasks/{task}")).text


async def test_a_long_log_is_paged_back(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "w-1")
    assert "No log lines" in _section((await admin.get("/admin/workers/w-1")).text)
    await _store(
        pool,
        *(NewLine(at=NOW, level="info", action="x", message=f"line {n}.", task_id=7, attempt=2) for n in range(450)),
    )
    await one(pool, "DELETE FROM log_lines WHERE seq = 1 RETURNING 1")
    address, seen = "/admin/workers/w-1", []
    for pages in range(1, 4):
        page = (await admin.get(address)).text
        section = _section(page)
        seen.append([int(n) for n in re.findall(r"line (\d+)\.", section)])
        assert ("Newest lines" in section) == (pages > 1)
        assert ("Older lines were deleted" in section) == (pages == 3)
        assert "task 7 attempt 2" in section
        older = re.search(r'href="([^"]*)#logs">Older lines', page)
        if older is None:
            break
        address = html.unescape(older[1])
    assert seen == [[*range(250, 450)], [*range(50, 250)], [*range(1, 50)]]
