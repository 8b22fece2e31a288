"""The cells of the benchmark: a system, a fresh database, and a sequence of phases; a cell ends by itself."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import faults
import psycopg
from replica import Replica, Sample
from server import Server
from systems import System

SAMPLE_SECONDS = 1
RECOVERED = 0.9
"""Share of its rate before that a queue has to reach after a fault, as in the benchmark."""
_DRAIN = 25.0
_LOOK_EVERY = 0.5

_DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables"


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a cell; the first one, which warms up, is not measured."""

    label: str
    seconds: float
    act: Callable[[Stage, float], AbstractContextManager[None]] = faults.steady


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`rate` is what all replicas together are offered; None keeps `depth` jobs waiting instead."""

    name: str
    group: str
    phases: tuple[Phase, ...]
    workers: int = 32
    replicas: int = 1
    rate: float | None = 800
    depth: int = 4000
    batch_max: int = 128
    work_ms: int = 1
    ledger: bool = False

    def scaled(self, by: float) -> Cell:
        """The same with longer or shorter phases."""
        return replace(self, phases=tuple(replace(phase, seconds=phase.seconds * by) for phase in self.phases))


def _throughput(workers: int) -> Cell:
    phases = (Phase("warmup", 2), Phase("clean", 6))
    return Cell(
        name=f"throughput_{workers}", group="throughput", phases=phases, workers=workers, rate=None, batch_max=1000
    )


def _pressure(name: str, act: Callable[[Stage, float], AbstractContextManager[None]], seconds: float = 8) -> Cell:
    phases = (Phase("warmup", 2), Phase("clean", 5), Phase("stress", seconds, act), Phase("recovery", 4))
    return Cell(name=name, group="pressure", phases=phases, ledger=True)


def _chaos(name: str, *phases: Phase) -> Cell:
    whole = (Phase("warmup", 2), Phase("baseline", 5), *phases, Phase("recovery", 6))
    return Cell(name=name, group="chaos", phases=whole, workers=8, replicas=2, rate=100, work_ms=50, ledger=True)


CELLS = (
    *(_throughput(workers) for workers in (4, 16, 64, 256)),
    Cell(name="pickup", group="pickup", phases=(Phase("warmup", 2), Phase("clean", 8)), workers=16, rate=100),
    _pressure("idle_in_tx", faults.idle_in_transaction),
    _pressure("active_readers", faults.active_readers),
    _pressure("sustained_high_load", faults.load(1.5)),
    _pressure("event_burst", faults.load(5), 5),
    _chaos("crash_recovery", Phase("kill", 4, faults.kill_worker), Phase("restart", 4, faults.start_worker)),
    _chaos("postgres_restart", Phase("restart", 6, faults.postgres_restart)),
    _chaos("repeated_kills", Phase("repeated", 14, faults.repeated_kill)),
    _chaos("pg_backend_kill", Phase("kills", 6, faults.backend_kill)),
    _chaos("pool_exhaustion", Phase("exhaustion", 6, faults.pool_exhaustion)),
)


@dataclass(slots=True, kw_only=True)
class Stage:
    """What phases act on."""

    server: Server
    database: str
    url: str
    rate: float
    folder: Path
    replicas: list[Replica] = field(default_factory=list)
    first_table: str = ""
    notes: dict[str, int] = field(default_factory=dict)

    def offer(self, rate: float) -> None:
        """Sets the rate that all replicas together are offered."""
        faults.write_rate(self.folder, rate / max(1, len(self.replicas)))


def run(cell: Cell, system: System, server: Server) -> dict[str, Any]:
    """The measurements of one cell; `failed` gives the reason where it could not be measured."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    database = f"{system.name}_bench"
    try:
        stage = Stage(server=server, database=database, url=server.create(database), rate=cell.rate or 0, folder=folder)
        return _run(cell, system, stage)
    except (RuntimeError, psycopg.Error) as error:
        return {"failed": str(error)[-500:]}
    finally:
        server.drop(database)
        shutil.rmtree(folder, ignore_errors=True)


def _run(cell: Cell, system: System, stage: Stage) -> dict[str, Any]:
    environment = {
        "DATABASE_URL": stage.url,
        "PRODUCER_MODE": "depth-target" if cell.rate is None else "fixed",
        "PRODUCER_PACING": "adapter",
        "PRODUCER_RATE": f"{stage.rate / cell.replicas:g}",
        "PRODUCER_RATE_CONTROL_FILE": str(stage.folder / faults.RATE_FILE),
        "PRODUCER_BATCH_MAX": str(cell.batch_max),
        "TARGET_DEPTH": str(cell.depth),
        "WORKER_COUNT": str(cell.workers),
        "JOB_WORK_MS": str(cell.work_ms),
        "SAMPLE_EVERY_S": str(SAMPLE_SECONDS),
        "LATENCY_WINDOW_MS": "4000",
    }
    with contextlib.ExitStack() as stack:
        for instance in range(cell.replicas):
            more = {"BENCH_LEDGER": str(stage.folder / f"ledger-{instance}")} if cell.ledger else {}
            replica = Replica(system, instance, environment | more, stage.folder / f"log-{instance}")
            stack.callback(replica.kill)
            stage.replicas.append(replica)
            replica.wait_ready()  # the first one makes the schema
        stage.offer(stage.rate)
        described = stage.replicas[0].descriptor or {}
        stage.first_table = (described.get("event_tables") or ["pg_stat_user_tables"])[0]
        bounds: dict[str, tuple[float, float]] = {}
        with _dead_tuples(stage.url) as dead:
            for phase in cell.phases:
                begin = time.monotonic()
                with phase.act(stage, phase.seconds):
                    time.sleep(phase.seconds)
                bounds[phase.label] = (begin, time.monotonic())
            alive = all(replica.alive for replica in stage.replicas)
            drained = _drained(stage) if cell.ledger else None
        codes = [replica.terminate() for replica in stage.replicas]
        samples = [sample for replica in stage.replicas for sample in replica.samples]
        result: dict[str, Any] = {
            "version": described.get("version"),
            "phases": {
                label: _measure(samples, dead, *bound)
                for label, bound in bounds.items()
                if label != cell.phases[0].label
            },
            "ended": alive and codes == [0] * len(codes),
            "worker_restarts": int(max((s.value for s in samples if s.metric == "worker_restarts"), default=0)),
            **({"drained_seconds": drained} if cell.ledger else {}),
            **({"jobs": ledger(stage.folder)} if cell.ledger else {}),
            **({"notes": stage.notes} if stage.notes else {}),
        }
    return result | _verdict(cell, result)


def _verdict(cell: Cell, result: dict[str, Any]) -> dict[str, Any]:
    """Pressure: the cell came to its end and every job was done. Chaos: and the rate recovered."""
    if cell.group not in ("pressure", "chaos"):
        return {}
    whole = result["ended"] and result["jobs"]["unfinished"] == 0
    before, after = ("clean", "stress") if cell.group == "pressure" else ("baseline", "recovery")
    rates = [result["phases"][label]["completion_rate"] for label in (before, after)]
    ratio = round(rates[1] / rates[0], 3) if rates[0] else None
    if cell.group == "chaos":
        whole = whole and ratio is not None and ratio >= RECOVERED
    return {"ratio": ratio, "passed": whole}


def _drained(stage: Stage) -> float | None:
    """Stops the producers; seconds until every job was done, None if that takes too long."""
    stage.offer(0)
    begin = time.monotonic()
    time.sleep(_LOOK_EVERY)
    while (took := time.monotonic() - begin) < _DRAIN:
        if ledger(stage.folder)["unfinished"] == 0:
            return round(took, 1)
        if not any(replica.alive for replica in stage.replicas):
            return None
        time.sleep(_LOOK_EVERY)
    return None


def ledger(folder: Path) -> dict[str, int]:
    """Jobs of which the enqueue was confirmed, those of them that were never done, and how often one was done again."""
    enqueued: set[str] = set()
    done: Counter[str] = Counter()
    for path in folder.glob("ledger-*"):
        for line in path.read_text().split("\n")[:-1]:
            what, _, number = line.partition(" ")
            if what == "e":
                enqueued.add(number)
            else:
                done[number] += 1
    return {"enqueued": len(enqueued), "unfinished": len(enqueued - done.keys()), "repeated": done.total() - len(done)}


def _measure(samples: list[Sample], dead: list[tuple[float, int, int]], begin: float, end: float) -> dict[str, Any]:
    # The first sample of a phase is mostly about the phase before.
    inside = [sample for sample in samples if begin + SAMPLE_SECONDS <= sample.at <= end + 0.3]
    rates: Counter[int] = Counter()
    for sample in inside:
        if sample.metric == "completion_rate":
            rates[sample.tick] += sample.value
    measured: dict[str, Any] = {"completion_rate": round(median(rates.values()), 1) if rates else 0.0}
    for name in ("claim_p50_ms", "claim_p95_ms", "claim_p99_ms"):
        last = {sample.instance: sample.value for sample in inside if sample.metric == name}
        measured[name] = max(last.values(), default=None)
    measured["queue_depth"] = max((sample.value for sample in inside if sample.metric == "queue_depth"), default=None)
    looks = [look for look in dead if begin <= look[0] <= end + _LOOK_EVERY]
    if looks:
        done = sum(rates.values()) * SAMPLE_SECONDS
        span = [look for look in looks if look[0] >= begin + SAMPLE_SECONDS] or looks
        died = span[-1][2] - span[0][2]
        measured["dead_tuples"] = max(look[1] for look in looks)
        measured["dead_rows_per_job"] = round(died / done, 2) if done else None
    return measured


@contextmanager
def _dead_tuples(url: str) -> Iterator[list[tuple[float, int, int]]]:
    """Looks at the dead rows of all tables, and at how many rows were updated or deleted, again and again."""
    found: list[tuple[float, int, int]] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(_LOOK_EVERY):
            with contextlib.suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as conn:
                while not stop.wait(_LOOK_EVERY):
                    row = conn.execute(_DEAD).fetchone()
                    found.append((time.monotonic(), row[0], row[1]))  # type: ignore[index]

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
