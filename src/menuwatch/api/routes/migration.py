"""Coming from the old system: its schedules and jobs are put to rest, and its work is taken over."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response

from menuwatch.accounts.model import Permission
from menuwatch.api.answers import answer
from menuwatch.api.schemas.migration import MigrationDone, MigrationResync, MigrationStatus, MigrationStep
from menuwatch.operations.legacy import jobs
from menuwatch.web.auth import allowed_by_method
from menuwatch.web.system import Reading, Writing

router = APIRouter(prefix="/api/tasks/migration", tags=["tasks"], dependencies=[allowed_by_method(Permission.TASKS)])

Step = Annotated[MigrationStep | None, Body()]
Resync = Annotated[MigrationResync | None, Body()]


@router.get("/status", response_model=MigrationStatus, summary="What there is of the former system")
async def get_migration_status(request: Request, conn: Reading) -> Response:
    """The former tables `job_schedules`, `job_run_logs` and `dispensary_crawl_jobs`, where the database has them, and what is left
    to do."""
    return answer(request, dataclasses.asdict(await jobs.status(conn)))


@router.post("/disable-old-schedules", response_model=MigrationDone, summary="Switch former schedules off")
async def disable_old_schedules(request: Request, conn: Writing, how: Step = None) -> Response:
    """Every one that is on. Again is harmless: what is off stays off."""
    return _done(request, await jobs.disable_schedules(conn, dry_run=how is not None and how.dry_run))


@router.post("/cancel-pending-crawl-jobs", response_model=MigrationDone, summary="Cancel former jobs that wait")
async def cancel_pending_crawl_jobs(request: Request, conn: Writing, how: Step = None) -> Response:
    """Those that run are left to end."""
    return _done(request, await jobs.cancel_jobs(conn, dry_run=how is not None and how.dry_run))


@router.post("/create-resync-tasks", response_model=MigrationDone, summary="Have the stores crawled from here")
async def create_resync_tasks(request: Request, conn: Writing, how: Resync = None) -> Response:
    """One `payload_fetch` for each store that can be crawled, of one state or of all; none where one waits already."""
    wanted = how or MigrationResync.model_validate({})
    return _done(request, await jobs.create_resync(conn, wanted.state_code, dry_run=wanted.dry_run))


@router.post("/full-migrate", response_model=MigrationDone, summary="All three steps at once")
async def full_migrate(request: Request, conn: Writing, how: Resync = None) -> Response:
    """Disables, cancels and creates, all of it or nothing. Again it does what is left."""
    wanted = how or MigrationResync.model_validate({})
    return _done(request, await jobs.migrate(conn, wanted.state_code, dry_run=wanted.dry_run))


def _done(request: Request, done: jobs.Done) -> Response:
    return answer(request, dataclasses.asdict(done))
