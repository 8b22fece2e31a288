"""What the app is given to work with, and how routes get at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.keeper import Keeper
from menuwatch.db.pool import Connection, Pool
from menuwatch.geo.database import GeoDatabase
from menuwatch.hosts.hourly import HourBook
from menuwatch.platforms.base import Platform
from menuwatch.scaling.model import Scaler
from menuwatch.search_crawl.protocols import Provider, Site
from menuwatch.web.visit_log import VisitLog


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """Dependencies shared by the apps. `platforms` are the adapters by name. `geo` locates addresses if a geography database is
    configured; `visits` collects page views where a writer runs; `scaler` sets the number of workers. `sites` and `providers`
    are those of search crawls by name, the default first. `keeper` restarts the embedded database. `demo_token` is the secret of a
    demo's login link. `host_hours` caches counts of requests."""

    pool: Pool
    archive: FileArchive
    platforms: Mapping[str, Platform]
    settings: Settings
    geo: GeoDatabase | None = None
    visits: VisitLog | None = None
    scaler: Scaler | None = None
    sites: Mapping[str, Site] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    keeper: Keeper | None = None
    demo_token: str | None = None
    host_hours: HourBook = field(default_factory=HourBook)


def _system(request: Request) -> AppContext:
    system: AppContext = request.app.state.system
    return system


AppDep = Annotated[AppContext, Depends(_system)]


async def _reading(system: AppDep) -> AsyncIterator[Connection]:
    async with system.pool.connection(timeout=10) as conn:
        yield conn


async def _writing(system: AppDep) -> AsyncIterator[Connection]:
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        yield conn


ReadConn = Annotated[Connection, Depends(_reading, scope="function")]
"""A connection for a route that changes nothing."""

WriteConn = Annotated[Connection, Depends(_writing, scope="function")]
"""A connection in the one transaction of the request: it is committed before the answer is sent, and rolled back on any error."""
