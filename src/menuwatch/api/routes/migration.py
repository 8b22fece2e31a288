"""Migration from the legacy system."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import Field

from menuwatch.accounts.model import Permission
from menuwatch.api.inputs import Input, Text
from menuwatch.api.responses import answer, returns
from menuwatch.ops.legacy import jobs
from menuwatch.ops.legacy.jobs import MigrationResult, MigrationStatus
from menuwatch.web.auth import require_by_method
from menuwatch.web.dependencies import ReadConn, WriteConn


class MigrationStep(Input):
    """Options of a migration step."""

    dry_run: bool = Field(False, description="Only show what would change.")


class MigrationResync(MigrationStep):
    """Options of a migration step, with the stores to crawl."""

    state_code: Text | None = Field(None, description="State or province (two letters); all stores if omitted.")


router = APIRouter(prefix="/api/tasks/migration", tags=["tasks"], dependencies=[require_by_method(Permission.TASKS)])

Step = Annotated[MigrationStep | None, Body()]
Resync = Annotated[MigrationResync | None, Body()]


@router.get("/status", **returns(MigrationStatus), summary="Legacy migration status")
async def get_migration_status(request: Request, conn: ReadConn) -> Response:
    """Returns the legacy tables `job_schedules`, `job_run_logs` and `dispensary_crawl_jobs`, if the database has them, and what
    is left to do."""
    return answer(request, await jobs.status(conn))


@router.post("/disable-old-schedules", **returns(MigrationResult), summary="Disable legacy schedules")
async def disable_old_schedules(request: Request, conn: WriteConn, step: Step = None) -> Response:
    """Disables all enabled ones. Repeating it is harmless."""
    return answer(request, await jobs.disable_schedules(conn, dry_run=step is not None and step.dry_run))


@router.post("/cancel-pending-crawl-jobs", **returns(MigrationResult), summary="Cancel pending legacy jobs")
async def cancel_pending_crawl_jobs(request: Request, conn: WriteConn, step: Step = None) -> Response:
    """Running jobs are left to finish."""
    return answer(request, await jobs.cancel_jobs(conn, dry_run=step is not None and step.dry_run))


@router.post("/create-resync-tasks", **returns(MigrationResult), summary="Create resync tasks")
async def create_resync_tasks(request: Request, conn: WriteConn, step: Resync = None) -> Response:
    """Creates one `payload_fetch` for each store that can be crawled, in one state or all, one `store_discovery` and one
    `analytics_refresh`; skips those that are already pending."""
    step = step or MigrationResync(state_code=None, dry_run=False)
    return answer(request, await jobs.create_resync(conn, step.state_code, dry_run=step.dry_run))


@router.post("/full-migrate", **returns(MigrationResult), summary="Run full migration")
async def full_migrate(request: Request, conn: WriteConn, step: Resync = None) -> Response:
    """Disables schedules, cancels jobs and creates tasks in one transaction. Repeating it does what is left."""
    step = step or MigrationResync(state_code=None, dry_run=False)
    return answer(request, await jobs.migrate(conn, step.state_code, dry_run=step.dry_run))
