"""Folders for whole installations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import in_memory


@pytest.fixture
def home() -> Iterator[Path]:
    """A data folder. Not below pytest's own: another run as root closes that to the user that the database runs as."""
    with tempfile.TemporaryDirectory(prefix="menuwatch-tests-", dir=in_memory()) as folder:
        yield Path(folder) / "home"
