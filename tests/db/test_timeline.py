"""What workers did: bars, rows and lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.db.pool import Pool
from menuwatch.queue import depth
from menuwatch.workers import timeline as timelines
from menuwatch.workers.timeline import packed, timeline

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


async def test_a_past_span_has_what_ran_in_it(pool: Pool) -> None:
    await _worked(pool)
    async with pool.connection() as conn:
        (now,) = await (await conn.execute("SELECT now()")).fetchone() or ()
        # From 40 to 20 minutes ago: Ada's from 40 to 30 and 35 to 25; what "b" runs now began later.
        span = (now - timedelta(minutes=40), now - timedelta(minutes=20))
        found = await timeline(conn, span=span)
        assert [(one.worker_id, len(one.bars)) for one in found.lanes] == [("a", 2)]
        assert (found.since, found.until) == span
        # It ends in the middle of the second one, which is found by its start.
        span = (now - timedelta(minutes=34), now - timedelta(minutes=29))
        assert [len(one.bars) for one in (await timeline(conn, span=span, pod="Xylos")).lanes] == [2]
        assert (await timeline(conn, span=span, pod="Aethelgard")).lanes == []


async def test_events_of_hosts_and_workers(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO host_events (host, kind, reason, happened_at) VALUES"
            " ('a.com', 'circuit_opened', 'refused', now() - interval '50 minutes'),"
            " ('a.com', 'robots', 'read', now() - interval '45 minutes'),"
            " ('a.com', 'changed', 'paused by an operator', now() - interval '3 hours')"
        )
        await conn.execute(
            "INSERT INTO worker_registry (worker_id, friendly_name, pod, host, status, started_at, last_heartbeat_at) VALUES"
            " ('a', 'Ada', 'Xylos', 'h', 'stopped', now() - interval '40 minutes', now() - interval '5 minutes'),"
            " ('b', 'Bo', 'Kryll', 'h', 'active', now() - interval '30 minutes', now())"
        )
        (now,) = await (await conn.execute("SELECT now()")).fetchone() or ()
        since = now - timedelta(hours=1)
        found, more = await timelines.list_events(conn, since, now)
        assert [(one.kind, one.name, one.worker_id) for one in found] == [
            ("stopped", "Xylos/Ada", "a"), ("started", "Kryll/Bo", "b"), ("started", "Xylos/Ada", "a"),
            ("circuit_opened", "a.com", None),
        ]  # fmt: skip
        assert not more
        of_pod, _ = await timelines.list_events(conn, since, now, pod="Kryll")
        assert [one.name for one in of_pod] == ["Kryll/Bo", "a.com"]
        monkeypatch.setattr(timelines, "EVENTS", 2)
        newest, more = await timelines.list_events(conn, since, now)
        assert ([one.kind for one in newest], more) == (["stopped", "started"], True)


async def test_the_depth_is_what_was_due_and_not_claimed(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 1) d"
        )
        # Minutes ago: enqueued, due, claimed, ended. One that was cancelled before it was due never waited.
        for enqueued, due, claimed, ended in (
            (90, None, 40, 35),
            (50, 30, 20, 10),
            (55, None, None, 15),
            (50, 2, None, 30),
        ):
            await conn.execute(
                "INSERT INTO task_history (id, created_at, scheduled_for, claimed_at, started_at, completed_at, priority, attempt,"
                " retry_count, max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
                " SELECT nextval('task_ids'), now() - %(a)s * m, now() - %(b)s::float8 * m, now() - %(c)s::float8 * m,"
                " now() - %(c)s::float8 * m, now() - %(d)s * m, 0, 1, 0, 3, 0, 'payload_fetch', 'dutchie', 'cancelled', 'w', 'r', '{}'"
                " FROM (SELECT interval '1 minute') t(m)",
                {"a": enqueued, "b": due, "c": claimed, "d": ended},
            )
        await conn.execute(
            "INSERT INTO task_live (role, created_at, scheduled_for, state) VALUES"
            " ('analytics_refresh', now() - interval '25 minutes', NULL, 'r'),"
            " ('analytics_refresh', now() - interval '50 minutes', now() + interval '1 hour', 's')"
        )
        (now,) = await (await conn.execute("SELECT now()")).fetchone() or ()
        found = await depth.queue_depth(conn, now - timedelta(hours=1), now)
        assert found is not None
        # A step is half a minute. Until 55 min ago 1; until 40: 2; until 30: 1; until 25: 2; until 20: 3; until 15: 2; then 1. In the
        # step in which one is claimed, it still waited.
        assert [found.most[n] for n in (0, 8, 11, 39, 41, 58, 61, 68, 71, 79, 81, 89, 91, 119)] == [
            1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 2, 2, 1, 1,
        ]  # fmt: skip
        assert found.last == 1
        assert found.peak == 3
        assert abs(found.peak_at - (now - timedelta(minutes=25))) <= timedelta(seconds=30)
        monkeypatch.setattr(depth, "READ", 3)
        assert await depth.queue_depth(conn, now - timedelta(hours=1), now) is None, "four ended since then"


async def test_workers_of_a_pod_among_more_tasks_than_are_read(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    await _worked(pool)
    monkeypatch.setattr(timelines, "READ", 3)
    async with pool.connection() as conn:
        found = await timeline(conn, hours=4, pod="Aethelgard")
    # The newest three are Ada's: before the oldest of them nothing is known.
    assert found.cut
    assert timedelta(minutes=30) <= found.until - found.since < timedelta(minutes=31)
    assert [len(one.bars) for one in found.lanes] == [1], "what Bo runs now"


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
