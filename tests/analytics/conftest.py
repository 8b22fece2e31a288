"""The app with a store or more, as tests of the API have it."""

from tests.api.conftest import app, archive, platforms, shop

__all__ = ["app", "archive", "platforms", "shop"]
