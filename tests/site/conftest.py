"""The public site on a fresh database, with stores whose menus go through the real pipeline and into the storefront index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.site.app import create_site
from menuwatch.web.dependencies import AppContext
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.api.shop import START, Shop
from tests.site.shop_pages import Front


@pytest.fixture
def prefix() -> str:
    """The path below which everything lies; tests of a prefix override it."""
    return ""


@pytest.fixture
def settings(tmp_path: Path, prefix: str) -> Settings:
    """Pages are not kept: tests read them right after a change."""
    return Settings(home=tmp_path, public_url=f"http://menus.example{prefix}", site_cache_mb=0)


@pytest.fixture
async def front(pool: Pool, tmp_path: Path, settings: Settings, prefix: str) -> AsyncIterator[Front]:
    """A shopper's view."""
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_product_history_partition(%s)", [START])
    archive, platforms = FileArchive(tmp_path / "storage"), {"dutchie": Dutchie()}
    site = create_site(AppContext(pool=pool, archive=archive, platforms=platforms, settings=settings), Traffic())
    app = Apps(api=site, dashboard=site, site=site, prefix=prefix)
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://menus.example{prefix}") as http:
        shop = Shop(pool=pool, archive=archive, platforms=platforms, http=http, description={})
        yield Front(shop=shop, http=http, settings=settings)
