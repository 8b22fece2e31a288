"""A shop behind the API, and the dashboard, for tests of interfaces."""

from tests.api.conftest import app, archive, platforms, shop
from tests.dashboard.conftest import admin, apps, viewer

__all__ = ["admin", "app", "apps", "archive", "platforms", "shop", "viewer"]
