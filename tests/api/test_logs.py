"""Log lines over HTTP: by task and by worker, in pages, with what is missing."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from menuwatch.workers import logs
from menuwatch.workers.logs import NewLine
from tests.api.shop import Shop
from tests.dashboard.task_rows import over

NOW = datetime.now(UTC).replace(microsecond=0)
WORKER = "/api/worker-registry/w-1/logs"


@pytest.fixture(autouse=True)
def _present(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end at the time of the test, which may be long after this file was imported."""
    monkeypatch.setattr(sys.modules[__name__], "NOW", datetime.now(UTC).replace(microsecond=0))


async def _store(shop: Shop, *lines: NewLine, worker: str = "w-1") -> None:
    async with shop.pool.connection() as conn:
        await logs.insert(conn, worker, lines)


def _line(n: int, level: str = "info", **more: Any) -> NewLine:
    """Line `n`; several have the same time."""
    return NewLine(at=NOW + timedelta(seconds=n // 3), level=level, action="spoken", message=f"line {n}", **more)


async def test_pages_neither_lose_nor_repeat(shop: Shop) -> None:
    task = await over(shop.pool)
    levels = ("info", "warning", "info", "error")
    await _store(shop, *(_line(n, levels[n % 4], task_id=task if n % 2 else None, attempt=1) for n in range(11)))
    await _store(shop, _line(5, task_id=task, attempt=2), worker="w-2")

    async def said(path: str, **query: Any) -> list[str]:
        return [f"{one['worker_id']} {one['message']}" for one in await shop.walk(path, limit=2, **query)]

    assert await said(WORKER) == [f"w-1 line {n}" for n in range(10, -1, -1)]
    assert await said(WORKER, level="error") == ["w-1 line 7", "w-1 line 3"]
    of_task = f"/api/tasks/{task}/logs"
    assert await said(of_task) == [
        "w-1 line 9",
        "w-1 line 7",
        "w-2 line 5",
        "w-1 line 5",
        "w-1 line 3",
        "w-1 line 1",
    ]
    assert await said(of_task, level="warning") == [
        "w-1 line 9",
        "w-1 line 7",
        "w-1 line 5",
        "w-1 line 3",
        "w-1 line 1",
    ]
    page = await shop.ask(of_task, params={"limit": 2})
    problem = await shop.refused(of_task, 400, params={"cursor": page["next"], "level": "error"})
    assert "another list" in problem["detail"]


async def test_a_line_has_its_fields_and_a_log_what_it_lacks(shop: Shop) -> None:
    task = await over(shop.pool)
    await _store(
        shop,
        _line(0, details='{"pages": 3, "exception": "Traceback"}', task_id=task, attempt=1),
        NewLine(
            at=NOW - timedelta(minutes=6),
            level="warning",
            action="log_lines_dropped",
            message="7 log lines dropped",
            dropped=7,
            dropped_since=NOW - timedelta(minutes=7),
        ),
    )
    page = await shop.ask(f"/api/tasks/{task}/logs")
    assert page == {
        "items": [
            {
                "worker_id": "w-1",
                "seq": 1,
                "at": NOW.isoformat().replace("+00:00", "Z"),
                "level": "info",
                "action": "spoken",
                "message": "line 0",
                "task_id": task,
                "attempt": 1,
                "details": {"pages": 3, "exception": "Traceback"},
                "dropped": 0,
            }
        ],
        "next": None,
        "dropped": 7,
        "deleted": False,
    }
    await shop.execute("DELETE FROM log_lines WHERE seq = 1")
    page = await shop.ask(WORKER)
    assert [one["dropped"] for one in page["items"]] == [7]
    assert (page["dropped"], page["deleted"]) == (7, True)


async def test_what_does_not_exist_is_named(shop: Shop) -> None:
    assert "task 99" in (await shop.refused("/api/tasks/99/logs", 404))["detail"]
    assert "unknown worker 'w-1'" in (await shop.refused(WORKER, 404))["detail"]
    problem = await shop.refused(WORKER, 422, params={"level": "loud"})
    assert "info, warning, error" in problem["errors"][0]["detail"]
    await shop.execute("INSERT INTO worker_registry (worker_id, friendly_name, host) VALUES ('w-1', 'Ada', 'box')")
    assert await shop.ask(WORKER) == {"items": [], "next": None, "dropped": 0, "deleted": False}
