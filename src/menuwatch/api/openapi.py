"""The description of the API (OpenAPI 3.1), as the app serves it and as `menuwatch.api.describe` writes it into `openapi.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from menuwatch.api.problems import MEDIA_TYPE
from menuwatch.api.schemas.common import ProblemDetails
from menuwatch.web.auth import permission_of

DESCRIPTION = """\
**Lists** answer `{"items": […], "next": cursor}`. Ask for the next page with `cursor=` and the same path, order and filters; `next` is
null on the last page. Pages neither lose nor repeat rows when others are added meanwhile. `limit` is 1 to 200, 50 by default.

**Errors** are `application/problem+json` (RFC 9457): `detail` says what is wrong and what would be right, `errors` names single
values, `type` leads to a page about the kind of problem, `trace_id` finds the request in the log. A query parameter that is not known
is an error, not ignored.

**Amounts** are JSON numbers with exactly the stored digits: read them as decimals. **Times** are ISO 8601 in UTC.

**Caching**: every answer to a GET has an `ETag`; `If-None-Match` gets `304`. Archived documents never change.

**Sending again**: a POST with an `Idempotency-Key` is carried out once; sent again within a day it gets the same answer, with
`Idempotent-Replayed: true`. **Changing what others may change**: send the `ETag` that you read as `If-Match`; where it was changed
since, the answer is `412` and holds what it is now, as `current`.

**Access**: everything but the probes, this description and pictures takes a login. Programs send a token, `Authorization: Bearer mw_…`
(`menuwatch tokens create`); browsers the cookie of `POST /api/session`, and then say where a request comes from, as they do by
themselves. Each operation names the permission that it takes, as `x-permission`: a role must have it, and a token its scope.

**Requests** have an id: `X-Request-Id`, taken over when you send one.
"""

TAGS = [
    {
        "name": "catalogue",
        "description": "What stores offer and offered: products, history, changes, brands, categories.",
    },
    {"name": "analytics", "description": "Figures over all stores, with what each of them rests on."},
    {"name": "visitors", "description": "How many look at the public site, without a note of who they are."},
    {"name": "stores", "description": "Shops with a menu."},
    {"name": "payloads", "description": "The archive: raw answers of platforms, whole."},
    {"name": "tasks", "description": "The queue: what is to be done, is being done and was done."},
    {"name": "job queue", "description": "Asking for work: one task, many, or one for every store of a state."},
    {"name": "schedules", "description": "What is enqueued by itself, and what is generated on demand."},
    {
        "name": "workers",
        "description": "Who works, and what they are told; the door for workers that somebody else wrote.",
    },
    {
        "name": "proxies",
        "description": "What every request goes through: adding, testing, taking out and putting back.",
    },
    {"name": "hosts", "description": "Who is asked: how often, how they take it, and saying otherwise."},
    {"name": "attempts", "description": "Every request that was made, and what came of it."},
    {"name": "images", "description": "Pictures of products and logos of brands, in any size and format."},
    {"name": "crawls", "description": "Searching shops by keyword: jobs, their pages, and the products found."},
    {"name": "alerts", "description": "What people want to be told of, what was found, and what was sent."},
    {
        "name": "accounts",
        "description": "Logging in, users and their roles, tokens for programs, and what was done by whom.",
    },
    {"name": "events", "description": "Hearing at once that something changed."},
    {"name": "health", "description": "Probes and metrics."},
]

_UNFAILING = {"healthz", "readyz", "metrics"}


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _, definitions = models_json_schema(
        [(ProblemDetails, "serialization")], ref_template="#/components/schemas/{model}"
    )
    schemas.update(definitions["$defs"])
    problem = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}}
    for path in document["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            for response in responses.values():
                if response["description"] == "Successful Response":
                    response["description"] = "As asked."
            if operation["operationId"] not in _UNFAILING:
                responses["default"] = {"description": "A problem: its `status` is the HTTP status.", **problem}
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: `mw_<number>_<secret>`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "menuwatch",
        "description": "A login. With https the name begins with `__Host-` or `__Secure-`.",
    },
}


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "title": "Idempotency-Key"},
    "description": "A text of your own, as a UUID: the same request sent again with it within a day is not carried out again, and "
    "gets the same answer.",
}


def permissions(routers: Iterable[APIRouter]) -> dict[tuple[str, str], str | None]:
    """What every route takes, by (method, path): a permission, `signed in`, `own account`, or None where it is for everybody."""
    found: dict[tuple[str, str], str | None] = {}
    for route in (route for router in routers for route in router.routes):
        assert isinstance(route, APIRoute), "nothing else is put into them"
        calls = [one.dependency for one in route.dependencies] + [one.call for one in route.dependant.dependencies]
        for method in route.methods or ():
            said = [permission_of(call, method) for call in calls]
            found[method, route.path_format] = next((str(one) for one in said if one is not None), None)
    return found


def _with_access(document: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    document["components"]["securitySchemes"] = _SCHEMES
    document["security"] = [{"token": []}, {"session": []}]
    for (method, path), permission in permissions(routers).items():
        operation = document["paths"].get(path, {}).get(method.lower())
        if operation is None:
            continue
        if method == "POST" and not path.startswith("/api/session"):
            operation["parameters"] = [*operation.get("parameters", ()), _KEY]
        if permission is None:
            operation["security"] = []
        else:
            operation["x-permission"] = permission


def install(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Has the app describe its errors as they are."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = _with_problems(plain())
            _with_access(found, routers)
            app.openapi_schema = found
        return app.openapi_schema

    # FastAPI's own way to adjust the description is to put another function in this place.
    app.openapi = described  # type: ignore[method-assign]


def text(document: dict[str, Any]) -> str:
    """The description as the file has it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
