"""Downloads the images that menus name, outside the task queue.

    queued ─(is its URL allowed?)─→ waiting ─→ stored, the product has its file
                    └─→ failed, with the reason    └─ tried IMAGE_TRIES times, or a permanent error ─→ failed

A URL is downloaded once, however many products name it, by the process that leases it; the lease of a dead process expires. What has
a file is never downloaded again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import ClassVar, Protocol

from msgspec import Struct

from menuwatch.catalog import store as catalog
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import Blocked, MenuwatchError, NotNow, Permanent, Throttled, Transient
from menuwatch.core.http import Response, Session
from menuwatch.core.logging import get_logger
from menuwatch.db.items import described, log_refused
from menuwatch.db.loop import Loop
from menuwatch.db.pool import Pool
from menuwatch.images import store as images
from menuwatch.images.files import ImageFiles, NoFile, brand_path, product_path
from menuwatch.images.store import Image, ImageUrl, Reference
from menuwatch.images.transform import OriginalImage, make_original
from menuwatch.images.url_allowlist import UrlNotAllowed, allowed_url
from menuwatch.images.vips import InvalidImage

log = get_logger(__name__)

BATCH = 20
"""Images that one identity downloads in a row."""
_ASSIGN_BATCH = 500
_LINK_BATCH = 200
_MIN_WAIT_SECONDS = 5.0
_DISK_WAIT_SECONDS = 60.0
_UNWANTED_WAIT_SECONDS = 3600.0
"""How long an image waits that no enabled store needs."""
_MAX_ERROR_CHARACTERS = 500


class OpenSession(Protocol):
    """Opens a session: one identity, kept for all its requests."""

    def __call__(
        self,
        *,
        task_id: int | None,
        dispensary_id: int | None,
        state: str | None,
        hosts: Collection[str],
        pause: Callable[[float], Awaitable[None]],
        permit: Callable[[], Awaitable[None]] | None,
    ) -> AbstractAsyncContextManager[Session]: ...


class DownloadPolicy(Struct, frozen=True, kw_only=True):
    """Allowed `hosts`, concurrent identities, `tries` per URL with their backoff, the pause after a host blocked several identities,
    and the timeout of a request (in seconds)."""

    hosts: tuple[str, ...]
    concurrency: int = 2
    tries: int = 4
    backoff: Backoff = Backoff(base=600.0, cap=86_400.0, factor=4.0)
    blocked_seconds: float = 900.0
    timeout_seconds: float = 30.0

    @property
    def lease_seconds(self) -> float:
        """Longer than a whole batch takes, each of its images at its slowest."""
        return 60.0 + (BATCH + 1) * 2 * self.timeout_seconds


class _Postponed(Exception):
    """No requests to the host for this many seconds."""

    def __init__(self, seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.seconds = seconds


class ImageDownloads(Loop):
    """Any number may run. `held` is called before each step; nothing starts while it returns True."""

    name: ClassVar[str] = "images"
    private: ClassVar[bool] = True  # errors of connections may hold a proxy's password

    def __init__(
        self,
        pool: Pool,
        files: ImageFiles,
        open_session: OpenSession,
        policy: DownloadPolicy,
        *,
        interval: float = 5.0,
        rng: random.Random | None = None,
        on_ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_ended` is called for each URL: `stored`, `failed` (will be retried) or `given_up`."""
        super().__init__(interval=interval)
        self._pool = pool
        self._files = files
        self._open = open_session
        self._policy = policy
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._on_ended = on_ended
        self.held: Callable[[], bool] = lambda: False

    async def step(self) -> float | None:
        if self.held():
            return None
        await self._assign()
        async with self._pool.connection() as conn:
            due = await images.claim(conn, self._policy.concurrency * BATCH, lease_seconds=self._policy.lease_seconds)
        if not due:
            async with self._pool.connection() as conn:
                soon = await images.next_due(conn)
            return None if soon is None else min(self.interval, max(soon, 0.02))
        batches = [[source] for source in due if source.status == "stored"]
        by_host: dict[str, list[ImageUrl]] = {}
        for source in due:
            if source.status != "stored":
                by_host.setdefault(source.host, []).append(source)
        for sources in by_host.values():
            size = min(BATCH, -(-len(sources) // self._policy.concurrency))
            batches += [sources[start : start + size] for start in range(0, len(sources), size)]
        limit = asyncio.Semaphore(self._policy.concurrency)
        results = await asyncio.gather(*(self._batch(limit, batch) for batch in batches), return_exceptions=True)
        for error in results:
            if isinstance(error, BaseException):
                raise error
        return 0.0

    async def _assign(self) -> None:
        """Assigns each queued reference to the row of its URL, or fails it with the reason."""
        async with self._pool.connection() as conn, conn.transaction():
            queued = await images.take_queued(conn, _ASSIGN_BATCH)
            if not queued:
                return
            allowed: list[tuple[int, str]] = []
            refused: list[tuple[int, str]] = []
            hosts: dict[str, str] = {}
            for reference, url in queued:
                try:
                    address, host = allowed_url(url, self._policy.hosts)
                except UrlNotAllowed as error:
                    refused.append((reference, str(error)))
                except Exception as error:
                    log_refused(self.name, "image_reference", reference, error)
                    refused.append((reference, described(error)))
                else:
                    allowed.append((reference, address))
                    hosts[address] = host
            sources = await images.enter_sources(conn, hosts) if hosts else {}
            known = [(reference, sources[address]) for reference, address in allowed]
            refused += [
                (reference, source.error or "given up") for reference, source in known if source.status == "failed"
            ]
            await images.sort_uses(
                conn, [(reference, source.id) for reference, source in known if source.status != "failed"]
            )
            await images.refuse_uses(conn, refused)

    async def _batch(self, limit: asyncio.Semaphore, batch: Sequence[ImageUrl]) -> None:
        async with limit:
            if (first := batch[0]).status == "stored":
                await self.attend("image_source", first.id, self._link_stored(first), partial(self._failed, first))
                return
            left = list(batch)
            try:
                async with self._open(
                    task_id=None,
                    dispensary_id=None,
                    state=None,
                    hosts=[host for host in self._policy.hosts if not host.startswith("*")],
                    pause=asyncio.sleep,
                    permit=None,
                ) as session:
                    while left and not self.stopping:
                        await self._download(session, left[0])
                        left.pop(0)
            except _Postponed as postponed:
                await self._postpone(left, postponed.seconds, str(postponed))
                left.clear()
            finally:
                if left:
                    await asyncio.shield(self._postpone(left, 0.0, None))

    async def _download(self, session: Session, source: ImageUrl) -> None:
        """Downloads one image and records its errors. Raises only _Postponed, which is about the host."""
        postponed: _Postponed | None = None

        async def request() -> None:
            nonlocal postponed
            try:
                await self._request(session, source)
            except _Postponed as error:
                postponed = error

        await self.attend("image_source", source.id, request(), partial(self._failed, source))
        if postponed is not None:
            raise postponed

    async def _request(self, session: Session, source: ImageUrl) -> None:
        async with self._pool.connection() as conn:
            if not await images.is_wanted(conn, source.id):
                error = "no store may be contacted that has a product with it"
                await images.postpone_unwanted(conn, source.id, wait=_UNWANTED_WAIT_SECONDS, error=error)
                return
        try:
            response = await session.request("GET", source.url, expect="image")
        except NotNow as error:
            raise _Postponed(max(error.retry_after or 0.0, _MIN_WAIT_SECONDS), str(error)) from error
        except Throttled as error:
            raise _Postponed(error.wait, str(error)) from error
        except Blocked as error:
            await self._failed(source, str(error))
            raise _Postponed(self._policy.blocked_seconds, str(error)) from error
        except Permanent as error:
            await self._give_up(source, str(error))
        except MenuwatchError as error:
            await self._failed(source, str(error))
        else:
            await self._accept(source, response)

    async def _accept(self, source: ImageUrl, response: Response) -> None:
        if not 200 <= response.status < 300:
            await self._give_up(source, f"HTTP {response.status}")
            return
        try:
            original = await asyncio.to_thread(make_original, response.body)
        except InvalidImage as error:
            await (self._give_up if error.final else self._failed)(source, str(error))
            return
        try:
            await self._store(source, original)
        except Transient as error:  # for example a full disk: not the fault of the URL
            raise _Postponed(_DISK_WAIT_SECONDS, str(error)) from error

    async def _store(self, source: ImageUrl, original: OriginalImage) -> None:
        async with self._pool.connection() as conn:
            known = await images.image(conn, original.sha256)
            waiting = await images.waiting(conn, source.id, limit=_LINK_BATCH)
        paths = _paths(waiting, original.sha256)
        if not paths:
            await self._write(source, waiting, {})
            return
        image = known
        if known is None or not await asyncio.to_thread(self._files.has, known.path):
            image = Image(
                sha256=original.sha256,
                path=next(iter(paths.values())),
                width=original.width,
                height=original.height,
                bytes=len(original.data),
                source_format=original.source_format,
                source_bytes=original.source_bytes,
                colour=original.colour,
            )
        assert image is not None, "there is one, or it was made"
        await asyncio.to_thread(
            self._write_files, image.path, None if image is known else original.data, list(paths.values())
        )
        gone = known.path if known is not None and image is not known else None
        first = await self._write(source, waiting, paths, image, gone=gone)
        if first != image.path:
            # Another process stored the same image from another URL meanwhile: its file is kept.
            await asyncio.to_thread(self._replace_files, first, list(paths.values()))
        self._on_ended("stored")
        log.info(
            "image stored",
            action="image_stored",
            source_id=source.id,
            host=source.host,
            path=first,
            known=image is known,
            bytes=image.bytes,
        )

    async def _link_stored(self, source: ImageUrl) -> None:
        """Gives later references of a stored image their files."""
        assert source.sha256 is not None, "a stored source has an image"
        async with self._pool.connection() as conn:
            image = await images.image(conn, source.sha256)
            waiting = await images.waiting(conn, source.id, limit=_LINK_BATCH)
        assert image is not None, "the source refers to it"
        paths = _paths(waiting, image.sha256)
        try:
            await asyncio.to_thread(self._write_files, image.path, None, list(paths.values()))
        except NoFile as error:
            async with self._pool.connection() as conn:
                await images.lost(conn, source.id, str(error))
            return
        except Transient as error:  # as above
            await self._postpone([source], _DISK_WAIT_SECONDS, str(error))
            return
        await self._write(source, waiting, paths)

    def _write_files(self, existing: str, data: bytes | None, paths: Sequence[str]) -> None:
        if data is not None:
            self._files.store(existing, data)
        for path in paths:
            self._files.link(existing, path)

    def _replace_files(self, existing: str, paths: Sequence[str]) -> None:
        for path in paths:
            if path != existing:
                self._files.remove(path)
                self._files.link(existing, path)

    async def _write(
        self,
        source: ImageUrl,
        waiting: Sequence[Reference],
        paths: Mapping[int, str],
        image: Image | None = None,
        *,
        gone: str | None = None,
    ) -> str:
        """Records the files of references (id → path), and a new `image`, and ends the lease, in one transaction. Returns the path of
        the image's first file. References beyond _LINK_BATCH follow in the next step."""
        first = ""
        async with self._pool.connection() as conn, conn.transaction():
            if image is not None:
                first = await images.stored(conn, source.id, image, gone=gone)
            dropped = [reference.id for reference in waiting if reference.gone]
            if dropped:
                await images.drop_uses(conn, dropped)
            products = {
                reference.product_id: paths[reference.id]
                for reference in waiting
                if reference.product_id and reference.id in paths
            }
            written = await catalog.set_local_images(conn, products) if products else set()
            done = {
                reference.id for reference in waiting if reference.brand is not None or reference.product_id in written
            }
            await images.uses_stored(conn, {reference: path for reference, path in paths.items() if reference in done})
            await images.close(conn, source.id)
        return first

    async def _failed(self, source: ImageUrl, error: str) -> None:
        if source.attempts + 1 >= self._policy.tries:
            await self._give_up(source, f"{error} (tried {source.attempts + 1} times)")
            return
        wait = self._policy.backoff.delay(source.attempts, self._rng)
        async with self._pool.connection() as conn:
            await images.failed(conn, source.id, wait=wait, error=error[:_MAX_ERROR_CHARACTERS])
        self._on_ended("failed")
        log.info(
            "image download failed, retrying later",
            action="image_failed",
            source_id=source.id,
            host=source.host,
            attempts=source.attempts + 1,
            again_in_seconds=round(wait, 1),
            reason=error,
        )

    async def _give_up(self, source: ImageUrl, error: str) -> None:
        async with self._pool.connection() as conn:
            await images.give_up(conn, source.id, error[:_MAX_ERROR_CHARACTERS])
        self._on_ended("given_up")
        log.info(
            "image download failed permanently",
            action="image_given_up",
            source_id=source.id,
            host=source.host,
            reason=error,
        )

    async def _postpone(self, sources: Sequence[ImageUrl], wait: float, error: str | None) -> None:
        async with self._pool.connection() as conn:
            await images.postpone(conn, [source.id for source in sources], wait=wait, error=error)


def _paths(waiting: Sequence[Reference], sha256: bytes) -> dict[int, str]:
    """The path of each reference's file."""
    return {reference.id: _path(reference, sha256) for reference in waiting if not reference.gone}


def _path(reference: Reference, sha256: bytes) -> str:
    if reference.brand is not None:
        return brand_path(brand=reference.brand, sha256=sha256)
    assert reference.product_id is not None, "a reference is of a product or a brand"
    return product_path(
        state=reference.state,
        store=reference.store,
        brand=reference.brand_name,
        product_id=reference.product_id,
        sha256=sha256,
    )
