"""Takes over images of the former system under their former paths, so that they are not downloaded again and their URLs stay valid.

images/products/<state>/<store>/<brand>/<product id of the platform>/image-<hash>.webp
images/brands/<brand>/logo-<hash>.webp
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from psycopg import AsyncConnection

from menuwatch.catalog import store as catalog
from menuwatch.core.errors import Refused
from menuwatch.db import sql
from menuwatch.db.query import fetch_all
from menuwatch.images import store as images
from menuwatch.images.files import FOLDER, BadPath, ImageFiles, parts_of, slug
from menuwatch.images.limits import MAX_DOWNLOAD_BYTES
from menuwatch.images.store import Image
from menuwatch.images.transform import OriginalImage, make_original
from menuwatch.images.url_allowlist import UrlNotAllowed, allowed_url
from menuwatch.images.vips import InvalidImage
from menuwatch.ops.legacy import fields
from menuwatch.ops.legacy.columns import PRODUCTS
from menuwatch.ops.legacy.fields import Bad
from menuwatch.ops.legacy.staging import Staging

_q = sql.load(__package__, "importer.sql")
HERE = "already has an image"
_HOST = "legacy"
"""Stands for the host of an image whose URL is not known."""


class _Owner(NamedTuple):
    """Whose image it is: a product (its id here and its image URL), or a brand."""

    product_id: int | None
    brand: str | None
    url: str | None


class Images(Struct):
    """One import of images. `folder` is the former storage root, which may be `files`' own."""

    conn: AsyncConnection[Any]
    staging: Staging
    files: ImageFiles
    folder: Path
    hosts: Collection[str]
    """Hosts that images may be downloaded from."""
    dry_run: bool
    _folders: dict[tuple[str, str], set[int]] = {}
    _named: dict[str, tuple[int, str]] = {}
    """Path of a former product's image → its store here and the platform's id."""

    async def take(self) -> None:
        """Takes every file below images/; those of products and brands that have an image are skipped without reading them."""
        tally = self.staging.report.images
        await self._index()
        for path in await asyncio.to_thread(lambda: list(_files(self.folder))):
            tally.read += 1
            try:
                await self._take(path)
                tally.taken += 1
            except Bad as error:
                reason, value = error.args
                tally.skip(reason, f"{path}: {value}" if value else path)
            except (Refused, BadPath) as error:
                tally.skip(str(error), path)

    async def _index(self) -> None:
        for row in await fetch_all(self.conn, _q.store_folders, {}):
            state = slug(row["state"])
            for name in {slug(row["slug"] or row["name"]), slug(row["name"])}:
                for folder in (name, f"{state}-{name}"):
                    self._folders.setdefault((state, folder), set()).add(row["id"])
        if PRODUCTS not in self.staging.source.has:
            return
        async for line in self.staging.source.lines(PRODUCTS):
            if line.wrong is None and f"{FOLDER}/" in (path := line.record.get("local_image") or ""):
                try:
                    store, product = await self.staging.store_of(line.record), fields.product_id(line.record)
                except Bad:
                    continue
                if store is not None and product is not None:
                    self._named[path[path.find(f"{FOLDER}/") :]] = (store, product)

    async def _take(self, path: str) -> None:
        parts = parts_of(path)
        if parts[0] == "products" and len(parts) == 6:
            owner = await self._product(path, parts)
        elif parts[0] == "brands" and len(parts) == 3:
            owner = await self._brand(slug(parts[1]))
        else:
            raise Bad("its path is neither that of a product's image nor of a brand's logo", "")
        data, original = await asyncio.to_thread(_load, self.folder / path)
        if self.dry_run:
            return
        async with self.conn.transaction():
            await self._store(path, owner, data, original)

    async def _product(self, path: str, parts: tuple[str, ...]) -> _Owner:
        named = self._named.get(path)
        stores = {named[0]} if named else self._folders.get((parts[1], parts[2]), set())
        if not stores:
            raise Bad("no store of that folder is known", "/".join(parts[1:3]))
        values = {"stores": list(stores), "product": named[1] if named else parts[4]}
        rows = await fetch_all(self.conn, _q.product_with_image, values)
        if len(rows) != 1:
            raise Bad("its product is not known" if not rows else "its product is in several stores", parts[4])
        if rows[0]["local_image_path"]:
            raise Bad(HERE, "")
        return _Owner(rows[0]["id"], None, rows[0]["image_url"])

    def _differs(self, path: str, data: bytes) -> bool:
        """Whether other bytes are stored under that path."""
        return self.files.has(path) and self.files.get(path) != data

    async def _brand(self, brand: str) -> _Owner:
        if await fetch_all(self.conn, _q.brand_with_logo, {"brand": brand}):
            raise Bad(HERE, "")
        return _Owner(None, brand, None)

    async def _store(self, path: str, owner: _Owner, data: bytes, original: OriginalImage) -> None:
        url, host = _address(owner.url, path, self.hosts)
        downloaded = await fetch_all(self.conn, _q.image_of_url, {"url": url})
        if downloaded and downloaded[0]["sha256"] != original.sha256:
            # What the URL serves now stays the image of its other products.
            url, host = _address(None, path, ())
        source = (await images.enter_sources(self.conn, {url: host}))[url]
        known = await images.image(self.conn, original.sha256)
        lost = known is not None and not await asyncio.to_thread(self.files.has, known.path)
        if known is None and await asyncio.to_thread(self._differs, path, data):
            # The source itself where the legacy folder is the storage: it is the only original.
            raise Bad("another file lies at its path: import from a copy of the folder", path)
        if known is None or lost:
            await asyncio.to_thread(self.files.store, path, data)
        else:
            await asyncio.to_thread(self.files.link, known.path, path)
        image = Image(
            sha256=original.sha256,
            path=path,
            width=original.width,
            height=original.height,
            bytes=len(data),
            source_format=original.source_format,
            source_bytes=original.source_bytes,
            colour=original.colour,
        )
        await images.stored(self.conn, source.id, image, gone=known.path if known and lost else None)
        values: Mapping[str, Any] = {**owner._asdict(), "url": url, "url_id": source.id, "path": path}
        await self.conn.execute(_q.drop_unstored_reference, values)
        await self.conn.execute(_q.refer_to_image, values)
        if owner.product_id is not None and not await catalog.set_local_images(self.conn, {owner.product_id: path}):
            raise Bad("its product is being written to: run the import again", "")
        await images.close(self.conn, source.id)


def _address(url: str | None, path: str, hosts: Collection[str]) -> tuple[str, str]:
    """The key of the image, as its download would have it, and its host. Where nothing can be downloaded its path stands for it."""
    try:
        return allowed_url(url or "", hosts)
    except UrlNotAllowed:
        return f"{_HOST}:{path}", _HOST


def _load(place: Path) -> tuple[bytes, OriginalImage]:
    """The bytes to store, and what is known of them. A WebP file stays as it is. Raises Bad."""
    try:
        if place.stat().st_size > MAX_DOWNLOAD_BYTES:
            raise Bad("its file is too large", f"{place.stat().st_size:,} bytes")
        data = place.read_bytes()
        original = make_original(data)
    except OSError as error:
        raise Bad("its file cannot be read", error.strerror or str(error)) from error
    except InvalidImage as error:
        raise Bad("its file is not an image", str(error)) from error
    return (data if original.source_format == "webp" else original.data), original


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below images/products and images/brands, relative to the folder; links are not followed."""
    for kind in ("products", "brands"):
        for here, folders, names in os.walk(folder / FOLDER / kind):
            folders.sort()
            for name in sorted(names):
                place = Path(here, name)
                if not place.is_symlink() and not name.startswith("."):
                    yield place.relative_to(folder).as_posix()
