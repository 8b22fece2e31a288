"""The rows of `image_references`, `image_urls` and `images`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.db import sql
from menuwatch.db.query import fetch_all, fetch_struct, fetch_structs

_q = sql.load(__package__)


class ImageCounts(Struct, frozen=True, kw_only=True):
    """References (of products and brands) by status, the number of different images and their size in bytes."""

    queued: int
    waiting: int
    stored: int
    failed: int
    images: int
    bytes: int


class Image(Struct, frozen=True, kw_only=True):
    """A stored image. Sizes in pixels and bytes; `path` is relative to the storage root; `colour` is the average."""

    sha256: bytes
    path: str
    width: int
    height: int
    bytes: int
    source_format: str
    source_bytes: int
    colour: str


class ImageUrl(Struct, frozen=True, kw_only=True):
    """An image URL that is due. `attempts` failed so far; `sha256` is set if it is stored already and has new references."""

    id: int
    url: str
    host: str
    status: str
    attempts: int
    sha256: bytes | None


class KnownUrl(Struct, frozen=True, kw_only=True):
    """A stored image URL."""

    id: int
    url: str
    status: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference that waits for an image: of a product (with the parts of its path) or a brand. `gone`: the product was deleted."""

    id: int
    product_id: int | None
    brand: str | None
    state: str | None
    store: str | None
    brand_name: str | None
    gone: bool


async def queue_products(conn: AsyncConnection[Any], dispensary_id: int, *, changed_at: datetime | None = None) -> int:
    """Queues the image of each product of a store that has no reference yet; returns how many. With `changed_at`, only of the
    products that the crawl of that time added or changed."""
    values = {"dispensary_id": dispensary_id, "changed_at": changed_at}
    return (await conn.execute(_q.queue_products, values)).rowcount


async def queue_brands(conn: AsyncConnection[Any], logos: Mapping[str, str]) -> int:
    """Queues the logos of brands (slug → URL) that have no reference yet; returns how many."""
    if not logos:
        return 0
    values = {"brands": list(logos), "urls": list(logos.values())}
    return (await conn.execute(_q.queue_brands, values)).rowcount


async def stores_without(conn: AsyncConnection[Any], dispensary_id: int | None = None) -> list[int]:
    """Ids of stores with products that have no image reference."""
    cursor = await conn.execute(_q.stores_without, {"dispensary_id": dispensary_id})
    return [row[0] for row in await cursor.fetchall()]


async def take_queued(conn: AsyncConnection[Any], limit: int) -> list[tuple[int, str]]:
    """(id, URL) of queued references, locked until the transaction ends."""
    cursor = await conn.execute(_q.take_queued, {"limit": limit})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def enter_sources(conn: AsyncConnection[Any], hosts: Mapping[str, str]) -> dict[str, KnownUrl]:
    """Inserts a row for each URL (URL → host), due unless it failed permanently."""
    values = {"urls": list(hosts), "hosts": list(hosts.values())}
    return {source.url: source for source in await fetch_structs(conn, KnownUrl, _q.enter_sources, values)}


async def sort_uses(conn: AsyncConnection[Any], pairs: Sequence[tuple[int, int]]) -> None:
    """Assigns references to image URLs, as (reference, URL) id pairs."""
    ids, sources = [use for use, _ in pairs], [source for _, source in pairs]
    await conn.execute(_q.sort_uses, {"ids": ids, "sources": sources})


async def refuse_uses(conn: AsyncConnection[Any], pairs: Sequence[tuple[int, str]]) -> None:
    """Marks references as failed, as (reference, reason) pairs."""
    await conn.execute(_q.refuse_uses, {"ids": [use for use, _ in pairs], "errors": [why for _, why in pairs]})


async def claim(conn: AsyncConnection[Any], limit: int, *, lease_seconds: float) -> list[ImageUrl]:
    """Leases due image URLs for `lease_seconds`."""
    return await fetch_structs(conn, ImageUrl, _q.claim_sources, {"limit": limit, "lease_seconds": lease_seconds})


async def is_wanted(conn: AsyncConnection[Any], url_id: int) -> bool:
    """Whether a reference of an enabled store waits for the image."""
    return await (await conn.execute(_q.is_wanted, {"id": url_id})).fetchone() is not None


async def postpone_unwanted(conn: AsyncConnection[Any], url_id: int, *, wait: float, error: str) -> None:
    """Postpones an image URL by `wait` seconds if a reference waits for it, otherwise forever."""
    await conn.execute(_q.postpone_unwanted, {"id": url_id, "wait": wait, "error": error})


async def next_due(conn: AsyncConnection[Any]) -> float | None:
    """Seconds until something is due; 0 or less for now, None for nothing."""
    row = await (await conn.execute(_q.next_due)).fetchone()
    return None if row is None or row[0] is None else float(row[0])


async def postpone(
    conn: AsyncConnection[Any], source_ids: Sequence[int], *, wait: float, error: str | None = None
) -> None:
    """Postpones image URLs by `wait` seconds without counting an attempt."""
    await conn.execute(_q.postpone, {"ids": list(source_ids), "wait": wait, "error": error})


async def failed(conn: AsyncConnection[Any], url_id: int, *, wait: float, error: str) -> None:
    """Counts a failed attempt; the next one is in `wait` seconds."""
    await conn.execute(_q.attempt_failed, {"id": url_id, "wait": wait, "error": error})


async def give_up(conn: AsyncConnection[Any], url_id: int, error: str) -> None:
    """Marks an image URL and the references that wait for it as failed."""
    async with conn.transaction():
        await conn.execute(_q.give_up_source, {"id": url_id, "error": error})
        await conn.execute(_q.give_up_uses, {"id": url_id, "error": error})


async def image(conn: AsyncConnection[Any], sha256: bytes) -> Image | None:
    """The stored image made from bytes with that hash."""
    return await fetch_struct(conn, Image, _q.get_image, {"sha256": sha256})


async def stored(conn: AsyncConnection[Any], url_id: int, image: Image, *, gone: str | None = None) -> str:
    """Records the image of a URL, once its file is written. Returns the path of the image's first file: a different one if another
    process stored it meanwhile. `gone` is a path whose file is missing."""
    values = {name: getattr(image, name) for name in Image.__struct_fields__}
    row = await (await conn.execute(_q.add_image, {**values, "gone": gone})).fetchone()
    await conn.execute(_q.source_stored, {"id": url_id, "sha256": image.sha256})
    assert row is not None, "the statement returns the row"
    return str(row[0])


async def lost(conn: AsyncConnection[Any], url_id: int, error: str) -> None:
    """The file of a stored image URL is missing: download it again."""
    await conn.execute(_q.source_lost, {"id": url_id, "error": error})


async def waiting(conn: AsyncConnection[Any], url_id: int, *, limit: int) -> list[Reference]:
    """References that wait for an image URL, by id."""
    return await fetch_structs(conn, Reference, _q.waiting_uses, {"url_id": url_id, "limit": limit})


async def uses_stored(conn: AsyncConnection[Any], paths: Mapping[int, str]) -> None:
    """Records the files of references (id → path)."""
    await conn.execute(_q.uses_stored, {"ids": list(paths), "paths": list(paths.values())})


async def drop_uses(conn: AsyncConnection[Any], ids: Sequence[int]) -> None:
    """Deletes references."""
    await conn.execute(_q.drop_uses, {"ids": list(ids)})


async def close(conn: AsyncConnection[Any], url_id: int) -> None:
    """Ends a lease, in the caller's transaction; the URL is due again soon if references still wait."""
    # The second statement must see references that were assigned while the first one waited for the lock.
    await conn.execute(_q.lock_source, {"id": url_id})
    await conn.execute(_q.close_source, {"id": url_id})


async def retry_failed(conn: AsyncConnection[Any], dispensary_id: int | None = None) -> int:
    """Queues all failed references again, of one store or of all; returns how many."""
    async with conn.transaction():
        await conn.execute(_q.retry_failed_sources, {"dispensary_id": dispensary_id})
        return (await conn.execute(_q.retry_failed_uses, {"dispensary_id": dispensary_id})).rowcount


async def counts(conn: AsyncConnection[Any]) -> ImageCounts:
    """Counts all references and images exactly."""
    counts = await fetch_struct(conn, ImageCounts, _q.counts, {})
    assert counts is not None, "a query of aggregates returns a row"
    return counts


async def page(
    conn: AsyncConnection[Any], *, status: str | None, dispensary_id: int | None, limit: int
) -> list[dict[str, Any]]:
    """References with their images, newest first."""
    return await fetch_all(conn, _q.list_uses, {"status": status, "dispensary_id": dispensary_id, "limit": limit})


async def stored_uses(conn: AsyncConnection[Any], *, after: int, limit: int) -> list[dict[str, Any]]:
    """References that have a file, by id, those above `after`."""
    return await fetch_all(conn, _q.stored_uses, {"after": after, "limit": limit})


async def known_paths(conn: AsyncConnection[Any], paths: Sequence[str]) -> set[str]:
    """Those of these paths that a row names."""
    cursor = await conn.execute(_q.known_paths, {"paths": list(paths)})
    return {row[0] for row in await cursor.fetchall()}


async def uses_lost(conn: AsyncConnection[Any], ids: Sequence[int]) -> list[int]:
    """Queues references whose files are lost; returns the products among them."""
    cursor = await conn.execute(_q.uses_lost, {"ids": list(ids)})
    return [row[0] for row in await cursor.fetchall() if row[0] is not None]
