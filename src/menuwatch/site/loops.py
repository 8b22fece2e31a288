"""What the public site needs done beside answering: menus onto the shelf, mails out."""

from __future__ import annotations

from typing import ClassVar

from menuwatch.core.clock import Clock
from menuwatch.core.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.engine.loop import Loop
from menuwatch.operations import shopping_shelf, watches
from menuwatch.operations.watch_post import Post


class Shelf(Loop):
    """Takes in stores whose menu changed. Any number of them may run: one works, the others look in vain."""

    name: ClassVar[str] = "shelf"

    def __init__(self, pool: Pool, *, interval: float = 3.0) -> None:
        super().__init__(interval=interval)
        self._pool = pool

    async def step(self) -> float | None:
        done = await shopping_shelf.shelve(self._pool, watcher=watches.look)
        return 0.0 if done.left else None


class Postman(Loop):
    """Sends mails to shoppers."""

    name: ClassVar[str] = "postman"

    def __init__(self, pool: Pool, settings: Settings, *, clock: Clock | None = None, interval: float = 5.0) -> None:
        super().__init__(interval=interval)
        self._post = Post(pool, settings, clock=clock)

    async def step(self) -> float | None:
        return 0.0 if await self._post.send() else None
