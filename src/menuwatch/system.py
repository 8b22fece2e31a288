"""The parts that every process shares, opened in the order in which a start must happen.

database up → migrations → storage check → orphan clean-up → ready. What goes on running is in bootstrap.py: commands that end do not
load it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from menuwatch.archive.files import FileArchive
from menuwatch.archive.service import recover_archive
from menuwatch.config.platforms import ENTRY_POINTS
from menuwatch.config.settings import Settings
from menuwatch.core.clock import Clock
from menuwatch.core.logging import get_logger
from menuwatch.db import embedded, migrate
from menuwatch.db.clock import ClockReader, DatabaseClock
from menuwatch.db.keeper import Keeper
from menuwatch.db.keeper import keeping as keeping_database
from menuwatch.db.loop import running
from menuwatch.db.pool import Pool, open_pool
from menuwatch.ops.backup.mark import refuse_unfinished
from menuwatch.storage.service import open_storage

if TYPE_CHECKING:
    from menuwatch.fetch.browser import Profile
    from menuwatch.platforms.base import Platform
    from menuwatch.search_crawl.protocols import Provider, Site

log = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class System:
    """The parts that commands, the server and the workers share. What few commands use is made, and imported, at its first use."""

    settings: Settings
    database_url: str
    pool: Pool
    archive: FileArchive
    clock: Clock
    at_end: AsyncExitStack
    """Closed with it."""
    keeper: Keeper | None = None
    """What restarts the embedded database; None for DATABASE_URL and for commands that end."""

    @cached_property
    def platforms(self) -> Mapping[str, Platform]:
        """The adapters by name, imported at the first use. Raises Refused for unusable settings."""
        from menuwatch.platforms import registry

        return registry.platforms(self.settings)

    @cached_property
    def profiles(self) -> Sequence[Profile]:
        """The browsers that identities are made of. Raises Refused for an unusable PROFILES_FILE."""
        from menuwatch.fetch import profiles

        return profiles.load(self.settings.profiles_file).profiles

    @cached_property
    def sites(self) -> Mapping[str, Site]:
        """The shop sites of search crawls."""
        from menuwatch.search_crawl.setup import build_sites

        return build_sites(self.settings)

    @cached_property
    def providers(self) -> Mapping[str, Provider]:
        """Who fetches pages for search crawls."""
        from menuwatch.search_crawl.setup import build_providers

        return build_providers(self.settings, self.pool, self.clock, self.at_end)


@asynccontextmanager
async def open_system(
    settings: Settings,
    *,
    clock: Clock | None = None,
    pool_size: int = 10,
    goes_on: bool = False,
    read_only: bool = False,
) -> AsyncIterator[System]:
    """Opens all parts; raises Refused if one cannot be.

    A process that `goes_on` restarts the embedded database when it dies; a command that ends fails with it. One that is `read_only`
    changes nothing: it refuses a database with an old schema instead of migrating it, and leaves the archive alone.
    """
    refuse_unfinished(open_storage(settings))
    with embedded.database_url(settings) as url, keeping_database(settings) if goes_on else nullcontext() as keeper:
        archive = FileArchive(open_storage(settings), level=settings.archive_level)
        if read_only:
            migrate.require_newest(url)
        else:
            migrated = await asyncio.to_thread(migrate.migrate, url)
            if migrated.changed:
                log.info("database migrated", action="migrated", before=migrated.before, after=migrated.after)
            log.info("database schema is current", action="start_migrated", revision=migrated.after)
            await asyncio.to_thread(archive.check)
            log.info("storage is writable", action="start_storage_checked")
        async with open_pool(url, max_size=pool_size) as pool, AsyncExitStack() as at_end:
            if not read_only:
                published, removed = await recover_archive(pool, archive)
                log.info(
                    "archive orphans cleaned", action="start_orphans_cleaned", published=published, removed=removed
                )
            if clock is None:
                reader = ClockReader(pool, clock := DatabaseClock())
                await reader.step()
                await at_end.enter_async_context(running(reader))
            _warn_of_unusable_platforms()
            yield System(
                settings=settings,
                database_url=url,
                pool=pool,
                archive=archive,
                clock=clock,
                at_end=at_end,
                keeper=keeper,
            )


def _warn_of_unusable_platforms() -> None:
    if not entry_points(group=ENTRY_POINTS):
        return  # and most commands need not import the adapters
    from menuwatch.platforms import registry

    for unusable in registry.installed()[1]:
        log.warning(
            f"{unusable}; its stores are not crawled",
            action="platform_unusable",
            platform=unusable.name,
            package=unusable.package,
        )


async def ensure_default_schedules(system: System) -> int:
    """Creates the schedules that every installation has, where they are missing; returns how many."""
    from menuwatch.queue.schedules import store as schedules
    from menuwatch.queue.schedules.model import default_schedules

    async with system.pool.connection() as conn:
        crawled = [name for name, platform in system.platforms.items() if platform.requested]
        unlisted = [name for name in crawled if not system.platforms[name].lists_stores]
        return await schedules.create_missing(conn, system.clock.now(), default_schedules(crawled, unlisted))
