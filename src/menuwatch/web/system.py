"""What the app is given to work with, and how routes get at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from menuwatch.archive.files import FileArchive
from menuwatch.cluster.base import Scaler
from menuwatch.core.settings import Settings
from menuwatch.crawls.base import Provider, Site
from menuwatch.db.pool import Connection, Pool
from menuwatch.geo.database import GeoDatabase
from menuwatch.platforms.base import Platform
from menuwatch.web.visit_log import VisitLog


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The parts that the faces stand on. `platforms` are the adapters by name. `geo` tells where addresses are, where a database of
    that is set; `visits` takes what visitors looked at, where somebody writes it down; `scaler` can have more or fewer workers run.
    `sites` and `providers` are those of search crawls by name, the ones that are usual first."""

    pool: Pool
    archive: FileArchive
    platforms: Mapping[str, Platform]
    settings: Settings
    geo: GeoDatabase | None = None
    visits: VisitLog | None = None
    scaler: Scaler | None = None
    sites: Mapping[str, Site] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)


def _system(request: Request) -> System:
    system: System = request.app.state.system
    return system


Sys = Annotated[System, Depends(_system)]


async def _reading(system: Sys) -> AsyncIterator[Connection]:
    async with system.pool.connection(timeout=10) as conn:
        yield conn


async def _writing(system: Sys) -> AsyncIterator[Connection]:
    async with system.pool.connection(timeout=10) as conn, conn.transaction():
        yield conn


Reading = Annotated[Connection, Depends(_reading, scope="function")]
"""A connection for a route that changes nothing."""

Writing = Annotated[Connection, Depends(_writing, scope="function")]
"""A connection in the one transaction of the request: it is committed before the answer is sent, and rolled back on any error."""
