"""The recorded market of New Mexico, taken in and matched once for the run: a plugin, as tests of several packages read it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from menuwatch.db.pool import open_pool
from menuwatch.matching.engine import match_all
from menuwatch.pipeline.replay import replay
from tests.conftest import create_database, drop_database, unique
from tests.recorded.replayed import recording, replay_context

MENUS = "weedmaps/nm_menus_2024-05.tar.gz"


@dataclass(frozen=True, slots=True)
class Market:
    """A database and the archive of its menus."""

    url: str
    storage: Path


async def _take_in(url: str, storage: Path, menus: Path) -> None:
    async with open_pool(url) as pool:
        await replay(replay_context(pool, storage), None, [menus], state="NM")
        await match_all(pool)


@pytest.fixture(scope="session")
def new_mexico_once(
    server_url: str, template: str, recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The name of a database to be cloned, and its archive: 84 menus take longer than most of what is asked of them."""
    name, storage = unique("new_mexico"), tmp_path_factory.mktemp("new-mexico") / "storage"
    url = create_database(server_url, name, template)
    with ThreadPoolExecutor(1) as thread:  # the loop of the test is not this one's
        thread.submit(asyncio.run, _take_in(url, storage, recording(recorded, MENUS))).result()
    yield name, storage
    drop_database(server_url, name)


@pytest.fixture
def new_mexico(server_url: str, new_mexico_once: tuple[str, Path], tmp_path: Path) -> Iterator[Market]:
    """A copy of the market for one test."""
    name, (taken_in, storage) = unique("test"), new_mexico_once
    subprocess.run(["cp", "-a", storage, tmp_path / "storage"], check=True)
    yield Market(create_database(server_url, name, taken_in), tmp_path / "storage")
    drop_database(server_url, name)
