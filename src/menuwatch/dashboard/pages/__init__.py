"""The screens, a module each: what one shows and what can be done there."""

from __future__ import annotations

from fastapi import APIRouter

from menuwatch.dashboard.pages import front, overview

ROUTERS: tuple[APIRouter, ...] = (front.router, overview.router)
"""Every screen."""
