"""Pictures as they are asked for: found, perhaps made anew, kept, and made only once however many ask at the same time.

path, parameters, Accept → (file's identity, format) → entity tag ─ the client has it → 304, nothing was read
                                                          └─ being made already → the same result
                                                          └─ kept on disk → that
                                                          └─ read, decoded, encoded in a thread, kept
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256

from menuwatch.core.errors import MenuwatchError
from menuwatch.imaging import vips
from menuwatch.imaging.accept import negotiate
from menuwatch.imaging.derived import Derived
from menuwatch.imaging.files import ImageFiles
from menuwatch.imaging.params import Format, Params
from menuwatch.imaging.transform import MEDIA_TYPES, VERSION, placeholder, transform

MOST_WAITING = 100
"""Different results that are being made or wait for it; who comes then is asked to come again."""


class Busy(MenuwatchError):
    """Too much is being made at the moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One that could be sent. `forever`: under this address it never changes. `negotiated`: the Accept header had its say."""

    etag: str
    media_type: str
    forever: bool
    negotiated: bool
    path: str
    identity: str
    params: Params
    target: Format
    as_stored: bool


class Pictures:
    """The pictures of one storage root. `threads`: how many are made at the same time."""

    def __init__(self, files: ImageFiles, derived: Derived, *, threads: int = 2) -> None:
        self._files = files
        self._derived = derived
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="images")
        self._making: dict[str, asyncio.Task[bytes]] = {}
        self._version: str | None = None
        self.made = 0
        """Results that were decoded and encoded, and not found."""

    @property
    def derived(self) -> Derived:
        """Where results are kept."""
        return self._derived

    def close(self) -> None:
        """Ends the threads once they have ended what they do."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def find(self, path: str, params: Params, accept: str | None) -> Picture:
        """Looks whether it is there, and reads nothing. Raises BadPath, NoFile."""
        target = params.format or negotiate(accept, unchanged=params.changes_nothing)
        identity, hashed = await asyncio.to_thread(self._identity, path)
        return await self._picture(path, params, target, identity, forever=hashed)

    async def stand_in(self, params: Params, accept: str | None) -> Picture:
        """The placeholder for a picture that is missing."""
        target = params.format or negotiate(accept)
        return await self._picture("", params, target, "placeholder", forever=False)

    def _identity(self, path: str) -> tuple[str, bool]:
        with self._files.find(path) as found:
            return found.identity, found.hashed

    async def _picture(self, path: str, params: Params, target: Format, identity: str, *, forever: bool) -> Picture:
        if self._version is None:
            self._version = f"{await asyncio.to_thread(vips.version)}/{VERSION}"
        as_stored = params.changes_nothing and target == "webp" and path.endswith(".webp")
        made = "stored" if as_stored else f"{self._version}?{params.made_as(target).canonical()}"
        return Picture(
            etag=f'"{sha256(f"{identity} {made}".encode()).hexdigest()[:32]}"',
            media_type=MEDIA_TYPES[target],
            forever=forever,
            negotiated=params.format is None,
            path=path,
            identity=identity,
            params=params,
            target=target,
            as_stored=as_stored,
        )

    async def data(self, picture: Picture) -> bytes:
        """Its bytes. Raises NoFile, NoImage, BadParameters, Busy."""
        key = sha256(f"{picture.etag} {picture.path if picture.as_stored else ''}".encode()).hexdigest()
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= MOST_WAITING:
                raise Busy("more pictures are being resized than this server can; try again in a moment")
            making = self._making[key] = asyncio.create_task(self._run(key, picture), name="picture")
            making.add_done_callback(lambda done: self._ended(key, done))
        # Whoever goes away leaves it to the others, and to the next one who asks.
        return await asyncio.shield(making)

    def _ended(self, key: str, done: asyncio.Task[bytes]) -> None:
        self._making.pop(key, None)
        if not done.cancelled():
            done.exception()  # whoever waited has got it; if nobody did, nobody need hear of it

    async def _run(self, key: str, picture: Picture) -> bytes:
        loop = asyncio.get_running_loop()
        if picture.as_stored:
            return await loop.run_in_executor(self._pool, self._stored, picture)
        return await loop.run_in_executor(self._pool, self._result, key, picture)

    def _stored(self, picture: Picture) -> bytes:
        with self._files.find(picture.path) as found:
            return found.read()

    def _result(self, key: str, picture: Picture) -> bytes:
        kept = self._derived.get(key)
        if kept is not None:
            return kept
        self.made += 1
        if picture.identity == "placeholder":
            data = placeholder(picture.params, picture.target)
        else:
            data = transform(self._stored(picture), picture.params, picture.target)
        self._derived.put(key, data)
        return data
