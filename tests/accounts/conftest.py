"""The API on a fresh database, and people who ask it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI

from menuwatch.api.app import AppContext, create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie

PASSWORD = "correct horse battery"


@functools.cache
def cheap_hash(password: str = PASSWORD) -> str:
    """What argon2 makes of it where it may take no time."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(password)


Make = Callable[..., FastAPI]


@pytest.fixture
def make(pool: Pool, tmp_path: Path) -> Make:
    """Makes an app with these settings."""

    def made(**settings: object) -> FastAPI:
        found = Settings(**{"home": tmp_path, "password_memory_kib": 1024, **settings})  # type: ignore[arg-type]
        archive = FileArchive(tmp_path / "storage")
        return create_app(AppContext(pool=pool, archive=archive, platforms={"dutchie": Dutchie()}, settings=found))

    return made


def browser(app: FastAPI, base_url: str = "http://menuwatch", **more: object) -> httpx.AsyncClient:
    """A client that keeps cookies and says where its requests come from, as browsers do."""
    headers = {"Sec-Fetch-Site": "same-origin"}
    transport = httpx.ASGITransport(app, **more)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url=base_url, headers=headers)


@pytest.fixture
async def http(make: Make) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at an app with the usual settings."""
    async with browser(make()) as client:
        yield client


async def add_user(pool: Pool, name: str = "anna", role: str = "operator", *, must_change: bool = False) -> int:
    """A user with the password above; returns its number."""
    async with pool.connection() as conn:
        cursor = await conn.execute(
            "INSERT INTO users (name, role, password_hash, must_change_password) VALUES (%s, %s, %s, %s) RETURNING id",
            [name, role, cheap_hash(), must_change],
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def log_in(
    http: httpx.AsyncClient, name: str = "anna", password: str = PASSWORD, *, cookie: str | None = None
) -> httpx.Response:
    """Tries to, with that cookie in place of the client's."""
    headers = {}
    if cookie is not None:
        http.cookies.clear()
        headers = {"Cookie": f"menuwatch={cookie}"}
    return await http.post("/api/session", json={"name": name, "password": password}, headers=headers)
