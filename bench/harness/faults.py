"""What happens in a phase, as the benchmark defines its phase types. Each is a context manager around the phase."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from cells import Stage

_READERS = 4
_READ_EVERY = 0.1
_KILLS_PER_SECOND = 10
_IDLE_CONNECTIONS = 300
_KILL_EVERY = 5.0

_CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = %s AND pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')
"""


@contextmanager
def steady(stage: Stage, seconds: float) -> Iterator[None]:
    """Nothing."""
    yield


@contextmanager
def idle_in_transaction(stage: Stage, seconds: float) -> Iterator[None]:
    """A transaction with an id stays open, so that no row that dies from now on can be removed."""
    with psycopg.connect(stage.url) as conn:
        conn.execute("SELECT txid_current()")
        yield
        conn.rollback()


@contextmanager
def active_readers(stage: Stage, seconds: float) -> Iterator[None]:
    """Connections count the rows of the queue's first table again and again, each in one REPEATABLE READ transaction."""
    statement = f"SELECT count(*) FROM {stage.first_table}"

    def read(stop: threading.Event) -> None:
        with psycopg.connect(stage.url) as conn:
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            while not stop.wait(_READ_EVERY):
                conn.execute(statement)
            conn.rollback()

    with _threads(read, _READERS):
        yield


def load(times: float) -> Callable[[Stage, float], contextlib.AbstractContextManager[None]]:
    """So many times the offered rate."""

    @contextmanager
    def act(stage: Stage, seconds: float) -> Iterator[None]:
        stage.offer(stage.rate * times)
        yield
        stage.offer(stage.rate)

    return act


@contextmanager
def kill_worker(stage: Stage, seconds: float) -> Iterator[None]:
    """SIGKILL for the first replica."""
    stage.replicas[0].kill()
    yield


@contextmanager
def start_worker(stage: Stage, seconds: float) -> Iterator[None]:
    """The first replica is started again."""
    stage.replicas[0].start()
    yield


@contextmanager
def repeated_kill(stage: Stage, seconds: float) -> Iterator[None]:
    """The first replica is killed and started again, every few seconds."""

    def act(stop: threading.Event) -> None:
        while not stop.wait(_KILL_EVERY):
            stage.replicas[0].kill()
            stage.replicas[0].start()

    with _threads(act):
        yield


@contextmanager
def postgres_restart(stage: Stage, seconds: float) -> Iterator[None]:
    """PostgreSQL is down for the first half."""

    def act(stop: threading.Event) -> None:
        stage.server.stop()
        stop.wait(seconds / 2)
        stage.server.start()

    with _threads(act):
        yield


@contextmanager
def backend_kill(stage: Stage, seconds: float) -> Iterator[None]:
    """Connections that are in a transaction are cut."""

    def act(stop: threading.Event) -> None:
        with psycopg.connect(stage.server.url(), autocommit=True) as conn:
            while not stop.wait(1 / _KILLS_PER_SECOND):
                row = conn.execute(_CUT, [stage.database]).fetchone()
                stage.notes["connections cut"] = stage.notes.get("connections cut", 0) + row[0]  # type: ignore[index]

    with _threads(act):
        yield


@contextmanager
def pool_exhaustion(stage: Stage, seconds: float) -> Iterator[None]:
    """Idle connections, as many as there may be up to 300."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(psycopg.OperationalError):
            for number in range(_IDLE_CONNECTIONS):
                held.enter_context(psycopg.connect(stage.url, autocommit=True))
                stage.notes["idle connections"] = number + 1
        yield


@contextmanager
def _threads(act: Callable[[threading.Event], None], count: int = 1) -> Iterator[None]:
    """Runs `act` in threads until the phase ends; raises the first error of theirs."""
    stop = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            act(stop)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        deadline = time.monotonic() + 90
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
    if errors:
        raise errors[0]


RATE_FILE = "rate"


def write_rate(folder: Path, rate: float) -> None:
    """The file that producers read their rate from, replaced at once."""
    draft = folder / f"{RATE_FILE}.new"
    draft.write_text(f"{rate:g}")
    draft.replace(folder / RATE_FILE)
