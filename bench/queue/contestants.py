"""Who is measured, and how each is set: the best setting that its own documentation names. README.md says why."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import peers


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """`batch` is the number of jobs per bulk enqueue; `left` the SQL that says how many jobs are not completed."""

    name: str
    program: str
    runtime: Callable[[], peers.Runtime]
    batch: int
    left: str
    exclusion: str | None
    """The mechanism that keeps jobs of one key apart; None where there is none."""
    settings: str


ALL = (
    Contestant(
        name="menuwatch",
        program="menuwatch_side.py",
        runtime=lambda: peers.Runtime(command=(sys.executable,)),
        batch=2500,
        left="SELECT count(*) FROM task_live",
        exclusion="dispensary_id",
        settings="2,000 slots, all else as by default; enqueue in batches of 2,500",
    ),
    Contestant(
        name="graphile-worker",
        program="graphile_side.mjs",
        runtime=peers.node,
        batch=2500,
        left="SELECT count(*) FROM graphile_worker._private_jobs",
        exclusion="named queue",
        settings="24 jobs, pool 25, localQueue 500, completeJobBatchDelay 0; addJobs in batches of 2,500",
    ),
    Contestant(
        name="pg-boss",
        program="pgboss_side.mjs",
        runtime=peers.node,
        batch=2500,
        left="SELECT count(*) FROM pgboss.job WHERE name IN ('plain', 'exclusive') AND state < 'completed'",
        exclusion="groupConcurrency 1",
        settings="batchSize 1,000, localConcurrency 2, perJobResults, burstWhenBatchFull, notify, poll 0.5 s; "
        "insert in batches of 2,500",
    ),
    Contestant(
        name="pgqueuer",
        program="pgqueuer_side.py",
        runtime=peers.python,
        batch=2500,
        left="SELECT count(*) FROM pgqueuer",
        exclusion=None,
        settings="batch_size 500, asyncpg, uvloop; enqueue in batches of 2,500",
    ),
    Contestant(
        name="procrastinate",
        program="procrastinate_side.py",
        runtime=peers.python,
        batch=1000,
        left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
        exclusion="lock",
        settings="concurrency 20, pool 20, LISTEN; batch_defer in batches of 1,000",
    ),
)
