"""Whether a store may still be asked. `crawl_enabled = false` wins over everything, also over a task that is under way."""

from __future__ import annotations

import time

from menuwatch.core.errors import Permanent
from menuwatch.db.pool import Pool
from menuwatch.stores import store as stores

LOOK_SECONDS = 1.0
"""A store that is disabled while it is asked is asked for no longer than this."""


class Permission:
    """One task's. Called right before each request: a task may have waited for its turn for a long time."""

    def __init__(self, pool: Pool, store_id: int) -> None:
        self._pool = pool
        self._store_id = store_id
        self._looked = time.monotonic()

    async def __call__(self) -> None:
        """Raises Permanent where the store may not be contacted any more. Whoever made this had just looked."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        async with self._pool.connection() as conn:
            store = await stores.get(conn, self._store_id)
        if store is None:
            raise Permanent(f"store {self._store_id} was removed meanwhile")
        if not store.crawl_enabled:
            raise Permanent(
                f"store {store.id} ({store.name}) has crawl_enabled = false since this task began: nothing more is asked"
            )
        self._looked = time.monotonic()
