"""`menuwatch …` as a process of its own that need not load everything anew.

A start of Python and its modules takes a second and more of a slow core, which is most of what a short command takes. So one process
per run loads them (`python -m tests.commands`) and forks for each command: with that command's arguments, environment and folder, its
output in files, and a real end with a real exit code. How a command starts from nothing is tested by those that run the server, the
worker and the demo.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from typer.testing import CliRunner, Result

_ROOT = Path(__file__).resolve().parents[1]
_one_at_a_time = threading.Lock()
_ready: subprocess.Popen[str] | None = None


def menuwatch(
    *words: str, env: Mapping[str, str] | None = None, timeout: float = 120, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command and waits for its end, like `subprocess.run` with its output captured as text."""
    with _one_at_a_time, tempfile.TemporaryDirectory(prefix="menuwatch-command-") as folder:
        parent = _parent()
        assert parent.stdin is not None
        assert parent.stdout is not None
        asked = {
            "words": words,
            "env": dict(os.environ if env is None else env),
            "folder": folder,
            "cwd": str(cwd or Path.cwd()),
        }
        parent.stdin.write(json.dumps(asked) + "\n")
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
        late = threading.Event()
        watch = threading.Timer(timeout, _kill, (pid, late))
        watch.start()
        code = int(parent.stdout.readline())
        watch.cancel()
        out, err = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err"))
        if late.is_set():
            raise subprocess.TimeoutExpired(["menuwatch", *words], timeout, out, err)
        return subprocess.CompletedProcess(["menuwatch", *words], code, out, err)


def run_here(words: Sequence[str], given: str | bytes | None = None) -> Result:
    """Runs a command in this process, `given` on its standard input: for tests that look at the exception it ends with. As the program
    does, it loads that command alone: putting all of them together takes longer than most."""
    from menuwatch.cli.main import select_program

    return CliRunner().invoke(select_program(words), list(words), given)


def _kill(pid: int, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _parent() -> subprocess.Popen[str]:
    """The process that forks; it ends with the one that asks it."""
    global _ready
    if _ready is None or _ready.poll() is not None:
        _ready = subprocess.Popen(
            [sys.executable, "-m", "tests.commands"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(_end, _ready)
    return _ready


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def _fork_for_each() -> None:
    from menuwatch.cli import main

    _load_all()
    assert threading.active_count() == 1, "a thread does not live on in a fork"
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(asked)
            main.main()
            return
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


_LATE = ("typer._adapters", "typer._click.decorators", "rich.markdown")
"""What typer loads with its first command and its first help: with what these load in turn, a third of a command."""


def _load_all() -> None:
    """Loads what commands load, also what they load only once they need it."""
    from menuwatch.cli import main
    from menuwatch.platforms import registry

    assert main.app is not None, "every command"
    assert registry.built_in(), "every adapter"
    for module in _LATE:
        importlib.import_module(module)
    # A fork that looks through all this for garbage, as each does at its end, gets a copy of all of it.
    gc.collect()
    gc.freeze()


def _become(asked: Mapping[str, object]) -> None:
    """Of the fork: what a new process would have."""
    folder = Path(str(asked["folder"]))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.environ.clear()
    os.environ.update(asked["env"])  # type: ignore[call-overload]
    os.chdir(str(asked["cwd"]))
    sys.argv = ["menuwatch", *asked["words"]]  # type: ignore[misc]


if __name__ == "__main__":
    _fork_for_each()
