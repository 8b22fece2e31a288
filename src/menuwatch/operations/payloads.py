"""Archived answers as people look at them: listed, downloaded, compared, released from quarantine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from psycopg import AsyncConnection

from menuwatch.archive.files import FileArchive, Missing
from menuwatch.catalog.diff import MenuDiff, diff
from menuwatch.catalog.model import Product
from menuwatch.core.errors import BadPayload, Refused
from menuwatch.db import sql
from menuwatch.operations import audit
from menuwatch.operations.reading import rows
from menuwatch.operations.refusals import Conflict, NotFound
from menuwatch.payloads import store as payloads
from menuwatch.payloads.store import Payload
from menuwatch.platforms.base import Normalized, Platform
from menuwatch.stores import store as stores
from menuwatch.tasks import store as tasks
from menuwatch.tasks.model import PRIORITY_URGENT, NewTask, Role

_q = sql.load(__package__)
_own = sql.load(__package__, "payloads.sql")


async def one(conn: AsyncConnection[Any], payload_id: int) -> Payload:
    """One payload's metadata; raises NotFound."""
    found = await payloads.get(conn, payload_id)
    if found is None:
        raise NotFound(f"payload {payload_id} does not exist")
    return found


async def usage(conn: AsyncConnection[Any], payload: Payload) -> dict[str, Any]:
    """What has to do with a payload: its `store`, the `crawl` that the catalogue took from it (None where it took none), the store's
    other payloads with the `same_file`, and those with the `same_answers` in a file of their own, newest first."""
    store = await stores.get(conn, payload.dispensary_id)
    crawls = await rows(conn, _own.crawl_of, {"id": payload.id})
    alike = await rows(conn, _own.alike, {"id": payload.id})
    return {
        "store": None if store is None else {"id": store.id, "slug": store.slug, "name": store.name},
        "crawl": crawls[0] if crawls else None,
        "same_file": [row["id"] for row in alike if row["same_file"]],
        "same_answers": [row["id"] for row in alike if not row["same_file"]],
    }


async def page(
    conn: AsyncConnection[Any],
    *,
    dispensary_id: int | None = None,
    status: str | None = None,
    before: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[Payload]:
    """Payloads, newest first, those before (fetched_at, id)."""
    return await payloads.page(conn, dispensary_id=dispensary_id, status=status, before=before, limit=limit)


async def _known_store(conn: AsyncConnection[Any], dispensary_id: int) -> None:
    if await stores.get(conn, dispensary_id) is None:
        raise NotFound(f"store {dispensary_id} does not exist")


async def of_store(
    conn: AsyncConnection[Any],
    dispensary_id: int,
    *,
    status: str | None = None,
    before: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[Payload]:
    """One store's payloads, newest first; raises NotFound for a store that does not exist."""
    await _known_store(conn, dispensary_id)
    return await page(conn, dispensary_id=dispensary_id, status=status, before=before, limit=limit)


async def latest(conn: AsyncConnection[Any], dispensary_id: int, status: str | None = None) -> Payload:
    """A store's newest payload, of that status where one is given; raises NotFound."""
    found = await of_store(conn, dispensary_id, status=status, limit=1)
    if not found:
        which = "no payload" if status is None else f"no payload with status {status}"
        raise NotFound(f"store {dispensary_id} has {which} yet")
    return found[0]


async def packed(archive: FileArchive, payload: Payload) -> bytes:
    """The archived file as it lies on disk, gzip-compressed; raises NotFound when it is gone or damaged."""
    # Clients keep it for good: what is not the document any more must not go out as if it were.
    await unpacked(archive, payload)
    return await asyncio.to_thread(archive.packed, payload.path, payload.sha256)


async def unpacked(archive: FileArchive, payload: Payload) -> bytes:
    """The archived document; raises NotFound when its file is gone or damaged."""
    try:
        return await asyncio.to_thread(archive.unpacked, payload.path, payload.sha256)
    except Missing as error:
        raise NotFound(f"the file of payload {payload.id} is missing: {error}") from error
    except Refused as error:
        raise NotFound(f"the file of payload {payload.id} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A product that stands in a menu and cannot be read there: neither added nor removed. `before` and `after` say why, None where
    that menu has it in a form that can be read, or not at all. An item without a readable id has none."""

    provider_product_id: str | None
    name: str | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two menus of one store, and what differs. What is `unreadable` in one of them is nowhere in `diff`."""

    older: Payload
    newer: Payload
    diff: MenuDiff
    unreadable: tuple[Unreadable, ...] = ()


async def _newest_ok(
    conn: AsyncConnection[Any], dispensary_id: int, *, before: Payload | None = None, limit: int = 1
) -> list[int]:
    values = {
        "dispensary_id": dispensary_id,
        "before_at": before.fetched_at if before else None,
        "before_id": before.id if before else None,
        "limit": limit,
    }
    return [found["id"] for found in await rows(conn, _q.two_newest_ok, values)]


async def to_compare(
    conn: AsyncConnection[Any], dispensary_id: int, older: int | None, newer: int | None
) -> tuple[Payload, Payload]:
    """The payloads that a diff of this store is made of. Where none is named these are the two newest ok ones, where only
    `newer` is, the ok one before it; where only `older` is, the newest ok one.

    Raises NotFound for payloads that are missing or another store's, Conflict when there are not two to compare.
    """
    await _known_store(conn, dispensary_id)

    async def named(payload_id: int) -> Payload:
        found = await one(conn, payload_id)
        if found.dispensary_id != dispensary_id:
            raise NotFound(f"payload {payload_id} is of store {found.dispensary_id}, not of store {dispensary_id}")
        return found

    second = await named(newer) if newer is not None else None
    first = await named(older) if older is not None else None
    if second is None:
        newest = await _newest_ok(conn, dispensary_id)
        second = await one(conn, newest[0]) if newest else None
    if first is None and second is not None:
        before = await _newest_ok(conn, dispensary_id, before=second)
        first = await one(conn, before[0]) if before else None
    if first is None or second is None:
        raise Conflict(
            f"store {dispensary_id} does not have two ok payloads to compare yet; name them with from and to"
        )
    return first, second


@dataclass(slots=True)
class _Menu:
    """One side: what of it can be read, why the rest cannot by product id, and why what has no id cannot."""

    products: tuple[Product, ...]
    unreadable: dict[str, str]
    nameless: list[str]


class _Reading:
    """Reads items one by one, and those that are the same byte for byte in both menus, which is most of them, once."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._known: dict[bytes, Normalized] = {}

    def __call__(self, item: msgspec.Raw) -> Normalized:
        raw = bytes(item)
        found = self._known.get(raw)
        if found is None:
            found = self._known[raw] = self.platform.normalize((item,))
        return found


def _menu(archive: FileArchive, reading: _Reading, payload: Payload) -> _Menu:
    try:
        document = archive.read(payload.path, payload.sha256)
    except Refused as error:
        raise NotFound(f"the file of payload {payload.id} cannot be read: {error}") from error
    try:
        items = [item for page_body in document.pages for item in reading.platform.split(page_body)]
    except BadPayload as error:
        raise Conflict(f"payload {payload.id} is {payload.status} and holds no menu: {error.kind}: {error}") from error
    if document.broken:
        raise Conflict(f"payload {payload.id} is {payload.status} and holds no menu: an answer in it is not JSON")
    # Of several items with one id the last wins, as in `Platform.normalize`.
    products: dict[str, Product] = {}
    odd: list[tuple[msgspec.Raw, str]] = []
    for item in items:
        found = reading(item)
        products.update((product.provider_product_id, product) for product in found.products)
        if not found.products:
            said = [f"{one.field}: {one.message}" for one in found.warnings if one.fatal]
            odd.append((item, "; ".join(said) or "it cannot be read"))
    menu = _Menu(tuple(products.values()), {}, [])
    for item, why in odd:
        name = reading.platform.identity(item)
        if name is None:
            menu.nameless.append(why)
        elif name not in products:
            menu.unreadable[name] = why
    return menu


def _compared(older: Payload, newer: Payload, before: _Menu, after: _Menu) -> Compared:
    found = diff(before.products, after.products)
    names = {p.provider_product_id: p.name for menu in (before, after) for p in menu.products}
    unreadable = before.unreadable.keys() | after.unreadable.keys()
    told = [
        Unreadable(
            provider_product_id=i, name=names.get(i), before=before.unreadable.get(i), after=after.unreadable.get(i)
        )
        for i in sorted(unreadable)
    ]
    told += [Unreadable(provider_product_id=None, name=None, before=why, after=None) for why in before.nameless]
    told += [Unreadable(provider_product_id=None, name=None, before=None, after=why) for why in after.nameless]
    rest = msgspec.structs.replace(
        found,
        added=tuple(item for item in found.added if item.provider_product_id not in unreadable),
        removed=tuple(item for item in found.removed if item.provider_product_id not in unreadable),
    )
    return Compared(older=older, newer=newer, diff=rest, unreadable=tuple(told))


async def compare(archive: FileArchive, platforms: Mapping[str, Platform], older: Payload, newer: Payload) -> Compared:
    """What differs between two archived menus. Reads files and normalizes both: needs no connection, so hold none.

    Raises Conflict when one of them holds no menu, NotFound when its file is gone.
    """

    def work() -> Compared:
        reading = {payload.platform: _Reading(_adapter(payload)) for payload in (older, newer)}
        before, after = (_menu(archive, reading[payload.platform], payload) for payload in (older, newer))
        return _compared(older, newer, before, after)

    def _adapter(payload: Payload) -> Platform:
        try:
            return platforms[payload.platform]
        except KeyError:
            raise Conflict(
                f"payload {payload.id} is of platform {payload.platform!r}, which is not known here"
            ) from None

    return await asyncio.to_thread(work)


async def release(conn: AsyncConnection[Any], payload_id: int) -> int:
    """Takes a payload out of quarantine and has it applied, ahead of other work; returns the task's id.

    Raises NotFound, and Conflict when it is in no quarantine.
    """
    payload = await payloads.lock(conn, payload_id)
    if payload is None:
        raise NotFound(f"payload {payload_id} does not exist")
    if payload.status != "quarantined":
        raise Conflict(f"payload {payload_id} is {payload.status}: only a quarantined payload can be released")
    await payloads.release(conn, payload_id)
    # Each payload has its own refresh: a waiting one for an older payload must not swallow it.
    task = NewTask(
        role=Role.PRODUCT_REFRESH,
        dispensary_id=payload.dispensary_id,
        platform=payload.platform,
        priority=PRIORITY_URGENT,
        payload={"payload_id": payload_id},
        unique=False,
    )
    (enqueued,) = await tasks.enqueue(conn, [task])
    await audit.record(conn, "payload_released", ("payload", payload_id), store=payload.dispensary_id, task=enqueued.id)
    return enqueued.id


async def counts(conn: AsyncConnection[Any]) -> dict[str, int]:
    """Payloads by status."""
    return {found["status"]: found["n"] for found in await rows(conn, _q.payload_counts, {})}
