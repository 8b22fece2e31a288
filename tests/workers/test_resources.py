"""What the machine has left: control groups as files, the verdict, the watch."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import msgspec
import psutil
import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.clock import ManualClock
from menuwatch.workers.engine.claim_gate import ClaimGate
from menuwatch.workers.engine.resources import (
    CHECK,
    TICK,
    ControlGroups,
    Machine,
    Memory,
    Processor,
    ProcessResources,
    ResourceMonitor,
    Snapshot,
    Thresholds,
    verdict,
)

MIB = 1024 * 1024
CALM = Snapshot(memory=Memory(400, 1000), cpu=0.5)


def tree(root: Path, files: dict[str, str]) -> Path:
    """A root folder with these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def clock() -> ManualClock:
    return ManualClock(datetime(2026, 3, 1, tzinfo=UTC))


V2 = {
    "proc/self/cgroup": "0::/",
    "sys/fs/cgroup/memory.max": str(512 * MIB),
    "sys/fs/cgroup/memory.current": str(400 * MIB),
    "sys/fs/cgroup/memory.stat": f"anon 1\ninactive_file {100 * MIB}\nactive_file 5",
    "sys/fs/cgroup/cpu.max": "50000 100000",
    "sys/fs/cgroup/cpu.stat": "usage_usec 2500000\nuser_usec 1\nsystem_usec 2",
}
V1 = {
    "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": str(256 * MIB),
    "sys/fs/cgroup/memory/memory.usage_in_bytes": str(250 * MIB),
    "sys/fs/cgroup/memory/memory.stat": f"inactive_file 7\ntotal_inactive_file {50 * MIB}",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/cpuacct/cpuacct.usage": "3000000000",
}


@pytest.mark.parametrize(
    ("files", "memory", "processor"),
    [
        (V2, Memory(300 * MIB, 512 * MIB), Processor(2.5, 0.5)),
        (V1, Memory(200 * MIB, 256 * MIB), Processor(3.0, 1.5)),
        ({**V2, "sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/cpu.max": "max 100000"}, None, None),
        ({**V1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, Memory(200 * MIB, 256 * MIB), None),
        ({}, None, None),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "?"}, None, None),
    ],
    ids=["v2", "v1", "v2 unlimited", "v1 memory alone", "none", "torn"],
)
def test_limits_of_control_groups(
    tmp_path: Path, files: dict[str, str], memory: Memory | None, processor: Processor | None
) -> None:
    groups = ControlGroups(tree(tmp_path, files))
    assert (groups.memory(), groups.processor()) == (memory, processor)


def test_a_limit_further_up_counts_as_well(tmp_path: Path) -> None:
    """A service without a limit of its own, in a slice that has one; the slice's use is what is measured."""
    inner, outer = "sys/fs/cgroup/shop.slice/worker.service", "sys/fs/cgroup/shop.slice"
    files = {
        "proc/self/cgroup": "0::/shop.slice/worker.service",
        f"{inner}/memory.max": "max",
        f"{inner}/memory.current": str(10 * MIB),
        f"{inner}/memory.stat": "inactive_file 0",
        f"{inner}/cpu.max": "100000 100000",
        f"{inner}/cpu.stat": "usage_usec 1000000",
        f"{outer}/memory.max": str(100 * MIB),
        f"{outer}/memory.current": str(90 * MIB),
        f"{outer}/memory.stat": "inactive_file 0",
        f"{outer}/cpu.max": "200000 100000",
        f"{outer}/cpu.stat": "usage_usec 9000000",
    }
    groups = ControlGroups(tree(tmp_path, files))
    assert groups.memory() == Memory(90 * MIB, 100 * MIB)
    assert groups.processor() == Processor(1.0, 1.0), "the tighter of the two"


def test_the_container_comes_before_the_machine(tmp_path: Path) -> None:
    time = clock()
    machine = Machine(tree(tmp_path, V2), clock=time)
    seen = machine.look()
    assert (seen.memory, seen.memory_limited) == (Memory(300 * MIB, 512 * MIB), True)
    assert seen.cpu is None, "nothing to compare with yet"
    # 0.9 seconds of processor time in 2 seconds, of half a processor: 90 percent.
    tree(tmp_path, {"sys/fs/cgroup/cpu.stat": "usage_usec 3400000"})
    time.advance(timedelta(seconds=2))
    seen = machine.look()
    assert (seen.cpu, seen.cpu_limited) == (pytest.approx(0.9), True)
    # Quiet since: the window of five seconds moves past the burst.
    for _ in range(6):
        time.advance(timedelta(seconds=1))
        seen = machine.look()
    assert seen.cpu == pytest.approx(0.0)


def test_a_limit_that_is_lifted_is_noticed(tmp_path: Path) -> None:
    time = clock()
    machine = Machine(tree(tmp_path, V2), clock=time)
    time.advance(timedelta(seconds=2))
    assert machine.look().cpu_limited
    tree(tmp_path, {"sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"})
    time.advance(timedelta(seconds=2))
    seen = machine.look()
    assert (seen.cpu_limited, seen.cpu, seen.memory_limited) == (False, None, False)


@pytest.mark.parametrize("files", [{}, {**V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}])
def test_without_a_limit_it_is_the_machine(tmp_path: Path, files: dict[str, str]) -> None:
    seen = Machine(tree(tmp_path, files)).look()
    assert not seen.memory_limited
    assert seen.memory.limit == psutil.virtual_memory().total
    assert 0 < seen.memory.share < 1


def test_a_quota_beyond_the_machine_is_none(tmp_path: Path) -> None:
    many = (os.cpu_count() or 1) + 1
    machine = Machine(tree(tmp_path, {**V2, "sys/fs/cgroup/cpu.max": f"{many}00000 100000"}))
    assert not machine.look().cpu_limited


def test_the_real_machine_can_be_read() -> None:
    time = clock()
    machine = Machine(clock=time)
    figures = ProcessResources(machine).read(is_backing_off=True, backoff_reason="because")
    assert 0 < figures.memory_rss_mb <= figures.memory_total_mb
    assert 0 < figures.memory_percent < 100
    assert figures.memory_percent == pytest.approx(100 * figures.memory_mb / figures.memory_total_mb, abs=0.1)
    assert figures.cpu_user_ms > 0
    assert 0 <= figures.cpu_percent <= 100
    assert figures.process_cpu_percent is msgspec.UNSET, "nothing to compare with yet"
    assert (figures.is_backing_off, figures.backoff_reason) == (True, "because")


def test_a_process_reports_its_own_processor_time(tmp_path: Path) -> None:
    time = clock()
    resources = ProcessResources(Machine(tree(tmp_path, V2), clock=time))
    resources.read()
    began = process_time()
    while process_time() < began + 0.3:
        pass
    time.advance(timedelta(seconds=3))
    used = process_time() - began
    share = resources.read().process_cpu_percent
    assert share == pytest.approx(100 * used / 3 / 0.5, abs=3), "of half a processor, over three seconds"


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (CALM, None),
        (Snapshot(memory=Memory(850, 1000), cpu=0.9, lag=0.5), None),  # above, not at
        (Snapshot(memory=Memory(910, 1000), memory_limited=True), "memory at 91 % of its limit (threshold 85 %)"),
        (Snapshot(memory=Memory(854, 1000)), "memory of the machine at 85.4 % (threshold 85 %)"),
        (
            Snapshot(memory=Memory(1, 2), cpu=0.97, cpu_limited=True),
            "processor time at 97 % of its limit (threshold 90 %)",
        ),
        (Snapshot(memory=Memory(1, 2), cpu=0.97), "processors of the machine at 97 % (threshold 90 %)"),
        (Snapshot(memory=Memory(1, 2), lag=0.8), "the event loop lags by 800 ms (threshold 500 ms)"),
        (
            Snapshot(memory=Memory(9, 10), lag=1.25),
            "memory of the machine at 90 % (threshold 85 %), the event loop lags by 1250 ms (threshold 500 ms)",
        ),
    ],
)
def test_verdict(seen: Snapshot, says: str | None) -> None:
    assert verdict(seen, Thresholds()) == says


def test_a_threshold_of_one_is_never_passed() -> None:
    over = Snapshot(memory=Memory(11, 10), cpu=1.3)
    assert verdict(over, Thresholds(memory=1.0, cpu=1.0)) is None


def test_thresholds_come_from_the_settings() -> None:
    settings = Settings.from_env(
        {"MEMORY_BACKOFF_THRESHOLD": "0.5", "CPU_BACKOFF_THRESHOLD": "1", "EVENT_LOOP_LAG_BACKOFF_MS": "250"}
    )
    assert Thresholds.from_settings(settings) == Thresholds(memory=0.5, cpu=1.0, lag=0.25)
    assert Thresholds.from_settings(Settings()) == Thresholds(memory=0.85, cpu=0.90, lag=0.5)


async def test_the_watch_closes_the_gate_and_opens_it_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    time = clock()
    gate = ClaimGate(backoff=10.0, clock=time)
    changes: list[str] = []
    watch = ResourceMonitor(
        gate,
        Machine(tree(tmp_path, V2), clock=time),
        Thresholds(),
        worker_id="w-1",
        clock=time,
        on_change=lambda: changes.append(gate.status),
    )

    async def second() -> None:
        time.advance(timedelta(seconds=CHECK))
        watch._expected = None  # the clock of this test leaps; the loop is not late
        await watch.step()

    await second()
    assert gate.delay_before_claim() is None
    tree(tmp_path, {"sys/fs/cgroup/memory.current": str(600 * MIB)})
    await second()
    assert gate.delay_before_claim() == 10.0
    assert gate.backoff_reason == "memory at 97.7 % of its limit (threshold 85 %)"
    tree(tmp_path, V2)
    for _ in range(9):
        await second()
    assert gate.delay_before_claim() == pytest.approx(1.0)
    await second()
    assert gate.delay_before_claim() is None
    assert changes == ["backing_off", "active"]
    said = capsys.readouterr()
    logged = said.out + said.err
    assert (logged.count("backoff_started"), logged.count("backoff_ended")) == (1, 1)


async def test_a_loop_that_is_always_late_is_an_overload(tmp_path: Path) -> None:
    """Steps that should come every 0.2 seconds come every 0.9."""
    time = clock()
    gate = ClaimGate(backoff=10.0, clock=time)
    watch = ResourceMonitor(gate, Machine(tree(tmp_path, V2), clock=time), Thresholds(), worker_id="w-1", clock=time)
    for _ in range(4):
        time.advance(timedelta(seconds=0.9))
        await watch.step()
    assert gate.backoff_reason == f"the event loop lags by {(0.9 - TICK) * 1000:.0f} ms (threshold 500 ms)"
