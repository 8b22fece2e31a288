"""The dashboard without a browser: its app on a fresh database, asked by people of each role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.core.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.web.faces import Faces
from menuwatch.web.live import Live
from menuwatch.web.observe import Traffic
from menuwatch.web.system import System
from tests.people import bearer

ORIGIN = "http://menuwatch"


@pytest.fixture
def faces(pool: Pool, tmp_path: Path) -> Faces:
    return alone(pool, tmp_path)


def alone(pool: Pool, tmp_path: Path) -> Faces:
    """The dashboard below /admin, alone."""
    system = System(
        pool=pool, archive=FileArchive(tmp_path / "storage"), platforms={"dutchie": Dutchie()}, settings=Settings()
    )
    app = create_dashboard(system, Traffic(), Live(pool))
    return Faces(api=app, dashboard=app, site=app)


@pytest.fixture
async def admin(faces: Faces, pool: Pool) -> Any:
    """A client of an admin. Nobody follows redirects for it."""
    async with client(faces, await bearer(pool)) as made:
        yield made


@pytest.fixture
async def viewer(faces: Faces, pool: Pool) -> Any:
    """A client of somebody who may only look."""
    async with client(faces, await bearer(pool, name="looker", role="viewer", scopes=["read"])) as made:
        yield made


def client(faces: Faces, headers: dict[str, str]) -> httpx.AsyncClient:
    """A client with those headers."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(faces), base_url=ORIGIN, headers=headers)
