"""What workers did: bars, rows and lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.db.pool import Pool
from menuwatch.operations import timeline as timelines
from menuwatch.operations.timeline import packed, timeline

START = datetime(2026, 11, 1, tzinfo=UTC)

_ENDED = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, priority, attempt, retry_count, max_retries,"
    " postpone_count, role, platform, status, worker_id, payload)"
    " SELECT nextval('task_ids'), now(), at - interval '10 minutes', at - interval '10 minutes', at, 0, 1, 0, 3, 0, 'payload_fetch',"
    " 'dutchie', 'completed', %s, '{}' FROM (SELECT now() - %s * interval '1 minute') t(at)"
)


async def _worked(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 1) d"
        )
        await conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, pod, host) VALUES"
            " ('a', 'Ada', 'Xylos', 'h'), ('b', 'Bo', 'Aethelgard', 'h')"
        )
        for worker, minutes in (("a", 30), ("a", 25), ("a", 5), ("b", 170), ("b", 200), ("gone", 60)):
            await conn.execute(_ENDED.encode(), (worker, minutes))
        await conn.execute("INSERT INTO worker_tasks (role) VALUES ('analytics_refresh')")
        await conn.execute("SELECT claim_tasks(NULL, 'b', 1)")


async def test_lanes_by_pod_and_name(pool: Pool) -> None:
    await _worked(pool)
    async with pool.connection() as conn:
        found = await timeline(conn, hours=3)
        assert [(one.pod, one.name, len(one.bars), one.rows) for one in found.lanes] == [
            ("Aethelgard", "Bo", 2, 1),
            ("Xylos", "Ada", 3, 2),
            (None, None, 1, 1),
        ]
        assert not found.cut
        assert found.until - found.since == timedelta(hours=3)
        bo, ada, _ = found.lanes
        # 40 to 30 minutes ago, 35 to 25, 15 to 5: the second overlaps the first.
        assert [bar.row for bar in ada.bars] == [0, 1, 0]
        assert [(bar.status, bar.end is None) for bar in bo.bars] == [("completed", False), ("claimed", True)]
        assert [one.name for one in (await timeline(conn, pod="Xylos")).lanes] == ["Ada"]
        assert [one.worker_id for one in (await timeline(conn, worker_id="gone")).lanes] == ["gone"]
        assert (await timeline(conn, pod="Xylos", worker_id="b")).lanes == []
        assert len((await timeline(conn, hours=4, worker_id="b")).lanes[0].bars) == 3


async def test_too_many_begin_later(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    await _worked(pool)
    monkeypatch.setattr(timelines, "BARS", 2)
    async with pool.connection() as conn:
        found = await timeline(conn, hours=3)
    assert found.cut
    assert [len(one.bars) for one in found.lanes] == [1, 2]
    assert timedelta(minutes=25) <= found.until - found.since < timedelta(minutes=26)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20) | st.none()), max_size=30))
def test_bars_of_one_row_never_overlap_and_rows_are_no_more_than_needed(spans: list[tuple[int, int | None]]) -> None:
    given_bars = [
        {
            "id": n, "role": "r", "dispensary_id": None, "status": "s", "start": START + timedelta(minutes=start),
            "end": None if length is None else START + timedelta(minutes=start + length),
        }
        for n, (start, length) in enumerate(sorted(spans, key=lambda span: span[0]))
    ]  # fmt: skip
    bars = packed(given_bars)
    assert len(bars) == len(spans)
    for one in bars:
        for other in bars:
            if one is not other and one.row == other.row and one.start <= other.start:
                assert one.end is not None
                assert one.end <= other.start or one.id > other.id
    most = max(
        (sum(b.start <= at.start and (b.end is None or b.end > at.start) for b in bars) for at in bars), default=0
    )
    assert max((bar.row for bar in bars), default=-1) + 1 == most
