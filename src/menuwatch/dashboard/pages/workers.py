"""Workers: what each is at and how full it is, telling them to pause or leave, and how many there should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from starlette.responses import Response

from menuwatch.accounts.model import Permission
from menuwatch.dashboard import screen, staffing
from menuwatch.dashboard.saved import saved
from menuwatch.dashboard.svg import lane
from menuwatch.dashboard.svg.pods import STATES
from menuwatch.operations import overview as reading
from menuwatch.operations import pods, scaling, workers
from menuwatch.operations import timeline as history
from menuwatch.operations.pods import PodNow, WorkerNow
from menuwatch.operations.refusals import NotFound
from menuwatch.web.auth import allowed
from menuwatch.web.system import Reading, Sys, Writing
from menuwatch.web.words import many
from menuwatch.workers.commands import Command

router = APIRouter(prefix="/workers", dependencies=[allowed(Permission.READ)])

SHOWN = 300
"""Most workers of a page."""

LANE_HOURS = 3
"""How far back a worker's page shows what it did."""

Id = Annotated[str, Path(max_length=200)]


@router.get("")
async def listed(
    request: Request,
    system: Sys,
    conn: Reading,
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
    context = {
        "pods": shown,
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
        "gone": await pods.gone(conn),
        "replicas": await scaling.replicas(conn, system.scaler, system.settings),
        "drain": drain,
        "ready": ready,
        "advice": staffing.advice(drain, ready, living, paused),
        "may": screen.principal(request).may(Permission.WORKERS),
        **await saved(request, conn, "/workers"),
    }
    return screen.show(request, "workers/list.html", context, live="workers,tasks")


def _only(of_pod: Sequence[PodNow], state: str) -> list[PodNow]:
    """Pods with their workers in that state, all for none; at most SHOWN workers."""
    found, room = [], SHOWN
    for one in of_pod:
        chosen = [worker for worker in one.workers if not state or worker.state == state][:room]
        if chosen:
            found.append(replace(one, workers=chosen))
            room -= len(chosen)
    return found


@router.get("/{worker_id}")
async def one(request: Request, conn: Reading, worker_id: Id) -> Response:
    """One worker, with what it did lately and what it was told."""
    found = await workers.one(conn, worker_id)
    lately = await history.timeline(conn, hours=LANE_HOURS, worker_id=worker_id)
    did = next(iter(lately.lanes), None)
    context = {
        "worker": found,
        "present": _now(await pods.pods(conn), worker_id),
        "held": await pods.held(conn, [worker_id]),
        "since": lately.since,
        "lane": None if did is None else lane.drawn(did, lately.since, lately.until),
        "said": None if did is None else lane.said(did, lately.since, lately.until),
        "kinds": lane.KINDS,
        "states": STATES,
        "may": screen.principal(request).may(Permission.WORKERS),
    }
    return screen.show(request, "workers/one.html", context, live="workers,tasks")


def _now(crew: Sequence[PodNow], worker_id: str) -> WorkerNow | None:
    """What it does now; None once it has stopped."""
    return next((worker for pod in crew for worker in pod.workers if worker.worker_id == worker_id), None)


@router.post("/scale", dependencies=[allowed(Permission.WORKERS)])
async def scale(
    request: Request, system: Sys, conn: Writing, replicas: Annotated[str, Form(max_length=20)]
) -> Response:
    """Has more or fewer workers run."""
    text = replicas.strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii():
        there = await scaling.replicas(conn, system.scaler, system.settings)
        said = f"Nothing was changed: {text[:20]!r} is no number of workers; from {there.low:,} to {there.high:,} are allowed."
        return screen.back(request, screen.came_from(request), said, "bad")
    found = await scaling.scale(conn, system.scaler, system.settings, int(text))
    doing = f": {found.doing}" if found.doing else ""
    return screen.back(
        request, "/workers", f"{many(found.desired or 0, found.unit)} wanted; {found.current:,} running{doing}."
    )


@router.post("/pod", dependencies=[allowed(Permission.WORKERS)])
async def tell_pod(
    request: Request, conn: Writing, pod: Annotated[str, Form(max_length=200)], command: Annotated[Command, Form()]
) -> Response:
    """Tells every worker of a pod."""
    told, others = await pods.tell(conn, pod, command, screen.principal(request).name)
    if not told:
        raise NotFound(f"no worker of {pod} hears: they are silent or leaving")
    rest = f" {many(others, 'other')} {'is' if others == 1 else 'are'} silent or leaving." if others else ""
    return screen.back(
        request, screen.came_from(request), f"{many(told, 'worker')} of {pod} told {_to(command)}.{rest}"
    )


@router.post("/{worker_id}/{command}", dependencies=[allowed(Permission.WORKERS)])
async def tell(request: Request, conn: Writing, worker_id: Id, command: Command) -> Response:
    """Tells one worker. It takes it at once where it lives, and the page shows until then that it has not."""
    given = await workers.tell(conn, worker_id, command, screen.principal(request).name)
    name = (await workers.one(conn, worker_id))["friendly_name"]
    return screen.back(request, screen.came_from(request), f"{name} was told {_to(given.command)}.")


def _to(command: Command) -> str:
    return {Command.PAUSE: "to pause", Command.RESUME: "to go on", Command.DECOMMISSION: "to leave"}[command]
