"""The rows of `proxies`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import structs

from menuwatch.core.backoff import Backoff
from menuwatch.core.encryption import SecretBox
from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.pool import Connection
from menuwatch.db.query import fetch_all, fetch_structs
from menuwatch.proxies.health import PROBING, Health, ProxyEvent, apply_event
from menuwatch.proxies.location import Location
from menuwatch.proxies.model import Address, NewProxy, ProbeState, Proxy, ProxyCounts, TestFailure

log = get_logger(__name__)
_q = sql.load(__package__)

FAILING = 3
"""Failures or refusals in a row from which an active proxy counts as failing."""


class PutResult(NamedTuple):
    """Result of adding a proxy. `disabled_reason`: it was known, and stays disabled by an operator."""

    id: int
    created: bool
    is_active: bool
    disabled_reason: str | None


async def put(
    conn: Connection,
    new: Sequence[NewProxy],
    *,
    failed: Mapping[Address, TestFailure] = MappingProxyType({}),
    probing: Backoff = PROBING,
) -> dict[Address, PutResult]:
    """Add proxies, or update the passwords and locations of known ones, in the caller's transaction. Addresses must be distinct.

    Passwords are as stored (passwords.py). Those in `failed` are added as inactive, for that reason, and probed after the first
    delay of `probing`; a known one that could not be tested stays as it is.
    """
    columns: dict[str, list[Any]] = {
        spec.name: [getattr(proxy, spec.name) for proxy in new] for spec in dataclasses.fields(NewProxy)
    }
    values = {
        **columns,
        **_columns([failed.get(proxy.key) for proxy in new], "reason", "probe_state"),
        **_first_wait(probing),
    }
    await conn.execute(_q.lock_known, columns)
    cursor = await conn.execute(_q.put_proxies, values)
    return {row[4:]: PutResult(*row[:4]) for row in await cursor.fetchall()}


async def add(conn: Connection, proxy: NewProxy) -> tuple[int, bool]:
    """Add one proxy; returns its id and whether it is new."""
    result = (await put(conn, [proxy]))[proxy.key]
    return result.id, result.created


def _first_wait(probing: Backoff) -> dict[str, float]:
    return {"wait": probing.ceiling(0), "jitter": probing.jitter}


async def all_of(conn: Connection, *, active: bool | None = None) -> list[Proxy]:
    """Proxies by id: all, or only the active or only the other ones."""
    return await _rows(conn, ids=None, active=active)


async def some(conn: Connection, proxy_ids: Collection[int]) -> dict[int, Proxy]:
    """Those of these proxies that exist, by id."""
    return {proxy.id: proxy for proxy in await _rows(conn, ids=list(proxy_ids), active=None)}


async def _rows(conn: Connection, **where: Any) -> list[Proxy]:
    return await fetch_structs(conn, Proxy, _q.proxy_rows, where)


async def disable(conn: Connection, proxy_ids: Collection[int], reason: str) -> set[int]:
    """Disable proxies until an operator enables them; returns those that exist."""
    await lock(conn, proxy_ids)
    cursor = await conn.execute(_q.disable, {"ids": list(proxy_ids), "reason": reason})
    return {row[0] for row in await cursor.fetchall()}


def _columns(failures: Sequence[TestFailure | None], reason: str, state: str) -> dict[str, list[str | None]]:
    return {
        reason: [None if failure is None else failure.reason for failure in failures],
        state: [None if failure is None else failure.state for failure in failures],
    }


async def enable(
    conn: Connection,
    proxy_ids: Collection[int],
    *,
    failed: Mapping[int, TestFailure] = MappingProxyType({}),
    probing: Backoff = PROBING,
) -> set[int]:
    """Activate proxies and reset their counters; returns those that exist.

    Those in `failed` are no longer disabled, but inactive for that reason until a probe succeeds.
    """
    values = {
        "ids": list(proxy_ids),
        **_columns([failed.get(number) for number in proxy_ids], "reasons", "probe_states"),
        **_first_wait(probing),
    }
    await lock(conn, proxy_ids)
    cursor = await conn.execute(_q.enable, values)
    return {row[0] for row in await cursor.fetchall()}


async def remove(conn: Connection, proxy_ids: Collection[int]) -> set[int]:
    """Delete proxies; returns those that existed."""
    await lock(conn, proxy_ids)
    cursor = await conn.execute(_q.remove, {"ids": list(proxy_ids)})
    return {row[0] for row in await cursor.fetchall()}


async def save_details(conn: Connection, proxy_id: int, location: Location, tags: Sequence[str]) -> None:
    await conn.execute(_q.save_details, {"id": proxy_id, "tags": list(tags), **structs.asdict(location)})


async def add_tag(conn: Connection, proxy_ids: Collection[int], tag: str) -> None:
    """Add a tag to those that do not have it; the rows are locked by the caller."""
    await conn.execute(_q.add_tag, {"ids": list(proxy_ids), "tag": tag})


async def remove_tag(conn: Connection, proxy_ids: Collection[int], tag: str) -> None:
    """Remove a tag; the rows are locked by the caller."""
    await conn.execute(_q.remove_tag, {"ids": list(proxy_ids), "tag": tag})


async def retest(conn: Connection, proxy_ids: Collection[int]) -> None:
    """Have the workers test these proxies now, except disabled ones; the rows are locked by the caller."""
    await conn.execute(_q.retest, {"ids": list(proxy_ids)})


async def retested(conn: Connection, proxy_id: int) -> None:
    """End the retest of an active proxy that passed."""
    await conn.execute(_q.retested, {"id": proxy_id})


async def lock(conn: Connection, proxy_ids: Collection[int]) -> None:
    """Lock the rows in id order, as every change of several proxies does."""
    await conn.execute(_q.lock_health, {"ids": list(proxy_ids)})


async def reencrypt(conn: Connection, secret_box: SecretBox) -> tuple[int, int]:
    """Re-encrypt every password with the current key; returns how many were written, and how many there are.

    Within the caller's transaction. Raises DecryptionError, and writes nothing, if one cannot be decrypted.
    """
    cursor = await conn.execute(_q.lock_passwords)
    stored_passwords = [(row[0], row[1]) for row in await cursor.fetchall()]
    old = [(number, stored) for number, stored in stored_passwords if not secret_box.is_current(stored)]
    encrypted = [secret_box.encrypt(secret_box.decrypt(stored)) for _, stored in old]
    await conn.execute(_q.save_passwords, {"ids": [number for number, _ in old], "passwords": encrypted})
    return len(old), len(stored_passwords)


async def count_active(conn: Connection) -> int:
    """Number of active proxies."""
    (row,) = await fetch_all(conn, _q.active_count, {})
    return int(row["count"])


async def count(conn: Connection) -> ProxyCounts:
    """Number of proxies by state."""
    (counts,) = await fetch_structs(conn, ProxyCounts, _q.count_proxies, {"failing": FAILING})
    return counts


async def failing(conn: Connection, limit: int) -> list[Proxy]:
    """Active proxies that are failing, worst first."""
    return await fetch_structs(conn, Proxy, _q.failing, {"failing": FAILING, "limit": limit})


async def inactive(conn: Connection, limit: int) -> list[Proxy]:
    """Proxies deactivated by their health or not tested yet, next probe first."""
    return await fetch_structs(conn, Proxy, _q.inactive, {"limit": limit})


async def take_due(conn: Connection, many: int, *, hold: float) -> list[Proxy]:
    """Claim up to `many` proxies due for a probe. No other process gets them for `hold` seconds, in which the probe should end."""
    return await fetch_structs(conn, Proxy, _q.take_due, {"many": many, "hold": hold})


async def next_probe(conn: Connection) -> float | None:
    """Seconds until a probe is due, below 0 if one is overdue; None if none is planned."""
    row = await (await conn.execute(_q.next_probe)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def reactivate(conn: Connection, proxy_id: int) -> bool:
    """Activate a proxy deactivated by its health; false if it is active already, removed or disabled by an operator."""
    return (await conn.execute(_q.reactivate, {"id": proxy_id})).rowcount == 1


async def tested(conn: Connection, proxy_id: int, reason: str, *, failed: bool) -> None:
    """Save the result of a test of a proxy that is inactive because it could not be tested. `reason` must not hold a password."""
    state = ProbeState.FAILED if failed else None
    await conn.execute(_q.tested, {"id": proxy_id, "reason": reason, "state": state})


async def probe_failed(conn: Connection, proxy_id: int, *, wait: float, error: str) -> None:
    """Count a failed probe; the next one is due in `wait` seconds. `error` must not hold a password."""
    await conn.execute(_q.probe_failed, {"id": proxy_id, "wait": wait, "error": error})


async def postpone_probe(conn: Connection, proxy_id: int, *, wait: float) -> None:
    """Delay the next probe by `wait` seconds without counting anything."""
    await conn.execute(_q.postpone_probe, {"id": proxy_id, "wait": wait})


async def record_all(
    conn: Connection, events: Sequence[ProxyEvent], *, probing: Backoff = PROBING
) -> dict[int, Health]:
    """Apply events in order, within the caller's transaction; returns the new counters of the existing proxies.

    A deactivated proxy is probed after the first delay of `probing`.

    Rows are locked in id order, which prevents deadlocks.
    """
    if not events:
        return {}
    now: dict[int, Health] = {}
    rows = await fetch_all(conn, _q.lock_health, {"ids": sorted({event.proxy_id for event in events})})
    before: dict[int, Health] = {row.pop("id"): Health(**row) for row in rows}
    errors: dict[int, str | None] = {}
    for event in events:
        if (health := now.get(event.proxy_id) or before.get(event.proxy_id)) is not None:
            now[event.proxy_id] = apply_event(health, event.event, elapsed_ms=event.elapsed_ms)
            errors[event.proxy_id] = event.error or errors.get(event.proxy_id)
    columns: dict[str, list[Any]] = {name: [getattr(h, name) for h in now.values()] for name in Health.__slots__}
    values = {"ids": list(now), "errors": [errors[i] for i in now], **columns, **_first_wait(probing)}
    await conn.execute(_q.save_health, values)
    for proxy_id, health in now.items():
        if before[proxy_id].is_active and not health.is_active:
            log.warning("proxy deactivated", action="proxy_deactivated", proxy_id=proxy_id, reason=errors[proxy_id])
    return now


async def wake_workers(conn: Connection) -> None:
    """Wake idle workers at commit."""
    await conn.execute(_q.wake_workers)
