"""One worker process, from its start to its end.

It is in a session of its own, so that Ctrl-C in a terminal reaches the supervisor alone. Its standard input is a pipe that nobody
writes to: it ends when the supervisor dies, however that happens, and so tells the worker to stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence

from menuwatch.core.telemetry import get_logger

log = get_logger(__name__)

REFUSED = 2
"""Exit code of a start that would be refused again."""


async def launch(command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
    """Starts it; `env` None passes ours on. Raises OSError where the machine has no room for another one."""
    return await asyncio.create_subprocess_exec(
        *command, env=None if env is None else dict(env), stdin=PIPE, start_new_session=True
    )


async def end(process: Process, ended: asyncio.Task[int], *, grace: float) -> None:
    """Asks it to stop, and kills it where it has not within `grace` seconds. `ended` waits for it."""
    send(process, signal.SIGTERM)
    _, waiting = await asyncio.wait({ended}, timeout=grace)
    if waiting:
        log.warning(
            "a worker did not stop in time and is killed",
            action="pod_worker_killed",
            pid=process.pid,
            grace_seconds=grace,
        )
        send(process, signal.SIGKILL)


def send(process: Process, number: signal.Signals) -> None:
    """Sends it a signal, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def cause(code: int) -> str:
    """What it ended of, in words, by its exit code (negative: the signal)."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
