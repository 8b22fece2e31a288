"""The same store as the tests of the API have."""

from __future__ import annotations

from tests.api.conftest import app, archive, platforms, shop

__all__ = ["app", "archive", "platforms", "shop"]
