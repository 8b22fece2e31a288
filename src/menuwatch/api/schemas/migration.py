"""Coming from the old system."""

from __future__ import annotations

from pydantic import BaseModel, Field

from menuwatch.api.schemas.common import Input, Text


class FormerSchedule(BaseModel):
    """One schedule of the former system."""

    name: str = Field(description="Its name.")
    enabled: bool = Field(description="Whether it is still switched on.")


class MigrationStatus(BaseModel):
    """What there is of the former system. Figures are null where the table that they are of is not there."""

    found: bool = Field(
        description="False where the database has none of the former tables: there is nothing to migrate."
    )
    complete: bool = Field(description="Nothing is left to disable or to cancel.")
    message: str = Field(description="The same in words.")
    tables: list[str] = Field(description="The former tables that there are, each with its schema.")
    missing: list[str] = Field(description="Those that there are not.")
    schedules: int | None = Field(description="Rows of `job_schedules`.")
    schedules_enabled: int | None = Field(description="Of these, those that are switched on.")
    run_logs: int | None = Field(description="Rows of `job_run_logs`; they stay as they are.")
    jobs: int | None = Field(description="Rows of `dispensary_crawl_jobs`.")
    jobs_pending: int | None = Field(description="Of these, those that wait.")
    jobs_running: int | None = Field(description="Of these, those under way: they are left to end.")
    stores: int = Field(description="Stores here that can be crawled.")
    stores_waiting: int = Field(description="Of these, those whose next crawl waits or is under way.")
    schedule_list: list[FormerSchedule] = Field(description="At most 50 former schedules, enabled ones first.")


class MigrationStep(Input):
    """How a step is to be done."""

    dry_run: bool = Field(False, description="Only say what would be done.")


class MigrationResync(MigrationStep):
    """Which stores are to be crawled."""

    state_code: Text | None = Field(None, description="State or province, by two letters; every store when left out.")


class MigrationDone(BaseModel):
    """What was done; null is what was no part of it."""

    found: bool = Field(description="False where there is nothing to migrate.")
    message: str = Field(description="What was done, in words.")
    dry_run: bool = Field(description="Nothing was changed: it is what would be done.")
    schedules_disabled: int | None = Field(description="Former schedules that were switched off.")
    jobs_cancelled: int | None = Field(description="Former crawl jobs that waited, and were cancelled.")
    stores: int | None = Field(description="Stores that can be crawled, of those that were meant.")
    tasks_created: int | None = Field(description="New tasks; the other stores had one waiting.")
