"""Which handler does which role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from menuwatch.pipeline.analytics_refresh import AnalyticsRefresh
from menuwatch.pipeline.entry_point_discovery import EntryPointDiscovery
from menuwatch.pipeline.parts import Context, Parts
from menuwatch.pipeline.payload_fetch import PayloadFetch
from menuwatch.pipeline.product_refresh import ProductRefresh
from menuwatch.pipeline.store_discovery import StoreDiscovery
from menuwatch.tasks.model import Role, Task
from menuwatch.tasks.outcome import Outcome


class Work(Protocol):
    """What every handler here is: the engine's `Handler`, whose context can do more."""

    async def __call__(self, task: Task, ctx: Context, /) -> Outcome: ...


def handlers(parts: Parts) -> Mapping[Role, Work]:
    """Role → handler, for every role that this version does."""
    return {
        Role.STORE_DISCOVERY: StoreDiscovery(parts),
        Role.ENTRY_POINT_DISCOVERY: EntryPointDiscovery(parts),
        Role.PRODUCT_DISCOVERY: PayloadFetch(parts, first=True),
        Role.PAYLOAD_FETCH: PayloadFetch(parts),
        Role.PRODUCT_REFRESH: ProductRefresh(parts),
        Role.ANALYTICS_REFRESH: AnalyticsRefresh(parts),
    }
