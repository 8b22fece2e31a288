"""Start and stop one worker process, and in the worker: notice that the supervisor died.

The process has a session of its own, so that Ctrl-C in a terminal reaches the supervisor only. Its standard input is a pipe without
data: it ends when the supervisor dies for any reason, and the worker then stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from menuwatch.core.logging import get_logger

log = get_logger(__name__)

REFUSED = 2
"""Exit code of a start that would fail again."""


async def launch(command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
    """Start the process; `env` None inherits ours. Raises OSError if the machine cannot start another one."""
    return await asyncio.create_subprocess_exec(
        *command, env=None if env is None else dict(env), stdin=PIPE, start_new_session=True
    )


async def terminate(process: Process, ended: asyncio.Task[int], *, grace: float) -> None:
    """Terminate the process, and kill it after `grace` seconds. `ended` waits for its exit."""
    send(process, signal.SIGTERM)
    _, waiting = await asyncio.wait({ended}, timeout=grace)
    if waiting:
        log.warning(
            "worker did not stop in time, killed", action="pool_worker_killed", pid=process.pid, grace_seconds=grace
        )
        send(process, signal.SIGKILL)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal if the process still exists."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def exit_cause(code: int) -> str:
    """Describe an exit code (negative: the signal)."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


class _EndOfInput(asyncio.Protocol):
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def connection_lost(self, _: Exception | None) -> None:
        if self.callback is not None:
            self.callback()


@asynccontextmanager
async def on_parent_death(callback: Callable[[], object]) -> AsyncIterator[None]:
    """Call `callback` if standard input ends within the context, which means that the parent process has died."""
    protocol = _EndOfInput(callback)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    try:
        yield
    finally:
        protocol.callback = None
        with contextlib.suppress(Exception):
            transport.close()
