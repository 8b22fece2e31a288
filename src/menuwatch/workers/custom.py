"""Workers with handlers of your own, in Python (docs/how-to/custom-worker.md).

The names in `__all__` are the public interface; everything else may change with any version.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from menuwatch.core import gc_tuning as collector
from menuwatch.core.errors import Refused
from menuwatch.core.logging import configure as configure_logging
from menuwatch.core.logging import is_configured as is_logging_configured
from menuwatch.core.signals import on_signals
from menuwatch.db.pool import connect, open_pool
from menuwatch.queue.model import NewTask, Role, Task, parse_role
from menuwatch.queue.outcome import Done, Fail, Outcome, Postpone, Retry
from menuwatch.queue.store import Enqueued, enqueue
from menuwatch.workers.engine.config import WorkerConfig
from menuwatch.workers.engine.handler import Handler, TaskContext
from menuwatch.workers.engine.worker import Worker

__all__ = [
    "Done",
    "Enqueued",
    "Fail",
    "Handler",
    "NewTask",
    "Outcome",
    "Postpone",
    "Retry",
    "Role",
    "Task",
    "TaskContext",
    "WorkerConfig",
    "configure_logging",
    "connect",
    "enqueue",
    "run_worker",
]


async def run_worker(
    url: str,
    handlers: Mapping[str, Handler],
    config: WorkerConfig | None = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Works on tasks of the roles that have a handler until SIGTERM or Ctrl-C, or until `stop`, if given, is set. Running tasks then
    have `config.grace` seconds to end; others return to the queue. Logs go to standard error, unless logging is set up already.

    Raises Refused for a role that does not exist, and when there is no handler.
    """
    if not handlers:
        raise Refused("no handlers given: pass at least one, for example {'analytics_refresh': handler}")
    by_role = {parse_role(role): handler for role, handler in handlers.items()}
    if not is_logging_configured():
        configure_logging()
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        if stop is None:
            stop = asyncio.Event()
            stack.enter_context(on_signals(loop, stop.set))
        async with open_pool(url) as pool:
            worker = Worker(pool, url, by_role, config)
            stopper = asyncio.create_task(_stop_on(stop, worker))
            collector.calm()
            try:
                await worker.run()
            finally:
                stopper.cancel()


async def _stop_on(stop: asyncio.Event, worker: Worker) -> None:
    await stop.wait()
    worker.stop()
