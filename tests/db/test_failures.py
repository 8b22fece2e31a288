"""Failures by cause: what is the same cause, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menuwatch.db.pool import Pool
from menuwatch.operations import task_control
from menuwatch.operations.failures import BARS, Window, failures
from menuwatch.operations.task_search import TaskSearch, parse
from menuwatch.tasks.model import Role
from tests.conftest import create_database, drop_database


@pytest.fixture(scope="module")
def asked(server_url: str, template: str) -> Iterator[psycopg.Connection]:
    url = create_database(server_url, "failures_kinds", template)
    with psycopg.connect(url, autocommit=True) as conn:
        yield conn
    drop_database(server_url, "failures_kinds")


def kind(conn: psycopg.Connection, text: str) -> str:
    row = conn.execute("SELECT error_kind(%s)", [text]).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("payload 5 does not exist", "payload # does not exist"),
        ("store 12 (Green Leaf) has crawl_enabled = false", "store # … has crawl_enabled = false"),
        ("dutchie knows no store 'az-green-12'", "dutchie knows no store …"),
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
    row = asked.execute("SELECT error_cause(%s)", [text]).fetchone()
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
        found = await failures(conn, Window.WEEK)
        assert [(one.role, one.kind, one.count, one.last_day, one.last_hour, one.stores) for one in found] == [
            ("payload_fetch", "host:# refused", 5, 5, 3, 3),
            ("payload_fetch", "store # is gone", 4, 4, 4, 4),
            ("product_discovery", "host:# refused", 1, 0, 0, 1),
        ]
        assert found[0].cause == found[2].cause != found[1].cause
        assert found[0].example == "host:3 refused"
        assert found[0].first_at < found[0].last_at
        assert [sum(one.bars) for one in found] == [5, 4, 1]
        # 168 hours in 24 parts of 7: half an hour ago, 10 hours ago, 30 hours ago.
        assert [{n: bar for n, bar in enumerate(one.bars) if bar} for one in found] == [
            {23: 3, 22: 2},
            {23: 4},
            {19: 1},
        ]
        assert len(found[0].bars) == BARS

        (one, other) = await failures(conn, Window.HOUR)
        assert (one.kind, one.count, other.kind, other.count) == ("store # is gone", 4, "host:# refused", 3)
        assert await failures(conn, Window.WEEK, roles=[Role.PRODUCT_REFRESH]) == []
        (only,) = await failures(conn, Window.DAY, cause=found[1].cause)
        assert only.count == 4

        for group in await failures(conn, Window.WEEK):
            search = parse(group.search)
            assert isinstance(search, TaskSearch)
            assert search.text == group.search
            dry = await task_control.bulk_retry(conn, await search.filter(conn), dry_run=True)
            assert (dry.matched, dry.would) == (group.count, group.count)


async def test_of_nothing_there_are_none(pool: Pool) -> None:
    async with pool.connection() as conn:
        assert await failures(conn, Window.HOUR) == []
