"""Workers: state and load of each, commands (pause, resume, decommission), and scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.core.errors import NotFound
from menuwatch.core.format import duration, pluralize
from menuwatch.dashboard import screen, tables
from menuwatch.dashboard.charts.bars import count_bars
from menuwatch.dashboard.charts.lanes import KINDS, draw_lane, lane_figures
from menuwatch.dashboard.charts.pods import STATES
from menuwatch.dashboard.log_section import worker_log
from menuwatch.dashboard.pages.views import saved
from menuwatch.db.query import Row
from menuwatch.ops import overview as reading
from menuwatch.ops.overview import Drain
from menuwatch.proxies import store as proxies
from menuwatch.scaling import service as scaling
from menuwatch.web.auth import require
from menuwatch.web.dependencies import AppDep, ReadConn, WriteConn
from menuwatch.workers import pods
from menuwatch.workers import service as workers
from menuwatch.workers import timeline as history
from menuwatch.workers.commands import Command
from menuwatch.workers.pods import PodStatus, WorkerStatus
from menuwatch.workers.service import WorkerHour

router = APIRouter(prefix="/workers", dependencies=[require(Permission.READ)])

SHOWN = 300
"""Most workers of a page."""

LANE_HOURS = 3
"""Period shown on a worker's page."""

Id = Annotated[str, Path(max_length=200)]


@router.get("")
async def listed(
    request: Request,
    system: AppDep,
    conn: ReadConn,
    state: Annotated[str, Query(max_length=20)] = "",
    pod: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Every worker that has not stopped, by pod."""
    every = await pods.pods(conn)
    state = state if state in STATES else ""
    of_pod = [one for one in every if not pod or one.name == pod]
    shown = _only(of_pod, state)
    living = sum(len(one.living) for one in every)
    paused = sum(one.count("paused") for one in every)
    drain, ready = await reading.pace(conn, living - paused)
    chosen = {worker.worker_id: worker.started_at for one in shown for worker in one.workers}
    held: dict[str, list[Row]] = {}
    for task in await pods.held(conn, list(chosen), limit=pods.WORKERS):
        held.setdefault(task["worker_id"], []).append(task)
    hours = await workers.last_hour(conn, chosen)
    sort = tables.sorting(request, _ORDERS)
    context = {
        "pods": [replace(one, workers=_sorted(one.workers, hours, sort)) for one in shown],
        "sort": sort,
        "held": held,
        "count_bars": count_bars,
        "hours": hours,
        "every": every,
        "all": sum(len(one.workers) for one in of_pod),
        "counts": {name: sum(one.count(name) for one in of_pod) for name in STATES},
        "states": STATES,
        "state": state,
        "pod": pod,
        "href": lambda **changes: screen.query(request, **changes),
        "living": living,
        "busy": sum(one.busy for one in every),
        "slots": sum(one.slots for one in every),
        "hidden": sum(len(one.workers) for one in of_pod if not state) - SHOWN,
        "gone": await pods.list_stopped(conn),
        "replicas": await scaling.replicas(conn, system.scaler, system.settings),
        "drain": drain,
        "ready": ready,
        "can_start": bool(await proxies.count_active(conn)),
        "advice": advice(drain, ready, living, paused),
        "may": screen.may(request, Permission.WORKERS),
        **await saved(request, conn),
    }
    return screen.render(request, "workers/list.html", context, live="workers,tasks")


_ORDERS = (
    "name", "-name", "state", "-state", "-tasks", "tasks", "-cpu", "cpu", "-memory", "memory", "-rate", "rate",
    "heartbeat", "-heartbeat",
)  # fmt: skip
"""Orders of the workers of a pod; by heartbeat the one that is silent longest comes first."""


def _sorted(members: Sequence[WorkerStatus], hours: Mapping[str, WorkerHour], sort: tables.Sort) -> list[WorkerStatus]:
    """In the order of a column, then by name. Workers that report no value come last."""
    states = list(STATES)

    def value(one: WorkerStatus) -> Any:
        return {
            "name": one.name.lower(),
            "state": states.index(one.state),
            "tasks": one.busy,
            "cpu": one.cpu,
            "memory": one.memory,
            "rate": hours[one.worker_id].tasks_per_minute,
            "heartbeat": one.last_heartbeat_at,
        }[sort.key]

    known = [one for one in members if value(one) is not None]
    return sorted(known, key=value, reverse=sort.descending) + [one for one in members if value(one) is None]


def _only(of_pod: Sequence[PodStatus], state: str) -> list[PodStatus]:
    """Pods with their workers in that state, all for none; at most SHOWN workers."""
    found, room = [], SHOWN
    for one in of_pod:
        chosen = [worker for worker in one.workers if not state or worker.state == state][:room]
        if chosen:
            found.append(replace(one, workers=chosen))
            room -= len(chosen)
    return found


@router.get("/{worker_id}")
async def one(request: Request, conn: ReadConn, worker_id: Id) -> Response:
    """One worker with its recent tasks, commands and log."""
    found = await workers.get_worker(conn, worker_id)
    lately = await history.timeline(conn, hours=LANE_HOURS, worker_id=worker_id)
    did = next(iter(lately.lanes), None)
    context = {
        "worker": found,
        "present": _now(await pods.pods(conn), worker_id),
        "hour": found.last_hour,
        "count_bars": count_bars,
        "held": await pods.held(conn, [worker_id]),
        "since": lately.since,
        "lane": None if did is None else draw_lane(did, lately.since, lately.until),
        "said": None if did is None else lane_figures(did, lately.since, lately.until),
        "kinds": KINDS,
        "states": STATES,
        "may": screen.may(request, Permission.WORKERS),
        **await worker_log(request, conn, worker_id),
    }
    return screen.render(request, "workers/one.html", context, live="workers,tasks,logs")


def _now(crew: Sequence[PodStatus], worker_id: str) -> WorkerStatus | None:
    """The worker's current activity; None once it has stopped."""
    return next((worker for pod in crew for worker in pod.workers if worker.worker_id == worker_id), None)


@router.post("/scale", dependencies=[require(Permission.WORKERS)])
async def scale(
    request: Request, system: AppDep, conn: WriteConn, replicas: Annotated[str, Form(max_length=20)]
) -> Response:
    """Has more or fewer workers run."""
    text = replicas.strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii():
        there = await scaling.replicas(conn, system.scaler, system.settings)
        said = f"Nothing was changed: {text[:20]!r} is not a valid number: enter a number from {there.low:,} to {there.high:,}."
        return screen.flash_back(request, said, "bad")
    found = await scaling.scale(conn, system.scaler, system.settings, int(text))
    doing = f": {found.doing}" if found.doing else ""
    return screen.flash_to(
        request, "/workers", f"{pluralize(found.desired or 0, found.unit)} desired; {found.current:,} running{doing}."
    )


@router.post("/pod", dependencies=[require(Permission.WORKERS)])
async def tell_pod(
    request: Request, conn: WriteConn, pod: Annotated[str, Form(max_length=200)], command: Annotated[Command, Form()]
) -> Response:
    """Sends a command to every worker of a pod."""
    sent, others = await pods.send_command(conn, pod, command, screen.principal(request).name)
    if not sent:
        raise NotFound(f"no worker of {pod} can receive commands: all are silent or draining")
    undo = _REVERSE.get(command)
    rest = f" {pluralize(others, 'other')} {'is' if others == 1 else 'are'} silent or draining." if others else ""
    return screen.flash_back(
        request,
        f"{_SENT[command]} sent to {pluralize(sent, 'worker')} of {pod}.{rest}",
        undo=screen.Undo("/workers/pod", [("pod", pod), ("command", undo.value)]) if undo else None,
    )


@router.post("/{worker_id}/{command}", dependencies=[require(Permission.WORKERS)])
async def tell(request: Request, conn: WriteConn, worker_id: Id, command: Command) -> Response:
    """Sends a command to one worker. A live worker takes it immediately; until then the page shows it as pending."""
    sent = await workers.send_command(conn, worker_id, command, screen.principal(request).name)
    name = (await workers.get_worker(conn, worker_id)).friendly_name
    undo = _REVERSE.get(command)
    path = f"/workers/{quote(worker_id, safe='')}"
    return screen.flash_back(
        request, f"{_SENT[sent.command]} sent to {name}.", undo=screen.Undo(f"{path}/{undo.value}") if undo else None
    )


_REVERSE = {Command.PAUSE: Command.RESUME, Command.RESUME: Command.PAUSE}
_SENT = {Command.PAUSE: "Pause", Command.RESUME: "Resume", Command.DECOMMISSION: "Decommission"}


def advice(drain: Drain, ready: int, living: int, paused: int = 0) -> str:
    """Recommend a number of workers; `paused` are among the `living`."""
    blocked = f"{drain.blocked:,} blocked by {', '.join(drain.blocked_by)}" if drain.blocked else ""
    if not ready:
        if blocked:
            return f"No task ready, {blocked}: more workers do not help."
        return "Queue empty: no more workers needed."
    waits = f"{pluralize(ready, 'task')} ready" + (f" ({blocked} not counted)" if blocked else "")
    if living and paused >= living:
        if living == 1:
            return f"{waits}, but the only worker is paused: resume it to continue."
        return f"{waits}, but all {living:,} workers are paused: resume them to continue."
    living -= paused
    if drain.worker_hours is None:
        return f"{waits}; not enough data to estimate: no such task completed in the last hour."
    for_an_hour = drain.needed[1] or 1
    if not living:
        return f"{waits}, no worker online: start {pluralize(for_an_hour, 'worker')} to finish within an hour."
    seconds = (drain.hours or 0) * 3600
    takes = "less than a minute" if seconds < 60 else f"about {duration(seconds)}"
    if for_an_hour <= living:
        return f"{waits}, done in {takes}: {pluralize(living, 'worker')} {'is' if living == 1 else 'are'} enough."
    return f"{waits}, done in {takes}. Add {pluralize(for_an_hour - living, 'worker')} to finish within an hour."
