"""The screens, a module each: what one shows and what can be done there."""

from __future__ import annotations

from fastapi import APIRouter

from menuwatch.dashboard.pages import (
    alert_rules,
    alerts,
    audit,
    enqueue,
    failures,
    front,
    generate,
    hosts,
    job_queue,
    overview,
    payloads,
    products,
    proxies,
    proxy_intake,
    schedules,
    stores,
    system,
    task,
    task_bulk,
    task_clone,
    tasks,
    tokens,
    users,
    views,
    visitors,
    workers,
)

ROUTERS: tuple[APIRouter, ...] = (
    front.router,
    task_bulk.router,
    overview.router,
    enqueue.router,
    job_queue.router,
    workers.router,
    alerts.router,
    alert_rules.router,
    audit.router,
    hosts.router,
    proxy_intake.router,
    proxies.router,
    tokens.router,
    system.router,
    users.router,
    visitors.router,
    tasks.router,
    schedules.router,
    generate.router,
    failures.router,
    task_clone.router,
    task.router,
    views.router,
    payloads.router,
    products.router,
    stores.router,
)
"""Every screen."""
