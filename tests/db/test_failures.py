"""Failures by cause: what is the same cause, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.core.errors import InvalidField, NotFound
from menuwatch.db.pool import Connection, Pool
from menuwatch.queue import service
from menuwatch.queue.failures import (
    BARS,
    FailureStatus,
    FailureWindow,
    OpenFailures,
    count_open,
    list_failures,
    mute,
    unmute,
)
from menuwatch.queue.model import Role
from menuwatch.queue.search import parse
from menuwatch.queue.search_values import TaskSearch
from menuwatch.queue.task_list import TaskFilter
from tests.conftest import create_database, drop_database


@pytest.fixture(scope="module")
def asked(server_url: str, template: str) -> Iterator[psycopg.Connection]:
    url = create_database(server_url, "failures_kinds", template)
    with psycopg.connect(url, autocommit=True) as conn:
        yield conn
    drop_database(server_url, "failures_kinds")


def kind(conn: psycopg.Connection, text: str) -> str:
    row = conn.execute("SELECT error_template(%s)", [text]).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("payload 5 does not exist", "payload # does not exist"),
        ("crawling of store 12 (Green Leaf) is disabled", "crawling of store # … is disabled"),
        ("store 'az-green-12' not found on dutchie", "store … not found on dutchie"),
        ('store "it\'s ours" was removed', "store … was removed"),
        ("it doesn't answer and won't", "it doesn't answer and won't"),
        ("host.test:8443: the server failed with HTTP 503", "host.test:#: the server failed with HTTP 503"),
        ("ConnectionError: 10.0.0.7:9050 refused after 12.5 s", "ConnectionError: # refused after # s"),
        ("id 64b7f0aa92c1d3e4f5a6b7c8 at 2026-11-21T10:00:00Z", "id # at #"),
        ("  much \n  space\t", "much space"),
    ],
)
def test_kinds(asked: psycopg.Connection, reason: str, expected: str) -> None:
    assert kind(asked, reason) == expected


_word = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
_differs = st.one_of(
    st.integers(0, 10**12).map(str),
    st.from_regex(r"[0-9a-f]{11}[0-9]", fullmatch=True),
    st.from_regex(r"[a-z]{1,5}-[0-9]{1,4}", fullmatch=True),
    st.decimals(0, 9, places=2).map(str),
)
_name = st.text(st.characters(exclude_characters="\"'`()\0", exclude_categories=["Cs"]), max_size=15)


@settings(max_examples=60, deadline=None)
@given(words=st.lists(_word, min_size=1, max_size=5), one=_differs, other=_differs, name=_name, another=_name)
def test_numbers_and_names_make_no_difference(
    asked: psycopg.Connection, words: list[str], one: str, other: str, name: str, another: str
) -> None:
    text = " ".join(words)
    assert kind(asked, f"{text} {one} {text}") == kind(asked, f"{text} {other} {text}")
    for opened, closed in ('""', "''", "``", "()"):
        a, b = f"{text} {opened}{name}{closed} end", f"{text} {opened}{another}{closed} end"
        assert kind(asked, a) == kind(asked, b) == f"{text} … end"


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=900))
def test_any_reason_has_a_short_kind(asked: psycopg.Connection, text: str) -> None:
    assert len(kind(asked, text)) <= 200
    row = asked.execute("SELECT error_fingerprint(%s)", [text]).fetchone()
    assert row is not None
    assert len(row[0]) == 12


@settings(max_examples=60, deadline=None)
@given(st.lists(_word, min_size=1, max_size=6), st.lists(_word, min_size=1, max_size=6))
def test_different_words_are_different_kinds(asked: psycopg.Connection, one: list[str], other: list[str]) -> None:
    assert (kind(asked, " ".join(one)) == kind(asked, " ".join(other))) == (one == other)


_FAILED = (
    "INSERT INTO task_history (id, created_at, completed_at, dispensary_id, priority, attempt, retry_count, max_retries,"
    " postpone_count, role, platform, status, worker_id, error_message, payload)"
    " SELECT nextval('task_ids'), now() - interval '9 days', now() - %(hours)s * interval '1 hour', n, 0, 1, 3, 3, 0,"
    " %(role)s, 'dutchie', %(status)s, 'w', replace(%(text)s, '#', n::text), '{}' FROM generate_series(1, %(n)s) n"
)


async def test_groups_and_what_they_select(pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 9) d"
        )
        for role, status, text, hours, n in (
            ("payload_fetch", "failed", "host:# refused", 0.5, 3),
            ("payload_fetch", "failed", "host:# refused", 10, 2),
            ("payload_fetch", "failed", "host:# refused", 24 * 8, 9),
            ("product_discovery", "failed", "host:# refused", 30, 1),
            ("payload_fetch", "failed", "store # is gone", 0.5, 4),
            ("payload_fetch", "cancelled", "host:# refused", 0.5, 7),
        ):
            await conn.execute(_FAILED.encode(), {"role": role, "status": status, "text": text, "hours": hours, "n": n})
        found = await list_failures(conn, FailureWindow.WEEK)
        assert [(one.role, one.kind, one.count, one.last_day, one.last_hour, one.stores) for one in found] == [
            ("payload_fetch", "host:# refused", 5, 5, 3, 3),
            ("payload_fetch", "store # is gone", 4, 4, 4, 4),
            ("product_discovery", "host:# refused", 1, 0, 0, 1),
        ]
        assert found[0].cause == found[2].cause != found[1].cause
        assert found[0].example == "host:3 refused"
        assert found[0].first_at < found[0].last_at
        assert [sum(group.histogram) for group in found] == [5, 4, 1]
        # 168 hours in 24 parts of 7: half an hour ago, 10 hours ago, 30 hours ago.
        assert [{n: bar for n, bar in enumerate(group.histogram) if bar} for group in found] == [
            {23: 3, 22: 2},
            {23: 4},
            {19: 1},
        ]
        assert len(found[0].histogram) == BARS

        (one, other) = await list_failures(conn, FailureWindow.HOUR)
        assert (one.kind, one.count, other.kind, other.count) == ("store # is gone", 4, "host:# refused", 3)
        assert await list_failures(conn, FailureWindow.WEEK, roles=[Role.PRODUCT_REFRESH]) == []
        (only,) = await list_failures(conn, FailureWindow.DAY, cause=found[1].cause)
        assert only.count == 4

        for group in await list_failures(conn, FailureWindow.WEEK):
            search = parse(group.search)
            assert isinstance(search, TaskSearch)
            assert search.text == group.search
            dry = await service.bulk_retry(conn, await search.filter(conn), dry_run=True)
            assert (dry.matched, dry.would) == (group.count, group.stores), "one task for each store"


async def test_of_nothing_there_are_none(pool: Pool) -> None:
    async with pool.connection() as conn:
        assert await list_failures(conn, FailureWindow.HOUR) == []


_TASK = (
    "INSERT INTO task_history (id, created_at, claimed_at, started_at, completed_at, dispensary_id, priority, attempt, retry_count,"
    " max_retries, postpone_count, role, platform, status, worker_id, error_message, payload)"
    " SELECT nextval('task_ids'), t, t, t, t, %(store)s, 0, 1, 3, 3, 0, %(role)s, 'dutchie', %(status)s, 'w',"
    " CASE WHEN %(status)s <> 'completed' THEN %(text)s END, %(payload)s::text::jsonb"
    " FROM (SELECT now() - %(ago)s * interval '1 minute') x(t)"
)
FETCH = "payload_fetch"


async def _ended(
    conn: Connection,
    status: str,
    ago: float,
    store: int | None = 1,
    *,
    role: str = FETCH,
    text: str = "",
    payload: str = "{}",
) -> None:
    """A task that ended so many minutes ago."""
    text = text or "menus.test:8443: HTTP 502"
    values = {"status": status, "ago": ago, "store": store, "role": role, "text": text, "payload": payload}
    await conn.execute(_TASK.encode(), values)


@pytest.fixture
async def stores(pool: Pool) -> Pool:
    """Four stores, the last one is not crawled."""
    async with pool.connection() as conn:
        await conn.execute(
            "SELECT ensure_task_history_partition(now() - d * interval '1 day') FROM generate_series(0, 2) d"
        )
        await conn.execute(
            "INSERT INTO dispensaries (name, name_raw) SELECT 'store ' || n, 's' FROM generate_series(1, 4) n"
        )
        await conn.execute("UPDATE dispensaries SET crawl_enabled = false WHERE id = 4")
        await conn.execute('UPDATE queue_settings SET platform_hosts = \'{"dutchie": ["menus.test:8443"]}\'')
    return pool


async def test_a_failure_is_open_until_each_store_succeeded(stores: Pool) -> None:
    async with stores.connection() as conn:
        await _ended(conn, "completed", 50)
        await _ended(conn, "failed", 40)
        await _ended(conn, "failed", 30)
        await _ended(conn, "failed", 20, 2)
        await _ended(conn, "completed", 10)
        (found,) = await list_failures(conn)
        assert (found.status, found.count, found.stores, found.open) == ("open", 3, 2, 1)
        assert [(one.dispensary_id, one.name, one.failures, one.is_open) for one in found.affected] == [
            (2, "store 2", 1, True),
            (1, "store 1", 2, False),
        ]
        now = found.last_at + timedelta(minutes=20)
        minute = timedelta(minutes=1)
        assert found.last_good_at is not None
        assert abs(found.last_good_at - (now - 50 * minute)) < minute, "of the store that failed first"
        assert found.affected[1].resolved_at is not None
        assert abs(found.affected[1].resolved_at - (now - 10 * minute)) < minute
        assert (found.kind, found.host) == ("menus.test:8443: HTTP 502", "menus.test:8443"), "its host is readable"
        assert await count_open(conn) == OpenFailures(tasks=1, causes=1)

        # The crawl of a store is one unit, by whichever role.
        await _ended(conn, "completed", 5, 2, role="product_discovery")
        (found,) = await list_failures(conn)
        assert (found.status, found.open) == ("resolved", 0)
        assert found.resolved_at is not None
        assert abs(found.resolved_at - (now - 5 * minute)) < minute
        assert await count_open(conn) == OpenFailures(tasks=0, causes=0)
        assert await list_failures(conn, status=FailureStatus.OPEN) == []

        await _ended(conn, "failed", 1, 2)
        assert [one.status for one in await list_failures(conn)] == ["open"], "it failed again"


@pytest.mark.parametrize(
    ("others", "is_open"),
    [
        ((), True),
        ((("completed", 5, 2, FETCH, "{}"),), True),  # another store
        ((("completed", 5, 1, "product_refresh", "{}"),), True),  # another role
        ((("completed", 30, 1, FETCH, "{}"),), True),  # before it
        ((("cancelled", 5, 1, FETCH, "{}"),), True),
        ((("completed", 5, 1, FETCH, "{}"),), False),
    ],
)
async def test_what_resolves_a_failure(
    stores: Pool, others: tuple[tuple[str, int, int, str, str], ...], is_open: bool
) -> None:
    async with stores.connection() as conn:
        await _ended(conn, "failed", 10)
        for status, ago, store, role, payload in others:
            await _ended(conn, status, ago, store, role=role, payload=payload)
        found = await list_failures(conn)
        assert [one.status == "open" for one in found if one.role == FETCH] == [is_open]
        assert (await count_open(conn)).tasks == is_open


async def test_without_a_store_the_payload_is_the_unit(stores: Pool) -> None:
    async with stores.connection() as conn:
        for state in ("az", "ca"):
            await _ended(conn, "failed", 10, None, role="store_discovery", payload=f'{{"state": "{state}"}}')
        await _ended(conn, "completed", 5, None, role="store_discovery", payload='{"state": "az"}')
        (found,) = await list_failures(conn)
        assert (found.status, found.stores, found.open, found.affected) == ("open", 0, 1, [])
        await _ended(conn, "completed", 4, None, role="store_discovery", payload='{"state": "ca"}')
        assert [one.status for one in await list_failures(conn)] == ["resolved"]


async def test_a_store_that_is_not_crawled_or_removed_is_not_open(stores: Pool) -> None:
    async with stores.connection() as conn:
        for store in (4, 99):
            await _ended(conn, "failed", 10, store)
        (found,) = await list_failures(conn)
        assert (found.status, found.open, {one.name for one in found.affected}) == ("resolved", 0, {"store 4", None})
        assert (await count_open(conn)).tasks == 0


async def test_a_resolution_is_not_open_once_the_store_is_resolved(stores: Pool) -> None:
    async with stores.connection() as conn:
        for store in (1, 2):
            await _ended(conn, "failed", 10, store, role="entry_point_discovery")
        assert (await count_open(conn)).tasks == 2
        await conn.execute("UPDATE dispensaries SET platform_dispensary_id = 'found' WHERE id = 1")
        assert (await count_open(conn)).tasks == 1, "by a discovery, which ends no task of the store"
        (found,) = await list_failures(conn)
        assert [(one.dispensary_id, one.is_open) for one in found.affected] == [(2, True), (1, False)]


async def test_a_retry_that_is_ready_or_runs_counts_instead(stores: Pool) -> None:
    async with stores.connection() as conn:
        for store in (1, 2):
            await _ended(conn, "failed", 10, store)
        assert (await count_open(conn)).tasks == 2
        retried = await service.bulk_retry(conn, TaskFilter(dispensary_id=1))
        assert retried.done == 1
        assert (await count_open(conn)).tasks == 1
        await conn.execute(
            "INSERT INTO worker_tasks (role, dispensary_id, scheduled_for) VALUES ('payload_fetch', 2, now() + interval '1 hour')"
        )
        assert (await count_open(conn)).tasks == 1, "the next crawl on schedule is no retry"
        await conn.execute("DELETE FROM task_live")
        assert (await count_open(conn)).tasks == 2


async def test_a_mute_lasts_until_its_end(stores: Pool) -> None:
    async with stores.connection() as conn:
        await _ended(conn, "failed", 10)
        await _ended(conn, "failed", 10, text="menu is empty")
        cause = (await list_failures(conn))[0].cause
        key: dict[str, Any] = {"cause": cause, "role": Role.PAYLOAD_FETCH}
        await mute(conn, **key, reason="known", until=timedelta(hours=1))
        found = {one.cause: one for one in await list_failures(conn)}
        assert {one.status for one in found.values()} == {"open", "muted"}
        muted = found[cause].mute
        assert muted is not None
        assert muted.until is not None
        assert muted.reason == "known"
        assert abs(muted.until - muted.muted_at - timedelta(hours=1)) < timedelta(minutes=1)
        assert await count_open(conn) == OpenFailures(tasks=1, causes=1)

        await conn.execute("UPDATE failure_mutes SET until = now()")
        assert {one.status for one in await list_failures(conn)} == {"open"}
        assert (await count_open(conn)).causes == 2
        await mute(conn, **key, reason="for good")
        assert [one.cause for one in await list_failures(conn, status=FailureStatus.MUTED)] == [cause]
        assert (await unmute(conn, **key)).reason == "for good"
        with pytest.raises(NotFound):
            await unmute(conn, **key)
        for wrong, error in (
            ({"reason": " "}, InvalidField),
            ({"until": timedelta(0)}, InvalidField),
            ({"until": timedelta(days=400)}, InvalidField),
            ({"cause": "0" * 12}, NotFound),
            ({"role": Role.PRODUCT_REFRESH}, NotFound),
        ):
            with pytest.raises(error):
                await mute(conn, **{**key, "reason": "x", **wrong})
