"""The rows of `image_uses`, `image_sources` and `images`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row, dict_row

from menuwatch.db import sql

_q = sql.load(__package__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One stored picture. Sizes in pixels and bytes; `path` relative to the storage root; `colour` its average."""

    sha256: bytes
    path: str
    width: int
    height: int
    bytes: int
    source_format: str
    source_bytes: int
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One address that is to be seen to. `attempts` failed before; `sha256` where it is stored already and somebody new wants it."""

    id: int
    url: str
    host: str
    status: str
    attempts: int
    sha256: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An address as it is known."""

    id: int
    url: str
    status: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Somebody who waits for a picture: a product (with what its path is made of) or a brand. `gone`: the product was removed."""

    id: int
    product_id: int | None
    brand: str | None
    state: str | None
    store: str | None
    brand_name: str | None
    gone: bool


async def queue_products(conn: AsyncConnection[Any], dispensary_id: int) -> int:
    """Asks for the picture of each of a store's products that has none and never asked; returns how many."""
    return (await conn.execute(_q.queue_products, {"dispensary_id": dispensary_id})).rowcount


async def queue_brands(conn: AsyncConnection[Any], logos: Mapping[str, str]) -> int:
    """Asks for the logos of brands (slug → address) that never asked; returns how many."""
    if not logos:
        return 0
    given = {"brands": list(logos), "urls": list(logos.values())}
    return (await conn.execute(_q.queue_brands, given)).rowcount


async def stores_without(conn: AsyncConnection[Any], dispensary_id: int | None = None) -> list[int]:
    """Stores with products that never asked for their picture."""
    cursor = await conn.execute(_q.stores_without, {"dispensary_id": dispensary_id})
    return [row[0] for row in await cursor.fetchall()]


async def take_queued(conn: AsyncConnection[Any], limit: int) -> list[tuple[int, str]]:
    """(id, address) of uses that are not sorted yet, locked until the end of the transaction."""
    cursor = await conn.execute(_q.take_queued, {"limit": limit})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def enter_sources(conn: AsyncConnection[Any], hosts: Mapping[str, str]) -> dict[str, Entered]:
    """Makes sure that there is a row for each address (address → host), due unless it was given up."""
    given = {"urls": list(hosts), "hosts": list(hosts.values())}
    async with conn.cursor(row_factory=class_row(Entered)) as cur:
        await cur.execute(_q.enter_sources, given)
        return {found.url: found for found in await cur.fetchall()}


async def sort_uses(conn: AsyncConnection[Any], pairs: Sequence[tuple[int, int]]) -> None:
    """(use, source) pairs: these wait for those."""
    ids, sources = [use for use, _ in pairs], [source for _, source in pairs]
    await conn.execute(_q.sort_uses, {"ids": ids, "sources": sources})


async def refuse_uses(conn: AsyncConnection[Any], pairs: Sequence[tuple[int, str]]) -> None:
    """(use, reason) pairs: these get no picture."""
    await conn.execute(_q.refuse_uses, {"ids": [use for use, _ in pairs], "errors": [why for _, why in pairs]})


async def claim(conn: AsyncConnection[Any], limit: int, *, hold: float) -> list[Source]:
    """Addresses that are due, which nobody else gets for `hold` seconds."""
    async with conn.cursor(row_factory=class_row(Source)) as cur:
        await cur.execute(_q.claim_sources, {"limit": limit, "hold": hold})
        return await cur.fetchall()


async def is_wanted(conn: AsyncConnection[Any], source_id: int) -> bool:
    """Whether somebody waits for an address whose store may be contacted."""
    return await (await conn.execute(_q.is_wanted, {"id": source_id})).fetchone() is not None


async def rest(conn: AsyncConnection[Any], source_id: int, *, wait: float, error: str) -> None:
    """Comes back to an address in `wait` seconds, if somebody waits for it at all."""
    await conn.execute(_q.rest_source, {"id": source_id, "wait": wait, "error": error})


async def next_due(conn: AsyncConnection[Any]) -> float | None:
    """In how many seconds there is something to do, 0 or less for now, None for nothing."""
    row = await (await conn.execute(_q.next_due)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def put_off(
    conn: AsyncConnection[Any], source_ids: Sequence[int], *, wait: float, error: str | None = None
) -> None:
    """Comes back to these in `wait` seconds; nothing is counted."""
    await conn.execute(_q.put_off, {"ids": list(source_ids), "wait": wait, "error": error})


async def failed(conn: AsyncConnection[Any], source_id: int, *, wait: float, error: str) -> None:
    """Counts an attempt that failed; the next one is in `wait` seconds."""
    await conn.execute(_q.attempt_failed, {"id": source_id, "wait": wait, "error": error})


async def give_up(conn: AsyncConnection[Any], source_id: int, error: str) -> None:
    """Nobody asks for this address any more, and those who wait for it get no picture."""
    async with conn.transaction():
        await conn.execute(_q.give_up_source, {"id": source_id, "error": error})
        await conn.execute(_q.give_up_uses, {"id": source_id, "error": error})


async def image(conn: AsyncConnection[Any], sha256: bytes) -> Image | None:
    """The stored picture made of bytes with that hash."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.get_image, {"sha256": sha256})
        row = await cur.fetchone()
    if row is None:
        return None
    row.pop("first_seen_at")
    return Image(**row)


async def stored(conn: AsyncConnection[Any], source_id: int, found: Image, *, gone: str | None = None) -> str:
    """What an address has, once its file is there. Returns the path of the picture's first file: another one than `found` has where
    somebody else stored it meanwhile; `gone` is one that is not there any more."""
    values = {name: getattr(found, name) for name in Image.__slots__}
    row = await (await conn.execute(_q.add_image, {**values, "gone": gone})).fetchone()
    await conn.execute(_q.source_stored, {"id": source_id, "sha256": found.sha256})
    assert row is not None, "the statement returns the row"
    return str(row[0])


async def lost(conn: AsyncConnection[Any], source_id: int, error: str) -> None:
    """The file of a stored address is gone: it is to be downloaded anew."""
    await conn.execute(_q.source_lost, {"id": source_id, "error": error})


async def waiting(conn: AsyncConnection[Any], source_id: int, *, limit: int) -> list[Use]:
    """Who waits for an address, by id."""
    async with conn.cursor(row_factory=class_row(Use)) as cur:
        await cur.execute(_q.waiting_uses, {"source_id": source_id, "limit": limit})
        return await cur.fetchall()


async def uses_stored(conn: AsyncConnection[Any], paths: Mapping[int, str]) -> None:
    """use → the path of its file."""
    await conn.execute(_q.uses_stored, {"ids": list(paths), "paths": list(paths.values())})


async def drop_uses(conn: AsyncConnection[Any], ids: Sequence[int]) -> None:
    """These want nothing any more."""
    await conn.execute(_q.drop_uses, {"ids": list(ids)})


async def close(conn: AsyncConnection[Any], source_id: int) -> None:
    """Ends a claim, in the caller's transaction; it is due again soon where somebody waits all the same."""
    # The second statement must see whoever was sorted to this address while the first one waited for its row.
    await conn.execute(_q.lock_source, {"id": source_id})
    await conn.execute(_q.close_source, {"id": source_id})


async def try_failed(conn: AsyncConnection[Any], dispensary_id: int | None = None) -> int:
    """Asks again for everything that was given up, of one store or of all; returns how many wait again."""
    async with conn.transaction():
        await conn.execute(_q.try_failed_sources, {"dispensary_id": dispensary_id})
        return (await conn.execute(_q.try_failed_uses, {"dispensary_id": dispensary_id})).rowcount


async def counts(conn: AsyncConnection[Any]) -> dict[str, int]:
    """Uses by status, `images`, and their `bytes`."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.counts)
        row = await cur.fetchone()
    return {name: int(value) for name, value in (row or {}).items()}


async def page(
    conn: AsyncConnection[Any], *, status: str | None, dispensary_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """Uses with what is known of them, newest first."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.list_uses, {"status": status, "dispensary_id": dispensary_id, "limit": limit})
        return await cur.fetchall()


async def stored_uses(conn: AsyncConnection[Any], *, after: int, limit: int) -> list[dict[str, Any]]:
    """Uses that have a file, by id, those above `after`."""
    async with conn.cursor(row_factory=dict_row) as cur:
        await cur.execute(_q.stored_uses, {"after": after, "limit": limit})
        return await cur.fetchall()


async def known_paths(conn: AsyncConnection[Any], paths: Sequence[str]) -> set[str]:
    """Those of these paths that somebody counts on."""
    cursor = await conn.execute(_q.known_paths, {"paths": list(paths)})
    return {row[0] for row in await cursor.fetchall()}


async def uses_lost(conn: AsyncConnection[Any], ids: Sequence[int]) -> list[int]:
    """These have lost their files and ask again; returns the products among them."""
    cursor = await conn.execute(_q.uses_lost, {"ids": list(ids)})
    return [row[0] for row in await cursor.fetchall() if row[0] is not None]
