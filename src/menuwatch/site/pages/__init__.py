"""The pages of the public site, one file each."""

from __future__ import annotations

from fastapi import APIRouter

from menuwatch.site.pages import about, brands, home, items, machines, results, stores, watching

ROUTERS: tuple[APIRouter, ...] = (
    home.router,
    results.router,
    items.router,
    watching.router,
    stores.router,
    brands.router,
    about.router,
    machines.router,
)
