"""The OpenAPI 3.1 description of the API. The app serves it, and `menuwatch.api.export_openapi` writes it to `openapi.json`."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from menuwatch.api.problems import MEDIA_TYPE, ProblemDetails
from menuwatch.api.responses import response_schemas
from menuwatch.web.auth import permission_of

DESCRIPTION = """\
**Lists** return `{"items": […], "next": cursor}`. Request the next page with `cursor=` and the same path, order and filters; `next` is
null on the last page. Pages neither skip nor repeat rows when others are added meanwhile. `limit` is 50 by default; each list
states its maximum. `fields=id,name` returns only these members of each item and leaves out all others, also those that the schema
requires; an unknown name is refused with the valid ones.

**Errors** are `application/problem+json` (RFC 9457): `detail` says what is wrong and how to fix it, `errors` lists invalid
values, `type` links to a page about the kind of problem, `trace_id` finds the request in the log. Unknown query parameters
are errors.

**Amounts** are JSON numbers with exactly the stored digits: parse them as decimals. **Times** are ISO 8601 in UTC.

**Caching**: every response to a GET has an `ETag`; `If-None-Match` gets `304`. Archived documents never change.

**Retries**: a POST with an `Idempotency-Key` is processed once; sent again within a day it gets the same response, with
`Idempotent-Replayed: true`. **Concurrent changes**: send the `ETag` that you read as `If-Match`; if the resource changed
since, the response is `412` with its current state as `current`.

**Authentication**: everything except the probes, this description and images requires a login. Programs send a token,
`Authorization: Bearer mw_…` (`menuwatch tokens create`); browsers send the cookie of `POST /api/session`, together with the
headers that say where a request comes from. Each operation names its permission as `x-permission`: the role must have it, and the
token its scope.

**Examples**: *Execute* on an operation shows the request as curl and in Python. A list, with curl:

    curl -H "Authorization: Bearer $MENUWATCH_TOKEN" 'http://127.0.0.1:8640/api/stores?freshness=stale'

and in Python:

    import json, os, urllib.request

    request = urllib.request.Request("http://127.0.0.1:8640/api/stores?freshness=stale")
    request.add_header("Authorization", f"Bearer {os.environ['MENUWATCH_TOKEN']}")
    print(json.load(urllib.request.urlopen(request))["items"])

**Request ids**: every response has an `X-Request-Id`; one that you send is used.
"""

TAGS = [
    {
        "name": "catalog",
        "description": "Catalog: products, history, changes, brands, categories.",
    },
    {"name": "analytics", "description": "Analytics across all stores, with the data they are based on."},
    {"name": "quality", "description": "Data quality: what is unusual in menus, scores of stores, rules."},
    {"name": "visitors", "description": "Anonymous visitor statistics of the public site."},
    {
        "name": "search",
        "description": "Search for stores, tasks, payloads, hosts, workers, proxies, schedules and users.",
    },
    {"name": "stores", "description": "Stores and their menus."},
    {"name": "locations", "description": "Shops across platforms and licences; licence registers."},
    {"name": "matching", "description": "Products matched across stores: pairs to review, corrections, brands."},
    {"name": "payloads", "description": "Archive: complete raw responses of the platforms."},
    {"name": "tasks", "description": "Tasks of the queue: list, enqueue, retry, cancel, explain."},
    {"name": "job queue", "description": "Bulk enqueueing: one task, a batch, or one task per store of a state."},
    {"name": "schedules", "description": "Recurring schedules and generated tasks."},
    {
        "name": "workers",
        "description": "Workers: registry, commands, and endpoints for third-party workers.",
    },
    {
        "name": "proxies",
        "description": "Proxies: add, test, disable, enable.",
    },
    {"name": "hosts", "description": "Target hosts: rate limits, circuit breaker, pause/resume."},
    {"name": "attempts", "description": "History of requests to platforms."},
    {"name": "images", "description": "Product images and brand logos in any size and format."},
    {"name": "crawls", "description": "Search crawls: find the products of a shop by keyword."},
    {"name": "alerts", "description": "Alert rules, their events and deliveries."},
    {
        "name": "accounts",
        "description": "Sessions, users and roles, API tokens, and the audit log.",
    },
    {"name": "events", "description": "Stream of change events."},
    {"name": "health", "description": "Probes, key figures and metrics."},
    {"name": "settings", "description": "Settings in effect, without secrets."},
]

_UNFAILING = {"healthz", "readyz"}


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, schema in response_schemas(ProblemDetails).items():
        known = schemas.setdefault(name, schema)
        # An enum of inputs and responses: Pydantic and msgspec order its values differently.
        same = known == schema or sorted(known.get("enum", ())) == sorted(schema.get("enum", ("",)))
        assert same, f"two components are named {name}"
    problem = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}}
    for path in document["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            for response in responses.values():
                if response["description"] == "Successful Response":
                    response["description"] = "Successful response."
            if operation["operationId"] not in _UNFAILING:
                responses["default"] = {"description": "An error; its `status` is the HTTP status.", **problem}
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "API token: `mw_<number>_<secret>`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "menuwatch",
        "description": "Session cookie. With https its name begins with `__Host-` or `__Secure-`.",
    },
}


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "title": "Idempotency-Key"},
    "description": "A unique value of your choice, for example a UUID. A request repeated with the same key within a "
    "day is not processed again and gets the same response.",
}


def permissions(router: APIRouter) -> dict[tuple[str, str], str | None]:
    """Requirement of every route by (method, path): a permission, `signed in`, `own account`, or None for public routes."""
    required: dict[tuple[str, str], str | None] = {}
    for route in router.routes:
        assert isinstance(route, APIRoute), "the package of routes holds no others"
        if not route.include_in_schema:
            continue
        calls = [depends.dependency for depends in route.dependencies]
        calls += [dependant.call for dependant in route.dependant.dependencies]
        for method in route.methods or ():
            permissions = [permission_of(call, method) for call in calls]
            required[method, route.path_format] = next((str(each) for each in permissions if each is not None), None)
    return required


def _with_access(document: dict[str, Any], router: APIRouter) -> None:
    document["components"]["securitySchemes"] = _SCHEMES
    document["security"] = [{"token": []}, {"session": []}]
    for (method, path), permission in permissions(router).items():
        operation = document["paths"].get(path, {}).get(method.lower())
        if operation is None:
            continue
        if method == "POST" and not path.startswith("/api/session"):
            operation["parameters"] = [*operation.get("parameters", ()), _KEY]
        if permission is None:
            operation["security"] = []
        else:
            operation["x-permission"] = permission


def install(app: FastAPI, router: APIRouter) -> None:
    """Has the app describe its errors as they are."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = _with_problems(plain())
            _with_access(document, router)
            app.openapi_schema = document
        return app.openapi_schema

    # FastAPI's own way to adjust the description is to put another function in this place.
    app.openapi = described  # type: ignore[method-assign]


def text(document: dict[str, Any]) -> str:
    """The description as the file has it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
