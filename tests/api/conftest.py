"""The app on a fresh database and archive."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from menuwatch.api.app import AppContext, bare_app, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.platforms.base import Platform
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.search_crawl.providers.identities import Identities
from menuwatch.search_crawl.setup import build_sites
from tests.api.shop import START, Shop
from tests.users_fixture import bearer


@pytest.fixture
def platforms() -> dict[str, Platform]:
    return {"dutchie": Dutchie()}


@pytest.fixture
def archive(tmp_path: Path) -> FileArchive:
    return FileArchive(tmp_path / "storage")


@pytest.fixture
def app(pool: Pool, archive: FileArchive, platforms: dict[str, Platform]) -> FastAPI:
    settings = Settings()
    own = Identities(pool)
    return create_app(
        AppContext(
            pool=pool,
            archive=archive,
            platforms=platforms,
            settings=settings,
            sites=build_sites(settings),
            providers={own.name: own},
        )
    )


@functools.cache
def description() -> dict[str, Any]:
    """What the API says of itself. Made once: that takes longer than most tests."""
    return bare_app().openapi()


@pytest.fixture
async def shop(app: FastAPI, pool: Pool, archive: FileArchive, platforms: dict[str, Platform]) -> AsyncIterator[Shop]:
    """A client of the app, with the means to give it something to show."""
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://menuwatch", headers=await bearer(pool)
    ) as http:
        yield Shop(pool=pool, archive=archive, platforms=platforms, http=http, description=description())
