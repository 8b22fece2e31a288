"""Keeps `locations` and `location_links` in step with stores and licences.

All records are linked again as a whole when one of them changed, so the result does not depend on the order in which they came; only
what differs is written. Twenty thousand records take seconds, and stores change with discovery, not with crawls. Numbers stay: see
`numbers`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
from psycopg import AsyncConnection

from menuwatch.core.logging import get_logger
from menuwatch.db import sql
from menuwatch.db.items import run_item, uncharged
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.db.query import Row, fetch_all, fetch_one
from menuwatch.matching.locations import address as addresses
from menuwatch.matching.locations import names
from menuwatch.matching.locations.compare import ReasonCode, Record
from menuwatch.matching.locations.kinds import ENDED, is_retail
from menuwatch.matching.locations.link import Key, Known, Linking, Placed, link
from menuwatch.matching.locations.numbers import Numbering, assign

log = get_logger(__name__)
_q = sql.load(__package__, "engine.sql")
_encode = msgspec.json.Encoder().encode

_FIELDS = ("name", "chain", "address", "city", "state", "zipcode", "latitude", "longitude", "phone")


@dataclass(slots=True, kw_only=True)
class MatchRun:
    """Result of one run."""

    menus: int = 0
    licences: int = 0
    """Licences of shops that sell to consumers."""
    linked_licences: int = 0
    locations: int = 0
    changed: int = 0
    """Locations that were made or whose records changed."""
    doubts: int = 0
    """Pairs of locations that may be one."""


class LocationMatcher(Loop):
    """Links stores to locations after discovery, imports and decisions. Any number of instances may run; one works at a time."""

    name: ClassVar[str] = "location_matcher"

    def __init__(self, pool: Pool, *, interval: float = 20.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool
        self._fingerprint: str | None = None

    async def step(self) -> float | None:
        async with self._pool.connection() as conn:
            fingerprint = await _fingerprint(conn)
            if fingerprint == self._fingerprint or not (await fetch_one(conn, _q.take_lock, {}) or {}).get("locked"):
                return None
            try:
                await _match(conn)
                self._fingerprint = await _fingerprint(conn)
            finally:
                if not conn.closed:
                    await conn.execute(_q.free_lock)
        return None


async def match_locations(pool: Pool) -> MatchRun:
    """Links all stores and licences now; waits for a run of another process."""
    async with pool.connection() as conn:
        await conn.execute(_q.wait_for_lock)
        try:
            return await _match(conn)
        finally:
            if not conn.closed:
                await conn.execute(_q.free_lock)


async def _fingerprint(conn: AsyncConnection[Any]) -> str:
    row = await fetch_one(conn, _q.fingerprint, {})
    return str(row and row["fingerprint"])


async def _match(conn: AsyncConnection[Any]) -> MatchRun:
    started = time.perf_counter()
    menus = {("menu", row["id"]): row for row in await fetch_all(conn, _q.menus, {})}
    licences = {
        ("licence", row["id"]): row
        for row in await fetch_all(conn, _q.licences, {"ended": ENDED})
        if is_retail(row["kind"])
    }
    links = {_key(row): row for row in await fetch_all(conn, _q.links, {})}
    refused = frozenset((_key(row), row["location_id"]) for row in await fetch_all(conn, _q.refusals, {}))
    known = Known(
        {key: row["location_id"] for key, row in links.items()},
        {key: row["location_id"] for key, row in links.items() if row["decided_by"] is not None},
        refused,
    )
    before = {row["id"]: row for row in await fetch_all(conn, _q.locations, {})}
    linking, numbering = await asyncio.to_thread(_link, menus, licences, known)
    writer = _Writer(conn, menus, links, before, linking, numbering)
    await writer.write()
    linked = {key for group in linking.groups for key in group}
    run = MatchRun(
        menus=len(menus),
        licences=len(licences),
        linked_licences=sum(key in linked for key in licences),
        locations=len(linking.groups),
        changed=len(writer.changed),
        doubts=len(linking.doubts),
    )
    stale = [
        key[1] for key, row in links.items() if key[0] == "licence" and key not in linked and row["decided_by"] is None
    ]
    if stale:
        await conn.execute(_q.unlink_licences, {"ids": stale})
    if run.changed or stale:
        log.info(
            "stores matched",
            action="stores_matched",
            menus=run.menus,
            licences=run.licences,
            locations=run.locations,
            changed=run.changed,
            ms=round((time.perf_counter() - started) * 1000),
        )
    return run


def _link(menus: Mapping[Key, Row], licences: Mapping[Key, Row], known: Known) -> tuple[Linking, Numbering]:
    records = [_menu(key, row) for key, row in menus.items()] + [_licence(key, row) for key, row in licences.items()]
    linking = link(records, known)
    return linking, assign(linking.groups, known)


def _key(row: Row) -> Key:
    return ("menu", row["dispensary_id"]) if row["dispensary_id"] is not None else ("licence", row["licence_id"])


def _menu(key: Key, row: Row) -> Record:
    return _record(key, row, (row["name"],), platform=row["platform"], trade_named=True)


def _licence(key: Key, row: Row) -> Record:
    return _record(
        key, row, (row["trade_name"], row["holder"]), trade_named=bool(row["trade_name"]), ended=row["ended"]
    )


def _record(key: Key, row: Row, texts: Sequence[str | None], **more: Any) -> Record:
    address = addresses.parse(row["address"], row["city"], row["state"], row["zipcode"])
    parsed = [names.parse(text, address.city.split(), address.street) for text in texts if text]
    position = None
    if row["latitude"] is not None and row["longitude"] is not None and (row["latitude"], row["longitude"]) != (0, 0):
        position = (row["latitude"], row["longitude"])
    return Record(
        key,
        address,
        tuple(dict.fromkeys(name for name in parsed if name.words)),
        phone=addresses.parse_phone(row["phone"]),
        position=position,
        address_text=row["address"] or "",
        label=next((text for text in texts if text), ""),
        **more,
    )


def prefix(name: str) -> str:
    """What a chain's shops share: "Ultra Health" of "Ultra Health - Deming"; the whole name where nothing is set off."""
    for mark in (" - ", " – ", " | ", ": ", " ("):
        name = name.split(mark)[0]
    return name.strip()


def chains(shops: Mapping[int, Row]) -> dict[int, str]:
    """The chain of each shop (by any key) that shares its name's beginning or its enterprise with another one."""
    groups: dict[str, list[int]] = defaultdict(list)
    for at, row in shops.items():
        words = "".join(names.parse(prefix(row["name"])).words)
        groups[words or f"#{at}"].append(at)
        if row["enterprise_id"]:
            groups[f"{row['platform']}:{row['enterprise_id']}"].append(at)
    found: dict[int, str] = {}
    for members in sorted(groups.values(), key=len):
        if len(members) > 1:
            spelling = Counter(prefix(shops[at]["name"]) for at in members).most_common()
            best = min((text for text, n in spelling if n == spelling[0][1]), key=lambda text: (len(text), text))
            found |= dict.fromkeys(members, best)
    return found


class _Writer:
    """Writes what differs, each location in a transaction of its own: one that cannot be written does not hold up the others."""

    def __init__(
        self,
        conn: AsyncConnection[Any],
        menus: Mapping[Key, Row],
        links: Mapping[Key, Row],
        before: Mapping[int, Row],
        linking: Linking,
        numbering: Numbering,
    ) -> None:
        self._conn = conn
        self._menus = menus
        self._links = links
        self._before = before
        self._linking = linking
        self._numbering = numbering
        leads = {at: _lead([menus[key] for key in group if key in menus]) for at, group in enumerate(linking.groups)}
        self._leads = leads
        self._chains = chains(leads)
        self.changed: set[int] = set()

    async def write(self) -> None:
        for at, group in enumerate(self._linking.groups):
            await run_item("location_matcher", "location", group[0][1], self._write_group(at, group), uncharged)
        for old, into in self._numbering.merged.items():
            await run_item("location_matcher", "merge", old, self._redirect(old, into), uncharged)

    async def _write_group(self, at: int, group: Sequence[Key]) -> None:
        number = self._numbering.numbers[at]
        values = {name: self._leads[at][name] for name in _FIELDS if name != "chain"} | {"chain": self._chains.get(at)}
        before = self._before.get(number) if number is not None else None
        stale = before is None or any(before[name] != values[name] for name in _FIELDS)
        outdated = [key for key in group if self._is_outdated(key, number)]
        if not stale and not outdated:
            return
        async with self._conn.transaction():
            if number is None:
                row = await fetch_one(self._conn, _q.new_location, {"name": values["name"]})
                assert row is not None, "INSERT … RETURNING gives a row"
                number = int(row["id"])
                if (left := self._numbering.split.get(at)) is not None:
                    await self._event(left, "split", other_id=number)
            if stale:
                await self._conn.execute(_q.set_location, {**values, "id": number})
                if before is not None:
                    await self._tell_changes(number, before, values)
            for key in outdated:
                placed = self._linking.placed[key]
                statement = _q.put_menu_link if key[0] == "menu" else _q.put_licence_link
                link_values = {"location_id": number, "id": key[1], "confidence": placed.confidence}
                await self._conn.execute(statement, {**link_values, "reasons": _encode(placed.reasons).decode()})
        if outdated or before is None:
            self.changed.add(number)

    def _is_outdated(self, key: Key, number: int | None) -> bool:
        row = self._links.get(key)
        if row is None or row["location_id"] != number:
            return True
        placed: Placed = self._linking.placed[key]
        by_person = row["decided_by"] is not None or any(r.code is ReasonCode.PERSON for r in placed.reasons)
        return not by_person and (
            round(row["confidence"], 6) != round(placed.confidence, 6)
            or bytes(row["reasons"]) != _encode(placed.reasons)
        )

    async def _tell_changes(self, number: int, before: Row, values: Mapping[str, Any]) -> None:
        if number in self._numbering.split.values() or number in self._numbering.merged.values():
            return  # another menu leads it now
        if names.fold(before["name"]) != names.fold(values["name"]):
            await self._event(number, "renamed", before["name"], values["name"])
        old, new = (addresses.parse(r["address"], r["city"], r["state"], r["zipcode"]) for r in (before, values))
        if old.is_place and new.is_place and (not old.numbers & new.numbers or old.street != new.street):
            await self._event(number, "moved", one_line(before), one_line(values))

    async def _redirect(self, old: int, into: int) -> None:
        async with self._conn.transaction():
            await self._conn.execute(_q.redirect, {"id": old, "into": into})
            await self._conn.execute(_q.move_refusals, {"id": old, "into": into})
            before = self._before.get(old)
            await self._event(into, "merged", before["name"] if before else None, other_id=old)
        self.changed.add(into)

    async def _event(
        self,
        number: int,
        kind: str,
        before: str | None = None,
        after: str | None = None,
        *,
        other_id: int | None = None,
    ) -> None:
        values = {
            "location_id": number,
            "kind": kind,
            "before": before,
            "after": after,
            "other_id": other_id,
            "made_by": None,
        }
        await self._conn.execute(_q.put_event, values)


def _lead(menus: Sequence[Row]) -> Row:
    """The menu that names the location: one that is crawled and has an address, the one that was known first."""
    return min(menus, key=lambda row: (not row["crawl_enabled"], not row["address"], row["id"]))


def one_line(row: Mapping[str, Any]) -> str:
    """An address in one line."""
    return ", ".join(text for text in (row["address"], row["city"], row["state"], row["zipcode"]) if text)
