"""The screens, a module each: what one shows and what can be done there."""

from __future__ import annotations

from fastapi import APIRouter

from menuwatch.dashboard.pages import front, hosts, overview, proxies, proxy_intake, stores, task_bulk, tasks, views

ROUTERS: tuple[APIRouter, ...] = (
    front.router,
    task_bulk.router,
    overview.router,
    hosts.router,
    proxy_intake.router,
    proxies.router,
    tasks.router,
    views.router,
    stores.router,
)
"""Every screen."""
