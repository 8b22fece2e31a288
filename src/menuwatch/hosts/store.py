"""The rows of `hosts` and `host_events`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from menuwatch.core.errors import Refused
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.hosts.model import Course, Host, HostEvent, Limits, Outlook, Robots
from menuwatch.hosts.rules import ADVICE, LetIn, News, Waits, after

log = get_logger(__name__)
_q = sql.load(__package__)


async def add(conn: AsyncConnection[Any], host: str, limits: Limits) -> bool:
    """Makes a row for a host that has none yet; returns whether it had none."""
    return (await conn.execute(_q.add_host, {"host": host, **dataclasses.asdict(limits)})).rowcount == 1


async def remove(conn: AsyncConnection[Any], host: str) -> int:
    """Forgets a host that nobody talks to, with its limits, its events and who fares how there; returns how many talk to it, where it
    was not removed for that. Sums of its requests stay."""
    await conn.execute(_q.lock_courses, {"hosts": [host]})  # nobody gets a lease meanwhile
    row = await (await conn.execute(_q.leases_of, {"host": host})).fetchone()
    talking = int(row[0]) if row is not None else 0
    if not talking:
        for statement in (_q.remove_events, _q.remove_proxy_scores, _q.remove_profile_scores, _q.remove_host):
            await conn.execute(statement, {"host": host})
    return talking


async def record(conn: AsyncConnection[Any], news: Mapping[str, Sequence[News]], waits: Waits) -> None:
    """What hosts said, within the caller's transaction. Whoever calls this locks proxies only afterwards."""
    if not news:
        return
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.lock_courses, {"hosts": sorted(news)})
        rows = await cur.fetchall()
    for row in rows:
        host, now, proxies = row.pop("host"), row.pop("now"), row.pop("proxies")
        before = Course(**{**row, "refused": tuple((pair[0], pair[1]) for pair in row["refused"])})
        if _nothing_new(before, news[host], now):
            continue
        course, events = after(before, news[host], now, proxies=proxies, waits=waits)
        changed = {spec.name: getattr(course, spec.name) for spec in dataclasses.fields(Course)}
        await conn.execute(_q.save_course, {**changed, "host": host, "refused": Jsonb(course.refused)})
        for event in events:
            await conn.execute(_q.add_event, {"host": host, **dataclasses.asdict(event)})
            _tell(host, event)


_SETTLED_SECONDS = 5.0


def _nothing_new(course: Course, news: Sequence[News], now: datetime) -> bool:
    """A host in good health that answers is written down now and then only: its row is everybody's."""
    return (
        all(isinstance(item, LetIn) for item in news)
        and not course.refused
        and course.circuit == "closed"
        and course.throttles == course.troubles == 0
        and course.pace >= course.rate
        and course.last_ok_at is not None
        and (now - course.last_ok_at).total_seconds() < _SETTLED_SECONDS
    )


def _tell(host: str, event: HostEvent) -> None:
    said = {"host": host, "reason": event.reason, "until": event.until.isoformat() if event.until else None}
    if event.kind == "circuit_opened":
        log.error(
            "the host refuses everybody; nobody asks it until then",
            action="host_circuit_opened",
            what_you_can_do=ADVICE.format(host=host),
            **said,
        )
    elif event.kind in ("cooldown", "slower"):
        log.warning("the host is asked less", action=f"host_{event.kind}", **said)
    else:
        log.info("a host has changed", action=f"host_{event.kind}", **said)


async def charge(conn: AsyncConnection[Any], host: str, times: int) -> None:
    """Counts requests against the budget that were made without asking for a turn."""
    await conn.execute(_q.charge, {"host": host, "times": times})


async def all_of(conn: AsyncConnection[Any]) -> list[Host]:
    """Every host that was ever asked, by name."""
    async with conn.cursor(row_factory=class_row(Host)) as cur:
        await cur.execute(_q.list_hosts, {"host": None})
        return await cur.fetchall()


async def get(conn: AsyncConnection[Any], host: str) -> Host | None:
    """The host of that name, None when it was never asked."""
    async with conn.cursor(row_factory=class_row(Host)) as cur:
        await cur.execute(_q.list_hosts, {"host": host.lower()})
        return await cur.fetchone()


async def change(
    conn: AsyncConnection[Any],
    host: str,
    *,
    rate: float | None = None,
    burst: int | None = None,
    concurrency: int | None = None,
    min_gap: float | None = None,
) -> None:
    """New limits, as far as they are given, in force at once for all workers. Raises Refused for those that mean nothing."""
    check(rate=rate, burst=burst, concurrency=concurrency, min_gap=min_gap)
    given = {"rate": rate, "burst": burst, "concurrency": concurrency, "min_gap": min_gap}
    await conn.execute(_q.set_limits, {"host": host.lower(), **given})
    said = ", ".join(f"{name} {value:g}" for name, value in given.items() if value is not None)
    await conn.execute(_q.add_event, {"host": host.lower(), "kind": "changed", "reason": f"set: {said}", "until": None})


def check(
    *, rate: float | None = None, burst: int | None = None, concurrency: int | None = None, min_gap: float | None = None
) -> None:
    """Raises Refused for limits that mean nothing."""
    _check("rate", rate, "0.000001", "1000000", "requests a second")
    _check("burst", burst, "1", "10000", "requests")
    _check("concurrency", concurrency, "1", "10000", "identities")
    _check("min_gap", min_gap, "0", "86400", "seconds")


def _check(name: str, value: float | None, low: str, high: str, unit: str) -> None:
    if value is not None and not float(low) <= value <= float(high):
        raise Refused(f"{name} is {value!s:.40}, and must be between {low} and {high} {unit}")


async def pause(conn: AsyncConnection[Any], host: str, reason: str) -> None:
    """Nobody asks the host until `resume`."""
    await conn.execute(_q.pause_host, {"host": host.lower(), "reason": reason or "paused by an operator"})
    said = f"paused: {reason}" if reason else "paused by an operator"
    await conn.execute(_q.add_event, {"host": host.lower(), "kind": "changed", "reason": said, "until": None})


async def resume(conn: AsyncConnection[Any], host: str) -> None:
    """Takes `pause` back."""
    await conn.execute(_q.resume_host, {"host": host.lower()})
    said = "resumed by an operator"
    await conn.execute(_q.add_event, {"host": host.lower(), "kind": "changed", "reason": said, "until": None})


async def reset(conn: AsyncConnection[Any], host: str) -> None:
    """Forgets cool-down, circuit and slower pace: the host is asked again at once."""
    await conn.execute(_q.reset_host, {"host": host.lower()})
    said = "cool-down, circuit and pace reset by an operator"
    await conn.execute(_q.add_event, {"host": host.lower(), "kind": "changed", "reason": said, "until": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event with its time."""

    kind: str
    reason: str
    until: datetime | None
    happened_at: datetime


async def events(conn: AsyncConnection[Any], host: str, *, limit: int = 50) -> list[Happening]:
    """What befell a host, the newest first."""
    async with conn.cursor(row_factory=class_row(Happening)) as cur:
        await cur.execute(_q.events, {"host": host.lower(), "limit": limit})
        return await cur.fetchall()


async def prune(conn: AsyncConnection[Any], before: datetime) -> int:
    """Deletes events that are older; returns how many."""
    return (await conn.execute(_q.prune_events, {"before": before})).rowcount


async def outlook(conn: AsyncConnection[Any], hosts: Collection[str]) -> list[Outlook]:
    """Of those of these hosts that were ever asked."""
    async with conn.cursor(row_factory=class_row(Outlook)) as cur:
        await cur.execute(_q.outlook, {"hosts": sorted(hosts)})
        return await cur.fetchall()


async def robots(conn: AsyncConnection[Any], host: str) -> Robots | None:
    """What is known of its robots.txt; None when it was never asked for anything."""
    async with conn.cursor(row_factory=class_row(Robots)) as cur:
        await cur.execute(_q.robots, {"host": host})
        return await cur.fetchone()


async def claim_robots(conn: AsyncConnection[Any], host: str, *, lasting: float) -> bool:
    """Whether the caller is the one to ask for it now; nobody else is for so many seconds."""
    return await (await conn.execute(_q.claim_robots, {"host": host, "lasting": lasting})).fetchone() is not None


async def release_robots(conn: AsyncConnection[Any], host: str) -> None:
    """Gives a claim back: nothing came of it."""
    await conn.execute(_q.release_robots, {"host": host})


async def save_robots(
    conn: AsyncConnection[Any],
    host: str,
    *,
    status: int | None,
    body: str | None,
    crawl_delay: float | None,
    due_in: float,
    said: str,
) -> None:
    """What came of asking for it; `body` None: it could not be read. An event (`said`) where that is news."""
    given = {"host": host, "status": status, "body": body, "crawl_delay": crawl_delay, "due_in": due_in}
    async with conn.transaction(), conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.lock_robots, {"host": host})
        before = await cur.fetchone()
        if before is None:
            return
        await cur.execute(_q.save_robots, given)
        saved = await cur.fetchone()
        new = before["body"] is None or before["status"] != status or (body is not None and body != before["body"])
        if not new:
            return
        event = HostEvent(kind="robots", reason=said, until=saved["robots_due_at"] if saved and body is None else None)
        await cur.execute(_q.add_event, {"host": host, **dataclasses.asdict(event)})
    _tell(host, event)


async def forget_robots(conn: AsyncConnection[Any], host: str) -> None:
    """As if it had never been asked for."""
    await conn.execute(_q.forget_robots, {"host": host})
