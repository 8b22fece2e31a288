"""The adapter for the public queue benchmark (bench/harness): its records, its counts, and its jobs when a replica is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import ROOT

HARNESS = ROOT / "bench" / "harness"
ADAPTER = HARNESS / "menuwatch-bench"
REQUIRED = {"claim_p50_ms", "claim_p95_ms", "claim_p99_ms", "enqueue_rate", "completion_rate", "queue_depth"}
"""The metrics that the benchmark requires of every adapter."""
SLOTS = 8
PATIENCE = 30.0


@contextmanager
def adapter(url: str, out: Path, **more: str) -> Iterator[subprocess.Popen[str]]:
    settings = {"SAMPLE_EVERY_S": "1", "WORKER_COUNT": str(SLOTS), "PYTHONPATH": str(ADAPTER), **more}
    environment = {**os.environ, "DATABASE_URL": url, **settings}
    command = [sys.executable, "-m", "menuwatch_bench.adapter"]
    with out.open("a") as records, out.with_suffix(".log").open("a") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=records, stderr=log, text=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def wait_until(holds: Any, out: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, out.with_suffix(".log").read_text()[-2000:]
        time.sleep(0.05)


def described(out: Path) -> bool:
    return '"descriptor"' in out.read_text()


def tasks(url: str) -> list[tuple[str, str, int]]:
    """Number, status and count of each job in the database."""
    with psycopg.connect(url) as conn:
        return conn.execute("SELECT payload->>'n', status, count(*)::int FROM worker_tasks GROUP BY 1, 2").fetchall()


def test_records_follow_the_contract_and_count_every_job(database_url: str, tmp_path: Path) -> None:
    out = tmp_path / "records"
    with adapter(database_url, out, PRODUCER_PACING="harness") as process:
        wait_until(lambda: described(out), out)
        assert process.stdin is not None
        for _ in range(5):
            process.stdin.write("ENQUEUE 20\n")
            process.stdin.flush()
        wait_until(lambda: [row[1] for row in tasks(database_url)] == ["completed"] * 100, out)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    descriptor, *samples = records(out)
    manifest = json.loads((ADAPTER / "adapter.json").read_text())
    assert descriptor["kind"] == "descriptor"
    assert descriptor["system"] == manifest["system"]
    assert set(descriptor["event_tables"]) >= set(manifest["event_tables"])
    assert set(descriptor["extensions"]) >= set(manifest["extensions"])
    with psycopg.connect(database_url) as conn:
        for relation in [*manifest["event_tables"], *manifest["event_indexes"]]:
            assert conn.execute("SELECT to_regclass(%s) IS NOT NULL", [relation]).fetchone() == (True,), relation
    for sample in samples:
        assert (sample["kind"], sample["subject_kind"], sample["subject"]) == ("adapter", "adapter", "")
        assert isinstance(sample["value"], int | float)
        assert sample["window_s"] >= 0
        assert sample["t"].endswith("Z")
    assert {sample["metric"] for sample in samples} >= REQUIRED
    # Each sample covers the time since the one before, which is one second but for the first and the last.
    assert any(sample["value"] > 0 for sample in samples if sample["metric"] == "completion_rate")
    assert [row[2] for row in tasks(database_url)] == [1] * 100


def test_no_job_is_lost_or_completed_twice_when_a_replica_is_killed(database_url: str, tmp_path: Path) -> None:
    rate = tmp_path / "rate"
    rate.write_text("150")
    ledgers = [tmp_path / f"ledger-{n}" for n in range(2)]

    def replica(n: int) -> Any:
        more = {"PRODUCER_RATE_CONTROL_FILE": str(rate), "BENCH_LEDGER": str(ledgers[n]), "JOB_WORK_MS": "20"}
        return adapter(database_url, tmp_path / f"records-{n}", BENCH_INSTANCE_ID=str(n), **more)

    def noted(what: str) -> list[str]:
        return [
            line[2:]
            for ledger in ledgers
            if ledger.exists()
            for line in ledger.read_text().splitlines()
            if line[0] == what
        ]

    def working(n: int, jobs: int) -> None:
        wait_until(
            lambda: ledgers[n].exists() and ledgers[n].read_text().count("d ") >= jobs, tmp_path / f"records-{n}"
        )

    with replica(1) as other:
        with replica(0):
            working(0, 100)
            working(1, 100)
        # Leaving the context killed it in the middle of its work; the one that follows it has its id.
        with replica(0) as again:
            working(0, 200)
            rate.write_text("0")
            wait_until(lambda: set(noted("e")) <= set(noted("d")), tmp_path / "records-0")
            wait_until(lambda: {row[1] for row in tasks(database_url)} == {"completed"}, tmp_path / "records-0")
            for process in (again, other):
                process.send_signal(signal.SIGTERM)
            assert [process.wait(5) for process in (again, other)] == [0, 0]
    completed = tasks(database_url)
    assert all(count == 1 for _, _, count in completed)
    assert set(noted("e")) <= {number for number, _, _ in completed} == set(noted("d"))
    assert len(noted("d")) - len(set(noted("d"))) <= SLOTS, "only what the killed replica held is worked on again"


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    for name, value, expected in (
        ("SCENARIO", "enqueue_throughput", "SCENARIO=enqueue_throughput: this adapter has only long_horizon"),
        ("PRODUCER_MODE", "bursts", "PRODUCER_MODE=bursts: use fixed or depth-target"),
        ("PRODUCER_RATE", "fast", "PRODUCER_RATE must be a number, not 'fast'"),
    ):
        out = tmp_path / name
        with adapter("postgresql://127.0.0.1:9/none", out, **{name: value}) as process:
            assert process.wait(PATIENCE) == 1
        assert out.read_text() == ""
        assert out.with_suffix(".log").read_text().strip() == expected


def test_our_runner_measures_a_cell_with_a_kill() -> None:
    command = [
        sys.executable,
        str(HARNESS / "run.py"),
        "--only",
        "menuwatch",
        "--cells",
        "crash_recovery",
        "--scale",
        "0.4",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["cells"]["crash_recovery"].values()
    # Not `passed`, which compares rates as well: other tests on this machine change those.
    assert found["ended"], found
    assert found["ratio"] > 0
    assert found["jobs"]["enqueued"] > 100
    assert found["jobs"]["unfinished"] == 0
    assert set(found["phases"]) == {"baseline", "kill", "restart", "recovery"}
    for name in ("completion_rate", "claim_p95_ms", "dead_tuples"):
        assert found["phases"]["recovery"][name] > 0, name
