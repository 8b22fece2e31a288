"""A small site behind the counter, on a fresh database, with a database of places and a clock that is moved by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from menuwatch.core.clock import ManualClock
from menuwatch.db.pool import Pool
from menuwatch.geo.database import GeoDatabase
from menuwatch.web.routing import Head
from menuwatch.web.visit_log import VisitLog
from menuwatch.web.visits import CountVisits
from tests.geo import mmdb_file

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
BROWSER = {
    "user-agent": CHROME,
    "accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
    "accept-language": "en-US,en;q=0.9",
    "sec-fetch-dest": "document",
}
PHOENIX, TUCSON, LONDON, OSLO, UNKNOWN = "93.184.216.34", "93.184.217.34", "81.2.69.142", "2a02:cf40::5", "8.8.8.8"
PROXY = "10.0.0.1"


async def _page(request: Request) -> Response:
    return HTMLResponse("<!doctype html><title>x</title>")


async def _other(request: Request) -> Response:
    return {
        "data": JSONResponse({}),
        "gone": HTMLResponse("<!doctype html>", status_code=404),
        "moved": RedirectResponse("/"),
        "same": Response(status_code=304),
        "posted": HTMLResponse("<!doctype html>"),
    }[request.path_params["what"]]


def _fault(_request: Request) -> Response:
    raise RuntimeError("a page that breaks")


ROUTES = [
    Route("/other/{what}", _other, methods=["GET", "POST"]),
    Route("/fault", _fault),
    Route("/{path:path}", _page),
]


@dataclass
class Site:
    """Asks for pages as browsers do, and looks at what was counted."""

    pool: Pool
    log: VisitLog
    clock: ManualClock
    app: Any

    async def look(
        self, path: str = "/", *, peer: str = PHOENIX, method: str = "GET", **headers: str | None
    ) -> httpx.Response:
        """A request from `peer`; headers are those of a browser but for what is said here (None: without it)."""
        sent = {**BROWSER, **{name.replace("_", "-"): value for name, value in headers.items()}}
        transport = httpx.ASGITransport(self.app, client=(peer, 50000), raise_app_exceptions=False)
        # httpx has headers of its own, which a browser has not.
        async with httpx.AsyncClient(transport=transport, base_url="http://menus.example") as http:
            http.headers.clear()
            return await http.request(method, path, headers={k: v for k, v in sent.items() if v is not None})

    async def rows(self, query: str, *values: Any) -> list[Any]:
        """Writes what waits, then asks the database."""
        await self.log.step()
        async with self.pool.connection() as conn:
            return await (await conn.execute(query.encode(), values)).fetchall()

    async def days(self) -> list[Any]:
        """(day, country, region, city, kind, views, uniques, arrivals)."""
        return await self.rows("SELECT * FROM visitor_days ORDER BY day, country, region, city, kind")


def places(path: Path) -> GeoDatabase:
    """Phoenix, Tucson, London, and somewhere in Norway."""
    mmdb_file.write(
        path,
        {
            "93.184.216.0/24": mmdb_file.city("US", "Arizona", "Phoenix", (33.4484, -112.074)),
            "93.184.217.0/24": mmdb_file.city("US", "Arizona", "Tucson"),
            "81.2.69.0/24": mmdb_file.city("GB", "England", "London", (51.5, -0.125)),
            "2a02:cf40::/29": mmdb_file.city("NO"),
        },
    )
    return GeoDatabase(path)


def counting(
    pool: Pool, geo: GeoDatabase | None, clock: ManualClock, kind: type[VisitLog] = VisitLog, **more: Any
) -> Site:
    """The site as one server has it."""
    log = kind(pool, geo, clock=clock, **more)
    app = CountVisits(Head(Starlette(routes=ROUTES)), log, trusted=(ip_network("10.0.0.0/8"),))
    return Site(pool, log, clock, app)


@pytest.fixture
def geo(tmp_path: Path) -> GeoDatabase:
    return places(tmp_path / "places")


@pytest.fixture
async def site(pool: Pool, geo: GeoDatabase) -> Site:
    return counting(pool, geo, ManualClock(NOON))
