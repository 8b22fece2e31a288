"""CSRF protection: refuses requests that another site makes a browser send with our cookie.

Browsers state where a request comes from, and pages cannot change that: in Sec-Fetch-Site, older ones in Origin or Referer. An
unsafe request without any of these is not from one of our pages. Programs send a token and no cookie and are not checked here
(auth.py)."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from menuwatch.web.dependencies import AppContext


class CrossSite(Exception):
    """The request does not come from one of our pages."""


def check(request: Request, *, programs: bool = False) -> None:
    """Raises CrossSite for a request that was not made by one of our pages, or has no origin headers. With `programs` the latter
    passes: no browser made it, and JSON from another site would have needed a CORS preflight."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site not in ("same-origin", "none"):
            raise CrossSite(f"this request comes from another site (Sec-Fetch-Site: {_short(site)})")
        return
    given = request.headers.get("origin") or request.headers.get("referer")
    if given is None:
        if programs:
            return
        raise CrossSite("requests with a session cookie need Sec-Fetch-Site or Origin; programs should send a token")
    system: AppContext = request.app.state.system
    host = request.headers.get("host", "")
    if not _same(given, host, system.settings.public_url):
        raise CrossSite("this request comes from another site; if that site is yours, set PUBLIC_URL to it")


async def same_site(request: Request) -> None:
    """`check` as a dependency, for forms."""
    check(request)


async def same_site_or_program(request: Request) -> None:
    """`check` as a dependency, for what takes JSON alone."""
    check(request, programs=True)


def _same(given: str, host: str, public_url: str | None) -> bool:
    origin = _origin(given)
    if origin is None:
        return False
    ours = [_origin(public_url)] if public_url is not None else []
    # Of a request whose own scheme we cannot know (a proxy may have taken TLS off), the host and port are compared.
    ours.append(_origin(f"{origin[0]}://{host}"))
    return origin in ours


def _origin(url: str) -> tuple[str, str, int] | None:
    """(scheme, host, port), None where it has none (`null`, or nonsense)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _short(text: str) -> str:
    return text if text.isascii() and text.isprintable() and len(text) <= 20 else "?"
