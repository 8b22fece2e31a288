"""A served API, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from fastapi import FastAPI

from tests.api.conftest import app, archive, platforms, shop
from tests.api.serving import serving
from tests.api.shop import Shop
from tests.users_fixture import token

__all__ = ["app", "archive", "platforms", "shop"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API is, and a token of an administrator."""

    url: str
    token: str


@pytest.fixture
async def address(app: FastAPI, shop: Shop) -> AsyncIterator[Address]:
    """The API of `shop` on a socket."""
    async with serving(app) as port:
        yield Address(f"http://127.0.0.1:{port}", await token(shop.pool, name="client"))
