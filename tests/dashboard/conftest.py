"""The dashboard without a browser: its app on a fresh database, asked by people of each role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.users_fixture import bearer

ORIGIN = "http://menuwatch"


Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def sql(database_url: str) -> Sql:
    """Runs a statement; the rows, if it gives any."""

    def run(statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(database_url, autocommit=True) as conn:
            cursor = conn.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture
def apps(pool: Pool, tmp_path: Path) -> Apps:
    return alone(pool, tmp_path)


def alone(pool: Pool, tmp_path: Path, *, demo_token: str | None = None) -> Apps:
    """The dashboard below /admin, alone."""
    system = AppContext(
        pool=pool,
        archive=FileArchive(tmp_path / "storage"),
        platforms={"dutchie": Dutchie()},
        settings=Settings(),
        demo_token=demo_token,
    )
    app = create_dashboard(system, Traffic(), Live(pool))
    return Apps(api=app, dashboard=app, site=app)


@pytest.fixture
async def admin(apps: Apps, pool: Pool) -> Any:
    """A client of an admin. Nobody follows redirects for it."""
    async with client(apps, await bearer(pool)) as made:
        yield made


@pytest.fixture
async def viewer(apps: Apps, pool: Pool) -> Any:
    """A client of somebody who may only look."""
    async with client(apps, await bearer(pool, name="looker", role="viewer", scopes=["read"])) as made:
        yield made


def client(apps: Apps, headers: dict[str, str]) -> httpx.AsyncClient:
    """A client with those headers."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(apps), base_url=ORIGIN, headers=headers)
