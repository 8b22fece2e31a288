"""The installation on the dashboard: sizes, settings without secrets, the doctor; and who looked at the site."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from menuwatch import __version__
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings, variables
from menuwatch.dashboard.app import create_dashboard
from menuwatch.dashboard.charts.bars import visitor_days
from menuwatch.db.pool import Pool
from menuwatch.ops import installation
from menuwatch.ops.backup import log as backups
from menuwatch.platforms.registry import with_settings
from menuwatch.visitors.service import VisitorDay
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from menuwatch.workers import registry
from menuwatch.workers.registry import Identity
from tests.dashboard.conftest import client
from tests.users_fixture import bearer

SECRET = "planted-secret-88"
PLATFORM_VARIABLES = {
    f"{adapter.name}_{setting}".upper()
    for adapter in with_settings()
    for setting in ("base_url", "robots", "app_id", "api_key")
}


async def test_the_newest_backup_of_each_folder_is_told(admin: httpx.AsyncClient, pool: Pool) -> None:
    assert "menuwatch restore DIR" in (await admin.get("/admin/system")).text
    moment = datetime(2026, 11, 20, 4, tzinfo=UTC)
    async with pool.connection() as conn:
        for made_at, size, missing in ((moment, 3_000_000, 1), (moment - timedelta(days=1), 7_000_000, 0)):
            await backups.note(
                conn,
                Path("/backups/weekly"),
                backup="0" * 64,
                made_at=made_at,
                count=12,
                files=1,
                size=size,
                missing=missing,
            )
    text = (await admin.get("/admin/system")).text
    assert "12 rows, 1 file" in text
    assert "1 referenced file missing" in text.replace('<span class="wrong">', "")
    backups_card = text.partition("<h2>Backups</h2>")[2].partition("</section>")[0]
    sizes = re.findall(r'<td class="num">([^<]*)</td>', backups_card)
    assert sizes == ["3.0 MB"], "an older one does not take the place of a newer one"


async def test_what_runs_here_is_said(admin: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO maintenance_runs (job, succeeded_at, attempted_at, error, duration)"
            " VALUES ('history', now(), now(), 'LockNotAvailable', '9 s'), ('logs', now(), now(), NULL, '83 s'),"
            " ('records', NULL, NULL, NULL, NULL)"
        )
    text = (await admin.get("/admin/system")).text
    assert "LockNotAvailable" in text
    card = text.partition("<h2>Maintenance</h2>")[2].partition("</section>")[0]
    assert re.findall(r'<td class="num">([^<]*)</td>', card) == ["–", "1 min 23 s", "–"]
    assert "up to date" in text
    assert "task_<wbr>history" in text
    assert "30 days" in text
    async with pool.connection() as conn:
        await conn.execute("UPDATE alembic_version SET version_num = '0000'")
    assert "The database is at revision 0000" in (await admin.get("/admin/system")).text


async def test_workers_of_another_version_are_pointed_out(admin: httpx.AsyncClient, pool: Pool) -> None:
    assert "Upgrade all of them" not in (await admin.get("/admin/system")).text
    async with pool.connection() as conn:
        for index, version in enumerate(("0.0.9", __version__, None)):
            who = Identity(worker_id=f"w{index}", friendly_name="Ada", host="box", pid=1, pod="pod-a", version=version)
            await registry.register(conn, who)
    page = (await admin.get("/admin/system")).text
    assert (
        f"This server is Menuwatch {__version__}, but 1 worker in pod-a runs 0.0.9. Upgrade all of them to the same version."
        in page
    )
    page = (await admin.get("/admin/workers")).text
    assert f"version 0.0.9, {__version__}" in page
    assert "mixed versions" in page
    assert f"this server runs {__version__}" in (await admin.get("/admin/workers/w0")).text
    assert f"version 0.0.9, {__version__}" in (await admin.get("/admin/job-queue")).text, "the card of the pod"


async def test_the_doctor_says_what_to_do(viewer: httpx.AsyncClient) -> None:
    text = (await viewer.get("/admin/system/doctor")).text
    assert "no active proxy" in text
    assert "Fix: menuwatch proxies add" in text
    assert "No worker is running: workers start once a proxy is active." in text
    assert "writable" in text


async def test_settings_show_no_secret(pool: Pool, tmp_path: Path) -> None:
    secretive = Settings(
        database_url=f"postgresql://menu:{SECRET}@db.example:5432/menus?password={SECRET}",
        secret_key=(SECRET,),
        image_url_key=(SECRET,),
        mail_url=f"mailtos://u:{SECRET}@mail.example",
        host_rate=0.25,
    )
    system = AppContext(pool=pool, archive=FileArchive(tmp_path / "storage"), platforms={}, settings=secretive)
    app = create_dashboard(system, Traffic(), Live(pool))
    async with client(Apps(api=app, dashboard=app, site=app), await bearer(pool)) as admin:
        text = (await admin.get("/admin/system/settings")).text
    assert SECRET not in text
    assert "postgresql://db.example:5432/menus" in text
    assert "0.25" in text
    assert "HOST_RATE=0.25\n" in text
    assert "# DATABASE_URL= is set and not shown" in text
    found = {one.variable: one for one in installation.settings_shown(secretive)}
    assert (found["SECRET_KEY"].value, found["MAIL_URL"].value, found["IMAGE_URL_KEY"].value) == ("set", "set", "set")
    assert (found["HOST_RATE"].value, found["HOST_RATE"].default, found["HOST_RATE"].changed) == ("0.25", "2", True)
    assert set(found) == {variable for variable, *_ in variables()} | PLATFORM_VARIABLES


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@host:1/x?token=1", "https://host:1/x"),
        ("host=db user=u password=p", "set"),
        ("/var/lib/menus", "/var/lib/menus"),
        ("http://[::1", "set"),
    ],
)
def test_an_address_is_shown_without_its_login(text: str, shown: str) -> None:
    assert installation.without_login(text) == shown


async def test_visitors_without_a_database_of_places_and_without_anybody(viewer: httpx.AsyncClient) -> None:
    text = (await viewer.get("/admin/visitors")).text
    assert "GEOIP_DATABASE" in text
    assert "No visits" in text
    assert "Do Not Track" in text


async def test_uniques_are_means_a_day_and_views_are_sums(viewer: httpx.AsyncClient, pool: Pool) -> None:
    async with pool.connection() as conn:
        await conn.execute(
            "INSERT INTO visitor_days (day, country, region, city, kind, views, uniques, arrivals) VALUES "
            "('2026-11-19', 'US', 'Arizona', 'Tempe', 'home', 30, 10, 10), "
            "('2026-11-20', 'US', 'Arizona', 'Mesa', 'home', 50, 20, 20), "
            "('2026-11-20', 'CA', 'Ontario', '<i>Toronto', 'home', 20, 6, 6)"
        )
        await conn.execute(
            "INSERT INTO visitor_pages (day, kind, page, views, uniques) VALUES ('2026-11-20', 'product', 'blue-dream', 9, 4)"
        )
    text = (await viewer.get("/admin/visitors?since=2026-11-19&until=2026-11-20")).text
    assert '<div class="value">100</div>' in text
    assert '<div class="value">18</div>' in text, "(10 + 26) / 2 days"
    assert "80.0 %" in text
    assert 'href="/p/blue-dream"' in text
    cities = (await viewer.get("/admin/visitors?since=2026-11-19&until=2026-11-20&by=city&country=CA")).text
    assert "&lt;i&gt;Toronto, Ontario, CA" in cities
    assert "Mesa" not in cities


async def test_days_that_cannot_be_are_refused_beside_the_field(viewer: httpx.AsyncClient) -> None:
    for query, why in (
        ("since=x", "is not a date"),
        ("since=2026-11-20&until=2026-11-01", "must be before until"),
        ("until=9999-12-31", "out of range"),
    ):
        answer = await viewer.get(f"/admin/visitors?{query}")
        assert answer.status_code == 422, query
        assert why in answer.text
        assert 'aria-invalid="true"' in answer.text


def _day(day: date, views: int, uniques: int) -> VisitorDay:
    return VisitorDay(day=day, views=views, daily_uniques=uniques, views_without_place=0)


def test_the_picture_of_days() -> None:
    start = date(2026, 11, 1)
    empty = [_day(start + timedelta(days=n), 0, 0) for n in range(3)]
    assert visitor_days(empty) == ""
    drawn = str(visitor_days([*empty, _day(date(2026, 11, 4), 1200, 300)]))
    assert "Views by day from 2026-11-01 to 2026-11-04: 1,200 in all, at most 1,200" in drawn
    assert "2026-11-04: 1,200 views, 300 daily uniques" in drawn


async def test_settings_are_searched_and_filtered(admin: httpx.AsyncClient) -> None:
    async def shown(query: str) -> list[str]:
        text = (await admin.get(f"/admin/system/settings?{query}")).text
        return re.findall(r'<td data-label="Setting"[^>]*><span><code class="\w*">(\w+)</code>', text)

    everything = await shown("")
    assert [variable for variable in everything if variable not in PLATFORM_VARIABLES] == [
        variable for variable, *_ in variables()
    ]
    assert set(everything) >= PLATFORM_VARIABLES
    assert set(await shown("q=weedmaps")) >= {"WEEDMAPS_BASE_URL", "WEEDMAPS_API_KEY"}
    assert await shown("q=circuit_sec") == ["CIRCUIT_SECONDS"]
    retention = await shown("q=retention+audit")
    assert retention == ["AUDIT_DAYS"], "the group and the name"
    changed = await shown("changed=1")
    assert "MENUWATCH_HOME" in changed or len(changed) < len(everything)
    assert "CIRCUIT_SECONDS" not in changed
