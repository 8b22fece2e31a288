"""Rendering of screens, pages of lists, and redirects after a change with a message for the next page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlencode, urlsplit

import msgspec
from fastapi import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match

from menuwatch import __version__
from menuwatch.accounts.model import Permission, Principal
from menuwatch.core.errors import Refused
from menuwatch.dashboard import api_examples
from menuwatch.dashboard import command_links as commands
from menuwatch.dashboard.navigation import NAVIGATION, owner
from menuwatch.platforms.base import label_of
from menuwatch.web import paging
from menuwatch.web.forms import FormInput
from menuwatch.web.pages import FRAGMENT, Pages

T = TypeVar("T")
R = TypeVar("R")

_FLASH = "menuwatch_said"
_FLASH_SECONDS = 60
_LARGEST_UNDO = 2000
"""Bytes of the form that reverses a change. The message is kept in a cookie, which may have 4,096."""


class Undo(msgspec.Struct, frozen=True, array_like=True):
    """The form that reverses a change: its path in the dashboard, and its fields."""

    path: str
    fields: list[tuple[str, str]] = []


class Flash(msgspec.Struct, frozen=True, array_like=True):
    """A message shown once, on the page after a change, with a button that reverses the change if `undo` is given. `kind`: good, warn
    or bad."""

    text: str
    kind: str = "good"
    undo: Undo | None = None


def principal(request: Request) -> Principal:
    """The request's principal; screens require a login."""
    user: Principal = request.state.principal
    return user


def may(request: Request, permission: Permission) -> bool:
    return principal(request).may(permission)


def root(request: Request) -> str:
    """Path below which the dashboard is served, `/admin` or `/prefix/admin`."""
    return str(request.scope.get("root_path", ""))


def current_path(request: Request) -> str:
    """The path inside the dashboard. It may contain a question mark, where `request.url` would end."""
    path: str = request.scope["path"]
    return path.removeprefix(root(request)) or "/"


def render(
    request: Request, template: str, context: Mapping[str, Any], *, live: str = "", status: int | None = None
) -> Response:
    """Renders a screen. `live` names the topics that update it, comma-separated (web/live.py). `status` is by default 422 where
    the context's `form` has errors."""
    pages: Pages = request.app.state.pages
    flash = _read_flash(request)
    commands.root.set(root(request))
    form = context.get("form")
    if status is None:
        status = 422 if isinstance(form, FormInput) and not form.ok else 200
    frame = {
        "principal": request.state.principal,
        "navigation": NAVIGATION,
        "here": owner(current_path(request)),
        "version": __version__,
        "flash": flash,
        "live": live,
        "badges": getattr(request.state, "badges", {}),
        "lost_place": getattr(request.state, "lost_place", False),
        "query": lambda **changes: query(request, **changes),
        "api": api_examples.of_page(request, current_path(request)),
    }
    response = pages.render(request, template, {**frame, **context}, status=status)
    if flash is not None:
        response.delete_cookie(_FLASH, path=root(request) or "/")
    return response


def refuse_invalid(form: FormInput) -> None:
    """Raises Refused naming the invalid values of a form, where there is no page to show them on."""
    if not form.ok:
        raise Refused("; ".join(f"{name}: {text}" if name else text for name, text in form.errors.items()))


def platform_choices(request: Request, names: Iterable[str]) -> list[tuple[str, str]]:
    """(name, label) of these platforms, for the options of a field."""
    return [(name, label_of(request.app.state.system.platforms, name)) for name in names]


def parse_cursor(request: Request, cursor: str | None, kind: type[T]) -> T | None:
    """The cursor of a list page, as sort values; None for the first page. An invalid cursor gives the first page, with a notice."""
    if not cursor:
        return None
    try:
        return paging.decode(cursor[:1000], kind)
    except paging.BadCursor:
        request.state.lost_place = True
        return None


def parse_number_cursor(request: Request, cursor: str | None) -> int | None:
    """The cursor of a list in the order of a number."""
    after = parse_cursor(request, cursor, tuple[int])
    return after[0] if after else None


def paginate(request: Request, rows: Sequence[R], size: int, *keys: str) -> tuple[Sequence[R], dict[str, str | None]]:
    """The first `size` of up to `size + 1` rows, and template context with the links to the next and the first page. `keys` are the
    fields by which the list is ordered."""
    shown = rows[:size]
    after = None
    if len(rows) > size:
        last = shown[-1]
        after = paging.encode(*(last[key] if isinstance(last, Mapping) else getattr(last, key) for key in keys))
    return shown, page_links(request, after)


def page_links(request: Request, after: str | None) -> dict[str, str | None]:
    """Template context with the links to the page behind the cursor `after`, and to the first page."""
    on_first = not request.query_params.get("cursor") or getattr(request.state, "lost_place", False)
    return {
        "next_href": query(request, cursor=after) if after else None,
        "first_href": None if on_first else query(request),
    }


def flash_to(request: Request, path: str, text: str, kind: str = "good", undo: Undo | None = None) -> Response:
    """Redirects to a page of the dashboard that shows the message once."""
    response = redirect(request, path)
    flash = Flash(text[:1000], kind, undo)
    if undo is not None and len(msgspec.json.encode(undo)) > _LARGEST_UNDO:
        flash = Flash(text[:1000], kind)
    value = base64.urlsafe_b64encode(msgspec.json.encode(flash)).decode()
    response.set_cookie(_FLASH, value, max_age=_FLASH_SECONDS, path=root(request) or "/", httponly=True, samesite="lax")
    return response


def flash_back(request: Request, text: str, kind: str = "good", undo: Undo | None = None) -> Response:
    """Redirects to the page that the form was sent from, which shows the message once."""
    return flash_to(request, referer_path(request), text, kind, undo)


def redirect(request: Request, path: str) -> Response:
    """Redirects to a page of the dashboard without a message. A request of app.js gets the address as `X-Location`: the browser opens
    another page itself, so that the page's message, scripts and live updates are its own."""
    if FRAGMENT in request.headers:
        return Response(status_code=204, headers={"X-Location": root(request) + path, "Cache-Control": "no-store"})
    return RedirectResponse(root(request) + path, status_code=303)


def referer_path(request: Request) -> str:
    """The page of the dashboard that a form was sent from, with its filters. If that is unknown, or has no address of its own, the
    screen that the form's address belongs to, or the nearest page above it."""
    below = root(request)
    try:
        parts = urlsplit(request.headers.get("referer", ""))
    except ValueError:  # a program's header, or a forged one
        return owner(current_path(request))
    if parts.netloc == request.headers.get("host") and (parts.path == below or parts.path.startswith(below + "/")):
        path = parts.path.removeprefix(below) or "/"
        if _opens(request, path):
            return path + (f"?{parts.query}" if parts.query else "")
    path = owner(current_path(request))
    while not _opens(request, path):
        path = path.rpartition("/")[0] or "/"
    return path


def _opens(request: Request, path: str) -> bool:
    """Whether there is a page at this path of the dashboard: some addresses only take forms."""
    scope = {**request.scope, "method": "GET", "path": root(request) + unquote(path)}
    return path == "/" or any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


def query(request: Request, **changes: object) -> str:
    """The address of the first page of this list with other filters; None removes one."""
    kept = [(k, v) for k, v in request.query_params.multi_items() if k not in changes and not _is_place(k, v)]
    more = [(k, str(v)) for k, v in changes.items() if v is not None]
    text = urlencode(kept + more)
    return root(request) + current_path(request) + (f"?{text}" if text else "")


def _is_place(name: str, value: str) -> bool:
    """Whether a parameter says where in a list a page is. `from` is a row's number, or in reports a day, which is a filter."""
    return name == "cursor" or (name == "from" and value.isdecimal())


def _read_flash(request: Request) -> Flash | None:
    value = request.cookies.get(_FLASH)
    if value is None:
        return None
    try:
        flash = msgspec.json.decode(base64.urlsafe_b64decode(value), type=Flash)
    except (binascii.Error, msgspec.MsgspecError, ValueError):
        return None
    return flash if flash.kind in {"good", "warn", "bad"} else None
