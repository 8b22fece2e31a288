"""The rows of `proxies`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.core.backoff import Backoff
from menuwatch.core.telemetry import get_logger
from menuwatch.db import sql
from menuwatch.proxies.health import PROBING, Happened, Health, after
from menuwatch.proxies.model import UNTESTED, Address, NewProxy, Proxy, Standing, Untested
from menuwatch.proxies.vault import Vault

log = get_logger(__name__)
_q = sql.load(__package__)

_FAILING = 3
"""Failures or refusals in a row from which an active proxy is said to be failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What became of a proxy that was put in. `disabled_reason`: it was known, and stays out because an operator took it out."""

    id: int
    created: bool
    is_active: bool
    disabled_reason: str | None


async def put(
    conn: AsyncConnection[Any],
    new: Sequence[NewProxy],
    *,
    failed: Mapping[Address, str] = MappingProxyType({}),
    probing: Backoff = PROBING,
) -> dict[Address, Put]:
    """Adds proxies, or gives known ones their new passwords and places, in the caller's transaction; no address may come twice.

    Passwords as they are to be stored (vault.py). Those in `failed` are put in inactive, for that reason, and probed after the first
    wait of `probing`; where the reason is `Untested`, one that is known stays as it is.
    """
    columns: dict[str, list[Any]] = {
        spec.name: [getattr(proxy, spec.name) for proxy in new] for spec in dataclasses.fields(NewProxy)
    }
    reasons = [failed.get(proxy.key) for proxy in new]
    values = {
        **columns,
        "reason": reasons,
        "untested": [
            " ".join(map(str, proxy.key))
            for proxy, reason in zip(new, reasons, strict=True)
            if isinstance(reason, Untested)
        ],
        "untested_mark": UNTESTED,
        **_first_wait(probing),
    }
    await conn.execute(_q.lock_known, columns)
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.put_proxies, values)
        rows = await cur.fetchall()
    return {
        (row["protocol"], row["host"], row["port"], row["username"]): Put(
            id=row["id"],
            created=row["created"],
            is_active=row["is_active"],
            disabled_reason=row["disabled_reason"],
        )
        for row in rows
    }


async def add(conn: AsyncConnection[Any], proxy: NewProxy) -> tuple[int, bool]:
    """Puts in one proxy; returns its id and whether it is new."""
    found = (await put(conn, [proxy]))[proxy.key]
    return found.id, found.created


def _first_wait(probing: Backoff) -> dict[str, float]:
    return {"wait": probing.ceiling(0), "jitter": probing.jitter}


async def get(conn: AsyncConnection[Any], proxy_id: int) -> Proxy | None:
    """The proxy of that id."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.get_proxy, {"id": proxy_id})
        return await cur.fetchone()


async def all_of(
    conn: AsyncConnection[Any], *, active: bool | None = None, after: int = 0, limit: int | None = None
) -> list[Proxy]:
    """Proxies by id: all, or only the active or the inactive; at most `limit` of them, with ids above `after`."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.list_proxies, {"active": active, "after": after, "limit": limit})
        return await cur.fetchall()


async def some(conn: AsyncConnection[Any], proxy_ids: Collection[int]) -> dict[int, Proxy]:
    """Those of these proxies that exist."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.get_proxies, {"ids": list(proxy_ids)})
        return {proxy.id: proxy for proxy in await cur.fetchall()}


async def disable(conn: AsyncConnection[Any], proxy_ids: Collection[int], reason: str) -> set[int]:
    """Takes proxies out until somebody enables them; returns those that exist."""
    await _lock(conn, proxy_ids)
    cursor = await conn.execute(_q.disable, {"ids": list(proxy_ids), "reason": reason})
    return {row[0] for row in await cursor.fetchall()}


async def enable(
    conn: AsyncConnection[Any],
    proxy_ids: Collection[int],
    *,
    failed: Mapping[int, str] = MappingProxyType({}),
    probing: Backoff = PROBING,
) -> set[int]:
    """Puts proxies to work with their counters cleared; returns those that exist.

    Those in `failed` are no longer disabled, but inactive for that reason until a probe gets through.
    """
    values = {
        "ids": list(proxy_ids),
        "reasons": [failed.get(number) for number in proxy_ids],
        "untested": UNTESTED,
        **_first_wait(probing),
    }
    await _lock(conn, proxy_ids)
    cursor = await conn.execute(_q.enable, values)
    return {row[0] for row in await cursor.fetchall()}


async def remove(conn: AsyncConnection[Any], proxy_ids: Collection[int]) -> set[int]:
    """Deletes proxies; returns those that existed."""
    await _lock(conn, proxy_ids)
    cursor = await conn.execute(_q.remove, {"ids": list(proxy_ids)})
    return {row[0] for row in await cursor.fetchall()}


async def place(
    conn: AsyncConnection[Any],
    proxy_id: int,
    *,
    city: str | None,
    state: str | None,
    country: str | None,
    timezone: str | None,
) -> None:
    """Where it stands; None: that is not known."""
    place = {"city": city, "state": state, "country": country, "timezone": timezone}
    await conn.execute(_q.place_proxy, {"id": proxy_id, **place})


async def lock(conn: AsyncConnection[Any], proxy_ids: Collection[int]) -> None:
    """Nobody else changes them until the transaction ends."""
    await _lock(conn, proxy_ids)


async def _lock(conn: AsyncConnection[Any], proxy_ids: Collection[int]) -> None:
    """In the order of their ids, as everybody does who changes several."""
    await conn.execute(_q.lock_health, {"ids": list(proxy_ids)})


async def reseal(conn: AsyncConnection[Any], vault: Vault) -> tuple[int, int]:
    """Stores every password as the vault would store it now; returns how many it wrote, and how many passwords there are.

    Within the caller's transaction. Raises Locked, and writes nothing, where one cannot be opened.
    """
    cursor = await conn.execute(_q.lock_passwords)
    found = [(row[0], row[1]) for row in await cursor.fetchall()]
    old = [(number, stored) for number, stored in found if not vault.is_current(stored)]
    sealed = [vault.seal(vault.open(stored)) for _, stored in old]
    await conn.execute(_q.save_passwords, {"ids": [number for number, _ in old], "passwords": sealed})
    return len(old), len(found)


async def active_count(conn: AsyncConnection[Any]) -> int:
    """How many may be picked."""
    row = await (await conn.execute(_q.active_count)).fetchone()
    assert row is not None, "count(*) gives a row"
    return int(row[0])


async def standing(conn: AsyncConnection[Any]) -> Standing:
    """How the proxies are, in numbers."""
    async with conn.cursor(row_factory=class_row(Standing)) as cur:
        await cur.execute(_q.standing, {"failing": _FAILING})
        row = await cur.fetchone()
    assert row is not None, "an aggregate gives a row"
    return row


async def failing(conn: AsyncConnection[Any], limit: int) -> list[Proxy]:
    """Active proxies that are failing, the worst first."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.failing, {"failing": _FAILING, "limit": limit})
        return await cur.fetchall()


async def inactive(conn: AsyncConnection[Any], limit: int) -> list[Proxy]:
    """Proxies that are out for their health, the next to be probed first."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.inactive, {"limit": limit})
        return await cur.fetchall()


async def take_due(conn: AsyncConnection[Any], many: int, *, hold: float) -> list[Proxy]:
    """Takes up to `many` proxies that are to be probed. Nobody else gets them for `hold` seconds, in which the probe should end."""
    async with conn.cursor(row_factory=class_row(Proxy)) as cur:
        await cur.execute(_q.take_due, {"many": many, "hold": hold})
        return await cur.fetchall()


async def next_probe(conn: AsyncConnection[Any]) -> float | None:
    """Seconds until a probe is due, below 0 when it is; None when none will be."""
    row = await (await conn.execute(_q.next_probe)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def reactivate(conn: AsyncConnection[Any], proxy_id: int) -> bool:
    """Puts a proxy that its health took out back to work; false where it is at work already, gone, or an operator took it out."""
    return (await conn.execute(_q.reactivate, {"id": proxy_id, "untested": UNTESTED})).rowcount == 1


async def tested(conn: AsyncConnection[Any], proxy_id: int, reason: str) -> None:
    """Why a proxy is out that is out because it could not be tested, and was tested since. `reason` may not hold a password."""
    await conn.execute(_q.tested, {"id": proxy_id, "reason": reason, "untested": UNTESTED})


async def probe_failed(conn: AsyncConnection[Any], proxy_id: int, *, wait: float, error: str) -> None:
    """Counts a probe that failed; the next one is due in `wait` seconds. `error` may not hold a password."""
    await conn.execute(_q.probe_failed, {"id": proxy_id, "wait": wait, "error": error})


async def put_off_probe(conn: AsyncConnection[Any], proxy_id: int, *, wait: float) -> None:
    """Has the next probe wait for `wait` seconds; nothing is counted."""
    await conn.execute(_q.put_off_probe, {"id": proxy_id, "wait": wait})


async def record_all(
    conn: AsyncConnection[Any], events: Sequence[Happened], *, probing: Backoff = PROBING
) -> dict[int, Health]:
    """Counts events in their order, within the caller's transaction; returns the counters after them, of the proxies that are there.

    One that is deactivated by them is probed after the first wait of `probing`.

    The rows are locked in the order of their ids, so that two who do this at once wait for each other and no more.
    """
    if not events:
        return {}
    now: dict[int, Health] = {}
    before: dict[int, Health] = {}
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.lock_health, {"ids": sorted({event.proxy_id for event in events})})
        for row in await cur.fetchall():
            number = row.pop("id")
            before[number] = Health(**row)
    errors: dict[int, str | None] = {}
    for event in events:
        if (health := now.get(event.proxy_id) or before.get(event.proxy_id)) is not None:
            now[event.proxy_id] = after(health, event.event, elapsed_ms=event.elapsed_ms)
            errors[event.proxy_id] = event.error or errors.get(event.proxy_id)
    columns: dict[str, list[Any]] = {name: [getattr(h, name) for h in now.values()] for name in Health.__slots__}
    values = {"ids": list(now), "errors": [errors[i] for i in now], **columns, **_first_wait(probing)}
    await conn.execute(_q.save_health, values)
    for proxy_id, health in now.items():
        if before[proxy_id].is_active and not health.is_active:
            log.warning("proxy deactivated", action="proxy_deactivated", proxy_id=proxy_id, reason=errors[proxy_id])
    return now
