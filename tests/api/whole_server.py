"""The whole server as it is served: every face, and all their routes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from menuwatch.api.app import create_app
from menuwatch.archive.files import FileArchive
from menuwatch.config.settings import Settings
from menuwatch.dashboard.app import create_dashboard
from menuwatch.db.pool import Pool
from menuwatch.platforms.dutchie.adapter import Dutchie
from menuwatch.search_crawl.providers.identities import Identities
from menuwatch.search_crawl.setup import build_sites
from menuwatch.site.app import create_site
from menuwatch.web.dependencies import AppContext
from menuwatch.web.live import Live
from menuwatch.web.request_middleware import Traffic
from menuwatch.web.routing import Apps, over_https


@dataclass(frozen=True, slots=True)
class Whole:
    """A server, its parts, and what it counts."""

    asgi: Apps
    traffic: Traffic
    apps: tuple[tuple[str, FastAPI], ...]
    """Each with the path that it lies below."""

    def routes(self) -> Iterator[tuple[str, str]]:
        """Method and address of every route, with numbers and names that nothing has."""
        for below, app in self.apps:
            for route in _listed(app.routes):
                path = re.sub(r"\{(\w+):path\}|\{(\w+)(:int)?\}", lambda found: _value(found[2] or "x"), route.path)
                for method in sorted(route.methods):
                    yield method, below + path

    def counted(self) -> dict[tuple[str, str], int]:
        """How many requests there were, by route and status."""
        (metric,) = self.traffic.requests.collect()
        return {
            (one.labels["route"], one.labels["status"]): int(one.value)
            for one in metric.samples
            if one.name.endswith("_total")
        }


def whole(pool: Pool, folder: Path, **values: Any) -> Whole:
    """With these settings."""
    settings = Settings(home=folder, **values)
    own = Identities(pool)
    system = AppContext(
        pool=pool,
        archive=FileArchive(folder / "storage"),
        platforms={"dutchie": Dutchie()},
        settings=settings,
        sites=build_sites(settings),
        providers={own.name: own},
    )
    traffic, live = Traffic(), Live(pool)
    api, dashboard, site = (
        create_app(system, traffic, live),
        create_dashboard(system, traffic, live),
        create_site(system, traffic),
    )
    asgi = Apps(api=api, dashboard=dashboard, site=site, https=over_https(settings.public_url))
    return Whole(asgi, traffic, (("", api), ("/admin", dashboard), ("", site)))


def _listed(routes: Iterable[Any]) -> Iterator[Any]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from _listed(inner.routes)


def _value(name: str) -> str:
    return "999" if name.endswith("_id") or name == "number" else "none"
