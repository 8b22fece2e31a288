"""Routes are registered by listing a package, and fixed paths match before parameters."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import Match

from menuwatch.api import routes as api
from menuwatch.dashboard import pages as dashboard
from menuwatch.site import pages as site
from menuwatch.web.routing import include_package

PACKAGES = (api, dashboard, site)


def routes_of(package: ModuleType) -> list[APIRoute]:
    return [route for route in include_package(APIRouter(), package).routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_module_is_registered(package: ModuleType) -> None:
    assert package.__file__ is not None
    modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    registered = {route.endpoint.__module__.rpartition(".")[2] for route in routes_of(package)}
    assert modules == registered


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_route_answers_its_own_path(package: ModuleType) -> None:
    """No route is hidden by an earlier one that accepts its fixed segments as parameters."""
    routes = routes_of(package)
    for route in routes:
        for method in route.methods or ():
            path = re.sub(r"\{[^}]*\}", "7", route.path)
            scope = {"type": "http", "path": path, "method": method}
            first = next(other for other in routes if other.matches(scope)[0] is Match.FULL)
            assert first is route, (method, route.path, first.path)


def test_the_order_is_the_same_every_time_and_fixed_segments_come_first() -> None:
    routes = routes_of(dashboard)
    assert [route.path for route in routes] == [route.path for route in routes_of(dashboard)]
    flags = [["{" in segment for segment in route.path.split("/")] for route in routes]
    assert all(before <= after for before, after in itertools.pairwise(flags))
