"""Downloads the pictures that menus name, beside the tasks: a picture is nobody's task, and its failure is nobody's failure.

    queued ─(sorted: is its address one that is asked?)─→ waiting ─→ stored, the product knows its file
                    └─→ failed, with the reason              └─ tried IMAGE_TRIES times, or hopeless ─→ failed

An address is asked once, however many products name it, by whichever process claims it; a claim lapses by itself when that process
dies. What has a file is never asked for again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from menuwatch.catalog import store as catalog
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import Blocked, MenuwatchError, NotNow, Permanent, Throttled, Transient
from menuwatch.core.http import Response, Session
from menuwatch.core.telemetry import get_logger
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.images import store as images
from menuwatch.images.store import Image, Source, Use
from menuwatch.imaging import master
from menuwatch.imaging.address import Unfit, admitted
from menuwatch.imaging.files import ImageFiles, NoFile, brand_path, product_path
from menuwatch.imaging.master import Master
from menuwatch.imaging.vips import NoImage

log = get_logger(__name__)

BATCH = 20
"""Pictures that one identity asks for in a row."""
_SORTED = 500
_LINKED = 200
_BRIEF_SECONDS = 5.0
_TROUBLE_SECONDS = 60.0
_NOBODY_SECONDS = 3600.0
"""After so long it looks again whether a store may be contacted whose product wants a picture."""
_LONGEST_ERROR = 500


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How it goes about it: `hosts` that are asked, identities `at_once`, `tries` of one address, the waits between them, how long a
    host rests that refused several identities, and how long one request may take (seconds)."""

    hosts: tuple[str, ...]
    at_once: int = 2
    tries: int = 4
    backoff: Backoff = Backoff(base=600.0, cap=86_400.0, factor=4.0)
    blocked_seconds: float = 900.0
    timeout_seconds: float = 30.0

    @property
    def hold(self) -> float:
        """Seconds that a claim lasts: longer than a whole batch, each of its pictures at its slowest."""
        return 60.0 + (BATCH + 1) * 2 * self.timeout_seconds


class _Rest(Exception):
    """The host wants to be left alone for so many seconds, or nobody may be asked now."""

    def __init__(self, seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.seconds = seconds


class ImageDownloads(Loop):
    """Any number of them may run. `held`: asked before each step; nothing is begun while it says yes."""

    name: ClassVar[str] = "images"

    def __init__(
        self,
        pool: Pool,
        files: ImageFiles,
        open_session: OpenSession,
        manner: Manner,
        *,
        interval: float = 5.0,
        rng: random.Random | None = None,
        on_ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_ended` hears of each address whether it was `stored`, `failed` and is tried again, or was `given_up`."""
        super().__init__(interval=interval)
        self._pool = pool
        self._files = files
        self._open = open_session
        self._manner = manner
        self._rng = rng or random.Random()  # noqa: S311 - jitter, no secret
        self._on_ended = on_ended
        self.held: Callable[[], bool] = lambda: False

    async def step(self) -> float | None:
        if self.held():
            return None
        await self._sort()
        async with self._pool.connection() as conn:
            due = await images.claim(conn, self._manner.at_once * BATCH, hold=self._manner.hold)
        if not due:
            async with self._pool.connection() as conn:
                soon = await images.next_due(conn)
            return None if soon is None else min(self.interval, max(soon, 0.02))
        batches = [[source] for source in due if source.status == "stored"]
        by_host: dict[str, list[Source]] = {}
        for source in due:
            if source.status != "stored":
                by_host.setdefault(source.host, []).append(source)
        for sources in by_host.values():
            size = min(BATCH, -(-len(sources) // self._manner.at_once))
            batches += [sources[start : start + size] for start in range(0, len(sources), size)]
        gate = asyncio.Semaphore(self._manner.at_once)
        ended = await asyncio.gather(*(self._batch(gate, batch) for batch in batches), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error
        return 0.0

    async def _sort(self) -> None:
        """Tells each new use its address's row, or why there is none."""
        async with self._pool.connection() as conn, conn.transaction():
            queued = await images.take_queued(conn, _SORTED)
            if not queued:
                return
            wanted: list[tuple[int, str]] = []
            refused: list[tuple[int, str]] = []
            hosts: dict[str, str] = {}
            for use, url in queued:
                try:
                    address, host = admitted(url, self._manner.hosts)
                except Unfit as error:
                    refused.append((use, str(error)))
                else:
                    wanted.append((use, address))
                    hosts[address] = host
            entered = await images.enter_sources(conn, hosts) if hosts else {}
            known = [(use, entered[address]) for use, address in wanted]
            refused += [(use, source.error or "given up") for use, source in known if source.status == "failed"]
            await images.sort_uses(conn, [(use, source.id) for use, source in known if source.status != "failed"])
            await images.refuse_uses(conn, refused)

    async def _batch(self, gate: asyncio.Semaphore, batch: Sequence[Source]) -> None:
        async with gate:
            if batch[0].status == "stored":
                await self._link_stored(batch[0])
                return
            left = list(batch)
            try:
                async with self._open(
                    task_id=None,
                    dispensary_id=None,
                    state=None,
                    hosts=[host for host in self._manner.hosts if not host.startswith("*")],
                    pause=asyncio.sleep,
                    permit=None,
                ) as session:
                    while left and not self.stopping:
                        await self._one(session, left[0])
                        left.pop(0)
            except _Rest as rest:
                await self._put_off(left, rest.seconds, str(rest))
                left.clear()
            finally:
                if left:
                    await asyncio.shield(self._put_off(left, 0.0, None))

    async def _one(self, session: Session, source: Source) -> None:
        async with self._pool.connection() as conn:
            if not await images.is_wanted(conn, source.id):
                why = "no store may be contacted that has a product with it"
                await images.rest(conn, source.id, wait=_NOBODY_SECONDS, error=why)
                return
        try:
            answer = await session.request("GET", source.url, expect="image")
        except NotNow as error:
            raise _Rest(max(error.retry_after or 0.0, _BRIEF_SECONDS), str(error)) from error
        except Throttled as error:
            raise _Rest(error.wait, str(error)) from error
        except Blocked as error:
            await self._failed(source, str(error))
            raise _Rest(self._manner.blocked_seconds, str(error)) from error
        except Permanent as error:
            await self._give_up(source, str(error))
        except MenuwatchError as error:
            await self._failed(source, str(error))
        else:
            await self._take(source, answer)

    async def _take(self, source: Source, answer: Response) -> None:
        if not 200 <= answer.status < 300:
            await self._give_up(source, f"HTTP {answer.status}")
            return
        try:
            made = await asyncio.to_thread(master.make, answer.body)
        except NoImage as error:
            await (self._give_up if error.final else self._failed)(source, str(error))
            return
        try:
            await self._store(source, made)
        except Transient as error:  # the disk is full, say: that is not the address's fault
            raise _Rest(_TROUBLE_SECONDS, str(error)) from error

    async def _store(self, source: Source, made: Master) -> None:
        async with self._pool.connection() as conn:
            known = await images.image(conn, made.sha256)
            waiting = await images.waiting(conn, source.id, limit=_LINKED)
        paths = _paths(waiting, made.sha256)
        if not paths:
            await self._write(source, waiting, {})
            return
        image = known
        if known is None or not await asyncio.to_thread(self._files.has, known.path):
            image = Image(
                sha256=made.sha256,
                path=next(iter(paths.values())),
                width=made.width,
                height=made.height,
                bytes=len(made.data),
                source_format=made.source_format,
                source_bytes=made.source_bytes,
                colour=made.colour,
            )
        assert image is not None, "there is one, or it was made"
        await asyncio.to_thread(self._place, image.path, None if image is known else made.data, list(paths.values()))
        gone = known.path if known is not None and image is not known else None
        first = await self._write(source, waiting, paths, image, gone=gone)
        if first != image.path:
            # Somebody else stored the same picture from another address meanwhile: theirs is the one that lies on disk.
            await asyncio.to_thread(self._replace, first, list(paths.values()))
        self._on_ended("stored")
        log.info(
            "picture stored",
            action="image_stored",
            source_id=source.id,
            host=source.host,
            path=first,
            known=image is known,
            bytes=image.bytes,
        )

    async def _link_stored(self, source: Source) -> None:
        """Gives whoever came later a file of what an address is known to have."""
        assert source.sha256 is not None, "a stored source has an image"
        async with self._pool.connection() as conn:
            image = await images.image(conn, source.sha256)
            waiting = await images.waiting(conn, source.id, limit=_LINKED)
        assert image is not None, "the source refers to it"
        paths = _paths(waiting, image.sha256)
        try:
            await asyncio.to_thread(self._place, image.path, None, list(paths.values()))
        except NoFile as error:
            async with self._pool.connection() as conn:
                await images.lost(conn, source.id, str(error))
            return
        await self._write(source, waiting, paths)

    def _place(self, existing: str, data: bytes | None, paths: Sequence[str]) -> None:
        if data is not None:
            self._files.store(existing, data)
        for path in paths:
            self._files.link(existing, path)

    def _replace(self, existing: str, paths: Sequence[str]) -> None:
        for path in paths:
            if path != existing:
                self._files.remove(path)
                self._files.link(existing, path)

    async def _write(
        self,
        source: Source,
        waiting: Sequence[Use],
        paths: Mapping[int, str],
        image: Image | None = None,
        *,
        gone: str | None = None,
    ) -> str:
        """Writes down who has a file now (use → path), in one transaction with what the address has where that is news, and ends the
        claim. Returns the path of the picture's first file. Who could not be written, and who comes beyond _LINKED, is seen to in a
        moment."""
        first = ""
        async with self._pool.connection() as conn, conn.transaction():
            if image is not None:
                first = await images.stored(conn, source.id, image, gone=gone)
            dropped = [use.id for use in waiting if use.gone]
            if dropped:
                await images.drop_uses(conn, dropped)
            products = {use.product_id: paths[use.id] for use in waiting if use.product_id and use.id in paths}
            written = await catalog.set_local_images(conn, products) if products else set()
            done = {use.id for use in waiting if use.brand is not None or use.product_id in written}
            await images.uses_stored(conn, {use: path for use, path in paths.items() if use in done})
            await images.close(conn, source.id)
        return first

    async def _failed(self, source: Source, error: str) -> None:
        if source.attempts + 1 >= self._manner.tries:
            await self._give_up(source, f"{error} (tried {source.attempts + 1} times)")
            return
        wait = self._manner.backoff.delay(source.attempts, self._rng)
        async with self._pool.connection() as conn:
            await images.failed(conn, source.id, wait=wait, error=error[:_LONGEST_ERROR])
        self._on_ended("failed")
        log.info(
            "a picture could not be had; it is tried again",
            action="image_failed",
            source_id=source.id,
            host=source.host,
            attempts=source.attempts + 1,
            again_in_seconds=round(wait, 1),
            reason=error,
        )

    async def _give_up(self, source: Source, error: str) -> None:
        async with self._pool.connection() as conn:
            await images.give_up(conn, source.id, error[:_LONGEST_ERROR])
        self._on_ended("given_up")
        log.info(
            "a picture is given up",
            action="image_given_up",
            source_id=source.id,
            host=source.host,
            reason=error,
        )

    async def _put_off(self, sources: Sequence[Source], wait: float, error: str | None) -> None:
        async with self._pool.connection() as conn:
            await images.put_off(conn, [source.id for source in sources], wait=wait, error=error)


def _paths(waiting: Sequence[Use], sha256: bytes) -> dict[int, str]:
    """Where each of them has its file."""
    return {use.id: _path(use, sha256) for use in waiting if not use.gone}


def _path(use: Use, sha256: bytes) -> str:
    if use.brand is not None:
        return brand_path(brand=use.brand, sha256=sha256)
    assert use.product_id is not None, "a use is a product's or a brand's"
    return product_path(
        state=use.state, store=use.store, brand=use.brand_name, product_id=use.product_id, sha256=sha256
    )
