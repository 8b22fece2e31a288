"""Handlers by role, including `analytics_refresh`, and the robots.txt policy of the hosts that they request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from menuwatch.analytics.refresh import RefreshRunning, refresh
from menuwatch.config.settings import Settings
from menuwatch.core.postpone import PostponeCode
from menuwatch.fetch.robots import Policy
from menuwatch.pipeline.context import AttemptContext, HandlerContext
from menuwatch.pipeline.payload_fetch import PayloadFetch
from menuwatch.pipeline.product_refresh import ProductRefresh
from menuwatch.pipeline.store_discovery import EntryPointDiscovery, StoreDiscovery
from menuwatch.platforms.base import Platform
from menuwatch.platforms.registry import settings_of
from menuwatch.queue.model import Role, Task
from menuwatch.queue.outcome import Done, Outcome, Postpone
from menuwatch.search_crawl.protocols import Site

_AGAIN = timedelta(minutes=1)


class AnalyticsRefresh:
    """Refreshes the reports. They are derived and published all at once, so a lost or repeated task does no harm; they are therefore
    not written in the transaction that completes the task.
    """

    def __init__(self, context: HandlerContext) -> None:
        self._context = context

    async def __call__(self, task: Task, _ctx: object) -> Outcome:
        run = await refresh(self._context.pool, window=self._context.analytics_window)
        if isinstance(run, RefreshRunning):
            # Data that changed since may already have been read.
            return Postpone(
                reason="another refresh of the figures is running", code=PostponeCode.REFRESH_RUNNING, after=_AGAIN
            )
        return Done(
            result={
                "run_id": run.run_id,
                "seconds": round(run.seconds, 3),
                "rows": {step.step: step.rows for step in run.steps},
            }
        )


class Work(Protocol):
    """Handler protocol of this package: the engine's `Handler` with a richer context."""

    async def __call__(self, task: Task, ctx: AttemptContext, /) -> Outcome: ...


def handlers(context: HandlerContext) -> Mapping[Role, Work]:
    """Handler by role, for every role of this version."""
    return {
        Role.STORE_DISCOVERY: StoreDiscovery(context),
        Role.ENTRY_POINT_DISCOVERY: EntryPointDiscovery(context),
        Role.PRODUCT_DISCOVERY: PayloadFetch(context, first=True),
        Role.PAYLOAD_FETCH: PayloadFetch(context),
        Role.PRODUCT_REFRESH: ProductRefresh(context),
        Role.ANALYTICS_REFRESH: AnalyticsRefresh(context),
    }


def robots_policy(
    platforms: Mapping[str, Platform], settings: Settings, sites: Mapping[str, Site] | None = None
) -> Callable[[str], Policy | None]:
    """The robots.txt policy of each host of platforms and shop sites; None for other hosts, whose policy is that of their session."""
    by_platform = platform_policies(platforms, settings)
    by_host = {host: by_platform[name] for name, platform in platforms.items() for host in platform.hosts}
    searched = {"cj": Policy(settings.cj_robots == "respect", "CJ_ROBOTS")}
    by_host |= {host: searched.get(name, Policy()) for name, site in (sites or {}).items() for host in site.hosts}
    return by_host.get


def platform_policies(platforms: Mapping[str, Platform], settings: Settings) -> dict[str, Policy]:
    """The robots.txt policy of each platform, for all hosts that its menus are requested from."""
    return {
        name: Policy(settings_of(settings, platform).robots == "respect", f"{name.upper()}_ROBOTS")
        for name, platform in platforms.items()
    }
