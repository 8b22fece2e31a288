"""What requests are counted under: the dashboard and the public site both have `/`, `/stores` and more."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import generate_latest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from tests.dashboard.conftest import client
from tests.users_fixture import bearer


@pytest.mark.parametrize("prefix", ["", "/menus"])
async def test_a_screen_is_counted_below_admin(pool: Pool, tmp_path: Path, prefix: str) -> None:
    system = AppContext(
        pool=pool, archive=FileArchive(tmp_path / "storage"), platforms={"dutchie": Dutchie()}, settings=Settings()
    )
    traffic = Traffic()
    app = create_dashboard(system, traffic, Live(pool))
    async with client(Apps(api=app, dashboard=app, site=app, prefix=prefix), await bearer(pool)) as http:
        assert (await http.get(f"{prefix}/admin/stores")).status_code == 200
        assert (await http.get(f"{prefix}/admin/stores/7")).status_code == 404
        assert (await http.get(f"{prefix}/admin/nowhere")).status_code == 404
    counted = generate_latest(traffic.registry).decode()
    for route, status in (("/admin/stores", 200), ("/admin/stores/{store_id}", 404), ("unmatched", 404)):
        assert f'menuwatch_http_requests_total{{method="GET",route="{route}",status="{status}"}} 1.0' in counted, (
            counted
        )
