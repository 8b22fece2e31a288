"""How a screen is shown: its page with the frame, the word that a change left behind, and the way back after one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from fastapi import Request
from starlette.responses import RedirectResponse, Response

from menuwatch import __version__
from menuwatch.accounts.model import Principal
from menuwatch.dashboard import commands
from menuwatch.dashboard.screens import NAVIGATION, owner
from menuwatch.web import paging
from menuwatch.web.pages import Pages

T = TypeVar("T")

_FLASH = "menuwatch_said"
_FLASH_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Flash:
    """What is said once, on the page after a change. `kind`: good, warn or bad."""

    text: str
    kind: str = "good"


def principal(request: Request) -> Principal:
    """Who asks; screens are only for who is signed in."""
    found: Principal = request.state.principal
    return found


def root(request: Request) -> str:
    """Where the dashboard lies."""
    return str(request.scope.get("root_path", ""))


def here(request: Request) -> str:
    """The path inside the dashboard, with whatever question mark belongs to it (`request.url` would end there)."""
    path: str = request.scope["path"]
    return path.removeprefix(root(request)) or "/"


def show(
    request: Request, template: str, context: Mapping[str, Any] | None = None, *, live: str = "", status: int = 200
) -> Response:
    """The page of a screen. `live` names the topics whose changes it shows, comma-separated (web/live.py)."""
    pages: Pages = request.app.state.pages
    flash = _said(request)
    commands.root.set(root(request))
    given = {
        "principal": request.state.principal,
        "navigation": NAVIGATION,
        "here": owner(here(request)),
        "version": __version__,
        "flash": flash,
        "live": live,
        "lost_place": getattr(request.state, "lost_place", False),
        **(context or {}),
    }
    answer = pages.render(request, template, given, status=status)
    if flash is not None:
        answer.delete_cookie(_FLASH, path=_cookie_path(request))
    return answer


def place(request: Request, cursor: str | None, kind: type[T]) -> T | None:
    """Where the page of a list begins, as its sort values; None for the first page. That one is shown for a cursor that is no good,
    too, and says so."""
    if not cursor:
        return None
    try:
        return paging.decode(cursor[:1000], kind)
    except paging.BadCursor:
        request.state.lost_place = True
        return None


def back(request: Request, path: str, said: str, kind: str = "good") -> Response:
    """To a page of the dashboard, which says that once."""
    root: str = request.scope.get("root_path", "")
    answer = RedirectResponse(root + path, status_code=303)
    value = base64.urlsafe_b64encode(msgspec.json.encode([said[:1000], kind])).decode()
    answer.set_cookie(_FLASH, value, max_age=_FLASH_SECONDS, path=_cookie_path(request), httponly=True, samesite="lax")
    return answer


def elsewhere(request: Request, path: str) -> Response:
    """To a page of the dashboard, which says nothing of it."""
    root: str = request.scope.get("root_path", "")
    return RedirectResponse(root + path, status_code=303)


def came_from(request: Request) -> str:
    """The page of the dashboard that a form was sent from, with its filters; the screen itself where that is not known."""
    root: str = request.scope.get("root_path", "")
    parts = urlsplit(request.headers.get("referer", ""))
    if parts.netloc == request.headers.get("host") and (parts.path == root or parts.path.startswith(root + "/")):
        return (parts.path.removeprefix(root) or "/") + (f"?{parts.query}" if parts.query else "")
    return owner(here(request))


def query(request: Request, **changes: object) -> str:
    """The address of this page with other filters: None takes one out. The place in the list is not kept."""
    kept = [(k, v) for k, v in request.query_params.multi_items() if k not in changes and k != "cursor"]
    more = [(k, str(v)) for k, v in changes.items() if v is not None]
    text = urlencode(kept + more)
    root: str = request.scope.get("root_path", "")
    return root + here(request) + (f"?{text}" if text else "")


def _cookie_path(request: Request) -> str:
    return str(request.scope.get("root_path", "")) or "/"


def _said(request: Request) -> Flash | None:
    value = request.cookies.get(_FLASH)
    if value is None:
        return None
    try:
        text, kind = msgspec.json.decode(base64.urlsafe_b64decode(value), type=tuple[str, str])
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
    return Flash(text, kind if kind in {"good", "warn", "bad"} else "good")
