"""The service for hosts: limits, state, leases and the actions of operators."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from menuwatch.accounts import audit
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Conflict, InvalidField, NotFound, Refused
from menuwatch.core.format import pluralize, timestamp
from menuwatch.core.http import proxy_address
from menuwatch.core.shapes import Instant, doc
from menuwatch.db import sql
from menuwatch.db.clock import database_now
from menuwatch.db.pool import Connection
from menuwatch.db.query import Row, fetch_all, fetch_one, fetch_structs
from menuwatch.hosts import store
from menuwatch.hosts.hourly import HourBook, RequestHour, empty_day, host_day
from menuwatch.hosts.model import HostEvent as StoredEvent
from menuwatch.hosts.model import Limits, State
from menuwatch.hosts.scores import Score

_q = sql.load(__package__, "service.sql")

LONGEST_PAUSE = timedelta(days=366)

SHOWN = 5
"""Number of best and worst proxies that are shown."""


class Host(Struct, kw_only=True, frozen=True):
    """A host with its limits, its state and its counters."""

    host: Annotated[str, doc("Name, with the port where it is not the default one.")]
    state: Annotated[
        State,
        doc(
            "`throttled`: its rate is reduced; `half_open`: the circuit was open, and one identity is probing it; `cooling`: it asked "
            "for a pause; `circuit`: it refused every identity; `paused`: by an operator. No requests are sent in the last three."
        ),
    ]
    reason: Annotated[str | None, doc("Why it is in this state.")]
    since: Annotated[Instant | None, doc("When it entered this state.")]
    until: Annotated[
        Instant | None, doc("When requests start again; null: they are sent, or only an operator can change it.")
    ]
    advice: Annotated[str | None, doc("What an operator can do; null where nothing is wrong.")]
    rate: Annotated[float, doc("Limit: requests per second.")]
    burst: Annotated[int, doc("Limit: requests sent at once.")]
    concurrency: Annotated[int, doc("Limit: identities that hold a lease at the same time.")]
    min_gap: Annotated[float, doc("Limit: seconds between two requests.")]
    current_rate: Annotated[float, doc("Requests per second at present: at most `rate`, halved after errors.")]
    leases: Annotated[int, doc("Identities that hold a lease now.")]
    blocked_tasks: Annotated[int, doc("Pending tasks that wait because the host gets no requests.")]
    requests: Annotated[int, doc("Requests ever sent.")]
    refusals: Annotated[int, doc("Of `requests`: blocked, challenged or rate limited.")]
    consecutive_throttles: int
    consecutive_errors: Annotated[int, doc("Server errors and timeouts in a row.")]
    blocked_identities: Annotated[int, doc("Identities blocked since the last success.")]
    consecutive_opens: Annotated[int, doc("Times in a row that the circuit opened.")]
    last_ok_at: Instant | None
    last_refused_at: Instant | None
    robots: Annotated[Literal["unknown", "found", "none", "unreachable"], doc("State of its robots.txt.")]
    robots_checked_at: Instant | None
    robots_status: Annotated[int | None, doc("HTTP status of the last request for robots.txt.")]
    crawl_delay: Annotated[float | None, doc("Seconds between requests that its robots.txt asks for.")]
    created_at: Instant
    updated_at: Instant


class HostList(Struct, frozen=True):
    """Every host, by name."""

    items: list[Host]


class HostLease(Struct, kw_only=True, frozen=True):
    """A lease that an identity holds on a host."""

    proxy_id: int
    proxy: Annotated[str, doc("The proxy's address without the password.")]
    task_id: int | None
    leased_at: Instant
    expires_at: Annotated[Instant, doc("When the lease ends unless it is renewed.")]


class VerdictCount(Struct, kw_only=True, frozen=True):
    """Requests with one verdict."""

    verdict: str
    day: Annotated[int, doc("Requests in the last 24 hours.")]
    total: int
    bytes: Annotated[int, doc("Decoded size of all their responses.")]


class HostScore(Struct, kw_only=True, frozen=True):
    """How well a proxy or a browser works at a host. Observations lose half their weight every six hours."""

    name: Annotated[str, doc("The proxy's address without the password, or the browser.")]
    proxy_id: int | None
    good: Annotated[float, doc("Weight of its successes.")]
    bad: Annotated[float, doc("Weight of the refusals attributed to it.")]
    chance: Annotated[float, doc("Estimated probability of success, 0 to 1.")]


class HostEvent(Struct, kw_only=True, frozen=True):
    """A change of a host's state or limits."""

    id: int
    kind: Literal["cooldown", "rate_reduced", "circuit_opened", "circuit_closed", "changed", "robots"]
    reason: str
    until: Instant | None
    happened_at: Instant


class HostDetail(Struct, kw_only=True, frozen=True):
    """A host with its leases, verdicts, scores and latest events."""

    host: Host
    leases: list[HostLease]
    verdicts: Annotated[list[VerdictCount], doc("Most frequent first.")]
    hours: Annotated[list[RequestHour], doc("Requests of the last 24 hours by hour, oldest first.")]
    best: Annotated[list[HostScore], doc("The five proxies that work best.")]
    worst: Annotated[list[HostScore], doc("The five proxies that work worst.")]
    browsers: Annotated[list[HostScore], doc("Best first.")]
    events: Annotated[list[HostEvent], doc("Newest first.")]


_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")


def parse_host(text: str) -> str:
    """Normalize a host name or URL; raises InvalidField if it names no host."""
    name = text.strip().lower()
    try:
        name = urlsplit(name).netloc.rpartition("@")[2] if "://" in name else name.removesuffix("/")
    except ValueError:
        name = ""
    if not _NAME.fullmatch(name):
        raise InvalidField(
            "host",
            f"invalid host {text[:80]!r}: use a name such as dutchie.com, with the port if it is not the default",
        )
    return name


async def list_hosts(conn: Connection) -> list[Host]:
    """All known hosts, by name."""
    return [_to_host(row) for row in await fetch_all(conn, _q.list_hosts, {"host": None})]


async def get_host(conn: Connection, text: str) -> Host:
    """The host of that name; raises NotFound with similar names."""
    name = parse_host(text)
    row = await fetch_one(conn, _q.list_hosts, {"host": name})
    if row is None:
        raise NotFound(await _unknown(conn, name))
    return _to_host(row)


async def _unknown(conn: Connection, name: str) -> str:
    names = [row["host"] for row in await fetch_all(conn, _q.host_names, {})]
    said = f"host {name} was never requested and has no limits"
    if not names:
        return f"{said}; there are no hosts yet"
    if near := _closest(name, names):
        return f"{said}; did you mean {' or '.join(near)}?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{said}; known hosts: {', '.join(names[:10])}{more}"


def _closest(name: str, names: Sequence[str]) -> list[str]:
    return (
        difflib.get_close_matches(name, names, 3, 0.6)
        or [known for known in names if name in known or known in name][:3]
    )


async def similar_hosts(conn: Connection, host: str) -> list[str]:
    """A few other hosts with similar names."""
    names = [row["host"] for row in await fetch_all(conn, _q.host_names, {})]
    return _closest(host, [name for name in names if name != host])


def _to_host(row: Row) -> Host:
    # Below a limit that was raised since it grows; nothing went wrong.
    slower = row["current_rate"] < row["rate"] and row["rate_reduced_at"] is not None
    state = State(
        row["code"] or ("half_open" if row["circuit"] == "open" else "throttled" if slower else "healthy"),
    )
    since = {
        State.PAUSED: row["paused_at"],
        State.CIRCUIT: row["circuit_opened_at"],
        State.HALF_OPEN: row["circuit_opened_at"],
        State.COOLING: row["rate_reduced_at"],
        State.THROTTLED: row["rate_reduced_at"],
    }.get(state)
    return Host(
        state=state,
        reason=row["circuit_reason"] if state is State.HALF_OPEN else row["reason"],
        since=since,
        until=row["until"],
        advice=state.remedy(row["host"]),
        robots=_robots(row),
        **{
            name: row[name]
            for name in Host.__struct_fields__
            if name not in ("state", "reason", "since", "until", "advice", "robots")
        },
    )


def _robots(row: Row) -> Literal["unknown", "found", "none", "unreachable"]:
    if row["robots_checked_at"] is None:
        return "unknown"
    if row["has_robots"] is None:
        return "unreachable"
    return "found" if row["has_robots"] else "none"


async def detail(conn: Connection, text: str, *, events: int = 20, book: HourBook | None = None) -> HostDetail:
    """A host's details with this many of its latest events; raises NotFound. `book` caches the requests of all hosts by hour."""
    host = await get_host(conn, text)
    by = {"host": host.host}
    now = datetime.now(UTC)
    if book is None:
        day = await host_day(conn, host.host, now)
    else:
        day = (await book.day(conn, now)).get(host.host) or empty_day(now)
    verdicts = [
        VerdictCount(
            verdict=row["verdict"],
            day=day.verdicts.get(row["verdict"], 0),
            total=row["requests"],
            bytes=row["bytes"],
        )
        for row in await fetch_all(conn, _q.host_verdicts, by)
    ]
    proxies = _ranked([_score(row, _address(row), now) for row in await fetch_all(conn, _q.host_proxy_scores, by)])
    worst = [score for score in reversed(proxies[SHOWN:]) if score.bad >= _NOTHING][:SHOWN]
    return HostDetail(
        host=host,
        leases=[
            HostLease(proxy=_address(row), **{k: row[k] for k in ("proxy_id", "task_id", "leased_at", "expires_at")})
            for row in await fetch_all(conn, _q.host_leases, by)
        ],
        verdicts=verdicts,
        hours=list(day.hours),
        best=proxies[:SHOWN],
        worst=worst,
        browsers=_ranked(
            [_score(row, row["profile"], now) for row in await fetch_all(conn, _q.host_profile_scores, by)]
        ),
        events=await list_events(conn, host.host, limit=events),
    )


_NOTHING = 0.05


def _score(row: Row, name: str, now: datetime) -> HostScore:
    score = Score(row["good"], row["bad"], row["as_of"]).at(now)
    return HostScore(
        name=name,
        proxy_id=row.get("proxy_id"),
        good=round(score.good, 2),
        bad=round(score.bad, 2),
        chance=round(score.success_probability, 3),
    )


def _ranked(scores: Sequence[HostScore]) -> list[HostScore]:
    return sorted(scores, key=lambda score: (-score.chance, -score.good, score.name))


def _address(row: Row) -> str:
    return proxy_address(row["protocol"], row["host"], row["port"], row["username"])


async def list_events(
    conn: Connection, host: str, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[HostEvent]:
    """Events of a host, newest first, before the event with that time and id."""
    after_at, after_id = after or (None, None)
    values = {"host": host, "after_at": after_at, "after_id": after_id, "limit": limit}
    return await fetch_structs(conn, HostEvent, _q.host_events, values)


_LIMITS = {
    "rate": ("0.000001", "1000000", "requests a second"),
    "burst": ("1", "10000", "requests"),
    "concurrency": ("1", "10000", "identities"),
    "min_gap": ("0", "86400", "seconds"),
}
"""Smallest and largest value of each limit, and its unit."""


async def change(conn: Connection, text: str, settings: Settings, **limits: float | None) -> Host:
    """Set limits (`rate`, `burst`, `concurrency`, `min_gap`; None: unchanged) for all workers at once, in the caller's transaction. A
    new host gets the default limits from the settings. Raises Refused for invalid limits."""
    name = parse_host(text)
    changed: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    for limit, value in changed.items():
        low, high, unit = _LIMITS[limit]
        if not float(low) <= value <= float(high):
            raise Refused(f"{limit} must be between {low} and {high} {unit}, not {value!s:.40}")
    await store.add(conn, name, replace(Limits.from_settings(settings), **changed))
    await conn.execute(_q.set_limits, {"host": name, **dict.fromkeys(_LIMITS), **changed})
    await _record_change(conn, name, "set: " + ", ".join(f"{limit} {value:g}" for limit, value in changed.items()))
    await audit.record(conn, "host_changed", ("host", name), limits=changed)
    return await get_host(conn, name)


async def _record_change(conn: Connection, host: str, reason: str) -> None:
    await store.add_event(conn, host, StoredEvent(kind="changed", reason=reason))


async def pause(
    conn: Connection,
    text: str,
    settings: Settings,
    reason: str | None = None,
    *,
    until: datetime | timedelta | None = None,
) -> Host:
    """Stop all requests to the host: until that time, for so long, or (None) until `resume`. A new host gets the default limits from
    the settings. Pausing a paused host replaces reason and end. Raises InvalidField for an `until` that is past or too far ahead."""
    name, stripped, now = parse_host(text), (reason or "").strip(), await database_now(conn)
    end = now + until if isinstance(until, timedelta) else until
    if end is not None and not now < end <= now + LONGEST_PAUSE:
        raise InvalidField(
            "until", f"the pause must end in the future, within {LONGEST_PAUSE.days} days; got {timestamp(end)}"
        )
    await store.add(conn, name, Limits.from_settings(settings))
    await conn.execute(_q.pause_host, {"host": name, "reason": stripped or "paused by an operator", "until": end})
    await store.add_event(
        conn,
        name,
        StoredEvent(kind="changed", reason=f"paused: {stripped}" if stripped else "paused by an operator", until=end),
    )
    await audit.record(conn, "host_paused", ("host", name), reason=reason, until=end)
    return await get_host(conn, name)


async def remove(conn: Connection, text: str) -> Host:
    """Delete a host with its limits and events; returns it as it was. Raises NotFound, and Conflict while an identity uses it or it
    is paused: deleting it would resume requests."""
    host = await get_host(conn, text)
    if host.state is State.PAUSED:
        raise Conflict(
            f"{host.host} is paused, and removing it would end the pause: run `menuwatch hosts resume {host.host}` first"
        )
    if leases := await store.remove(conn, host.host):
        raise Conflict(
            f"{host.host} has {pluralize(leases, 'active lease')}: pause it (`menuwatch hosts pause {host.host}`), "
            "wait until they end, and try again"
        )
    await audit.record(conn, "host_forgotten", ("host", host.host))
    return host


async def resume(conn: Connection, text: str) -> Host:
    """Undo `pause`; raises NotFound."""
    host = await get_host(conn, text)
    if host.state is State.PAUSED:
        await conn.execute(_q.resume_host, {"host": host.host})
        await _record_change(conn, host.host, "resumed by an operator")
    await audit.record(conn, "host_resumed", ("host", host.host), was=host.state)
    return await get_host(conn, host.host)


async def reset(conn: Connection, text: str) -> Host:
    """Clear cooldown, circuit and reduced rate; raises NotFound. A pause stays."""
    host = await get_host(conn, text)
    await conn.execute(_q.reset_host, {"host": host.host})
    await _record_change(conn, host.host, "cool-down, circuit and rate reset by an operator")
    await audit.record(conn, "host_reset", ("host", host.host), was=host.state)
    return await get_host(conn, host.host)
