"""Every service that can fetch here, by name; the first is meant where nothing is said."""

from __future__ import annotations

from contextlib import AsyncExitStack

from menuwatch.core.clock import Clock
from menuwatch.core.settings import Settings
from menuwatch.crawls.base import Provider
from menuwatch.db.pool import Pool
from menuwatch.providers.identities import Identities
from menuwatch.providers.serpwatch import SerpWatch


def providers(settings: Settings, pool: Pool, clock: Clock, at_end: AsyncExitStack) -> dict[str, Provider]:
    """Services that are set up, and our own identities behind them. Raises Refused for a token that cannot be one."""
    found: dict[str, Provider] = {}
    if settings.serpwatch_token:
        serpwatch = SerpWatch(settings.serpwatch_token, address=settings.serpwatch_url, clock=clock)
        at_end.push_async_callback(serpwatch.close)
        found[serpwatch.name] = serpwatch
    own = Identities(pool, clock=clock)
    found[own.name] = own
    return found
