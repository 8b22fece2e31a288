"""Workers on the dashboard: what is said of them, who may tell them what, and how many one may ask for."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Connection, Pool
from menuwatch.scaling.local import LocalScaler
from menuwatch.scaling.model import ScaleStatus
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps
from menuwatch.workers import service as workers
from tests.dashboard.conftest import client
from tests.dashboard.worker_rows import enter, hold, sent_commands
from tests.users_fixture import bearer

RESOURCES = {
    "memory_mb": 1536,
    "memory_total_mb": 2048,
    "memory_rss_mb": 512,
    "memory_percent": 75.0,
    "cpu_percent": 97.0,
    "process_cpu_percent": 12.0,
}


async def test_without_workers_it_says_how_to_start_some(admin: httpx.AsyncClient, pool: Pool) -> None:
    page = (await admin.get("/admin/workers")).text
    assert "Workers start once a proxy is active." in page
    assert 'href="/admin/proxies/add">Add a proxy</a>' in page
    async with pool.connection() as conn:
        await conn.execute("INSERT INTO proxies (host, port) VALUES ('127.0.0.9', 9)")
    page = (await admin.get("/admin/workers")).text
    assert "No worker is running" in page
    assert "menuwatch worker --workers 5" in page
    assert "Queue empty: no more workers needed." in page


async def test_states_tasks_and_reasons_are_shown(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", max_concurrent_tasks=4, resources=RESOURCES)
    await enter(pool, "bruno", status="backing_off", resources={**RESOURCES, "backoff_reason": "memory at <97> %"})
    await enter(pool, "cleo", silent=300)
    await enter(pool, "dario", pod=None, status="paused")
    await enter(pool, "edda", status="stopped")
    number = await hold(pool, "ada")
    page = (await admin.get("/admin/workers")).text
    assert "3 workers in 2 pods; 1 of 6 slots busy." in page
    assert re.search(
        rf'<strong>1/4</strong></a><span><span class="line clip"><a href="/admin/tasks/{number}">analytics_refresh',
        page,
    )
    assert 'href="/admin/tasks?q=worker%3Aada"' in page
    assert "memory at &lt;97&gt; %" in page
    assert 'aria-label="Pod box"' in page  # a worker without a pod stands with its host
    assert '25.0 % of the limit" class="nowrap">512 MiB' in page
    assert 'aria-label="CPU of the process 12 %"><rect class="good"' in page
    assert page.count("machine: CPU 97 %, memory 75 %") == 1, "once for the pod"
    assert "ada · box, pid 7" in page
    silent = (await admin.get("/admin/workers?state=silent")).text
    assert "/admin/workers/cleo" in silent
    assert '/admin/workers/ada"' not in silent
    assert "No worker is stopping" in (await admin.get("/admin/workers?state=stopping")).text
    assert "/admin/workers/edda" in page  # among those that stopped


async def test_what_a_worker_finished_in_the_last_hour(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", max_concurrent_tasks=4)
    async with pool.connection() as conn:
        await conn.execute("SELECT ensure_task_history_partition(now() - interval '2 hours')")
        await conn.execute("UPDATE worker_registry SET started_at = now() - interval '20 minutes'")
        await conn.execute(
            "INSERT INTO task_history (id, role, status, worker_id, attempt, priority, retry_count, max_retries, "
            "postpone_count, payload, error_message, platform, created_at, "
            "started_at, completed_at) "
            "SELECT n, 'payload_fetch', CASE WHEN n <= 3 THEN 'failed' WHEN n = 4 THEN 'cancelled' ELSE 'completed' END, "
            "CASE WHEN n = 30 THEN 'bruno' ELSE 'ada' END, 1, 0, 0, 3, 0, '{}', CASE WHEN n <= 4 THEN 'x' END, 'dutchie', "
            "now() - interval '3 hours', "
            "now() - interval '2 hours', "
            "CASE WHEN n = 29 THEN now() - interval '61 minutes' ELSE now() - interval '7 minutes' END "
            "FROM generate_series(1, 30) n"
        )
        found = (await workers.get_worker(conn, "ada")).last_hour
    assert (found.completed, found.failed) == (24, 3), "28 without the cancelled one and the one of an hour ago"
    assert found.finished == [0] * 10 + [27, 0]
    assert found.tasks_per_minute == 1.35, "27 in 20 minutes"
    assert found.failure_rate == pytest.approx(1 / 9)
    for path in ("/admin/workers", "/admin/workers/ada"):
        page = (await admin.get(path)).text
        assert "11.1 % failed" in page
        assert "0, 27, 0" in page


async def test_a_body_of_somebody_elses_making_is_no_error(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "odd", max_concurrent_tasks=2, resources=["full"], paused_roles="all")
    page = (await admin.get("/admin/workers")).text
    assert "0/1" in page, page[page.index("<main") :]


async def test_a_worker_is_told_and_that_it_has_not_taken_it_is_shown(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada")
    answer = await admin.post(
        "/admin/workers/ada/pause", headers={"Referer": "http://menuwatch/admin/workers?pod=Xylos"}
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/admin/workers?pod=Xylos")
    assert await sent_commands(pool) == [("ada", "pause", "tester")]
    assert "pause sent, not acknowledged yet" in (await admin.get("/admin/workers")).text
    page = (await admin.get("/admin/workers/ada")).text
    assert "not acknowledged yet" in page
    assert "No tasks in the last 3 hours" in page
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_commands SET acknowledged_at = created_at + interval '4 seconds'")
    page = (await admin.get("/admin/workers/ada")).text
    assert "acknowledged after 4 s" in page
    assert "not acknowledged yet" not in page


async def test_a_referer_that_is_no_address_leads_to_the_list(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada")
    answer = await admin.post("/admin/workers/ada/pause", headers={"Referer": "http://[::1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/admin/workers")


async def test_a_whole_pod_is_told_but_those_that_do_not_hear(admin: httpx.AsyncClient, pool: Pool) -> None:
    for name in ("ada", "bruno"):
        await enter(pool, name)
    await enter(pool, "cleo", silent=300)
    await enter(pool, "dario", status="stopping")
    await enter(pool, "edda", pod="Kryll")
    assert (await admin.post("/admin/workers/pod", data={"pod": "Xylos", "command": "decommission"})).status_code == 303
    assert await sent_commands(pool) == [("ada", "decommission", "tester"), ("bruno", "decommission", "tester")]
    answer = await admin.post("/admin/workers/pod", data={"pod": "Nowhere", "command": "pause"})
    assert answer.status_code == 303
    page = (await admin.get("/admin/workers")).text
    assert "Nothing was changed" in page
    assert "no worker in pod" in page


async def test_one_that_has_left_is_told_nothing(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", status="stopped")
    await admin.post("/admin/workers/ada/pause")
    assert "Nothing was changed" in (await admin.get("/admin/workers")).text
    assert await sent_commands(pool) == []
    assert (await admin.get("/admin/workers/nobody")).status_code == 404
    assert (await admin.post("/admin/workers/ada/dance")).status_code in (404, 422)


async def test_a_viewer_sees_no_button_and_may_press_none(viewer: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada")
    for path in ("/admin/workers", "/admin/workers/ada"):
        page = (await viewer.get(path)).text
        assert "Ada" in page
        assert "Decommission" not in page
        assert 'action="/admin/workers' not in page.replace('action="/admin/workers" class="filters"', "")
    for path, body in (
        ("/admin/workers/ada/pause", {}),
        ("/admin/workers/pod", {"pod": "Xylos", "command": "pause"}),
        ("/admin/workers/scale", {"replicas": "6"}),
    ):
        assert (await viewer.post(path, data=body)).status_code == 403
    assert await sent_commands(pool) == []


class Rack:
    """Runs as many as it is told to."""

    backend, unit = "rack", "pod"

    def __init__(self) -> None:
        self.wanted = 14

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> ScaleStatus:
        return ScaleStatus(current=14, desired=self.wanted)

    async def scale(self, conn: Connection, replicas: int) -> None:
        self.wanted = replicas


@pytest.fixture
def rack() -> Rack:
    return Rack()


@pytest.fixture
async def operator(rack: Rack, pool: Pool, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An operator, where something runs workers."""
    system = AppContext(pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=Settings(), scaler=rack)
    app = create_dashboard(system, Traffic(), Live(pool))
    headers = await bearer(pool, name="op", role="operator")
    async with client(Apps(api=app, dashboard=app, site=app), headers) as made:
        yield made


async def test_buttons_that_cannot_work_say_why(admin: httpx.AsyncClient) -> None:
    page = (await admin.get("/admin/workers")).text
    assert "Not available here: no supervisor or Kubernetes scaler is connected" in page
    assert page.count(" disabled") >= 4
    await admin.post("/admin/workers/scale", data={"replicas": "6"})
    assert "Nothing was changed: no supervisor or Kubernetes scaler" in (await admin.get("/admin/workers")).text


@pytest.mark.parametrize("wanted", ["-1", "0", "1000", "many", "6.5", " "])
async def test_numbers_outside_the_limits_change_nothing(operator: httpx.AsyncClient, rack: Rack, wanted: str) -> None:
    answer = await operator.post("/admin/workers/scale", data={"replicas": wanted})
    assert answer.status_code == 303
    page = (await operator.get("/admin/workers")).text
    assert "Nothing was changed" in page
    assert "5 to 15" in page
    assert rack.wanted == 14


async def test_scaling_up_to_the_limit(operator: httpx.AsyncClient, rack: Rack) -> None:
    assert "14</strong>" in (await operator.get("/admin/workers")).text
    assert (await operator.post("/admin/workers/scale", data={"replicas": "15"})).status_code == 303
    page = (await operator.get("/admin/workers")).text
    assert rack.wanted == 15
    assert "15 pods desired; 14 running." in page
    assert "pods running, 15 desired" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"running": 3, "starting": 2}, "workers running, 5 desired; 2 starting; limits 1–8"),
        ({"running": 3}, "workers running, 5 desired; 2 starting;"),
        ({"running": 5}, "5</strong> <span class=\"soft\">workers running; limits 1–8"),
        ({"running": 5, "draining": 1}, "workers running, 5 desired; 1 is finishing its tasks;"),
        ({"running": 4, "error": "Ada ended: SIGKILL; started again in a moment"}, "5 desired; Ada ended: SIGKILL;"),
    ],
)  # fmt: skip
async def test_what_the_supervisor_is_at_is_said(pool: Pool, tmp_path: Path, row: dict[str, object], said: str) -> None:
    settings = Settings(workers_min=2, workers_max=1000)
    system = AppContext(
        pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=settings, scaler=LocalScaler(settings)
    )
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE supervisor_lease SET desired = 5, holder = 'h', host = 'box', pid = 1, place = 'box', low = 1, high = 8, "
            "expires_at = now() + interval '1 minute', running = %(running)s, starting = %(starting)s, draining = %(draining)s, "
            "error = %(error)s",
            {"starting": 0, "draining": 0, "error": None, **row},
        )
    app = create_dashboard(system, Traffic(), Live(pool))
    headers = await bearer(pool, name="op", role="operator")
    async with client(Apps(api=app, dashboard=app, site=app), headers) as operator:
        assert said in (await operator.get("/admin/workers")).text


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("", ["ada", "bruno", "cleo"]),
        ("-name", ["cleo", "bruno", "ada"]),
        ("-tasks", ["bruno", "ada", "cleo"]),
        ("-cpu", ["ada", "bruno", "cleo"]),
        ("heartbeat", ["cleo", "ada", "bruno"]),
    ],
)
async def test_the_workers_of_a_pod_are_sorted(
    admin: httpx.AsyncClient, pool: Pool, sort: str, names: list[str]
) -> None:
    await enter(pool, "ada", resources=RESOURCES)
    await enter(pool, "bruno", resources={**RESOURCES, "process_cpu_percent": 1})
    await enter(pool, "cleo", silent=300)
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_registry SET last_heartbeat_at = now() WHERE worker_id = 'bruno'")
        await conn.execute(
            "UPDATE worker_registry SET last_heartbeat_at = now() - interval '9 s' WHERE worker_id = 'ada'"
        )
    await hold(pool, "bruno")
    page = await admin.get(f"/admin/workers?sort={sort}")
    assert re.findall(r'<a class="row" href="/admin/workers/(\w+)"', page.text) == names
    columns = re.findall(r'data-column="(\w+)"', page.text)
    assert columns == re.findall(r'<input type="checkbox" value="(\w+)" checked', page.text)
