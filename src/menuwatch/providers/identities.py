"""The provider that needs no service: our own workers fetch the pages, with the identities, budgets and manners of every other
request.

An order is a row; the page comes back as a delivery like any other (engine/crawl_fetches.py)."""

from __future__ import annotations

from typing import ClassVar

from menuwatch.core.clock import Clock, SystemClock
from menuwatch.crawls import deliveries
from menuwatch.crawls.base import BadWebhook, Delivery, Order, OrderRefused
from menuwatch.crawls.reference import parse
from menuwatch.db.pool import Pool


class Identities:
    """Fetches by our own workers."""

    name: ClassVar[str] = "identities"
    needs_webhook: ClassVar[bool] = False

    def __init__(self, pool: Pool, *, clock: Clock | None = None) -> None:
        self._pool = pool
        self._clock = clock or SystemClock()

    async def submit(self, order: Order) -> str | None:
        """Notes the order for a worker; returns its number."""
        reference = parse(order.reference)
        if reference is None:
            raise OrderRefused("the order has no reference of ours", final=True)
        async with self._pool.connection() as conn:
            made = await deliveries.order_fetch(
                conn, reference, url=order.url, country=order.country, now=self._clock.now()
            )
        return None if made is None else str(made)

    def read_webhook(self, body: object) -> list[Delivery]:
        """Nobody calls for it."""
        raise BadWebhook("our own workers call no webhook")
