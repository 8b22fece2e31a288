"""Workers on the dashboard: what is said of them, who may tell them what, and how many one may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from menuwatch.archive.files import FileArchive
from menuwatch.cluster.base import Standing
from menuwatch.cluster.local import LocalScaler
from menuwatch.core.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Connection, Pool
from menuwatch.web.faces import Faces
from menuwatch.web.live import Live
from menuwatch.web.observe import Traffic
from menuwatch.web.system import System
from tests.dashboard.conftest import client
from tests.dashboard.crew import enter, hold, told
from tests.people import bearer

RESOURCES = {"memory_mb": 1536, "memory_total_mb": 2048, "memory_percent": 75.0, "cpu_percent": 12.0}


async def test_without_workers_it_says_how_to_start_some(admin: httpx.AsyncClient) -> None:
    page = (await admin.get("/admin/workers")).text
    assert "No worker is running" in page
    assert "menuwatch worker --workers 5" in page
    assert "Nothing waits: no more workers are needed for now." in page


async def test_states_tasks_and_reasons_are_shown(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", max_concurrent_tasks=4, resources=RESOURCES)
    await enter(pool, "bruno", status="backing_off", resources={**RESOURCES, "backoff_reason": "memory at <97> %"})
    await enter(pool, "cleo", silent=300)
    await enter(pool, "dario", pod=None, status="paused")
    await enter(pool, "edda", status="stopped")
    number = await hold(pool, "ada")
    page = (await admin.get("/admin/workers")).text
    assert "3 workers in 2 pods; 1 of 6 slots busy." in page
    assert f'<strong>1/4</strong> <a href="/admin/tasks/{number}">{number}</a>' in page
    assert "memory at &lt;97&gt; %" in page
    assert 'aria-label="Pod box"' in page  # a worker without a pod stands with its host
    assert 'aria-label="Memory 75 %"><rect class="amber"' in page
    silent = (await admin.get("/admin/workers?state=silent")).text
    assert "/admin/workers/cleo" in silent
    assert '/admin/workers/ada"' not in silent
    assert "No worker is stopping" in (await admin.get("/admin/workers?state=stopping")).text
    assert "/admin/workers/edda" in page  # among those that stopped


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
    assert await told(pool) == [("ada", "pause", "tester")]
    assert "pause sent, not acknowledged yet" in (await admin.get("/admin/workers")).text
    page = (await admin.get("/admin/workers/ada")).text
    assert "not acknowledged yet" in page
    assert "No tasks in the last 3 hours" in page
    async with pool.connection() as conn:
        await conn.execute("UPDATE worker_commands SET acknowledged_at = created_at + interval '4 seconds'")
    page = (await admin.get("/admin/workers/ada")).text
    assert "acknowledged after 4 s" in page
    assert "not acknowledged yet" not in page


async def test_a_whole_pod_is_told_but_those_that_do_not_hear(admin: httpx.AsyncClient, pool: Pool) -> None:
    for name in ("ada", "bruno"):
        await enter(pool, name)
    await enter(pool, "cleo", silent=300)
    await enter(pool, "dario", status="stopping")
    await enter(pool, "edda", pod="Kryll")
    assert (await admin.post("/admin/workers/pod", data={"pod": "Xylos", "command": "decommission"})).status_code == 303
    assert await told(pool) == [("ada", "decommission", "tester"), ("bruno", "decommission", "tester")]
    answer = await admin.post("/admin/workers/pod", data={"pod": "Nowhere", "command": "pause"})
    assert answer.status_code == 303
    page = (await admin.get("/admin/workers")).text
    assert "Nothing was changed" in page
    assert "there is no worker in the pod" in page


async def test_one_that_has_left_is_told_nothing(admin: httpx.AsyncClient, pool: Pool) -> None:
    await enter(pool, "ada", status="stopped")
    await admin.post("/admin/workers/ada/pause")
    assert "Nothing was changed" in (await admin.get("/admin/workers")).text
    assert await told(pool) == []
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
    assert await told(pool) == []


class Rack:
    """Runs as many as it is told to."""

    backend, unit = "rack", "pod"

    def __init__(self) -> None:
        self.wanted = 14

    async def replicas(self, conn: Connection, *, ordering: bool = False) -> Standing:
        return Standing(current=14, desired=self.wanted)

    async def scale(self, conn: Connection, replicas: int) -> None:
        self.wanted = replicas


@pytest.fixture
def rack() -> Rack:
    return Rack()


@pytest.fixture
async def operator(rack: Rack, pool: Pool, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """An operator, where something runs workers."""
    system = System(pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=Settings(), scaler=rack)
    app = create_dashboard(system, Traffic(), Live(pool))
    headers = await bearer(pool, name="op", role="operator")
    async with client(Faces(api=app, dashboard=app, site=app), headers) as made:
        yield made


async def test_buttons_that_cannot_work_say_why(admin: httpx.AsyncClient) -> None:
    page = (await admin.get("/admin/workers")).text
    assert "Not from here: nothing that starts and stops workers is connected" in page
    assert page.count(" disabled") >= 4
    await admin.post("/admin/workers/scale", data={"replicas": "6"})
    assert "Nothing was changed: nothing that starts and stops workers" in (await admin.get("/admin/workers")).text


@pytest.mark.parametrize("wanted", ["-1", "0", "1000", "many", "6.5", " "])
async def test_numbers_outside_the_limits_change_nothing(operator: httpx.AsyncClient, rack: Rack, wanted: str) -> None:
    answer = await operator.post("/admin/workers/scale", data={"replicas": wanted})
    assert answer.status_code == 303
    page = (await operator.get("/admin/workers")).text
    assert "Nothing was changed" in page
    assert "from 5 to 15" in page
    assert rack.wanted == 14


async def test_scaling_up_to_the_limit(operator: httpx.AsyncClient, rack: Rack) -> None:
    assert "14</strong>" in (await operator.get("/admin/workers")).text
    assert (await operator.post("/admin/workers/scale", data={"replicas": "15"})).status_code == 303
    page = (await operator.get("/admin/workers")).text
    assert rack.wanted == 15
    assert "15 pods wanted; 14 running." in page
    assert "pods running, 15 wanted" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"running": 3, "starting": 2}, "workers running, 5 wanted; 2 starting; from 1 to 8 are allowed"),
        ({"running": 3}, "workers running, 5 wanted; 2 starting;"),
        ({"running": 5}, "5</strong> <span class=\"soft\">workers running; from 1 to 8"),
        ({"running": 5, "leaving": 1}, "workers running, 5 wanted; 1 finishes what it has and then leaves;"),
        ({"running": 4, "trouble": "Ada ended: SIGKILL; started again in a moment"}, "5 wanted; Ada ended: SIGKILL;"),
    ],
)  # fmt: skip
async def test_what_the_supervisor_is_at_is_said(pool: Pool, tmp_path: Path, row: dict[str, object], said: str) -> None:
    settings = Settings(workers_min=2, workers_max=1000)
    system = System(
        pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=settings, scaler=LocalScaler(settings)
    )
    async with pool.connection() as conn:
        await conn.execute(
            "UPDATE worker_supervision SET wanted = 5, holder = 'h', host = 'box', pid = 1, place = 'box', low = 1, high = 8, "
            "held_until = now() + interval '1 minute', running = %(running)s, starting = %(starting)s, leaving = %(leaving)s, "
            "trouble = %(trouble)s",
            {"starting": 0, "leaving": 0, "trouble": None, **row},
        )
    app = create_dashboard(system, Traffic(), Live(pool))
    headers = await bearer(pool, name="op", role="operator")
    async with client(Faces(api=app, dashboard=app, site=app), headers) as operator:
        assert said in (await operator.get("/admin/workers")).text
