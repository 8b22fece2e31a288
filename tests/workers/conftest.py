"""A worker on a real database, with handlers made in the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import pytest

from menuwatch.core.backoff import Backoff
from menuwatch.db.pool import Pool
from menuwatch.queue.model import Role
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import Handler
from menuwatch.workers.engine.worker import Worker

pytest.register_assert_rewrite("tests.workers.poison_cases", "tests.workers.poison_crawl_items")

Start = Callable[..., AbstractAsyncContextManager[Worker]]


def options(**given: Any) -> WorkerConfig:
    """Quick ones: no wait between retries to speak of, and polling so rare that a test which needs it would time out."""
    defaults: dict[str, Any] = {"poll_interval": 60.0, "backoff": Backoff(base=0.01), "grace": 5.0, "db_timeout": 20.0}
    return WorkerConfig(**{**defaults, **given})


@pytest.fixture
def make(pool: Pool, database_url: str) -> Callable[..., Worker]:
    """Makes a worker; `handlers` by role, options by name."""

    def build(handlers: dict[Role, Handler], *, may_claim: Any = None, measures: Any = None, **given: Any) -> Worker:
        chosen = options(**given)
        return Worker(pool, database_url, handlers, chosen, may_claim=may_claim, rng=Random(7), measures=measures)

    return build


@pytest.fixture
def start(make: Callable[..., Worker]) -> Start:
    """Runs a worker in the background for the length of a `with` block."""

    @asynccontextmanager
    async def running(*args: Any, **given: Any) -> AsyncIterator[Worker]:
        worker = make(*args, **given)
        run = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await run

    return running
