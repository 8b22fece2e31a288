"""Serves images in requested sizes: from the cache or transformed, once for any number of concurrent requests.

path, parameters, Accept → (identity of the file, format) → entity tag ─ the client has it → 304, nothing is read
                                                              └─ in progress → the same result
                                                              └─ in the cache → that
                                                              └─ read, decoded, encoded in a thread, cached
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from msgspec import Struct

from menuwatch.core.errors import MenuwatchError
from menuwatch.images import vips
from menuwatch.images.accept import negotiate
from menuwatch.images.cache import ImageCache
from menuwatch.images.files import ImageFiles
from menuwatch.images.limits import MAX_PENDING, MAX_UNSIGNED_PENDING
from menuwatch.images.params import Format, Params
from menuwatch.images.transform import MEDIA_TYPES, VERSION, placeholder, transform


class Overloaded(MenuwatchError):
    """Too many transformations are in progress."""


class ServedImage(Struct, frozen=True, kw_only=True):
    """An image that can be sent. `immutable`: it never changes under this URL. `negotiated`: the Accept header chose the format."""

    etag: str
    media_type: str
    immutable: bool
    negotiated: bool
    path: str
    identity: str
    params: Params
    target: Format
    as_stored: bool
    free: bool
    """The URL is neither signed nor a preset: its cost is limited, and its result is cached apart."""


class ImageServer:
    """Serves the images of one storage root, with `threads` concurrent transformations."""

    def __init__(
        self, files: ImageFiles, cache: ImageCache, *, threads: int = 2, free_cache: ImageCache | None = None
    ) -> None:
        """Results are cached in `cache`, those of free URLs in `free_cache` if there is one."""
        self._files = files
        self._cache = cache
        self._free_cache = free_cache or cache
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="images")
        self._pending: dict[str, asyncio.Task[bytes]] = {}
        self._free = 0
        """Pending results of free URLs."""
        self._version: str | None = None
        self.transformed = 0
        """Results that were not in the cache."""

    @property
    def caches(self) -> tuple[ImageCache, ...]:
        return tuple(dict.fromkeys((self._cache, self._free_cache)))

    def close(self) -> None:
        """Stops the threads after their present work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def find(self, path: str, params: Params, accept: str | None, *, free: bool = False) -> ServedImage:
        """Finds an image without reading it. Raises BadPath, NoFile."""
        target = params.format or negotiate(accept, unchanged=params.changes_nothing)
        identity, hashed = await asyncio.to_thread(self._identity, path)
        return await self._served_image(path, params, target, identity, immutable=hashed, free=free)

    async def placeholder(self, params: Params, accept: str | None, *, free: bool = False) -> ServedImage:
        target = params.format or negotiate(accept)
        return await self._served_image("", params, target, "placeholder", immutable=False, free=free)

    def _identity(self, path: str) -> tuple[str, bool]:
        with self._files.find(path) as found:
            return found.identity, found.hashed

    async def _served_image(
        self, path: str, params: Params, target: Format, identity: str, *, immutable: bool, free: bool
    ) -> ServedImage:
        if self._version is None:
            self._version = f"{await asyncio.to_thread(vips.version)}/{VERSION}"
        as_stored = params.changes_nothing and target == "webp" and path.endswith(".webp")
        variant = "stored" if as_stored else f"{self._version}?{params.made_as(target).canonical()}"
        return ServedImage(
            etag=f'"{sha256(f"{identity} {variant}".encode()).hexdigest()[:32]}"',
            media_type=MEDIA_TYPES[target],
            immutable=immutable,
            negotiated=params.format is None,
            path=path,
            identity=identity,
            params=params,
            target=target,
            as_stored=as_stored,
            free=free and not as_stored,
        )

    async def data(self, image: ServedImage) -> bytes:
        """Returns its bytes. Raises NoFile, InvalidImage, BadParameters, NotSigned, Overloaded."""
        # Free URLs have limits of their own, so they never share the result of a preset.
        key = sha256(f"{image.etag} {image.path if image.as_stored else ''} {image.free}".encode()).hexdigest()
        task = self._pending.get(key)
        if task is None:
            if len(self._pending) >= MAX_PENDING or (image.free and self._free >= MAX_UNSIGNED_PENDING):
                raise Overloaded("too many images are being processed: try again in a moment")
            self._free += image.free
            task = self._pending[key] = asyncio.create_task(self._run(key, image), name="image")
            task.add_done_callback(lambda done: self._on_done(key, image, done))
        # A request that is cancelled leaves the result to others.
        return await asyncio.shield(task)

    def _on_done(self, key: str, image: ServedImage, done: asyncio.Task[bytes]) -> None:
        self._pending.pop(key, None)
        self._free -= image.free
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio does not log it

    async def _run(self, key: str, image: ServedImage) -> bytes:
        loop = asyncio.get_running_loop()
        if image.as_stored:
            return await loop.run_in_executor(self._pool, self._stored, image)
        return await loop.run_in_executor(self._pool, self._result, key, image)

    def _stored(self, image: ServedImage) -> bytes:
        with self._files.find(image.path) as found:
            return found.read()

    def _result(self, key: str, image: ServedImage) -> bytes:
        cache = self._free_cache if image.free else self._cache
        cached = cache.get(key)
        if cached is not None:
            return cached
        self.transformed += 1
        if image.identity == "placeholder":
            data = placeholder(image.params, image.target, free=image.free)
        else:
            data = transform(self._stored(image), image.params, image.target, free=image.free)
        cache.put(key, data)
        return data
