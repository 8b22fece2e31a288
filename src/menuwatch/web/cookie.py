"""The session cookie: its name and scope, as narrow as PUBLIC_URL allows.

| PUBLIC_URL | name | sent to |
|---|---|---|
| https, no path | `__Host-menuwatch` | that host alone, over TLS; no other host can set it |
| https, with a path | `__Secure-menuwatch` | below that path, over TLS |
| http, or unset | `menuwatch` | below that path |
"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct
from starlette.responses import Response

from menuwatch.config.settings import Settings


class Cookie(Struct, frozen=True, kw_only=True):
    """How the cookie is set."""

    name: str
    path: str
    secure: bool
    seconds: int

    def put(self, response: Response, secret: str) -> None:
        """Gives it to the browser."""
        response.set_cookie(
            self.name,
            secret,
            max_age=self.seconds,
            path=self.path,
            secure=self.secure,
            httponly=True,
            samesite="lax",
        )

    def take(self, response: Response) -> None:
        """Has the browser forget it."""
        response.delete_cookie(self.name, path=self.path, secure=self.secure, httponly=True, samesite="lax")


def cookie_of(settings: Settings) -> Cookie:
    """As PUBLIC_URL allows it."""
    parts = urlsplit(settings.public_url or "")
    secure = parts.scheme == "https"
    path = parts.path.rstrip("/") or "/"
    prefix = "" if not secure else "__Host-" if path == "/" else "__Secure-"
    return Cookie(name=f"{prefix}menuwatch", path=path, secure=secure, seconds=round(settings.session_days * 86_400))
