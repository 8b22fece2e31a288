"""The rows of `hosts` and `host_events`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec
from psycopg.types.json import Jsonb

from menuwatch.core.logging import get_logger
from menuwatch.core.postpone import PostponeCode
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_one, fetch_struct, fetch_structs
from menuwatch.hosts.model import HostAvailability, HostEvent, HostState, Limits, Robots
from menuwatch.hosts.rules import Accepted, Delays, HostSignal, apply_signals

log = get_logger(__name__)
_q = sql.load(__package__)
_decode_identities = msgspec.json.Decoder(tuple[tuple[int, str], ...]).decode


async def add(conn: Connection, host: str, limits: Limits) -> bool:
    """Insert a host with these limits if it has no row; returns whether it was new."""
    return (await conn.execute(_q.add_host, {"host": host, **dataclasses.asdict(limits)})).rowcount == 1


async def remove(conn: Connection, host: str) -> int:
    """Delete a host that is not in use, with its limits, events and scores; returns the number of leases, which prevent it. Request
    totals stay."""
    await conn.execute(_q.lock_states, {"hosts": [host]})  # no new leases meanwhile
    row = await (await conn.execute(_q.leases_of, {"host": host})).fetchone()
    leases = int(row[0]) if row is not None else 0
    if not leases:
        for statement in (_q.remove_events, _q.remove_proxy_scores, _q.remove_profile_scores, _q.remove_host):
            await conn.execute(statement, {"host": host})
    return leases


async def record(conn: Connection, signals: Mapping[str, Sequence[HostSignal]], delays: Delays) -> None:
    """Apply signals of hosts, within the caller's transaction. Lock order: hosts before proxies."""
    if not signals:
        return
    for row in await fetch_all(conn, _q.lock_states, {"hosts": sorted(signals)}):
        host, now, proxies = row.pop("host"), row.pop("now"), row.pop("proxies")
        before = HostState(**row | {"blocked_identities": _decode_identities(row["blocked_identities"])})
        if _unchanged(before, signals[host], now):
            continue
        state, events = apply_signals(before, signals[host], now, proxies=proxies, delays=delays)
        values = {spec.name: getattr(state, spec.name) for spec in dataclasses.fields(HostState)}
        values |= {"host": host, "blocked_identities": Jsonb(state.blocked_identities)}
        await conn.execute(_q.save_state, values)
        for event in events:
            await add_event(conn, host, event)
            _log_event(host, event)


_SETTLED_SECONDS = 5.0


def _unchanged(state: HostState, signals: Sequence[HostSignal], now: datetime) -> bool:
    """A healthy host's successes are written only from time to time, since all sessions share its row."""
    return (
        all(isinstance(item, Accepted) for item in signals)
        and not state.blocked_identities
        and state.circuit == "closed"
        and state.consecutive_throttles == state.consecutive_errors == 0
        and state.current_rate >= state.rate
        and state.last_ok_at is not None
        and (now - state.last_ok_at).total_seconds() < _SETTLED_SECONDS
    )


def _log_event(host: str, event: HostEvent) -> None:
    context = {"host": host, "reason": event.reason, "until": event.until.isoformat() if event.until else None}
    if event.kind == "circuit_opened":
        log.error(
            "host refuses all identities, circuit opened",
            action="host_circuit_opened",
            remedy=PostponeCode.CIRCUIT.remedy(host),
            **context,
        )
    elif event.kind in ("cooldown", "rate_reduced"):
        log.warning("host rate reduced", action=f"host_{event.kind}", **context)
    else:
        log.info("host state changed", action=f"host_{event.kind}", **context)


async def charge(conn: Connection, host: str, times: int) -> None:
    """Count requests against the budget that were made without a slot."""
    await conn.execute(_q.charge, {"host": host, "times": times})


async def add_event(conn: Connection, host: str, event: HostEvent) -> None:
    await conn.execute(_q.add_event, {"host": host, **dataclasses.asdict(event)})


async def prune(conn: Connection, before: datetime) -> int:
    """Delete older events; returns how many."""
    return (await conn.execute(_q.prune_events, {"before": before})).rowcount


async def availability(conn: Connection, hosts: Collection[str]) -> list[HostAvailability]:
    """Availability of those of these hosts that are known."""
    return await fetch_structs(conn, HostAvailability, _q.availability, {"hosts": sorted(hosts)})


async def robots(conn: Connection, host: str) -> Robots | None:
    """A host's robots.txt; None if the host is unknown."""
    return await fetch_struct(conn, Robots, _q.robots, {"host": host})


async def claim_robots(conn: Connection, host: str, *, lease_seconds: float) -> bool:
    """Whether the caller may fetch it now; no other process may for this many seconds."""
    return (await conn.execute(_q.claim_robots, {"host": host, "lease_seconds": lease_seconds})).rowcount == 1


async def release_robots(conn: Connection, host: str) -> None:
    """Release a claim without a result."""
    await conn.execute(_q.release_robots, {"host": host})


async def save_robots(
    conn: Connection,
    host: str,
    *,
    status: int | None,
    body: str | None,
    crawl_delay: float | None,
    due_in: float,
    reason: str,
) -> None:
    """Save the result of fetching it; `body` None: it could not be read. Adds an event with this reason if something changed."""
    values = {"host": host, "status": status, "body": body, "crawl_delay": crawl_delay, "due_in": due_in}
    async with conn.transaction():
        before = await fetch_one(conn, _q.lock_robots, {"host": host})
        if before is None:
            return
        saved = await fetch_one(conn, _q.save_robots, values)
        if before["body"] is not None and before["status"] == status and body in (None, before["body"]):
            return
        event = HostEvent(
            kind="robots", reason=reason, until=saved["robots_due_at"] if saved and body is None else None
        )
        await add_event(conn, host, event)
    _log_event(host, event)


async def forget_robots(conn: Connection, host: str) -> None:
    """Delete the stored robots.txt."""
    await conn.execute(_q.forget_robots, {"host": host})
