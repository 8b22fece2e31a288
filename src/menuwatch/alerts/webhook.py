"""Webhooks signed by the Standard Webhooks specification (https://www.standardwebhooks.com).

`webhook-id` is the same for every attempt of one message, `webhook-timestamp` is the time of sending in seconds since 1970, and
`webhook-signature` is `v1,` and the Base64 of the HMAC-SHA256 of id, timestamp and body, joined by full stops.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
import ssl
from datetime import datetime
from hashlib import sha256

import httpx

from menuwatch import __version__
from menuwatch.alerts import ssrf_guard
from menuwatch.core.errors import Refused

SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with
MIN_KEY_BYTES = 16
MAX_ERROR_CHARACTERS = 200


class NotDelivered(Exception):
    """The receiver did not accept the message. `code` is its HTTP status; `final`: do not retry."""

    def __init__(self, reason: str, *, code: int | None = None, final: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.final = final


def signing_key(secret: str) -> bytes:
    """The key of a secret: `whsec_` and Base64, or any other text as it is. Raises Refused."""
    key = secret.encode()
    if secret.startswith(SECRET_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise Refused("a secret that begins with whsec_ must continue in Base64") from None
    if len(key) < MIN_KEY_BYTES:
        raise Refused(f"a webhook needs a secret of at least {MIN_KEY_BYTES} characters to sign its messages")
    return key


def new_secret() -> str:
    """A random secret."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, content, sha256)).decode()


async def send(
    url: str, secret: str, body: bytes, *, message_id: str, now: datetime, seconds: float, allow_private: bool
) -> int:
    """Posts the body; returns the HTTP status (2xx). Raises NotDelivered, and Forbidden for addresses that are not public.

    Connects to the address that was checked, so DNS rebinding has no effect. Redirects are not followed, no proxy is used,
    certificates are verified.
    """
    try:
        scheme, host, port = ssrf_guard.check_url(url)
        key = signing_key(secret)
    except Refused as error:  # stored before it was checked like this
        raise NotDelivered(str(error), final=True) from None
    timestamp = int(now.timestamp())
    target = httpx.URL(url)
    headers = {
        "Host": target.netloc.decode("ascii"),
        "Content-Type": "application/json",
        "User-Agent": f"menuwatch/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(key, message_id, timestamp, body),
    }
    try:
        # httpx's own limit is on each read, and a response may come byte by byte.
        async with asyncio.timeout(seconds):
            (address, *_) = await ssrf_guard.resolve(host, port, allow_private=allow_private)
            async with (
                httpx.AsyncClient(
                    verify=ssl.create_default_context() if scheme == "https" else False,
                    follow_redirects=False,
                    trust_env=False,
                    timeout=seconds,
                ) as client,
                client.stream(
                    "POST",
                    target.copy_with(host=address),
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": host} if scheme == "https" else {},
                ) as response,
            ):
                if response.is_success:
                    return response.status_code
                raise NotDelivered(
                    _why(response.status_code, host), code=response.status_code, final=response.status_code == 410
                )
    except (TimeoutError, httpx.TimeoutException):
        raise NotDelivered(f"{host} did not respond within {seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
        raise NotDelivered(
            f"{host} cannot be reached: {str(error)[:MAX_ERROR_CHARACTERS] or type(error).__name__}"
        ) from None


def _why(status: int, host: str) -> str:
    if 300 <= status < 400:
        return f"{host} responded with {status}: redirects are not followed, enter the target URL"
    if status == 410:
        return f"{host} responded with 410 Gone"
    return f"{host} responded with {status}"
