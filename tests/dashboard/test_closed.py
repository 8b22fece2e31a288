"""Every route of the dashboard says what it takes, and nothing is changed by whoever may only look."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.routing import APIRoute

from menuwatch.accounts.model import ALLOWED, Permission, Role
from menuwatch.dashboard import pages
from menuwatch.web.auth import permission_of
from menuwatch.web.routing import include_package

OPEN = {("GET", "/login"), ("POST", "/login")}
OWN = {
    "/views", "/views/{view_id}/remove", "/account", "/account/tokens", "/account/tokens/{token_id}/revoke", "/logout",
    "/setup/dismiss",
}  # fmt: skip
"""What one changes of oneself."""


def requirements() -> dict[tuple[str, str], set[Permission | str]]:
    found = {}
    for route in include_package(APIRouter(), pages).routes:
        assert isinstance(route, APIRoute)
        calls = [one.dependency for one in route.dependencies] + [one.call for one in route.dependant.dependencies]
        for method in route.methods or ():
            found[method, route.path] = {said for call in calls if (said := permission_of(call, method)) is not None}
    return found


def test_no_route_is_open() -> None:
    said = requirements()
    assert len(said) > 80
    assert {key for key, takes in said.items() if not takes} == OPEN


def test_whoever_may_only_look_changes_nothing() -> None:
    viewer = ALLOWED[Role.VIEWER]
    by_viewers = {
        path
        for (method, path), takes in requirements().items()
        if method != "GET" and (method, path) not in OPEN and takes <= viewer | {"own account", "signed in"}
    }
    assert by_viewers == OWN


def test_accounts_are_for_admins() -> None:
    for (method, path), takes in requirements().items():
        if path.startswith(("/users", "/audit")):
            assert Permission.ACCOUNTS in takes, (method, path)
