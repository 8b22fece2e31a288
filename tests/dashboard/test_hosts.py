"""Hosts on the dashboard: the budget, the circuit, pause and resume, and the list of requests."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from menuwatch.dashboard.charts.bars import host_hours
from menuwatch.db.pool import Pool
from menuwatch.hosts.hourly import HourBook, RequestHour, host_day

HOST = "dutchie.example"


@pytest.fixture
async def host(pool: Pool) -> str:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate) VALUES (%s, 2, 4, 6, 0, 2)",
            [HOST],
        )
        await conn.execute(
            "INSERT INTO fetch_attempts (host, proxy_id, verdict, blame, reaction, status, elapsed_ms, attempted_at) "
            "SELECT %s, n %% 3, CASE WHEN n %% 10 = 0 THEN 'blocked' ELSE 'ok' END, 'none', 'return', 200, 20, "
            "now() - n * interval '1 second' "
            "FROM generate_series(1, 120) n",
            [HOST],
        )
    return HOST


async def _one(pool: Pool, statement: str) -> tuple[Any, ...]:
    async with pool.connection() as conn:
        row = await (await conn.execute(statement)).fetchone()
    assert row is not None
    return tuple(row)


LIMITS = "SELECT rate, burst, concurrency, min_gap FROM hosts"


async def _version(client: httpx.AsyncClient) -> str:
    return re.findall(r'name="version" value="([^"]+)"', (await client.get(f"/admin/hosts/{HOST}")).text)[0]


async def test_the_budget_is_set_for_all_and_a_stale_one_shows_both(
    admin: httpx.AsyncClient, pool: Pool, host: str
) -> None:
    version = await _version(admin)
    new = {"rate": "0.5", "burst": "2", "concurrency": "3", "min_gap": "1.5"}
    done = await admin.post(f"/admin/hosts/{host}", data={**new, "version": version})
    assert done.status_code == 303
    assert await _one(pool, LIMITS) == (0.5, 2, 3, 1.5)
    stale = await admin.post(f"/admin/hosts/{host}", data={**new, "rate": "4", "version": version})
    assert stale.status_code == 412
    assert '<del class="before">0.5</del>' in stale.text
    assert '<ins class="after">4</ins>' in stale.text
    assert await _one(pool, LIMITS) == (0.5, 2, 3, 1.5)


async def test_a_budget_that_means_nothing_is_refused_beside_the_field(
    admin: httpx.AsyncClient, pool: Pool, host: str
) -> None:
    bad = {"rate": "fast", "burst": "0", "concurrency": "", "min_gap": "nan", "version": await _version(admin)}
    answer = await admin.post(f"/admin/hosts/{host}", data=bad)
    assert answer.status_code == 422
    assert answer.text.count('class="wrong"') == 4
    assert 'value="fast"' in answer.text
    assert await _one(pool, LIMITS) == (2, 4, 6, 0)


async def test_it_is_paused_resumed_reset_and_forgotten(admin: httpx.AsyncClient, pool: Pool, host: str) -> None:
    async def press(what: str) -> str:
        answer = await admin.post(f"/admin/hosts/{host}/{what}")
        assert answer.status_code == 303
        return (await admin.get(answer.headers["location"])).text

    assert "is paused. Its tasks wait without using retries" in await press("pause")
    assert "paused by tester" in (await admin.get("/admin/hosts")).text
    await press("resume")
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE hosts SET circuit = 'open', circuit_until = now() + interval '9 min', circuit_opened_at = now(), "
            "circuit_reason = 'six were refused', consecutive_opens = 1"
        )
    page = (await admin.get(f"/admin/hosts/{host}")).text
    assert "circuit open" in page
    assert "Six were refused." in page
    await press("reset")
    assert await _one(pool, "SELECT circuit FROM hosts") == ("closed",)
    assert "was deleted with its limits and history" in await press("remove")
    assert await _one(pool, "SELECT count(*) FROM hosts") == (0,)


async def test_a_host_is_paused_for_a_time_from_the_list(admin: httpx.AsyncClient, pool: Pool, host: str) -> None:
    path = f"/admin/hosts/{host}/pause"
    assert f'href="{path}"' in (await admin.get("/admin/hosts")).text
    assert (await admin.get(path)).status_code == 200
    wrong = await admin.post(path, data={"length": "until", "reason": "too busy"})
    assert (wrong.status_code, wrong.text.count('class="wrong"'), 'value="too busy"' in wrong.text) == (422, 1, True)
    past = await admin.post(path, data={"length": "until", "until": "2020-01-01T00:00"})
    assert (past.status_code, past.text.count('class="wrong"')) == (422, 1)
    assert await _one(pool, "SELECT paused_at FROM hosts") == (None,)
    assert (await admin.post(path, data={"length": "900", "reason": "too busy"})).status_code == 303
    left = "SELECT paused_reason, round(extract(epoch FROM paused_until - paused_at))::integer FROM hosts"
    assert await _one(pool, left) == ("too busy", 900)
    page = (await admin.get(f"/admin/hosts/{host}")).text
    assert "Too busy." in page
    await pool_execute(
        pool, "UPDATE hosts SET paused_at = now() - interval '16 min', paused_until = now() - interval '1 min'"
    )
    listed = (await admin.get("/admin/hosts")).text
    assert ("healthy" in listed, "is blocked" in listed) == (True, False)


async def pool_execute(pool: Pool, statement: str) -> None:
    async with pool.connection() as conn:
        await conn.execute(statement)


async def test_requests_are_filtered_and_walked(admin: httpx.AsyncClient, host: str) -> None:
    def requests(text: str) -> int:
        return text.count('<tr>\n      <td class="nowrap" data-label="When">')

    async def walk(path: str) -> int:
        seen, link = 0, path
        while link:
            text = (await admin.get(link.replace("&amp;", "&"))).text
            seen += requests(text)
            link = next(iter(re.findall(r'rel="next" href="([^"]+)"', text)), "")
        return seen

    first = (await admin.get(f"/admin/hosts/{host}?proxy=1")).text
    assert requests(first) == 25
    assert await walk(f"/admin/hosts/{host}?proxy=1") == 40, "every third of 120"
    blocked = (await admin.get(f"/admin/hosts/{host}?verdict=blocked")).text
    assert requests(blocked) == 12
    assert await walk(f"/admin/hosts/{host}") == 120
    wrong = await admin.get(f"/admin/hosts/{host}?proxy=x&verdict=nonsense")
    assert wrong.status_code == 422
    assert "is not one of ok, " in wrong.text
    assert 'value="x"' in wrong.text


async def test_an_unknown_host_is_a_404_that_helps(admin: httpx.AsyncClient, host: str) -> None:
    answer = await admin.get("/admin/hosts/dutchie.exampel")
    assert answer.status_code == 404
    assert "did you mean dutchie.example?" in answer.text


async def test_a_viewer_changes_nothing(viewer: httpx.AsyncClient, pool: Pool, host: str) -> None:
    page = (await viewer.get(f"/admin/hosts/{host}")).text
    assert 'method="post" action="/admin/hosts' not in page
    for path in ("", "/pause", "/resume", "/reset", "/remove"):
        assert (await viewer.post(f"/admin/hosts/{host}{path}", data={"rate": "9"})).status_code == 403, path
    assert await _one(pool, "SELECT rate, paused_at FROM hosts") == (2, None)


async def test_hours_that_are_over_are_counted_once(pool: Pool) -> None:
    now = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
    book = HourBook()
    async with pool.connection() as conn:
        for day in (now, now - timedelta(days=1)):
            await conn.execute("SELECT ensure_fetch_attempts_partition(%s)", [day])

        async def asked(verdict: str, moment: datetime) -> None:
            await conn.execute(
                "INSERT INTO fetch_attempts (host, verdict, blame, reaction, attempted_at) VALUES ('h', %s, 'none', 'return', %s)",
                [verdict, moment],
            )

        await asked("blocked", now - timedelta(hours=3))
        await asked("ok", now - timedelta(minutes=1))
        await asked("target_down", now - timedelta(minutes=1))
        await asked("ok", now - timedelta(hours=25))
        first = (await book.day(conn, now))["h"]
        assert dict(first.verdicts) == {"blocked": 1, "ok": 1, "target_down": 1}
        assert [n for n, hour in enumerate(first.hours) if hour.total] == [20, 23]
        assert [hour.start for hour in first.hours] == [
            now.replace(minute=0) - timedelta(hours=n) for n in reversed(range(24))
        ]
        assert counts(first.hours[23]) == (1, 0, 1)
        await asked("ok", now - timedelta(hours=3))
        await asked("ok", now)
        second = (await book.day(conn, now))["h"]
        assert counts(second.hours[20]) == (0, 1, 0), "that hour was over, and is not counted again"
        assert counts(second.hours[23]) == (2, 0, 1)
        assert counts((await HourBook().day(conn, now))["h"].hours[20]) == (1, 1, 0)
        assert counts((await host_day(conn, "h", now)).hours[20]) == (1, 1, 0)
        later = (await book.day(conn, now + timedelta(hours=1)))["h"]
        assert counts(later.hours[22]) == (2, 0, 1)


def counts(hour: RequestHour) -> tuple[int, int, int]:
    return hour.succeeded, hour.refused, hour.failed


async def test_an_hour_has_its_busiest_minute_its_bytes_and_response_times(pool: Pool) -> None:
    now = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_fetch_attempts_partition(%s)", [now])
        # 30 requests in one minute, 6 in another; of these 3 are refused, and refusals are fast.
        await conn.execute(
            "INSERT INTO fetch_attempts (host, proxy_id, verdict, blame, reaction, bytes, elapsed_ms, attempted_at) "
            "SELECT 'h', n %% 2, CASE WHEN n <= 3 THEN 'blocked' ELSE 'ok' END, 'none', 'return', 1000, "
            "CASE WHEN n <= 3 THEN 1 ELSE 400 END, %s - CASE WHEN n <= 6 THEN interval '20 min' ELSE interval '5 min' END "
            "FROM generate_series(1, 36) n",
            [now],
        )
        book = HourBook()
        hour = (await book.day(conn, now))["h"].hours[23]
        assert (hour.total, hour.refused, hour.bytes, hour.average_ms, hour.peak_per_second) == (
            36,
            3,
            36_000,
            400,
            0.5,
        )
        assert (await book.day(conn, now, proxy_id=1))["h"].hours[23].total == 18
        assert await book.day(conn, now, proxy_id=9) == {}
        assert (await host_day(conn, "other", now)).block_rate is None
        day = await host_day(conn, "h", now)
        assert (day.verdicts, day.block_rate) == ({"blocked": 3, "ok": 33}, 3 / 36)


async def test_a_host_has_charts_of_its_requests_and_its_rate(admin: httpx.AsyncClient, host: str) -> None:
    text = (await admin.get(f"/admin/hosts/{host}")).text
    charts = {
        name: json.loads(html.unescape(data))
        for name, data in re.findall(r'<script type="application/json" id="chart-(\w+)-data">(.*?)</script>', text)
    }
    requests, rate = charts["requests"], charts["rate"]
    assert [one["label"] for one in requests["series"]] == ["Succeeded", "Failed", "Refused"]
    assert [sum(one["values"]) for one in requests["series"]] == [108, 0, 12]
    assert len(requests["times"]) == 24
    busiest, _, limit = rate["series"]
    assert limit["values"] == [2.0] * 24
    # 120 requests, one per second: a minute has 60 at most, and one of the three minutes they touch at least 40.
    assert 0.6 < max(busiest["values"]) <= 1


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["a.example", "b.example", HOST]),
        ("-host", [HOST, "b.example", "a.example"]),
        ("-day", [HOST, "a.example", "b.example"]),
        ("state", ["b.example", "a.example", HOST]),
        ("-blocked", [HOST, "a.example", "b.example"]),
    ],
)
async def test_the_list_is_sorted(admin: httpx.AsyncClient, pool: Pool, host: str, sort: str, names: list[str]) -> None:
    for name in ("b.example", "a.example"):
        await pool_execute(
            pool,
            f"INSERT INTO hosts (host, rate, burst, concurrency, min_gap, current_rate) VALUES ('{name}', 2, 4, 6, 0, 2)",
        )
    await pool_execute(pool, "UPDATE hosts SET paused_at = now(), paused_reason = 'x' WHERE host = 'b.example'")
    text = (await admin.get(f"/admin/hosts?sort={sort}")).text
    assert re.findall(r'<a class="row clip" title="([^"]+)"', text) == names
    assert "1–3 of 3 hosts" in text
    assert "10.0 %" in text


def test_the_picture_of_hours() -> None:
    start = datetime(2026, 11, 21, tzinfo=UTC)
    none = [RequestHour(start=start)] * 24
    assert host_hours(none) == ""
    quiet, busy = RequestHour(start=start, succeeded=10), RequestHour(start=start, succeeded=80, refused=20)
    drawn = str(host_hours([*none[:22], quiet, busy]))
    assert "110 requests in the last 24 hours: 20 refused, 0 failed; most refusals 0 hours ago" in drawn
    assert drawn.count("<rect") == 3
    assert 'class="bad" x="231"' in drawn, "the newest is on the right"
