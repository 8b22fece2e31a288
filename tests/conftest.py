"""Real PostgreSQL for every test: one embedded server for the run, one database cloned from a migrated template for each test."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import structlog
from hypothesis import settings
from psycopg import sql

from menuwatch.accounts import audit
from menuwatch.db import embedded, migrate
from menuwatch.db.pool import Pool, open_pool

ROOT = Path(__file__).resolve().parents[1]
pytest_plugins = ("tests.recorded.new_mexico",)
_serial = itertools.count()
# Before anything of ours is loaded: whether output is coloured is decided then, and is a test's own matter.
for _name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "GITHUB_ACTIONS"):
    os.environ.pop(_name, None)


# How fast the machine is says nothing of the code: a busy one takes longer than a deadline now and then.
settings.register_profile("no deadline", parent=settings(), deadline=None)
settings.load_profile("no deadline")

# Loading the tests makes millions of objects that stay: looking through them again and again takes half of the time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded real answers; it is no part of the project, so it may be absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recorded answers (../shared/data) are not on this machine")
    return folder


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Whoever sets up logging does so for one test: another one that reads the log hears everything."""
    # A server that a test ran with uvicorn's own log setup keeps its lines from the root logger for good.
    logging.getLogger("uvicorn").handlers.clear()
    logging.getLogger("uvicorn").propagate = True
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    root = logging.getLogger()
    for handler in [one for one in root.handlers if type(one).__module__ == "menuwatch.core.logging"]:
        root.removeHandler(handler)


@pytest.fixture(autouse=True)
def _nobody_acts() -> Iterator[None]:
    """A command that a test runs in its own process acts as whoever is at the terminal, and says so for good: for that test only."""
    with audit.actor_context(None):
        yield


_ROOM = 4_000_000_000


def in_memory() -> str | None:
    """A folder that lies in memory, where there is one with room: a database per test is thousands of small files, which take most of
    the time of a test on a disk. None for the usual place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    return str(memory) if roomy else None


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A PostgreSQL server for the whole run: TEST_DATABASE_URL (a superuser's), else an embedded one."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        yield given
        _leave(given)
        return
    # Not below pytest's own folder: another run as root closes that to the user that the server runs as.
    with (
        tempfile.TemporaryDirectory(prefix="menuwatch-tests-", dir=in_memory()) as folder,
        contextlib.ExitStack() as running,
    ):
        url, stack = embedded.start(Path(folder) / "data")
        running.enter_context(stack)
        with psycopg.connect(url, autocommit=True) as conn:
            # Tests look at behaviour, not at durability across power loss; chaos tests start servers of their own.
            conn.execute("ALTER SYSTEM SET fsync = off")
            conn.execute("ALTER SYSTEM SET full_page_writes = off")
            # A statement that waits for ever names itself, long before the time limit of a test.
            conn.execute("ALTER SYSTEM SET statement_timeout = '60s'")
            conn.execute("SELECT pg_reload_conf()")
        yield url
        _leave(url)


def _leave(url: str) -> None:
    if (conn := _administrators.pop(url, None)) is not None:
        conn.close()


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    return psycopg.conninfo.make_conninfo(url, dbname=name) if "://" not in url else _replace(url, name)


def _replace(url: str, name: str) -> str:
    head, _, tail = url.partition("?")
    base = head.rsplit("/", 1)[0]
    return f"{base}/{name}" + (f"?{tail}" if tail else "")


_administrators: dict[str, psycopg.Connection] = {}


def _administrator(url: str) -> psycopg.Connection:
    """A connection that stays open: databases are made and dropped for most tests."""
    known = _administrators.get(url)
    if known is None or known.closed:
        known = _administrators[url] = psycopg.connect(url, autocommit=True)
    return known


def create_database(url: str, name: str, template: str = "template0") -> str:
    # Files are copied by half the time that pages take, and nothing else is written that the checkpoints would have to wait for.
    command = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    _administrator(url).execute(command.format(sql.Identifier(name), sql.Identifier(template)))
    return with_database(url, name)


def drop_database(url: str, name: str) -> None:
    conn = _administrator(url)
    conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    # While anybody is still there, the command below sleeps for a tenth of a second; those who leave need some milliseconds.
    until = time.monotonic() + 1
    while time.monotonic() < until:
        left = conn.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [name]).fetchone()
        if left == (0,):
            break
        time.sleep(0.002)
    conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def unique(prefix: str) -> str:
    return f"{prefix}_{os.getpid()}_{next(_serial)}"


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """Name of a database at the newest schema, to be cloned."""
    name = unique("template")
    migrate.migrate(create_database(server_url, name))
    yield name
    drop_database(server_url, name)


NextSchema = Callable[[str], None]


@pytest.fixture
def next_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NextSchema:
    """Gives this version of the program one more revision, with that SQL."""

    def add(text: str) -> None:
        folder = tmp_path / "migrations"
        shutil.copytree(migrate.MIGRATIONS, folder)
        before = migrate.newest()
        name = f"{int(before) + 1:04}_next"
        (folder / "versions" / f"{name}.sql").write_text(text, encoding="utf-8")
        source = (folder / "versions" / "0001_initial.py").read_text(encoding="utf-8")
        source = source.replace('revision = "0001"', f'revision = "{name[:4]}"', 1)
        source = source.replace("down_revision = None", f'down_revision = "{before}"')
        (folder / "versions" / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.setattr(migrate, "MIGRATIONS", folder)

    return add


@pytest.fixture
def empty_database(server_url: str) -> Iterator[str]:
    """The address of a database that holds nothing."""
    name = unique("empty")
    yield create_database(server_url, name)
    drop_database(server_url, name)


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """The address of a fresh database at the newest schema."""
    name = unique("test")
    yield create_database(server_url, name, template)
    drop_database(server_url, name)


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    """A pool on a fresh database."""
    async with open_pool(database_url) as opened:
        yield opened
