"""Every endpoint and everybody: who may what, by a table of its own."""

from __future__ import annotations

import re

import httpx
import pytest

from menuwatch.accounts.model import Permission
from menuwatch.api.app import bare_app
from menuwatch.api.openapi import permissions
from menuwatch.db.pool import Pool
from tests.accounts.conftest import Make
from tests.api.conftest import description
from tests.users_fixture import bearer

P = Permission

WEBHOOK = ("POST", "/api/crawl/webhook/{secret}")
"""For whoever knows the secret in its address (tests/search_crawl/test_webhook.py); everybody else gets 401, signed in or not."""
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/img/{path}"), ("POST", "/api/session"), WEBHOOK}
ANYBODY = {("GET", "/api/session"), ("DELETE", "/api/session"), ("POST", "/api/session/password")}
WRITES = {
    "/api/worker-registry/register": P.RUN_TASKS,
    "/api/worker-registry/heartbeat": P.RUN_TASKS,
    "/api/worker-registry/deregister": P.RUN_TASKS,
    "/api/worker-registry/{worker_id}/claim": P.RUN_TASKS,
    "/api/worker-registry/{worker_id}/tasks": P.RUN_TASKS,
    "/api/tasks/generate": P.SCHEDULES,
    "/api/tasks": P.TASKS,
    "/api/job-queue": P.TASKS,
    "/api/schedules": P.SCHEDULES,
    "/api/discovery": P.SCHEDULES,
    "/api/worker-registry": P.WORKERS,
    "/api/workers": P.WORKERS,
    "/api/payloads": P.PAYLOADS,
    "/api/stores": P.STORES,
    "/api/locations": P.STORES,
    "/api/licences": P.STORES,
    "/api/proxies": P.PROXIES,
    "/api/hosts": P.HOSTS,
    "/api/alerts": P.ALERTS,
    "/api/quality": P.ALERTS,
    "/api/matching": P.MATCHING,
    "/api/crawl/jobs": P.TASKS,
}
READS = (
    "/metrics",
    "/api/products",
    "/api/brands",
    "/api/categories",
    "/api/changes",
    "/api/canonical-products",
    "/api/canonical-products/{canonical_product_id}",
    "/api/analytics",
    "/api/attempts",
    "/api/visitors",
    "/api/overview",
    "/api/search",
    "/api/settings",
    "/api/events",
    *WRITES,
)
ADMINS = ("/api/users", "/api/audit")
VIEWER = {P.READ, P.EXPORT}
OPERATOR = set(P) - {P.ACCOUNTS}
PROGRAMS_NEED = {"/api/tokens": P.ACCOUNTS}
"""What a token needs where whoever is logged in needs nothing."""
STREAMS = {"/api/events"}
"""Who is let in there stays: of these only the refusals are looked at."""


def _below(path: str, own: str) -> bool:
    return path == own or path.startswith(own + "/")


def needs(method: str, path: str) -> P | None:
    """What this takes of a program; None: nothing but to be known."""
    if (method, path) in ANYBODY:
        return None
    for own, permission in PROGRAMS_NEED.items():
        if _below(path, own):
            return permission
    if _below(path, "/api/export"):
        return P.EXPORT
    if any(_below(path, own) for own in ADMINS):
        return P.ACCOUNTS
    if _below(path, "/api/views"):  # everybody's own
        return P.READ
    if method == "GET" and any(_below(path, own) for own in READS):
        return P.READ
    for own, permission in WRITES.items():
        if method != "GET" and _below(path, own):
            return permission
    raise AssertionError(f"{method} {path} is not in the table: say who may do it")


def _operations() -> list[tuple[str, str]]:
    return [(method.upper(), path) for path, methods in description()["paths"].items() for method in methods]


def address_of_nothing(path: str) -> str:
    """Something that is not there, so that nothing is done."""
    named = {
        "role": "payload_fetch",
        "what": "changes",
        "host": "nobody.test",
        "worker_id": "nobody",
        "path": "nothing",
    }
    return re.sub(r"\{(\w+)\}", lambda found: named.get(found[1], "999999"), path)


async def test_every_endpoint_and_everybody(make: Make, pool: Pool) -> None:
    """One request for each endpoint and each of: nobody, a viewer, an operator, an admin, a token with the one scope that it takes, a
    token with all but that one; and for good measure a token that never was."""
    roles = {
        "viewer": (await bearer(pool, name="v", role="viewer"), VIEWER),
        "operator": (await bearer(pool, name="o", role="operator"), OPERATOR),
        "admin": (await bearer(pool, name="a", role="admin"), set(P)),
    }
    alone = {one: await bearer(pool, name="a", scopes=[one]) for one in P}
    without = {one: await bearer(pool, name="a", scopes=[other for other in P if other is not one]) for one in P}
    wrong = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make()), base_url="http://menuwatch") as http:

        async def ask(method: str, path: str, headers: dict[str, str], expected: bool, who: str) -> None:
            if expected and path in STREAMS:
                return
            answer = await http.request(method, address_of_nothing(path), headers=headers)
            let_in = answer.status_code not in (401, 403)
            if let_in != expected or answer.status_code >= 500:
                wrong.append(f"{who}: {method} {path} -> {answer.status_code}")
            if answer.status_code == 401 and "www-authenticate" not in answer.headers:
                wrong.append(f"{who}: {method} {path}: no WWW-Authenticate")

        for method, path in _operations():
            is_open = (method, path) in OPEN
            await ask(method, path, {}, is_open and (method, path) != WEBHOOK, "nobody")
            if is_open:
                continue
            await ask(method, path, {"Authorization": f"Bearer mw_1_{'0' * 64}"}, False, "a wrong token")
            if (method, path) == ("DELETE", "/api/session"):
                continue  # a token has no session to end
            permission = needs(method, path)
            for name, (headers, may) in roles.items():
                await ask(method, path, headers, permission is None or permission in may, name)
            if permission is not None:
                await ask(method, path, alone[permission], True, f"a token with {permission} alone")
                await ask(method, path, without[permission], False, f"a token with all but {permission}")
    assert wrong == []


def test_no_route_forgets_to_say_what_it_takes() -> None:
    required = permissions(bare_app().state.router)
    assert {(method, path) for (method, path) in _operations()} == set(required)
    assert {key for key, permission in required.items() if permission is None} == OPEN


def test_the_description_says_it_too() -> None:
    document, required = description(), permissions(bare_app().state.router)
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}
    for method, path in _operations():
        operation = document["paths"][path][method.lower()]
        assert (operation.get("security") == []) == ((method, path) in OPEN)
        if (method, path) not in OPEN:
            assert operation["x-permission"] == str(required[method, path])


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/session/x", "/api/../api/users", "/metrics/"])
async def test_nobody_learns_what_there_is(http: httpx.AsyncClient, path: str) -> None:
    for method in ("GET", "POST", "PUT", "TRACE"):
        answer = await http.request(method, path)
        assert answer.status_code == 401, (method, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/docs", "/openapi.json", "/problems/forbidden"])
async def test_what_is_for_everybody(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.get(path)).status_code in (200, 503)
    # Also with a token that is no good any more.
    assert (await http.get(path, headers={"Authorization": "Bearer mw_1_x"})).status_code in (200, 503)


async def test_a_body_of_nobody_is_not_read(http: httpx.AsyncClient) -> None:
    answer = await http.post("/api/tasks", content=b"{not json", headers={"Content-Type": "application/json"})
    assert answer.status_code == 401, "it would be 400 had somebody looked at it"


async def test_a_refusal_names_what_it_takes(http: httpx.AsyncClient, pool: Pool) -> None:
    answer = await http.post("/api/tasks", json={}, headers=await bearer(pool, name="v", role="viewer"))
    problem = answer.json()
    assert (answer.status_code, problem["type"], problem["permission"]) == (403, "/problems/forbidden", "tasks:write")
    answer = await http.get("/api/tasks")
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/login-needed")
    assert answer.headers["www-authenticate"] == 'Bearer realm="menuwatch"'
    answer = await http.get("/api/tasks", headers={"Authorization": "Bearer nonsense"})
    assert answer.headers["www-authenticate"] == 'Bearer realm="menuwatch", error="invalid_token"'
