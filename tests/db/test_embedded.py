"""The embedded server among several processes: it runs while anybody uses it, and no longer. Real processes, real locks."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from menuwatch.core.errors import Refused
from menuwatch.db import embedded, postmaster
from tests.conftest import in_memory

_USER = """
import sys
from pathlib import Path
import psycopg
from menuwatch.db import embedded
from tests.conftest import in_memory
url, stack = embedded.start(Path(sys.argv[1]))
with psycopg.connect(url) as conn:
    conn.execute("SELECT 1")
print(url, flush=True)
if sys.argv[2] == "wait":
    sys.stdin.readline()
stack.close()
"""


def _begin(folder: Path, what: str = "leave", *prefix: str) -> subprocess.Popen[str]:
    """A process that uses the server: `leave` at once, or `wait` until it is told to."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", _USER, str(folder), what],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _end(process: subprocess.Popen[str]) -> None:
    """Tells a process to leave, and sees that all went well."""
    _, errors = process.communicate("\n", timeout=60)
    assert (process.returncode, errors) == (0, "")


@contextlib.contextmanager
def _using(folder: Path, *prefix: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is known to use the server; killed at the end if it is still there."""
    process = _begin(folder, "wait", *prefix)
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline().startswith("postgresql://"), process.stderr and process.stderr.read()
            yield process
        finally:
            process.kill()


def _server_pid(folder: Path) -> int | None:
    found = postmaster.read(folder)
    return found.pid if found is not None and found.runs_here() else None


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not below pytest's own folder: another run as root closes that to the user that the server runs as.
    with tempfile.TemporaryDirectory(
        prefix="menuwatch-embedded-", ignore_cleanup_errors=True, dir=in_memory()
    ) as parent:
        data = Path(parent) / "data"
        yield data
        pid = _server_pid(data)
        if pid is not None:
            psutil.Process(pid).kill()
            pytest.fail("the server was still running at the end")


def test_comers_and_goers_never_stop_the_server_of_one_who_stays(folder: Path) -> None:
    url, stack = embedded.start(folder)
    pid = _server_pid(folder)
    for _ in range(2):
        for process in [_begin(folder) for _ in range(10)]:
            _end(process)
        assert _server_pid(folder) == pid
    with psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    stack.close()
    assert (pid is not None, _server_pid(folder), postmaster.read(folder)) == (True, None, None)


def test_the_last_of_many_stops_it(folder: Path) -> None:
    for process in [_begin(folder) for _ in range(6)]:
        _end(process)
    assert postmaster.read(folder) is None


def test_two_users_in_one_process_count_as_two(folder: Path) -> None:
    _, first = embedded.start(folder)
    url, second = embedded.start(folder)
    first.close()
    first.close()
    with psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    second.close()
    assert postmaster.read(folder) is None
    url, third = embedded.start(folder)
    with third, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,), "a server that was stopped can be started again"


def test_a_killed_user_neither_stops_the_server_nor_keeps_it(folder: Path) -> None:
    with _using(folder) as process:
        pid = _server_pid(folder)
        process.kill()
        process.wait()
    assert _server_pid(folder) == pid
    _, stack = embedded.start(folder)
    assert _server_pid(folder) == pid, "the running server is joined"
    stack.close()
    assert postmaster.read(folder) is None


def test_a_server_that_died_is_started_again_beside_its_old_users(folder: Path) -> None:
    with _using(folder) as process:
        pid = _server_pid(folder)
        assert pid is not None
        server = psutil.Process(pid)
        children = server.children()
        server.kill()
        psutil.wait_procs([server, *children], timeout=30)
        url, stack = embedded.start(folder)
        assert _server_pid(folder) not in (None, pid)
        stack.close()
        with psycopg.connect(url) as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,), "its old user is a user of the new one"
        _end(process)
    assert postmaster.read(folder) is None


@pytest.mark.parametrize(
    "text",
    [
        f"{os.getpid()}\n/elsewhere\n1700000000\n5432\n/nowhere\n\n  1  2\nready\n",
        "4000000\n/elsewhere\n",
        "\x00\x00\x00",
        "",
    ],
    ids=["a number that another program has now", "a cut-off file", "zeros after a power cut", "an empty file"],
)
def test_what_a_dead_server_left_is_tidied(folder: Path, text: str) -> None:
    _, stack = embedded.start(folder)
    stack.close()
    (folder / "postmaster.pid").write_text(text)
    (folder / ".handle_pids.json").write_text("[1, 2")
    url, stack = embedded.start(folder)
    with stack, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    assert postmaster.read(folder) is None


_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def _can_isolate() -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run([*_CONTAINER, "true"], capture_output=True, check=False).returncode == 0
    return False


@pytest.mark.skipif(not _can_isolate(), reason="processes cannot be isolated here (unshare)")
def test_a_server_in_another_container_is_left_alone(folder: Path) -> None:
    with _using(folder, *_CONTAINER) as process:
        before = (folder / "postmaster.pid").read_text()
        with pytest.raises(Refused, match="in use by another machine or container; set DATABASE_URL"):
            embedded.start(folder)
        assert (folder / "postmaster.pid").read_text() == before
        _end(process)
    assert postmaster.read(folder) is None
    url, stack = embedded.start(folder)
    with stack, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,), "it is free once the other one has left"


@pytest.mark.skipif(not _can_isolate(), reason="processes cannot be isolated here (unshare)")
def test_what_a_container_left_that_was_killed_is_tidied(folder: Path) -> None:
    with _using(folder, *_CONTAINER) as process:
        process.kill()
        process.wait()
        server = postmaster.read(folder)
        assert server is not None
        while server.answers():
            pass  # the kernel ends the processes of a container one after the other
    url, stack = embedded.start(folder)
    with stack, psycopg.connect(url) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_a_cleanup_that_fails_says_so_and_raises_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, stack = embedded.start(folder)
    pid = _server_pid(folder)
    assert pid is not None
    server = psutil.Process(pid)
    shutil.rmtree(folder.parent)
    stack.close()
    server.kill()
    server.wait(30)
    captured = capsys.readouterr()
    assert "embedded_stop_failed" in captured.out + captured.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root creates a user for the server")
def test_processes_that_start_at_once_on_a_fresh_machine_create_one_user() -> None:
    name = f"mw-test-{os.getpid()}"
    create = f"from menuwatch.db import embedded; embedded.ensure_user({name!r})"
    try:
        processes = [
            subprocess.Popen([sys.executable, "-c", create], stderr=subprocess.PIPE, text=True) for _ in range(8)
        ]
        errors = [process.communicate(timeout=60)[1] for process in processes]
        assert [(process.returncode, text) for process, text in zip(processes, errors, strict=True)] == [(0, "")] * 8
        assert pwd.getpwnam(name).pw_name == name
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)
