"""What a form carries from one step to the next although no page may show it: sealed under the login itself.

A list of proxies is looked at before it is brought in, and its passwords are in no page, not even in a hidden field that can be read.
The key is made of the login's cookie, which no script sees: the text is of use to nobody else, and to nobody once the login is over.
Nothing is kept here, so any replica can take the next step.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request

from menuwatch.web.cookie import cookie_of
from menuwatch.web.system import System

SECONDS = 3600
"""So long the next step may be taken."""
_LARGEST = 4_000_000


def seal(request: Request, text: str) -> str:
    """The text, so that only this login can have it opened."""
    return _key(request).encrypt(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()


def opened(request: Request, sealed: str) -> str | None:
    """The text again; None where it is another login's, too old, or none of ours."""
    try:
        packed = _key(request).decrypt(sealed.encode(), ttl=SECONDS)
        return zlib.decompressobj().decompress(packed, _LARGEST).decode("utf-8", "surrogatepass")
    except (InvalidToken, zlib.error, UnicodeError, ValueError):
        return None


def _key(request: Request) -> Fernet:
    system: System = request.app.state.system
    secret = request.cookies.get(cookie_of(system.settings).name) or request.headers.get("authorization", "")
    return Fernet(urlsafe_b64encode(hashlib.sha256(b"carried by a form: " + secret.encode()).digest()))
