"""A pool of a fixed number of workers, with real processes: crashes, leaving, refusals, stops."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random

import psutil
import pytest

from menuwatch.core.backoff import Backoff
from menuwatch.scaling.worker_pool import Timing, WorkerPool
from menuwatch.workers.names import pod_name, worker_name
from tests.workers.waiting import until

QUICK = Timing(grace=5.0, restart=Backoff(base=0.05, cap=0.1), interval=0.02)

# Reports its start by a file named after its process.
BEGIN = "import os, pathlib, signal, sys, time; pathlib.Path(sys.argv[1], str(os.getpid())).touch(); "
WAITS = BEGIN + "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); sys.stdin.read()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + BEGIN + "time.sleep(600)"


def running(code: str, folder: Path) -> Callable[[int], Sequence[str]]:
    """The command of a worker that runs this code, with the folder and its ordinal as arguments."""
    return lambda ordinal: (sys.executable, "-c", code, str(folder), str(ordinal))


@asynccontextmanager
async def at_work(pod: WorkerPool) -> AsyncIterator[asyncio.Task[int]]:
    run = asyncio.create_task(pod.run())
    try:
        yield run
    finally:
        pod.stop()
        await asyncio.wait_for(run, 20)


def there(folder: Path, count: int) -> Callable[[], object]:
    async def look() -> bool:
        return len(list(folder.iterdir())) >= count

    return look


async def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    ended: list[int] = []

    async def on_end(*, pid: int, since: datetime) -> None:
        ended.append(pid)

    pod = WorkerPool(running(WAITS, tmp_path), count=2, timing=QUICK, on_end=on_end, rng=Random(1))
    async with at_work(pod) as run:
        await until(there(tmp_path, 2))
        first, second = (slot.process for slot in pod.slots)
        assert first is not None
        assert second is not None
        first.send_signal(signal.SIGKILL)
        await until(there(tmp_path, 3))
        now = pod.slots[0].process
        assert now is not None
        assert now.pid != first.pid
        assert pod.slots[1].process is second, "the other one is left alone"
        assert [slot.crashes for slot in pod.slots] == [1, 0]
        assert ended == [first.pid]
    assert run.result() == 0
    assert not any(psutil.pid_exists(pid) for pid in (now.pid, second.pid))


async def test_one_that_leaves_is_not_replaced_and_the_pod_ends_with_the_last(tmp_path: Path) -> None:
    code = BEGIN + "sys.exit(0)"
    pod = WorkerPool(running(code, tmp_path), count=3, timing=QUICK)
    assert await asyncio.wait_for(pod.run(), 20) == 0
    assert len(list(tmp_path.iterdir())) == 3
    assert pod.slots == []


async def test_a_refused_start_ends_the_pod(tmp_path: Path) -> None:
    """The second of them refuses; the first is stopped gracefully, and nothing is started again."""
    code = (
        BEGIN
        + "int(sys.argv[2]) and sys.exit(2); signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); sys.stdin.read()"
    )
    pod = WorkerPool(running(code, tmp_path), count=2, timing=QUICK)
    assert await asyncio.wait_for(pod.run(), 20) == 2
    assert [slot.crashes for slot in pod.slots] == [0, 0]


async def test_one_that_keeps_crashing_is_tried_ever_more_rarely(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = Timing(grace=5.0, restart=Backoff(base=0.01, cap=0.04, jitter=0.0), interval=0.02)
    pod = WorkerPool(running(BEGIN + "sys.exit(9)", tmp_path), count=1, timing=timing)
    async with at_work(pod):
        await until(there(tmp_path, 4), seconds=20)
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "pool_worker_crashed" in line]
    waits = [word.partition("=")[2] for line in lines for word in line.split() if word.startswith("again_in_seconds=")]
    assert waits[:3] == ["0.01", "0.02", "0.04"]
    assert "exit code 9" in lines[0]


async def test_one_that_does_not_listen_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    pod = WorkerPool(running(DEAF, tmp_path), count=1, timing=Timing(grace=0.2))
    async with at_work(pod) as run:
        await until(there(tmp_path, 1))
        (pid,) = (int(one.name) for one in tmp_path.iterdir())
    assert run.result() == 0
    assert not psutil.pid_exists(pid)


async def test_a_stop_does_not_wait_for_the_next_try(tmp_path: Path) -> None:
    timing = Timing(restart=Backoff(base=3600.0))
    pod = WorkerPool(running(BEGIN + "sys.exit(9)", tmp_path), count=1, timing=timing)

    async def crashed() -> bool:
        return pod.slots[0].crashes == 1

    async with at_work(pod):
        await until(crashed)


@pytest.mark.parametrize("everything", [False, True])
async def test_when_the_supervisor_is_cut_off_its_workers_are_killed(tmp_path: Path, everything: bool) -> None:
    """As by a second Ctrl-C, which cancels every task of the event loop, in whatever order."""
    before = asyncio.all_tasks()
    pod = WorkerPool(running(DEAF, tmp_path), count=2, timing=QUICK)
    run = asyncio.create_task(pod.run())
    await until(there(tmp_path, 2))
    for task in (asyncio.all_tasks() - before) if everything else {run}:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not any(psutil.pid_exists(int(one.name)) for one in tmp_path.iterdir())


SUPERVISOR = """
import asyncio, sys
from menuwatch.scaling.worker_pool import WorkerPool
child = "import os, pathlib, sys; pathlib.Path(sys.argv[1], str(os.getpid())).touch(); sys.stdin.read()"
asyncio.run(WorkerPool(lambda n: (sys.executable, "-c", child, sys.argv[1]), count=2).run())
"""


async def test_workers_outlive_their_supervisor_only_until_they_hear_of_it(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SUPERVISOR, str(tmp_path))
    await until(there(tmp_path, 2))
    process.kill()
    await process.wait()

    async def over() -> bool:
        return not any(_runs(int(one.name)) for one in tmp_path.iterdir())

    await until(over)


def _runs(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_pod_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="at least one"):
        WorkerPool(lambda _: ("true",), count=0)


@pytest.mark.parametrize(
    ("host", "given", "name"),
    [
        ("scraper-worker-0", {}, "Aethelgard"),
        ("scraper-worker-14", {}, "Zephyne"),
        ("scraper-worker-15", {}, "Aethelgard 2"),
        ("box", {"ordinal": 2}, "Kryll"),
        ("scraper-worker-1", {"ordinal": 2}, "Kryll"),
        ("box", {"name": "scraper-worker-1"}, "Xylos"),
        ("scraper-worker-1", {"name": "north"}, "north"),
    ],
)
def test_pods_are_called_by_their_ordinal(host: str, given: dict[str, object], name: str) -> None:
    assert pod_name(host, **given) == name  # type: ignore[arg-type]


def test_a_host_without_a_number_is_always_called_the_same() -> None:
    assert pod_name("laptop") == pod_name("laptop")
    assert pod_name("release-2.04") == pod_name("release-2.04"), "a number of that kind is no ordinal"


def test_workers_of_a_pod_have_names_of_their_own() -> None:
    assert [worker_name(n) for n in (0, 4, 15)] == ["Ada", "Edda", "Ada 2"]
    assert len({worker_name(n) for n in range(100)}) == 100
