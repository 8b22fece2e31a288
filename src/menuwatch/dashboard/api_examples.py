"""Each list of the dashboard as an API request: with curl and in Python, with the filters of the page."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

from fastapi import Request

from menuwatch.core.errors import Refused
from menuwatch.core.moments import parse_since

LISTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "/tasks": ("/api/tasks", {"q": "q"}),
    "/failures": ("/api/tasks/failures", {"window": "window", "role": "role", "status": "status"}),
    "/workers": ("/api/worker-registry", {"pod": "pod"}),
    "/schedules": ("/api/schedules", {}),
    "/crawls": ("/api/crawl/jobs", {"status": "status"}),
    "/stores": ("/api/stores", {"q": "q", "state": "state", "platform": "platform", "freshness": "freshness"}),
    "/locations": ("/api/locations", {"q": "q", "state": "state", "status": "status"}),
    "/locations/licences": ("/api/licences", {"q": "q", "state": "state"}),
    "/products": (
        "/api/products",
        {
            "q": "q",
            "brand": "brand",
            "stock": "stock",
            "min": "price_min",
            "max": "price_max",
            "sort": "order",
        },
    ),
    "/matching": ("/api/matching/reviews", {"category": "category", "brand": "brand", "impact": "min_impact"}),
    "/matching/corrections": ("/api/matching/corrections", {"by": "made_by", "product": "product"}),
    "/matching/brands": ("/api/matching/brands", {"q": "q"}),
    "/changes": (
        "/api/changes",
        {"kind": "kind", "since": "since", "state": "state", "brand": "brand", "percent": "percent"},
    ),
    "/payloads": ("/api/payloads", {"status": "status"}),
    "/proxies": ("/api/proxies", {"status": "status", "tag": "tag", "q": "q"}),
    "/hosts": ("/api/hosts", {}),
    "/alerts": ("/api/alerts", {}),
    "/alerts/events": ("/api/alerts/events", {"rule": "rule_id"}),
    "/alerts/messages": ("/api/alerts/deliveries", {"rule": "rule_id", "status": "status"}),
    "/visitors": ("/api/visitors", {"since": "since", "until": "until"}),
    "/users": ("/api/users", {}),
    "/users/tokens": ("/api/tokens?all=true", {}),
    "/account/tokens": ("/api/tokens", {}),
    "/audit": ("/api/audit", {"actor": "actor", "action": "action", "kind": "subject_kind", "id": "subject_id"}),
}
"""API path of each list by its path in the dashboard, and API parameters by those of the page that mean the same."""

_LAYOUT = {"cursor", "view", "sort", "rows", "from"}
"""Parameters of a page that are not filters."""
_HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)


class ApiExample(NamedTuple):
    """A request in both forms. `left_out` are filters of the page that it lacks; `mcp` is the address for AI clients."""

    url: str
    mcp: str
    curl: str
    python: str
    left_out: Sequence[str]


def base_url(request: Request) -> str:
    """Base URL of the API, safe in a shell command."""
    public = request.app.state.system.settings.public_url
    if public:
        return str(public).rstrip("/")
    host = request.headers.get("host", "")
    prefix: str = request.scope.get("prefix", "")
    return f"{request.url.scheme}://{host if _HOST.fullmatch(host) else 'localhost'}{prefix}"


def _api_value(path: str, name: str, value: str) -> str:
    """A filter's value as the API takes it: times of changes have a UTC offset there."""
    if (path, name) == ("/changes", "since"):
        with contextlib.suppress(Refused, OverflowError):
            return f"{parse_since(value, datetime.now(UTC)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return value


def of_page(request: Request, path: str) -> ApiExample | None:
    """The request that gives what this list shows; None for a page that is not a list."""
    if path not in LISTS:
        return None
    api, names = LISTS[path]
    given = [
        (name, value)
        for name, value in request.query_params.multi_items()
        if value and name not in _LAYOUT - set(names) and (name, value) != ("since", "all")
    ]
    query = urlencode([(names[name], _api_value(path, name, value)) for name, value in given if name in names])
    joint = "&" if "?" in api else "?"
    url = f"{base_url(request)}{api}{joint + query if query else ''}"
    code = (
        "import json, os, urllib.request\n\n"
        f"request = urllib.request.Request({json.dumps(url)})\n"
        'request.add_header("Authorization", f"Bearer {os.environ[\'MENUWATCH_TOKEN\']}")\n'
        "print(json.load(urllib.request.urlopen(request)))"
    )
    curl = f'curl -H "Authorization: Bearer $MENUWATCH_TOKEN" {shlex.quote(url)}'
    return ApiExample(
        url, f"{base_url(request)}/mcp", curl, code, sorted({name for name, _ in given if name not in names})
    )
