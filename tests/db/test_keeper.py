"""The embedded server dies under processes that go on: one of them starts it again, and what is being done about it can be read."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool
from structlog.testing import capture_logs

from menuwatch.api.app import AppContext, create_app
from menuwatch.api.error_handlers import of_database
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.core.backoff import Backoff
from menuwatch.core.errors import Refused
from menuwatch.db import embedded, postmaster, server_log
from menuwatch.db.keeper import Keeper, OutageCode, keeping
from menuwatch.db.server_log import CauseCode
from menuwatch.ops import health
from tests.conftest import in_memory

QUICK = Backoff(base=0.2, cap=0.4, jitter=0.0)

_PROCESS = """
import ctypes, sys
from pathlib import Path
from menuwatch.config.settings import Settings
from menuwatch.db import embedded
from menuwatch.db.keeper import keeping
ctypes.CDLL(None).prctl(36, 1)  # as the first process of a container: the dead server stays as its zombie
settings = Settings(home=Path(sys.argv[1]))
with embedded.database_url(settings) as url, keeping(settings):
    print(url, flush=True)
    sys.stdin.readline()
"""


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)
    return found


@pytest.fixture
def home() -> Iterator[Path]:
    # Not below pytest's own folder: another run as root closes that to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="menuwatch-keeper-", dir=in_memory(), ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        server = postmaster.read(Path(folder) / "postgres")
        if server is not None and server.runs_here():
            psutil.Process(server.pid).kill()
            pytest.fail("the server was still running at the end")


def kill(folder: Path) -> int:
    """SIGKILL of the server; gives the number it had."""
    server = postmaster.read(folder)
    assert server is not None
    assert server.pid is not None
    os.kill(server.pid, 9)
    return server.pid


def up_again(folder: Path, old: int) -> bool:
    server = postmaster.read(folder)
    return server is not None and server.pid != old and server.ready


def starts(folder: Path) -> int:
    return (folder / "log").read_text().count("starting PostgreSQL")


def test_of_two_processes_that_notice_one_starts_it(home: Path) -> None:
    folder, settings = home / "postgres", Settings(home=home)
    process = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline().startswith("postgresql://")
            with embedded.database_url(settings) as url, keeping(settings) as keeper:
                assert keeper is not None
                for count in (2, 3):
                    old = kill(folder)
                    until(lambda pid=old: up_again(folder, pid) and keeper.outage() is None)  # type: ignore[misc]
                    with psycopg.connect(url) as conn:
                        assert conn.execute("SELECT 1").fetchone() == (1,), "at the address that it had"
                    assert starts(folder) == count
                _, said = process.communicate("\n", timeout=60)
                assert (process.returncode, "Traceback" in said) == (0, False), said
                with psycopg.connect(url) as conn:
                    assert conn.execute("SELECT 1").fetchone() == (1,), "who leaves does not stop it"
        finally:
            process.kill()
    assert (postmaster.read(folder), starts(folder)) == (None, 3), "the last one stops it, and nothing starts it again"


def test_a_server_that_does_not_come_up_is_tried_with_growing_waits(home: Path) -> None:
    folder = home / "postgres"
    with contextlib.ExitStack() as stack:
        _, running = embedded.start(folder)
        stack.enter_context(running)
        keeper = Keeper(folder, backoff=QUICK)
        stack.callback(keeper.stop)
        keeper.start()
        good = (folder / "postgresql.conf").read_text()
        (folder / "postgresql.conf").write_text(good + "shared_buffers = 12parsecs\n")
        old = kill(folder)
        outage = until(lambda: (o := keeper.outage()) and o.tries >= 3 and o.next_try_seconds is not None and o)
        assert (outage.code, outage.folder) == (OutageCode.STOPPED, folder)
        assert outage.next_try_seconds <= QUICK.cap
        away = health.away(psycopg.OperationalError(), keeper)
        assert (away.code, "restart" in away.detail, str(folder) in away.detail) == ("stopped", True, False)
        (folder / "postgresql.conf").write_text(good)
        until(lambda: up_again(folder, old) and keeper.outage() is None)
    assert postmaster.read(folder) is None


def test_a_server_whose_backend_crashed_is_restarted(home: Path) -> None:
    folder, settings = home / "postgres", Settings(home=home)
    with capture_logs() as logs, embedded.database_url(settings) as url, keeping(settings) as keeper:
        assert keeper is not None
        old = postmaster.read(folder)
        assert old is not None
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("SELECT 'a secret'")
            os.kill(conn.info.backend_pid, 9)
        until(lambda: up_again(folder, old.pid or 0) and keeper.outage() is None)
        reason = next(line["reason"] for line in logs if line["action"] == "database_stopped")
        assert ("signal 9" in reason, "secret" in reason) == (True, False)
        assert starts(folder) == 2, "PostgreSQL's own recovery can hang"
        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)


def test_the_mcp_server_restarts_its_database(home: Path) -> None:
    environment = {**os.environ, "MENUWATCH_HOME": str(home), "DATABASE_URL": ""}
    program = str(Path(sys.executable).with_name("menuwatch"))
    subprocess.run([program, "migrate"], env=environment, check=True, capture_output=True)
    folder = home / "postgres"
    with subprocess.Popen(
        [program, "mcp"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None

            def ask(method: str, **params: Any) -> Any:
                message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                return json.loads(process.stdout.readline())  # type: ignore[union-attr]

            ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
            before = ask("tools/call", name="search_products", arguments={})
            old = kill(folder)
            until(lambda: up_again(folder, old))
            assert ask("tools/call", name="search_products", arguments={}) == before
            rest, said = process.communicate(timeout=60)
            assert (rest, "database_restarted" in said) == ("", True), "what it logs is no part of the protocol"
        finally:
            process.kill()


def test_a_lost_data_folder_is_never_made_anew(home: Path) -> None:
    with pytest.raises(Refused):
        embedded.restart(home / "postgres")
    assert not (home / "postgres").exists()


@contextlib.contextmanager
def _small_disk(at: Path) -> Iterator[Path]:
    at.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=110m,mode=755", "tmpfs", at], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)


def _fill(disk: Path) -> None:
    with (disk / "filler").open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 4096)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_a_disk_that_was_full_and_is_freed(home: Path, tmp_path: Path) -> None:
    with _small_disk(home / "small") as disk, contextlib.ExitStack() as stack:
        folder = disk / "postgres"
        url, running = embedded.start(folder)
        stack.enter_context(running)
        keeper = Keeper(folder, backoff=QUICK)
        stack.callback(keeper.stop)
        keeper.start()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute("CREATE TABLE kept (n int)")
            conn.execute("INSERT INTO kept VALUES (17)")
            _fill(disk)
            with pytest.raises(psycopg.errors.DiskFull) as full:
                conn.execute("CREATE TABLE large AS SELECT repeat(md5(n::text), 9) FROM generate_series(1, 50000) n")
            _fill(disk)  # the statement that failed gave back what it had taken
            old = postmaster.read(folder)
            assert old is not None
            with contextlib.suppress(psycopg.OperationalError):
                for _ in range(8):  # no room for another segment of WAL: the server ends itself
                    conn.execute("SELECT pg_switch_wal()")
                    conn.execute("INSERT INTO kept VALUES (18)")
        problem = of_database(full.value, None)
        assert (problem.status, problem.slug(), "Retry-After" in problem.headers) == (503, "disk-full", True)
        outage = until(lambda: (o := keeper.outage()) and o.tries >= 2 and o)
        assert outage.code == OutageCode.DISK_FULL
        pool = AsyncConnectionPool(url, open=False)
        app = create_app(
            AppContext(
                pool=pool, archive=FileArchive(tmp_path), platforms={}, settings=Settings(home=disk), keeper=keeper
            )
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://menuwatch") as http:
            answer = await http.get("/readyz")
        detail = answer.json()["checks"]["database"]["detail"]
        assert (answer.status_code, str(folder) in detail, "disk is full" in detail) == (503, True, True)
        (disk / "filler").unlink()
        until(lambda: up_again(folder, old.pid or 0) and keeper.outage() is None)
        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT n FROM kept ORDER BY n LIMIT 1").fetchone() == (17,)


LOG = """
2026-01-01 10:00:00.000 UTC [1] LOG:  starting PostgreSQL 18.4 on x86_64
2026-01-01 10:00:01.000 UTC [7] FATAL:  could not open file "old": Permission denied
2026-01-01 11:00:00.000 UTC [2] LOG:  starting PostgreSQL 18.4 on x86_64
2026-01-01 11:00:00.100 UTC [2] LOG:  database system is ready to accept connections
"""


@pytest.mark.parametrize(
    ("lines", "code", "holds"),
    [
        ((), None, ()),
        (
            ('PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device', "LOG:  server process"),
            CauseCode.DISK_FULL,
            ("pg_wal/xlogtemp.9",),
        ),
        (
            (
                'LOG:  syntax error in file "/d/postgresql.conf" line 3, near token "x"',
                'FATAL:  configuration file "/d/postgresql.conf" contains errors',
            ),
            CauseCode.OTHER,
            ("line 3", "contains errors"),
        ),
        (
            (
                "FATAL:  terminating connection due to administrator command",
                'FATAL:  data directory "/d" has wrong ownership',
                "HINT:  The server must be started by the user that owns the data directory.",
                "LOG:  database system is shut down",
            ),
            CauseCode.OTHER,
            ("wrong ownership", "must be started by the user"),
        ),
        (
            (
                "ERROR:  could not extend file: No space left on device",
                "LOG:  client backend (PID 7) was terminated by signal 9: Killed",
                "DETAIL:  Failed process was running: SELECT 'a secret'",
            ),
            CauseCode.OTHER,
            ("(PID 7)", "signal 9: Killed"),
        ),
        (
            ('ERROR:  could not resize shared memory segment "/x" to 8 bytes: No space left on device',),
            None,
            (),
        ),
    ],
    ids=["killed", "full disk", "configuration", "owner", "crashed backend", "shared memory"],
)
def test_the_cause_is_read_from_the_log(
    tmp_path: Path, lines: tuple[str, ...], code: CauseCode | None, holds: tuple[str, ...]
) -> None:
    log = tmp_path / "log"
    log.write_text(LOG + "".join(f"2026-01-01 12:00:00.000 UTC [2] {line}\n" for line in lines))
    for found in (server_log.cause(log), server_log.cause(log, since=len(LOG))):
        assert (found and found.code) == code
        assert found is None or all(words in found.text for words in holds)
        assert found is None or "secret" not in found.text
