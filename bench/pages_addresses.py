"""Which addresses are asked: every list of the API with what people filter and sort it by, and every page.

New screens are added to PAGES; an address that is neither there nor in one of the tables of what is left out is told by
`never_asked`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from fastapi.routing import APIRoute

from menuwatch.dashboard import login
from menuwatch.dashboard.pages import ROUTERS as DASHBOARD
from menuwatch.site.pages import ROUTERS as SITE

OPENAPI = Path(__file__).parents[1] / "openapi.json"

API_LEFT_OUT = {
    "/api/export/{what}": "a stream of everything",
    "/api/events": "a stream without an end",
    "/api/payloads/{payload_id}/data": "a file of the archive",
    "/img/{path}": "a picture",
    "/healthz": "no list",
    "/readyz": "no list",
    **dict.fromkeys(
        [
            "/api/crawl/jobs/{job_id}",
            "/api/crawl/jobs/{job_id}/items",
            "/api/crawl/jobs/{job_id}/attempts",
            "/api/crawl/jobs/{job_id}/products",
            "/api/crawl/jobs/{job_id}/products/{product_id}",
        ],
        "the fill makes no crawl jobs",
    ),
}
"""Paths of the API that are no page and no list, and why."""

QUERIES: dict[str, list[str]] = {
    "/api/tasks": [
        "",
        "limit=200",
        "status=failed",
        "status=pending",
        "status=running",
        "status=failed&status=cancelled",
        "role=payload_fetch",
        "role=store_discovery",
        "role=product_refresh&status=failed",
        "dispensary_id={store_id}",
        "platform=dutchie",
        "worker_id={worker_id}",
        "worker_id=nobody",
        "error=HTTP%20503",
        "error=never%20said",
        "created_after={hour_ago}",
        "created_before={week_ago}",
        "q=role:payload_fetch%20state:failed%20created:%3E=-24h",
        "q=args.payload_id:{payload_id}",
        "q=priority:%3E=20",
        "q=id:{task_id}",
        "q=store:{slug}%20state:failed",
        "q=cause:{cause}",
        "q=ended:%3E=-1h%20state:failed",
        "q=state:pending%20HTTP",
        "q=refused%20connection",
    ],
    "/api/tasks/counts": [
        "",
        "status=failed",
        "role=payload_fetch",
        "dispensary_id={store_id}",
        "platform=dutchie",
        "worker_id={worker_id}",
        "error=HTTP%20503",
        "created_after={hour_ago}",
        "created_after={week_ago}",
        "created_before={week_ago}",
        "q=cause:{cause}",
        "q=priority:%3E=20",
        "q=ended:%3E=-24h",
    ],
    "/api/worker-registry": ["", "alive=true", "status=stopped", "role=payload_fetch", "pod=Xylos"],
    "/api/payloads": ["", "status=quarantined", "status=partial", "dispensary_id={store_id}"],
    "/api/payloads/store/{dispensary_id}": ["", "status=quarantined"],
    "/api/stores": ["", "state=AZ", "state=AZ&state=NV", "q=leaf", "q=nowhere", "crawl_enabled=false", "limit=200"],
    "/api/stores/{store_id}/products": [
        "",
        "order=price",
        "order=-price",
        "order=updated",
        "stock=in_stock",
        "q=haze",
        "category=Flower",
    ],
    "/api/products": [
        "",
        "limit=200",
        "order=price",
        "order=-price",
        "order=updated",
        "q=haze",
        "q=zanzibar",
        "q=nothing%20like%20it",
        "brand=Lucent",
        "brand=Nowhere%20Else%20Farms",
        "brand=Nobody",
        "category=Flower",
        "category_canon=edible",
        "category_canon=edible&order=price",
        "strain_type=Sativa",
        "stock=oos",
        "stock=in_stock&order=price",
        "present=false",
        "price_max=10",
        "price_min=60&order=-price",
        "store={store_id}",
        "store={store_id}&order=price",
        "q=haze&order=updated",
        "q=zanzibar&order=price",
        "brand=Lucent&order=-price",
        "brand=Lucent&category=Flower&stock=in_stock",
    ],
    "/api/products/{product_id}/history": ["", "since={week_ago}"],
    "/api/products/{product_id}/snapshots": ["", "since={week_ago}"],
    "/api/brands": ["", "q=luc", "store={store_id}", "q=nobody"],
    "/api/categories": ["", "q=flow", "store={store_id}"],
    "/api/changes": [
        "",
        "limit=200",
        "kind=price_drop",
        "kind=back_in_stock",
        "kind=out_of_stock",
        "state=AZ",
        "state=AZ&category_canon=edible",
        "store={store_id}",
        "store={store_id}&kind=price_drop",
        "brand=Lucent",
        "brand=Nowhere%20Else%20Farms",
        "brand=Nobody",
        "state=WY",
        "category_canon=oral",
        "state=AZ&category_canon=topical&kind=back_in_stock",
        "kind=back_in_stock&state=NV",
        "since={hour_ago}",
        "since={week_ago}&until={day_ago}",
    ],
    "/api/changes/feed": ["", "kind=price_drop", "state=AZ", "store={store_id}", "brand=Lucent"],
    "/api/analytics/price-per-gram": ["", "state=AZ"],
    "/api/analytics/brands": ["", "state=AZ", "brand=Lucent"],
    "/api/analytics/out-of-stock": ["", "by=store", "state=AZ"],
    "/api/analytics/out-of-stock/products": ["", "store={store_id}", "brand=Lucent", "state=AZ"],
    "/api/analytics/new-and-gone": ["", "store={store_id}", "state=AZ"],
    "/api/analytics/stores": ["", "state=AZ", "stale=true"],
    "/api/analytics/coverage": ["", "state=AZ"],
    "/api/proxies": ["", "active=true", "active=false"],
    "/api/attempts": [
        "",
        "verdict=blocked",
        "verdict=challenge",
        "host=dutchie.com",
        "host=nobody.invalid",
        "proxy_id=7",
        "dispensary_id={store_id}",
        "task_id={fetch_id}",
        "since={hour_ago}",
        "verdict=blocked&proxy_id=7",
    ],
    "/api/alerts/events": ["", "rule_id={rule_id}"],
    "/api/alerts/deliveries": ["", "status=failed", "rule_id={rule_id}"],
    "/api/audit": ["", "action=task_cancelled", "since={week_ago}"],
}
"""By path of the API, the queries that it is asked with; paths that are not here are asked without one."""

DEEP = {
    "/api/tasks",
    "/api/payloads",
    "/api/products",
    "/api/changes",
    "/api/changes/feed",
    "/api/attempts",
    "/api/stores",
    "/api/brands",
    "/api/alerts/events",
}
"""Lists of which pages in the middle and far down are asked as well, by following `next`."""

PAGES = [
    "/admin/",
    "/admin/?hours=24",
    "/admin/job-queue",
    "/admin/job-queue/timeline",
    "/admin/job-queue/enqueue?role=payload_fetch&scope=due",
    "/admin/tasks",
    "/admin/tasks?q=state:failed",
    "/admin/tasks?q=state:pending%20store:{slug}",
    "/admin/tasks?q=refused%20connection",
    "/admin/tasks/suggest?q=store:a&at=7",
    "/admin/tasks/suggest?q=error:%20ho&at=9",
    "/admin/tasks/bulk?act=retry&all=true&q=state:failed%20ended:%3E%3D-24h",
    "/admin/tasks/{task_id}",
    "/admin/tasks/{task_id}/clone",
    "/admin/failures",
    "/admin/failures?window=7d",
    "/admin/workers",
    "/admin/workers/{worker_id}",
    "/admin/schedules",
    "/admin/schedules/{schedule_id}",
    "/admin/schedules/resync",
    "/admin/schedules/discovery",
    "/admin/stores",
    "/admin/stores?state=AZ",
    "/admin/stores/new",
    "/admin/stores/{store_id}",
    "/admin/stores/{store_id}/menu",
    "/admin/products",
    "/admin/products?q=haze",
    "/admin/products?q=haze&sort=price",
    "/admin/products?brand=Lucent&stock=oos",
    "/admin/products?strain=sativa&on=menu",
    "/admin/products?state=AZ&category=edible&special=yes",
    "/admin/products/{product_id}",
    "/admin/payloads",
    "/admin/payloads/{payload_id}",
    "/admin/payloads/{real_payload}/data",
    "/admin/payloads/{real_payload}/diff",
    "/admin/images",
    "/admin/proxies",
    "/admin/proxies/{proxy_id}",
    "/admin/proxies/add",
    "/admin/proxies/import",
    "/admin/hosts",
    "/admin/hosts/{host}",
    "/admin/alerts",
    "/admin/alerts/add?product_id={product_id}",
    "/admin/alerts/events",
    "/admin/alerts/messages",
    "/admin/alerts/{rule_id}",
    "/admin/visitors",
    "/admin/system",
    "/admin/system/settings",
    "/admin/system/doctor",
    "/admin/system/former",
    "/admin/users",
    "/admin/users/add",
    "/admin/users/tokens",
    "/admin/users/{user_id}",
    "/admin/audit",
    "/admin/crawls",
    "/admin/account",
    "/admin/account/tokens",
    "/",
    "/?near=85001",
    "/search",
    "/search?q=haze",
    "/search?q=dream",
    "/search?q=blue+dream",
    "/search?q=blue+dream+cartridge",
    "/search?q=drea",
    "/search?q=zanzibar",
    "/search?q=zanzbar",
    "/search?q=lucent+haze",
    "/search?q=nothing+like+it",
    "/search?q=haze&sort=price",
    "/search?q=haze&sort=newest",
    "/search?q=flower",
    "/search?category=flower&sort=price",
    "/search?category=flower&strain=sativa&size=3.5+g&max=40",
    "/search?category=edible&sort=per_gram&stock=1",
    "/search?brand={brand}",
    "/search?brand={brand}&sort=price",
    "/search?store={store_id}",
    "/search?store={store_id}&category=flower",
    "/search?special=1",
    "/search?special=1&sort=newest",
    "/search?stock=1&sort=thc&thc_min=25",
    "/search?min=10&max=20",
    "/search?gram=5",
    "/search?near=85001",
    "/search?near=Denver%2C+CO&within=100&sort=distance",
    "/search?q=gummies&near=85001",
    "/search?q=haze&near=85001&within=100&sort=price",
    "/stores",
    "/stores?near=85001",
    "/stores/AZ",
    "/p/{item}",
    "/p/{item}?near=85001",
    "/s/{store}",
    "/b/{brand}",
    "/b/{brand}?near=85001",
    "/about",
    "/alerts/sent",
    "/alerts/ended",
    "/robots.txt",
    "/sitemap.xml",
]
"""Pages for people. `{item}`, `{store}` and `{brand}` are what the site calls them: a number with a name, or a name alone."""

PAGES_LEFT_OUT = {
    "/admin/live": "a stream without an end",
    "/admin/jump": "leads elsewhere",
    "/admin/login": "leads elsewhere, where somebody has logged in",
    "/admin/users/{user_id}/password": "leads to the user",
    "/admin/payloads/{payload_id}/replay": "does all of a refresh, and takes it back",
    "/alerts/{token}": "somebody's own: one row by its key",
    "/alerts/{token}/confirm": "somebody's own: one row by its key",
    "/alerts/{token}/stop": "somebody's own: one row by its key",
    "/feeds/{token}.atom": "somebody's own: one row by its key",
    "/sitemap-{part}.xml": "a stream of 50,000 addresses",
    **dict.fromkeys(
        [
            "/admin/crawls/{job_id}",
            "/admin/crawls/{job_id}/pages",
            "/admin/crawls/{job_id}/products",
            "/admin/crawls/{job_id}/products/{product_id}",
            "/admin/crawls/{job_id}/submissions",
        ],
        "the fill makes no crawl jobs",
    ),
}
"""Pages that are not asked, and why."""


def _routes(prefix: str, routers: Iterable[object]) -> list[tuple[str, re.Pattern[str]]]:
    """What can be asked there, in the order in which it is looked for: (address, what fits it)."""
    found = [one for router in routers for one in router.routes if isinstance(one, APIRoute) and "GET" in one.methods]  # type: ignore[attr-defined]
    return [(prefix + one.path, one.path_regex) for one in found]


def never_asked() -> list[str]:
    """Addresses with an answer to GET that nothing above asks, and that are not said to be left out."""
    described = json.loads(OPENAPI.read_text())["paths"]
    # Every path of the API that is not left out is asked; a name that is left out must be one.
    missed = [f"{path} (is left out, and is no path)" for path in API_LEFT_OUT if path not in described]
    for prefix, routes in {
        "/admin": _routes("/admin", (login.router, *DASHBOARD)),
        "": _routes("", SITE),
    }.items():
        plain = [re.sub(r"\{\w+\}", "1", page.partition("?")[0]) for page in PAGES]
        asked = set()
        for page in (page for page in plain if page.startswith("/admin/") == bool(prefix)):
            fitting = (path for path, fits in routes if fits.match(page.removeprefix(prefix) or "/"))
            # A router's own "" below a prefix is asked without the slash, which the pattern has not either.
            if path := next(fitting, None):
                asked.add(path)
        known = {path for path, _ in routes}
        missed += sorted(known - asked - set(PAGES_LEFT_OUT))
        left = {one for one in PAGES_LEFT_OUT if one.startswith("/admin/") == bool(prefix)}
        missed += [f"{path} (is left out, and is no page)" for path in sorted(left - known)]
    return missed
