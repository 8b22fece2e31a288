"""Folders for whole installations."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from menuwatch.db import embedded, migrate
from tests.conftest import in_memory


def _folder() -> tempfile.TemporaryDirectory[str]:
    # Not below pytest's own: another run as root closes that to the user that the database runs as.
    return tempfile.TemporaryDirectory(prefix="menuwatch-tests-", dir=in_memory())


@pytest.fixture
def new_home() -> Iterator[Path]:
    """A data folder that does not exist yet."""
    with _folder() as folder:
        yield Path(folder) / "home"


@pytest.fixture(scope="session")
def started_once() -> Iterator[Path]:
    """The data folder of an installation that has been started and stopped: its database is there, and empty."""
    with _folder() as folder:
        home = Path(folder) / "home"
        url, stack = embedded.start(home / "postgres")
        with stack:
            migrate.migrate(url)
        yield home


@pytest.fixture
def home(started_once: Path, new_home: Path) -> Path:
    """A data folder with an empty database: making one takes longer than most tests with it."""
    subprocess.run(["cp", "-a", started_once, new_home], check=True)
    return new_home
